"""A page: it calls its tasks while nothing waits, and else puts them into the line."""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from duewheel.rules.line import record as rules
from duewheel.rules.line.record import Record
from tests.line.actor import Actor
from tests.line.explorer import SECOND, UNSURE, Request
from tests.line.world import CALL_MS, LEASE_MS, Home, Steps


class Page(Actor):
    """The tasks of a page, each group in its scope."""

    def run(self, *tasks: str) -> Steps:
        self.read_ms = self.now()
        homes = yield self.read(lambda: {task: self.world.homes[task].seen() for task in tasks})
        groups: dict[str, list[str]] = {}
        for task, home in homes.items():
            if home.status != "pending" or max(home.entry_ms, home.due_ms) > self.now() + SECOND:
                continue
            if self.rules["elsewhere"] and (home.line is not None or home.admitted):
                if self.rules["page_looks"] and not self.setting(home.scope).in_order:
                    if self.world.has_marks:
                        yield self.write(partial(self.world.marks.add, home.scope))
                    yield from self.after_put(home.scope)
                if self.setting(home.scope).in_order and home.line is not None:
                    yield Request("sleep", until_ms=max(home.entry_ms, home.due_ms))
                    yield from self.wake(home.scope)  # a retry keeps its second
                continue
            groups.setdefault(home.scope, []).append(task)
        for scope, own in groups.items():
            own.sort(key=lambda task: (homes[task].due_ms, task))
            if self.setting(scope).in_order:
                yield from self._in_order(scope, own, homes)
            else:
                yield from self._of_scope(scope, own, homes)

    def _of_scope(self, scope: str, own: list[str], homes: Mapping[str, Home]) -> Steps:
        end_ms = self.now() + LEASE_MS + CALL_MS
        scopes = [scope, *([b] if (b := self.business_of(scope)) else [])]
        count, turn_ms, took = len(own), None, []
        for each in scopes:
            grant = yield self._grant(each, count, end_ms)
            if grant == UNSURE:  # it may be out until it lapses; nothing is called
                grant = rules.Grant(0)
            took.append(each)
            count = min(count, grant.count)
            if self.setting(each).interval_ms is not None:
                own_ms = grant.turn_ms(0, None)
                turn_ms = own_ms if turn_ms is None else min(turn_ms, own_ms)
        go, rest = own[:count], own[count:]
        rest = (yield from self._call(scope, go, homes, end_ms, turn_ms)) + rest
        for each in took:
            record = yield self.update(each, self._given_back(each, waits=bool(rest)))
            if each == scope and len(scopes) > 1:
                continue
            if self.rules["wake_on_end"]:
                if record == UNSURE:
                    yield self.send("serve", each, None)
                elif self.setting(each).is_open:
                    yield from self.serve_if_lacking(each, record)
        yield from self.put_later()
        yield from self._enter(scope, rest, homes)

    def _grant(self, scope: str, wanted: int, end_ms: int) -> Request:
        setting = self.setting(scope)

        def change(record: Record) -> tuple[Record | None, rules.Grant]:
            limits, now_ms = setting.limits, self.now()
            if not self.rules["merge"]:
                record = replace(record, waits=False, owner=None)
            wanted_now = (
                min(wanted, 1) if limits.interval_us else wanted
            )  # it calls them one by one
            after, grant = rules.granted(
                record, self.run_name, limits, wanted_now, self.works(scope), now_ms, 0, end_ms
            )
            if grant.count < wanted:
                after = rules.entered(after or record) or after
            if after is not None and not self.rules["declare"]:
                after = replace(after, out={})
            return after, grant

        return self.update(scope, change)

    def _given_back(self, scope: str, *, waits: bool) -> Callable[[Record], tuple[Any, Any]]:
        def change(record: Record) -> tuple[Record | None, Record]:
            works_until_ms = max(self.world.works[scope].values(), default=0)
            after = rules.given_back(
                record, self.run_name, waits=waits, works_until_ms=works_until_ms
            )
            return after, after or record

        return change

    def _call(
        self, scope: str, tasks: list[str], homes: Mapping[str, Home], end_ms: int, turn: int | None
    ) -> Generator[Request, Any, list[str]]:
        late = []
        for task in tasks:
            number = yield self.call(task, end_ms, end_ms, turn)
            if number is None:
                late.append(task)
                continue
            yield Request("await", calls=(number,))
            yield from self.settle(scope, task, homes[task], self.world.calls[number].answer, None)
        return late

    def _in_order(self, scope: str, own: list[str], homes: Mapping[str, Home]) -> Steps:
        """The first task of the line is called by its own page, if nothing else limits it."""
        is_alone = self.setting(scope).is_order_alone and self.business_of(scope) is None
        while own:
            head = yield self.read(lambda: self._head(scope))
            if not is_alone or head is None or head[1] != own[0] or not self._is_as(head, homes):
                break
            if (yield self.read(partial(self._overtakes, scope, head[:2]))):
                break
            end_ms = self.read_ms + LEASE_MS + CALL_MS  # from the read of the settings on
            if (yield from self._call(scope, own[:1], homes, end_ms, None)):
                break
            own = own[1:]
            if self.rules["wake_on_end"] and not own:
                yield from self.wake_in_order(scope)
        yield from self._enter(scope, own, homes)

    def _enter(self, scope: str, tasks: list[str], homes: Mapping[str, Home]) -> Steps:
        changed = []
        for task in tasks:
            if not (yield from self.enter(scope, task, homes[task])):
                changed.append(task)
        if tasks:
            yield from self.after_put(scope)
        if changed:
            yield from self.run(*changed)

    def _is_as(self, head: tuple[int, str, Home], homes: Mapping[str, Home]) -> bool:
        return head[2].version == homes[head[1]].version
