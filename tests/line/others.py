"""Blocks that a server has given away, and callers of the API."""

from collections.abc import Callable, Generator
from typing import Any

from msgspec.structs import replace

from duewheel.rules.line import record as rules
from duewheel.rules.line.record import Record
from duewheel.rules.wheel.timing import SKEW_MS
from tests.line.actor import Actor
from tests.line.explorer import SECOND, UNSURE, Request
from tests.line.world import CALL_MS, KEPT_MS, LEASE_MS, Setting, Steps


class Block(Actor):
    """Calls tasks that a server has given away."""

    def run(self, scope: str, name: str, tasks: tuple[str, ...], until_ms: int) -> Steps:
        def claimed(record: Record) -> tuple[Record | None, Any]:
            mine = record.out.get(name)
            if mine is None:
                return None, None
            out = {k: o for k, o in record.out.items() if k != name}
            out[self.run_name] = mine
            return replace(record, version=record.version + 1, out=out), mine

        claims = self.rules["claim"] and self.rules["block_out"]
        if claims:
            mine = yield self.update(scope, claimed)
            if mine in (None, UNSURE):
                if mine == UNSURE:
                    yield self.send("serve", scope, None)
                return
        calls = 0
        for task in tasks:
            calls += yield from self._one(scope, task, until_ms)
        held = self.run_name if claims else name
        record = yield self.update(scope, self._back(held))
        if record == UNSURE:
            yield self.send("serve", scope, None)
        elif self.setting(scope).is_open and (calls or not self.rules["idle_block"]):
            yield from self.serve_if_lacking(scope, record)

    def _back(self, held: str) -> Callable[[Record], tuple[Any, Any]]:
        def change(record: Record) -> tuple[Record | None, Any]:
            after = rules.given_back(record, held, waits=True)
            return after, after or record

        return change

    def _one(self, scope: str, task: str, until_ms: int) -> Generator[Request, Any, int]:
        """How many calls were made."""
        world = self.world
        home = yield self.read(lambda: world.homes[task].seen())
        if home.status != "pending" or home.scope != scope or self._is_admitted(home):
            return 0

        def admit() -> int | None:
            now = world.homes[task]
            if now.version != home.version or now.status != "pending":
                return None
            now.changed(admitted=(self.run_name, until_ms), line=home.due_ms)
            return now.version

        version = yield self.write(admit)
        if version in (None, UNSURE):
            return 0
        number = yield self.call(task, until_ms - CALL_MS, until_ms, None)
        if number is None:

            def back() -> None:
                now = world.homes[task]
                if now.version == version:
                    now.changed(admitted=None)

            yield self.write(back)
            return 0
        yield Request("await", calls=(number,))
        yield from self.settle(scope, task, home, world.calls[number].answer, version)
        return 1


