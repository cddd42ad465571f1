"""The server of a line."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from duewheel.rules.line import record as rules
from duewheel.rules.line.record import LeftBehind, Out, Record
from duewheel.rules.wheel.timing import SKEW_MS
from tests.line.actor import Actor
from tests.line.explorer import SECOND, UNSURE, Request
from tests.line.world import CALL_MS, LEASE_MS, LIFE_MS, MOST, Home, Steps


@dataclass
class UnderWay:
    scope: str
    task: str
    home: Home
    version: int
    number: int


class Server(Actor):
    """Serves the line of a scope while it has the lease."""

    def run(self, scope: str, named_ms: int | None) -> Steps:
        self.scope, self.born_ms = scope, self.now()
        self.under_way: list[UnderWay] = []
        self.nap_ms: int | None = None
        self.given: dict[str, int] = {}  # in blocks, until when
        self.by = yield self._settings()
        if self.by.is_order_alone and self.business_of(scope) is None:
            yield from self._in_order()
            return
        if self.business_of(scope) is not None:
            yield from self.wake(scope)  # the server of its business serves it
            return
        leased = yield self.update(scope, self._take(named_ms))
        if leased is None:
            return
        if leased == UNSURE:
            yield self.update(scope, self._hand_back(LeftBehind()))
            yield from self.wake(scope)
            return
        self._lease(leased)
        yield from self._serve()
        yield from self._leave()
        yield from self.put_later()

    def _settings(self) -> Request:
        """A server reads them strongly: else it would go to and fro with who has changed them."""
        is_strong = self.rules["server_reads"]
        return self.read(lambda: self.setting(self.scope, strongly=is_strong))

    # The lease

    def _lease(self, record: Record) -> None:
        self.latest_ms = record.owned_until_ms
        self.end_ms = self.latest_ms + CALL_MS
        out = record.out.get(self.run_name, Out(0, self.end_ms))
        self.free = MOST if self.by.in_flight is None else out.count

    def _take(self, named_ms: int | None) -> Callable[[Record], tuple[Any, Any]]:
        def change(record: Record) -> tuple[Record | None, Any]:
            setting, now_ms = self.by, self.now()
            named = named_ms if self.rules["one_waker"] else None
            after = rules.taken(
                record,
                self.run_name,
                setting.limits,
                self.works(self.scope),
                named,
                now_ms,
                LEASE_MS,
                CALL_MS,
                MOST,
            )
            return self._declared(after), after

        return change

    def _declared(self, after: Record | None) -> Record | None:
        if after is None or self.rules["declare"]:
            return after
        return replace(after, out={k: v for k, v in after.out.items() if k != self.run_name})

    def _renew(self) -> Callable[[Record], tuple[Any, Any]]:
        def change(record: Record) -> tuple[Record | None, Any]:
            after = rules.renewed(
                record,
                self.run_name,
                self.by.limits,
                self.works(self.scope),
                len(self.under_way),
                self.now(),
                LEASE_MS,
                CALL_MS,
                MOST,
            )
            return self._declared(after), after

        return change

    def _hand_back(self, left: LeftBehind) -> Callable[[Record], tuple[Any, Any]]:
        def change(record: Record) -> tuple[Record | None, Any]:
            works = max(self.world.works[self.scope].values(), default=0)
            after = rules.handed_back(record, self.run_name, left, works)
            return after, record.owner == self.run_name

        return change

    # Serving

    @property
    def is_over(self) -> bool:
        return self.now() > self.latest_ms or self.now() - self.born_ms >= LIFE_MS

    def _serve(self) -> Steps:
        """Until nothing can begin and nothing is under way."""
        while True:
            if self.now() > self.latest_ms - SECOND and self.now() - self.born_ms < LIFE_MS:
                self.by = yield self._settings()
                renewed = yield self.update(self.scope, self._renew())
                if renewed in (None, UNSURE):
                    self.latest_ms = -1
                else:
                    self._lease(renewed)
            self.seen = yield self.read(lambda: sorted(self.world.lines[self.scope]))
            self.nap_ms = None
            began = False
            if not self.is_over and self.by.is_open:
                began = yield from self._begin_some()
            if began:
                continue
            if not self.under_way:
                return
            numbers = tuple(one.number for one in self.under_way)
            yield Request("await", calls=numbers)
            for one in [u for u in self.under_way if self.world.calls[u.number].is_over]:
                yield from self._end(one)

    def _end(self, one: UnderWay) -> Steps:
        answer = self.world.calls[one.number].answer
        yield from self.settle(one.scope, one.task, one.home, answer, one.version)
        self.under_way.remove(one)
        if answer == "202":
            self.free -= self.rules["work_first"]
        if one.scope != self.scope:
            yield self.update(
                one.scope, lambda r: (rules.given_back(r, self._key_run(one.task), waits=True), r)
            )

    def _nap(self, until_ms: int) -> None:
        self.nap_ms = until_ms if self.nap_ms is None else min(self.nap_ms, until_ms)

    def _begin_some(self) -> Generator[Request, Any, bool]:
        """True if something was begun, or has to be looked at again."""
        if self.world.scenario.has_blocks and (yield from self._give_away()):
            return True
        for place in self.seen:
            if place[1].startswith("@"):
                went_on = yield from self._begin_of_key(place)
            else:
                went_on = yield from self._begin(self.scope, place)
            if went_on is not None:
                return went_on
        return False

    def _begin_of_key(self, place: tuple[int, str]) -> Generator[Request, Any, bool | None]:
        """The head of a key. None: the next item may be looked at."""
        key, world = place[1][1:], self.world
        line, record = yield self.read(lambda: (sorted(world.lines[key]), world.records[key]))
        if record.listed != str(place[0]):
            yield self.write(lambda: world.lines[self.scope].pop(place, None))
            return None
        if not line:
            yield from self._unlist(key, place)
            return None
        if self.rules["closed_off"]:
            is_open = yield self.read(lambda: self.setting(key, strongly=True).is_open)
            if not is_open:
                yield from self._unlist(key, place, is_closed=True)
                return True
        elif not self.setting(key).is_open:
            return None
        for item in line:
            went_on = yield from self._begin(key, item)
            if went_on is not None:
                return went_on
            if self.setting(key).in_order:
                return None
        return None

    def _unlist(self, key: str, place: tuple[int, str], *, is_closed: bool = False) -> Steps:
        def unlisted(record: Record) -> tuple[Record | None, Any]:
            if record.listed != str(place[0]):
                return None, None
            after = replace(
                record, version=record.version + 1, listed=None, waits=record.waits and is_closed
            )
            return after, None

        yield self.write(lambda: self.world.lines[self.scope].pop(place, None))
        yield self.update(key, unlisted)
        if self.rules["unlist_look"]:
            yield from self.list_key(key, self.scope)
            if self.rules["unlist_asks"]:
                record = yield self.read(lambda: self.world.records[self.scope])
                yield from self.serve_if_asked(self.scope, record)

    def _begin(self, scope: str, place: tuple[int, str]) -> Generator[Request, Any, bool | None]:
        """True: begun, or read it again. False: nothing behind it can begin. None: the next."""
        (due_ms, task), world = place, self.world
        in_order = self.setting(scope).in_order
        if any(one.task == task for one in self.under_way):
            return self._held(scope)
        if len(self.under_way) >= self.free:
            return False
        entry_ms = world.lines[scope].get(place)
        self.put_number = world.puts.get((scope, place))
        home = yield self.read(lambda: world.homes[task].seen())
        fate = self._fate(scope, due_ms, home, entry_ms)
        if fate == "drop":
            yield self.write(lambda: self._drop_same(scope, place, entry_ms))
            return None
        if fate == "admit" and in_order:
            fate = yield from self._fate_in_order(scope, place)
        if isinstance(fate, int):
            self._nap(fate)
            return self._held(scope)
        if home.blocked_until_ms > self.now():
            yield from self._postpone(scope, place, home, entry_ms)
            return None
        turn_ms = yield from self._turns(scope, task)
        if turn_ms is False:
            return self._held(scope)
        version = yield from self._admit(scope, task, home)
        if version is None:
            return True if in_order else None
        return (yield from self._call(scope, task, home, version, turn_ms or None))

    def _fate_in_order(
        self, scope: str, place: tuple[int, str]
    ) -> Generator[Request, Any, str | int]:
        """`admit`, or until when it waits for what it overtakes, or for the one under way."""
        if any(one.scope == scope for one in self.under_way):
            return self.now() + SECOND
        is_overtaking = yield self.read(lambda: self._overtakes(scope, place))
        return self.now() + SECOND if is_overtaking else "admit"

    def _held(self, scope: str) -> bool | None:
        """A key in order holds its own tasks, and not those of the business."""
        return False if self.setting(scope).in_order and scope == self.scope else None

    def _fate(self, scope: str, due_ms: int, home: Home, entry_ms: int | None) -> str | int:
        """`drop`, `admit`, or until when it has to wait."""
        in_order, now_ms = self.setting(scope).in_order, self.now()
        is_its_place = (home.scope, home.due_ms) == (scope, due_ms)
        if home.status == "working" and in_order and is_its_place:
            works = self.world.works[scope].values()  # its end wakes the line
            return max(works, default=now_ms) + SKEW_MS + SECOND
        if home.status != "pending" or (self.rules["named"] and not is_its_place):
            return "drop"
        is_another = not self.rules["leave"] or home.entry_ms != entry_ms
        if home.line is None and not in_order and is_another:
            return "drop"
        if home.admitted is not None and home.admitted[0] != self.run_name:
            until_ms = home.admitted[1] + SKEW_MS
            if not self.rules["lapse"] or now_ms <= until_ms:
                return until_ms + SECOND
        comes_ms = max(home.entry_ms, home.due_ms)
        if self.rules["not_early"] and comes_ms > now_ms:
            return comes_ms
        if self.rules["of_page"] and home.line is None and home.admitted is None:
            return now_ms + 4 * SECOND  # its page calls it, or marks it
        if home.blocked_until_ms > now_ms and in_order:
            return home.blocked_until_ms
        return "admit"

    def _drop_same(self, scope: str, place: tuple[int, str], entry_ms: int | None) -> None:
        line = self.world.lines[scope]
        if self.rules["put_number"] and self.world.puts.get((scope, place)) != self.put_number:
            return
        if not self.rules["drop_same"] or line.get(place) == entry_ms:
            line.pop(place, None)

    def _postpone(
        self, scope: str, place: tuple[int, str], home: Home, entry_ms: int | None
    ) -> Steps:
        """Its host is blocked: it leaves the line for an entry on the wheel."""
        _, task = place

        def to_wheel() -> bool:
            now = self.world.homes[task]
            if now.version != home.version or now.status != "pending":
                return False
            now.changed(line=None, admitted=None, entry_ms=home.blocked_until_ms)
            self.world.send("page", (task,), home.blocked_until_ms)
            return True

        drop = self.write(lambda: self._drop_same(scope, place, entry_ms))
        if not self.rules["breaker_home"]:
            yield drop
        done = yield self.write(to_wheel)
        if done is True and self.rules["breaker_home"]:
            yield drop

    def _key_run(self, task: str) -> str:
        return f"{self.run_name}:{task}"

    def _turns(self, scope: str, task: str) -> Generator[Request, Any, int | bool]:
        """The turn, True without one, False if there is none now."""
        limits, key_ms = self.setting(scope).limits, None
        if scope != self.scope and limits.interval_us and self.rules["key_turn"]:
            key_ms = self.now()
            if self.by.interval_ms is not None:
                record = yield self.read(lambda: self.world.records[self.scope])
                at_ms = -(-rules.next_turn_us(record, self.by.limits, self.now()) // 1000)
                if at_ms > self.now():
                    self._nap(max(at_ms, self.now() + SECOND))
                    return False
        if scope != self.scope and self.rules["key_grant"] and not limits.takes_nothing:
            got = yield self.update(scope, partial(self._of_key, scope, self._key_run(task)))
            if got == UNSURE or not got[0]:
                self._nap(max(0 if got == UNSURE else got[1], self.now() + SECOND))
                return False
        setting = self.by
        if setting.interval_ms is None:
            return True if key_ms is None else key_ms

        def own(record: Record) -> tuple[Record | None, Any]:
            turn_ms = -(-rules.next_turn_us(record, setting.limits, self.now()) // 1000)
            if record.owner != self.run_name or turn_ms > self.now():
                return None, turn_ms
            after = rules.turn_taken(record, self.run_name, setting.limits, 1, self.now())
            return (after if self.rules["turn_first"] else None), 0

        at_ms = yield self.update(self.scope, own)
        if at_ms == UNSURE or at_ms > 0:
            self._nap(self.now() + SECOND if at_ms == UNSURE else max(at_ms, self.now() + SECOND))
            return False
        return self.now() if key_ms is None else min(key_ms, self.now())

    def _of_key(self, scope: str, run: str, record: Record) -> tuple[Record | None, Any]:
        """A turn and a permit of a key, whose line this server serves; else when there may be."""
        limits, now_ms = self.setting(scope).limits, self.now()
        shown = replace(record, waits=False, owner=None)
        works = self.works(scope)
        after, grant = rules.granted(shown, run, limits, 1, works, now_ms, 0, self.end_ms)
        if not grant.count:
            return None, (0, rules.next_turn_us(record, limits, now_ms) // 1000)
        if after is not None:
            after = replace(after, waits=record.waits, owner=record.owner)
        return after, (1, 0)

    def _admit(self, scope: str, task: str, home: Home) -> Generator[Request, Any, int | None]:
        """The version of the admitted home."""
        world, end_ms = self.world, self.end_ms

        def admit() -> int | None:
            now = world.homes[task]
            if now.version != home.version or now.status != "pending":
                return None
            now.changed(admitted=(self.run_name, end_ms), line=home.due_ms)
            return now.version

        if not self.rules["admit"]:
            return home.version
        admitted = yield self.write(admit)
        if admitted == UNSURE:
            if not self.rules["unsure"]:
                return home.version + 1
            now = yield self.read(lambda: world.homes[task].seen())
            self._nap(self.now() + SECOND)
            is_mine = now.admitted is not None and now.admitted[0] == self.run_name
            return now.version if is_mine and now.version == home.version + 1 else None
        version: int | None = admitted
        return version

    def _call(
        self, scope: str, task: str, home: Home, version: int, turn_ms: int | bool | None
    ) -> Generator[Request, Any, bool]:
        turn = None if isinstance(turn_ms, bool) else turn_ms
        if self.setting(scope).in_order and self.rules["head_again"]:
            head = yield self.read(lambda: self._head(scope))
            if head is None or head[1] != task:  # another one has come in before it
                yield from self._take_back(scope, task, version)
                return True
        if not self.rules["keep_item"]:
            yield self.write(lambda: self._drop(scope, task))
        number = yield self.call(task, self.latest_ms, self.end_ms, turn)
        if number is None:
            self.was_late = True
            yield from self._take_back(scope, task, version)
            return False
        self.under_way.append(UnderWay(scope, task, home, version, number))
        return True

    def _take_back(self, scope: str, task: str, version: int) -> Steps:
        """The admission, which lapses else."""

        def back() -> None:
            now = self.world.homes[task]
            if now.version == version:
                now.changed(admitted=None)

        yield self.write(back)
        if scope != self.scope:
            key_run = self._key_run(task)
            yield self.update(scope, lambda r: (rules.given_back(r, key_run, waits=True), None))

    # Blocks

    def _give_away(self) -> Generator[Request, Any, bool]:
        """Two tasks at a time to another run, with what is declared for it."""
        given = self.given
        ids = [
            task
            for _, task in self.seen
            if not task.startswith("@") and given.get(task, 0) < self.now()
        ][:2]
        own = {one.task for one in self.under_way}
        ids = [task for task in ids if task not in own]
        if len(ids) < 2 or self.free - len(self.under_way) < 2:
            return False
        name = f"{self.run_name}+{'+'.join(ids)}+{self.now()}"
        until_ms = self.now() + LEASE_MS + CALL_MS

        def declared(record: Record) -> tuple[Record | None, Any]:
            if record.owner != self.run_name:
                return None, None
            mine = record.out.get(self.run_name, Out(0, 0))
            out = {**record.out, self.run_name: Out(mine.count - len(ids), mine.until_ms)}
            if self.by.in_flight is None:
                out = dict(record.out)
            out[name] = Out(len(ids), until_ms)
            return replace(record, version=record.version + 1, out=out), record

        if self.rules["block_out"]:
            got = yield self.update(self.scope, declared)
            if got in (None, UNSURE):
                self.latest_ms = -1
                return False
            self.free -= len(ids) if self.by.in_flight is not None else 0
        self.given = {**given, **dict.fromkeys(ids, until_ms + SKEW_MS + SECOND)}
        yield self.send("block", self.scope, name, tuple(ids), until_ms)
        return True

    # In order, without a lease

    def _in_order(self) -> Steps:
        """Admission alone decides: one task is the first, and one run admits it."""
        scope = self.scope
        self.latest_ms = self.now() + LIFE_MS
        while self.now() - self.born_ms < LIFE_MS:
            self.end_ms = self.now() + LEASE_MS + CALL_MS
            self.latest_ms = self.now() + LEASE_MS
            self.free, self.was_late, self.nap_ms = 1, False, None
            self.seen = yield self.read(lambda: sorted(self.world.lines[scope]))
            again: bool | None = False
            for place in self.seen:
                if (yield self.read(partial(self._is_of_its_page, place[1]))):
                    return  # which calls it, and looks afterwards
                again = yield from self._begin(scope, place)
                if again is not None:
                    break
            if not again and not self.was_late:
                if self.nap_ms is None or self.nap_ms > self.now() + 2 * SKEW_MS:
                    return  # an entry, or the run that has it, wakes the line
                yield Request("sleep", until_ms=self.nap_ms)  # that did, by a clock that is ahead
            for one in list(self.under_way):
                yield Request("await", calls=(one.number,))
                yield from self._end(one)
        yield self.send("serve", scope, None)

    def _is_of_its_page(self, task: str) -> bool:
        home = self.world.homes[task]
        is_left = home.line is not None or home.admitted is not None
        return home.status == "pending" and home.scope == self.scope and not is_left

    # Giving the lease back

    def _leave(self) -> Steps:
        scope, rules_on = self.scope, self.rules
        if self.is_over and self.latest_ms < self.now() and not rules_on["late_giveback"]:
            return
        is_empty, sleep_ms = not self.seen, None
        if not is_empty and rules_on["sleep"] and not self.is_over and self.by.is_open:
            record, works = self.world.records[scope], self.world.works[scope].values()
            room_ms = rules.room_from_ms(
                replace(record, out={k: o for k, o in record.out.items() if k != self.run_name}),
                self.now(),
            )
            ends = [room_ms, *(u + SKEW_MS + SECOND for u in works), self.nap_ms]
            ends += self.given.values()
            if self.free <= 0 or self.nap_ms is not None or self.given:
                sleep_ms = min((e for e in ends if e is not None), default=None)
        left = LeftBehind(is_empty=is_empty, sleep_ms=sleep_ms)
        got = yield self.update(scope, self._hand_back(left))
        if got == UNSURE:
            yield self.send("serve", scope, None)
            return
        if not got:
            return
        if not rules_on["relook"]:
            if self.is_over and self.seen:
                yield self.send("serve", scope, None)
            return
        yield from self._look_again(is_empty=is_empty, sleep_ms=sleep_ms)

    def _look_again(self, *, is_empty: bool, sleep_ms: int | None) -> Steps:
        scope, rules_on = self.scope, self.rules
        again, now, setting = yield self.read(
            lambda: (
                sorted(self.world.lines[scope]),
                self.world.records[scope],
                self.setting(scope, strongly=rules_on["open_again"]),
            )
        )
        if not setting.is_open or (not again and sleep_ms is None):
            return  # but a sleep that was written has its message, whatever is there now
        if setting != self.by:  # it was changed meanwhile
            yield self.send("serve", scope, None)
            return
        if is_empty and rules_on["set_waiting"]:
            yield self.update(scope, lambda record: (rules.entered(record), None))
        is_new = any(place not in self.seen for place in again)
        works = self.works(scope)
        room = rules.room(now, self.run_name, setting.limits, works, self.now(), MOST)
        has_more = room > max(0, self.free if self.nap_ms is None else MOST)
        if rules_on["sleep"] and sleep_ms is not None and not is_new and not has_more:
            if now.sleep_ms == sleep_ms or not rules_on["one_waker"]:
                yield self.send("serve", scope, sleep_ms, at_ms=sleep_ms - self.me.offset_ms)
            return
        yield self.send("serve", scope, None)
