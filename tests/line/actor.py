"""What the processes of the model share: requests, wake-ups, settling."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from duewheel.rules.line import record as rules
from duewheel.rules.line.record import Record
from duewheel.rules.wheel.timing import SKEW_MS
from tests.line.explorer import SECOND, Request, Running
from tests.line.world import CALL_MS, RETRY_MS, WORK_MS, Home, Setting, Steps, World


@dataclass
class Actor:
    world: World
    me: Running
    later: list[Callable[[], None]] = field(default_factory=list)  # works, with a rule left out

    @property
    def rules(self) -> Mapping[str, bool]:
        return self.world.rules

    @property
    def run_name(self) -> str:
        return self.me.name if self.rules["token"] else "run"

    def now(self) -> int:
        return self.world.now_ms + self.me.offset_ms

    # Requests

    def write(self, do: Callable[[], Any], *, may_be_late: bool = True) -> Request:
        return Request("write", do, may_be_late=may_be_late)

    def read(self, do: Callable[[], Any]) -> Request:
        return Request("read", do)

    def send(self, kind: str, *what: Any, at_ms: int = 0) -> Request:
        return Request("send", lambda: self.world.send(kind, what, at_ms))

    def update(self, scope: str, change: Callable[[Record], tuple[Record | None, Any]]) -> Request:
        """One conditional write of a record, with what it means to the writer."""

        def do() -> Any:
            after, meaning = change(self.world.records[scope])
            if after is not None:
                self.world.records[scope] = after
            return meaning

        return self.write(do)

    def setting(self, scope: str, *, strongly: bool = False) -> Setting:
        former, until_ms = self.world.former.get(scope, (None, 0))
        if former is not None and not strongly and self.world.now_ms <= until_ms:
            return former
        return self.world.settings[scope]

    def works(self, scope: str) -> int:
        return sum(1 for u in self.world.works[scope].values() if self.now() <= u + SKEW_MS)

    def business_of(self, scope: str) -> str | None:
        """Of a key, if its business has limits itself, or is closed."""
        business = scope.partition("/")[0]
        if business == scope or business not in self.world.settings:
            return None
        setting = self.setting(business)
        return None if setting.limits.takes_nothing and setting.is_open else business

    # What pages, servers and callers share

    def serve_if_asked(self, scope: str, record: Record) -> Steps:
        if record.asks_for_server(self.now()):
            yield self.send("serve", scope, None)

    def serve_if_lacking(self, scope: str, record: Record) -> Steps:
        is_sleeper = record.is_asleep(self.now()) and not self.rules["room_wakes"]
        if record.lacks_server(self.now()) and not is_sleeper:
            yield self.send("serve", scope, None)

    def put_later(self) -> Steps:
        while self.later:
            yield self.write(self.later.pop(0))

    def wake(self, scope: str) -> Steps:
        """Room was made, or something may wait that nobody serves."""
        if not self.rules["wake_on_end"]:
            return
        setting = self.setting(scope)
        if not setting.is_open and self.rules["wake_strong"]:
            setting = yield self.read(lambda: self.setting(scope, strongly=True))
        if not setting.is_open:
            return
        if setting.is_order_alone and self.business_of(scope) is None:
            yield from self.wake_in_order(scope)
            return
        if (business := self.business_of(scope)) is not None:
            yield from self.list_key(scope, business)
            scope = business
        record = yield self.read(lambda: self.world.records[scope])
        yield from self.serve_if_lacking(scope, record)

    def wake_in_order(self, scope: str) -> Steps:
        """The first task is served only if its page has left it to the line."""
        head = yield self.read(lambda: self._head(scope))
        if head is None:
            return
        _, _, home = head
        is_due = max(home.entry_ms, home.due_ms) <= self.now() + SKEW_MS  # by another clock
        if home.line is not None and is_due and not self._is_admitted(home):
            yield self.send("serve", scope, None)

    def _is_admitted(self, home: Home) -> bool:
        return home.admitted is not None and self.now() <= home.admitted[1] + SKEW_MS

    def _head(self, scope: str) -> tuple[int, str, Home] | None:
        for due_ms, task in sorted(self.world.lines[scope]):
            home = self.world.homes[task]
            if home.status in ("pending", "working") and home.scope == scope:
                return due_ms, task, home.seen()
        return None

    def _overtakes(self, scope: str, place: tuple[int, str]) -> bool:
        """Whether it came in before tasks of which one may be under way."""
        world = self.world
        if not self.rules["overtakes"] or (scope, place) not in world.overtaking:
            return False
        for due_ms, task in world.lines[scope]:
            home = world.homes[task]
            is_behind = (due_ms, task) > place and home.scope == scope
            comes_ms = max(home.entry_ms, home.due_ms)
            is_with_page = home.line is None and comes_ms <= self.now() + 2 * SKEW_MS
            is_under_way = home.status == "pending" and (is_with_page or self._is_admitted(home))
            if is_behind and (is_under_way or home.status == "working"):
                return True
        return False

    def list_key(self, scope: str, business: str) -> Steps:
        """The line of the business knows the key, at the place of its first task or before."""
        if not self.rules["listed"]:
            return
        first, record = yield self.read(
            lambda: (min(self.world.lines[scope], default=None), self.world.records[scope])
        )
        if self.rules["closed_off"]:
            is_open = yield self.read(lambda: self.setting(scope, strongly=True).is_open)
            if not is_open:
                return
        if first is None or (record.listed is not None and int(record.listed) <= first[0]):
            return
        line = self.world.lines[business]

        def listed(record: Record) -> tuple[Record | None, Any]:
            if record.listed is not None and int(record.listed) <= first[0]:
                return None, None
            return replace(record, version=record.version + 1, listed=str(first[0])), None

        yield self.update(scope, listed)
        yield self.write(lambda: line.__setitem__((first[0], f"@{scope}"), 0))
        yield self.update(business, lambda record: (rules.entered(record), None))

    def enter(self, scope: str, task: str, home: Home) -> Generator[Request, Any, bool]:
        """False: the task was changed meanwhile."""
        world = self.world

        def mark() -> bool:
            now = world.homes[task]
            if now.version != home.version or now.status != "pending":
                return False
            now.changed(line=home.due_ms)
            return True

        if world.has_marks:
            has_mark = yield self.read(lambda: scope in world.marks)
            if not has_mark:
                yield self.write(lambda: world.marks.add(scope))
        put = self.write(lambda: world.lines[scope].__setitem__((home.due_ms, task), home.entry_ms))
        if not self.rules["look_after"]:
            yield from self.after_put(scope)
        if self.rules["item_first"]:
            yield put
            is_marked = yield self.write(mark)
        else:
            is_marked = yield self.write(mark)
            yield put
        return is_marked is not False

    def after_put(self, scope: str) -> Steps:
        setting = self.setting(scope)
        if setting.is_order_alone and self.business_of(scope) is None:
            yield from self.wake_in_order(scope)
            return
        if (business := self.business_of(scope)) is not None:
            yield from self.list_key(scope, business)
            scope = business
        record = yield self.read(lambda: self.world.records[scope])
        if not record.waits and self.rules["set_waiting"]:
            yield self.update(scope, lambda record: (rules.entered(record), None))
            record = replace(record, waits=True)
        is_waker = self.rules["one_waker"] or not record.is_asleep(self.now())
        if not is_waker:
            record = replace(record, sleep_ms=None)
        setting = self.setting(scope)
        if not setting.is_open and self.rules["open_again"]:
            setting = yield self.read(lambda: self.setting(scope, strongly=True))
        if setting.is_open:
            yield from self.serve_if_asked(scope, record)

    def settle(self, scope: str, task: str, home: Home, answer: str, version: int | None) -> Steps:
        """`version`: of the home as it was admitted; None if its page calls it without."""
        expected: int | None = home.version if version is None else version
        if version is not None and not self.rules["settle_cond"]:
            expected = None
        put_work = partial(self._put_work, task)
        if answer == "202" and self.rules["work_first"]:
            yield self.write(put_work, may_be_late=False)
        elif answer == "202":
            self.later.append(put_work)
        held = dict(self.world.lines[scope])
        is_written = yield self.write(partial(self._end_call, scope, task, home, answer, expected))
        is_sure = is_written is True or not self.rules["drop_if_written"]
        stays = answer in ("fail", "202") and self.setting(scope).in_order
        if self.rules["keep_item"] and is_sure and not stays:
            yield self.write(lambda: self._drop_held(scope, task, held))

    def _drop_held(self, scope: str, task: str, held: Mapping[tuple[int, str], int]) -> None:
        if not self.rules["drop_held"]:
            self._drop(scope, task)
            return
        line = self.world.lines[scope]
        for place in [p for p in line if p[1] == task and line[p] == held.get(p)]:
            del line[place]

    def _put_work(self, task: str) -> None:
        world = self.world
        if task in world.working and world.now_ms > world.working[task][1] + 2 * SECOND:
            world.working.pop(task)  # it froze with the answer in hand, longer than its `out`
        until_ms = self.now() + WORK_MS
        for scope in world.scopes_of(task):
            world.works[scope][task] = until_ms
        world.send("lapse", (task,), until_ms - self.me.offset_ms)

    def _end_call(
        self, scope: str, task: str, home: Home, answer: str, expected: int | None
    ) -> bool:
        now = self.world.homes[task]
        if expected is not None and (now.version != expected or now.status != "pending"):
            return False
        if answer == "fail":
            entry_ms = self.now() + RETRY_MS
            line = home.due_ms if self.setting(scope).in_order else None
            now.changed(tries=home.tries + 1, admitted=None, entry_ms=entry_ms, line=line)
            self.world.send("page", (task,), entry_ms)
        else:
            status = "working" if answer == "202" else "delivered"
            now.changed(status=status, line=None, admitted=None)
        return True

    def _drop(self, scope: str, task: str) -> None:
        line = self.world.lines[scope]
        for place in [place for place in line if place[1] == task]:
            del line[place]

    def call(self, task: str, latest_ms: int, end_ms: int, turn_ms: int | None) -> Request:
        """None if it is too late to begin."""

        def begin() -> int | None:
            now_ms = self.now()
            is_fenced = self.rules["fence"]
            if is_fenced and (now_ms > latest_ms or now_ms + CALL_MS > end_ms):
                return None
            if self.rules["turn_fence"] and turn_ms is not None and now_ms > turn_ms + SECOND:
                return None
            return self.world.begin(self.me, task)

        return Request("call", begin)