class Caller(Actor):
    """Calls of the API."""

    def cancel(self, task: str) -> Steps:
        for _ in range(3):
            home = yield self.read(lambda: self.world.homes[task].seen())
            if home.status != "pending":
                return
            if home.line is not None:
                break
        else:
            return  # its cut-off is past

        def cancelled() -> bool:
            now = self.world.homes[task]
            if now.version != home.version or now.status != "pending":
                return False
            is_alive = not self.rules["lapse"] or self._is_admitted(now)
            if now.admitted is not None and is_alive:
                return False
            now.changed(status="cancelled", line=None)
            self.world.cancelled.add(task)
            return True

        is_written = yield self.write(cancelled)
        if is_written is True:
            yield self.write(lambda: self._drop(home.scope, task))
            if self.setting(home.scope).in_order:
                yield from self.wake(home.scope)

    def resume(self, scope: str) -> Steps:
        yield from self._set(scope, is_open=True)

    def raise_limit(self, scope: str) -> Steps:
        yield from self._set(scope, in_flight=2, interval_ms=None)

    def _set(self, scope: str, **changes: Any) -> Steps:
        """Whatever waits is looked at anew; also what is asleep."""
        world = self.world
        former = world.settings[scope]

        def write() -> None:
            world.former[scope] = (former, world.now_ms + KEPT_MS)
            if "in_flight" in changes:
                world.tight_ms[scope] = world.now_ms + LEASE_MS + 2 * CALL_MS
            world.settings[scope] = Setting(**{**vars(former), **changes})

        yield self.write(write)
        record = yield self.read(lambda: world.records[scope])
        has_items = yield self.read(lambda: bool(world.lines[scope]))
        waits = record.waits or has_items
        if self.rules["wake_on_end"] and waits and not record.is_served(self.now()):
            yield self.send("serve", scope, None)

    def report(self, task: str) -> Steps:
        """The end of long work."""
        for _ in range(4):
            home = yield self.read(lambda: self.world.homes[task].seen())
            if home.status == "working":
                break
            yield Request("sleep", until_ms=self.now() + 2 * SECOND)
        else:
            return
        yield from self._end_work(task, home.scope)

    def _end_work(self, task: str, scope: str) -> Steps:
        world = self.world

        def end() -> None:
            now = world.homes[task]
            if now.status == "working":
                now.changed(status="delivered")
                world.working.pop(task, None)

        def free() -> None:
            for works in world.works.values():
                works.pop(task, None)
            self._drop(scope, task)

        yield self.write(end)
        yield self.write(free)
        for each in world.scopes_of(task)[-1:]:
            yield from self.wake(each)

    def rekey(self, task: str, to: str) -> Steps:
        """A change gives the task another key."""
        world = self.world
        home = yield self.read(lambda: world.homes[task].seen())
        if home.scope == to:
            return
        cut_off_ms = max(home.entry_ms, home.due_ms) - SECOND - SKEW_MS
        is_too_late = home.line is None and self.now() >= cut_off_ms
        if home.status != "pending" or home.admitted or is_too_late:
            return

        def change() -> bool:
            now = world.homes[task]
            if now.version != home.version or now.status != "pending" or now.admitted:
                return False
            if now.line is None and self.now() >= cut_off_ms:  # answered 409, called once more
                return False
            world.moved.add(task)
            now.changed(scope=to, line=home.due_ms if now.line is not None else None)
            return True

        def move() -> bool:
            if not change():
                return False
            world.lines[to][home.due_ms, task] = home.entry_ms
            place = (to, (home.due_ms, task))
            world.puts[place] = world.puts.get(place, 0) + 1
            world.overtaking.add(place)
            world.lines[home.scope].pop((home.due_ms, task), None)
            return True

        if self.rules["move_tx"]:
            yield self.write(move)
        else:
            place = (home.due_ms, task)
            yield self.write(lambda: world.lines[to].__setitem__(place, home.entry_ms))
            yield self.write(change)
            yield self.write(lambda: world.lines[home.scope].pop(place, None))
        yield from self.after_put(to)
        yield from self.wake(home.scope)

    def pause_resume(self, scope: str) -> Steps:
        yield from self._set(scope, is_open=False)
        yield Request("sleep", until_ms=self.now() + 5 * SECOND)
        yield from self._set(scope, is_open=True)

    def off_and_on(self, scope: str) -> Steps:
        yield from self._set(scope, in_flight=None)
        yield Request("sleep", until_ms=self.now() + 3 * SECOND)
        yield from self._set(scope, in_flight=2)
        self.world.tight_ms[scope] = self.world.now_ms + LEASE_MS + 2 * CALL_MS

    def unlimit(self, scope: str) -> Steps:
        yield from self._set(scope, in_flight=None)
        for key in [one for one in self.world.settings if one.startswith(f"{scope}/")]:
            if self.world.lines[key]:
                yield self.send("serve", key, None)

    def unorder(self, scope: str) -> Steps:
        yield from self._set(scope, in_order=False)
        if self.world.lines[scope]:
            yield self.send("serve", scope, None)

    def unmark(self, scope: str) -> Steps:
        """The sweeper takes the mark of an empty line away, and looks once more."""
        world = self.world
        world.has_marks = True
        world.marks.add(scope)
        for _ in range(8):
            is_empty = yield self.read(
                lambda: not world.lines[scope] and not world.records[scope].waits
            )
            if is_empty:
                break
            yield Request("sleep", until_ms=self.now() + SECOND)
        else:
            return
        yield self.write(lambda: world.marks.discard(scope))
        is_empty = yield self.read(lambda: not world.lines[scope])
        if not is_empty:
            yield self.write(lambda: world.marks.add(scope))

    def limit(self, scope: str) -> Steps:
        yield from self._set(scope, in_flight=1)
        if self.world.lines[scope]:
            yield self.send("serve", scope, None)

    def there_and_back(self, task: str, to: str, back: str) -> Steps:
        yield from self.rekey(task, to)
        yield from self.rekey(task, back)

    def redrive(self, task: str) -> Steps:
        """Of a task that has ended: its item, its home, at its old place."""
        world = self.world
        for _ in range(6):
            home = yield self.read(lambda: world.homes[task].seen())
            if home.status == "delivered":
                break
            yield Request("sleep", until_ms=self.now() + 2 * SECOND)
        else:
            return
        entry_ms = self.now() + SECOND

        def again() -> bool:
            now = world.homes[task]
            if now.version != home.version:
                return False
            in_order = self.setting(home.scope).in_order
            world.moved.add(task)
            now.changed(status="pending", tries=now.tries + 1, entry_ms=entry_ms, line=None)
            if in_order:
                world.lines[home.scope][home.due_ms, task] = entry_ms
                world.overtaking.add((home.scope, (home.due_ms, task)))
            world.send("page", (task,), entry_ms)
            return True

        yield self.write(again)


class Lapse(Caller):
    """The deadline of long work whose end nobody has reported."""

    def run(self, task: str) -> Steps:
        home = yield self.read(lambda: self.world.homes[task].seen())
        if home.status == "working":
            yield from self._end_work(task, home.scope)
