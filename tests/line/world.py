"""A model of the line, to break it before it is built (docs/decisions/0057-limits.md).

The records and their transitions are those of the service (`rules/line/record.py`). A world has
homes, lines, records, works, and messages; pages, servers, blocks and callers are processes. Each
rule of `RULES` can be left out; then a way must be found on which a promise breaks.

The unit of time is a second. Clocks differ by up to SKEW_MS.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from duewheel.rules.line.record import Limits, Record
from duewheel.rules.wheel.timing import SKEW_MS
from tests.line.explorer import SECOND, Broken, Call, Message, Request, Running, Scenario

LEASE_MS, CALL_MS, LIFE_MS, HIDDEN_MS = 4 * SECOND, 3 * SECOND, 12 * SECOND, 9 * SECOND
WORK_MS, RETRY_MS, KEPT_MS = 30 * SECOND, 2 * SECOND, 2 * SECOND
MOST, IDLE_SECONDS = 99, 6
BUSINESS = "S"

RULES = {
    "item_first": "the item is put before the home says that the task is in line",
    "leave": "an item whose home still names the entry that it stands for is not dropped",
    "look_after": "who puts looks at the record after the home says so",
    "relook": "who gives the lease back looks once more",
    "sleep": "a line that cannot go on sleeps until an instant, and sends no message at once",
    "wake_on_end": "who frees room looks for a server and sends `serve`",
    "room_wakes": "room that is made wakes a line that sleeps",
    "overtakes": "in order, who came in before others waits for those that may be under way",
    "head_again": "in order, a server looks at the head once more between admission and call",
    "take_skew": "a lease, and what is out, is over for others only SKEW_MS later",
    "fence": "a call begins only while lease and declared `out` hold, and ends within the latter",
    "declare": "what a run may have out is in the record before its first call",
    "keep_item": "the item stays until the outcome is written",
    "admit": "admission is a conditional update of the home",
    "lapse": "an admission lapses with the `out` of its run, and may then be repeated",
    "drop_if_written": "the item is deleted after an outcome that was written, not a refused one",
    "settle_cond": "the outcome of an admitted task is written on condition of its admission",
    "merge": "a page's own tasks do not pass those that wait",
    "named": "the home names the place of its item: another item of it is dropped",
    "move_tx": "a change that moves the item is one transaction of home, new and old item",
    "work_first": "the item of long work is put before the permit of its call is free",
    "late_giveback": "a server whose lease is over gives it back all the same, and looks",
    "set_waiting": "who finds the record not waiting after its put writes that, and sends `serve`",
    "elsewhere": "a page leaves a task alone whose home is in line or admitted",
    "token": "an owner is a random token: a record that is made anew repeats none",
    "unsure": "after a lost reply of an admission nothing is called before the home is read again",
    "turn_first": "turns are moved on in the record before the calls that use them",
    "turn_fence": "a call that is later than its turn by more than a moment gives the turn up",
    "one_waker": "who puts into a line that is asleep sends nothing: its wake-up is under way",
    "not_early": "an item whose instant has not come is not called, and in order holds the others",
    "idle_block": "a block that has called nothing asks for no server",
    "claim": "who calls a block claims what was declared for it, once",
    "block_out": "a block is declared in the record before its message is sent",
    "listed": "who puts into the line of a key lists the key in the line of its business",
    "unlist_look": "who takes a key off the list looks at its line once more",
    "key_grant": "the server of a business takes turns and permits of a key by the key's record",
    "open_again": "who leaves a closed line reads the settings once more, strongly",
    "drop_same": "an item that stands for another entry than the one that was read stays",
    "server_reads": "a server reads the settings strongly when it takes or renews its lease",
    "unlist_asks": "who puts a key back on the list asks for a server if none is there",
    "closed_off": "a closed key is not on the list of its business",
    "drop_held": "who deletes the item of an ended task deletes the put that was there before",
    "of_page": "a task that is neither marked nor admitted is left to its page",
    "put_number": "an item says which put it is: a drop of an earlier put is refused",
    "page_looks": "a page that finds its task in line marks the scope, and looks at the record",
    "key_turn": "a turn of a key is taken when its business has one; the earlier is the fence",
    "wake_strong": "who wakes a line that it believes closed reads the settings strongly",
    "breaker_home": "a task whose host is blocked gets an entry before its item goes",
}
ALL_ON: Mapping[str, bool] = dict.fromkeys(RULES, True)

Steps = Generator[Request, Any, Any]
Begin = Callable[["World", Running], Any]


@dataclass
class Home:
    """`scope`: in whose line it would wait. `line`: the place there, if it waits. `admitted`: by
    which run, until when. `entry_ms`: of the entry on the wheel that it names."""

    scope: str
    due_ms: int
    status: str = "pending"
    version: int = 0
    line: int | None = None
    admitted: tuple[str, int] | None = None
    entry_ms: int = 0
    tries: int = 0
    blocked_until_ms: int = 0  # its host

    def changed(self, **changes: Any) -> None:
        self.version += 1
        for name, value in changes.items():
            setattr(self, name, value)

    def seen(self) -> "Home":
        return Home(**vars(self))


@dataclass(frozen=True)
class Setting:
    in_flight: int | None = None
    interval_ms: int | None = None
    in_order: bool = False
    is_open: bool = True

    @property
    def limits(self) -> Limits:
        interval_us = None if self.interval_ms is None else self.interval_ms * 1000
        return Limits(interval_us=interval_us, in_flight=self.in_flight, is_open=self.is_open)

    @property
    def is_order_alone(self) -> bool:
        return self.in_order and self.limits.takes_nothing and self.is_open


@dataclass
class World:
    scenario: Scenario
    rules: Mapping[str, bool]
    begins: Mapping[str, Begin]
    now_ms: int = 0
    begun: int = 0
    serves: int = 0
    idle_seconds: int = 0
    sent: int = 0
    has_faults: bool = False
    is_frozen: bool = False
    homes: dict[str, Home] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    lines: dict[str, dict[tuple[int, str], int]] = field(default_factory=dict)
    works: dict[str, dict[str, int]] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    former: dict[str, tuple[Setting, int]] = field(default_factory=dict)  # read for KEPT_MS more
    queue: list[Message] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    late: list[Callable[[], Any]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    # What is true, whether somebody has written it or not
    working: dict[str, tuple[int, int]] = field(default_factory=dict)  # until, answered
    puts: dict[Any, int] = field(default_factory=dict)
    overtaking: set[Any] = field(default_factory=set)  # items of tasks that came in before others
    marks: set[str] = field(default_factory=set)
    has_marks: bool = False
    tight_ms: dict[str, int] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    called: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(
        scenario: Scenario, rules_on: Mapping[str, bool], begins: Mapping[str, Begin]
    ) -> "World":
        """`begins`: the process that each kind of message begins, and `api`."""
        world = World(scenario, rules_on, begins)
        for scope, values in scenario.scopes.items():
            world.settings[scope] = Setting(**values)
            world.records[scope], world.lines[scope], world.works[scope] = Record(), {}, {}
        for name, values in scenario.tasks.items():
            world._make(name, **values)
        for at, tasks in scenario.pages:
            world.send("page", tasks, at * SECOND)
        for scope, record in world.records.items():
            if record.waits and world.settings[scope].is_open:
                world.send("serve", (scope, None))
        return world

    def _make(
        self, name: str, due: int = 0, scope: str = BUSINESS, blocked: int = 0, waits: bool = False
    ) -> None:
        home = Home(scope, due * SECOND, entry_ms=due * SECOND, blocked_until_ms=blocked * SECOND)
        self.homes[name] = home
        if self.settings[scope].in_order or waits:
            self.lines[scope][home.due_ms, name] = home.entry_ms
        if waits:
            home.line = home.due_ms
            self.records[scope] = replace(self.records[scope], waits=True)

    # Messages

    def send(self, kind: str, what: tuple[Any, ...], at_ms: int = 0) -> None:
        self.sent += 1
        self.queue.append(Message(self.sent, kind, what, at_ms))
        self.serves += kind == "serve"

    def started(self, one: Running, message: Message | None) -> Steps:
        assert message is not None
        steps: Steps = self.begins[message.kind](self, one).run(*message.what)
        return steps

    def api(self, verb: str, *what: str) -> Callable[[Running], Steps]:
        return lambda one: getattr(self.begins["api"](self, one), verb)(*what)

    # Truth

    def scopes_of(self, task: str) -> list[str]:
        scope = self.homes[task].scope
        business = scope.partition("/")[0]
        return [scope] if business == scope or business not in self.settings else [scope, business]

    def busy(self, scope: str) -> int:
        """A receiver that works on after its answer reached nobody is not counted."""
        calls = sum(
            1 for call in self.calls if not call.is_over and scope in self.scopes_of(call.task)
        )
        return calls + sum(
            1
            for task, (until_ms, answered_ms) in self.working.items()
            if scope in self.scopes_of(task)
            and self.now_ms < until_ms
            and (self._is_work_noted(task) or self.now_ms <= answered_ms + 2 * SECOND)
        )

    def _is_work_noted(self, task: str) -> bool:
        return any(task in works for works in self.works.values())

    def begin(self, one: Running, task: str) -> int:
        home = self.homes[task]
        if task in self.cancelled:
            raise Broken(f"{task} is called after a cancel that was granted")
        if self.now_ms < home.due_ms - SKEW_MS:
            raise Broken(f"{task} is called before its instant")
        for scope in self.scopes_of(task):
            self._check_scope(scope, task, home)
        self.called[task] = self.called.get(task, 0) + 1
        is_calm = not self.has_faults and not self.is_frozen
        if is_calm and self.called[task] > 1 + home.tries:
            raise Broken(f"{task} is called twice")
        self.calls.append(Call(task, self.now_ms, one))
        one.calls.append(len(self.calls) - 1)
        return len(self.calls) - 1

    def _check_scope(self, scope: str, task: str, home: Home) -> None:
        setting = self.settings[scope]
        if self.now_ms < self.tight_ms.get(scope, 0):
            return
        if setting.in_flight is not None and self.busy(scope) >= setting.in_flight:
            raise Broken(f"more than {setting.in_flight} of {scope} under way: {task}")
        others = [
            call.task
            for call in self.calls
            if not call.is_over and scope in self.scopes_of(call.task) and call.task != task
        ]
        # A doubled message may repeat a call, of a task that has ended meanwhile.
        is_repeat = home.status != "pending"
        if (
            setting.in_order
            and not is_repeat
            and any(self.homes[t].status == "pending" for t in others)
        ):
            raise Broken(f"{task} is called beside another one of {scope}")
        if setting.interval_ms is not None:
            own = [c.at_ms for c in self.calls if scope in self.scopes_of(c.task)]
            if own and self.now_ms - own[-1] < setting.interval_ms - SKEW_MS - SECOND:
                raise Broken(f"{task} is called {self.now_ms - own[-1]} ms after the one before")
        if setting.in_order and not self.has_faults:
            for other, ahead in self.homes.items():
                is_ahead = (ahead.due_ms, other) < (home.due_ms, task) and ahead.scope == scope
                if is_ahead and other not in self.moved and ahead.status == "pending":
                    raise Broken(f"order: {task} is called before {other}")

    def answer_of(self, task: str) -> str:
        return self.scenario.answers.get(task, "ok") if self.homes[task].tries == 0 else "ok"

    def ended(self, number: int, answer: str) -> None:
        call = self.calls[number]
        call.is_over, call.answer = True, answer
        if answer == "202" and call.by.is_alive:
            self.working[call.task] = (self.now_ms + WORK_MS, self.now_ms)

    def time_passed(self) -> None:
        for number, call in enumerate(self.calls):
            if not call.is_over and self.now_ms >= call.at_ms + CALL_MS:
                self.ended(number, "ok")
        is_idle = any(map(self._is_idle, self.settings))
        self.idle_seconds = self.idle_seconds + 1 if is_idle else 0
        if self.idle_seconds > IDLE_SECONDS and not self.has_faults and not self.is_frozen:
            raise Broken("a task waits beside free room")

    def _is_idle(self, scope: str) -> bool:
        """Whether a permit is free while a task waits for one, and nobody does anything."""
        setting = self.settings[scope]
        is_plain = setting.is_open and not setting.in_order and setting.interval_ms is None
        if setting.in_flight is None or not is_plain or self.running:
            return False
        if any(message.at_ms <= self.now_ms for message in self.queue):
            return False
        waiting = [self.homes[task] for _, task in self.lines[scope] if not task.startswith("@")]
        return self.busy(scope) < setting.in_flight and any(
            home.status == "pending"
            and home.line is not None
            and max(home.entry_ms, home.due_ms, home.blocked_until_ms) <= self.now_ms
            for home in waiting
        )

    def killed(self, one: Running) -> None:
        one.is_alive = False
        self.running.remove(one)
        for number in one.calls:  # an answer that nobody has read: its work is known to nobody
            if not self._is_work_noted(self.calls[number].task):
                self.working.pop(self.calls[number].task, None)
        assert one.message is not None
        self.send(one.message.kind, one.message.what, self.now_ms + HIDDEN_MS)

    def check(self) -> None:
        if self.serves > self.scenario.serves_max:
            raise Broken(f"a hot loop: {self.serves} messages for {len(self.homes)} tasks")
        for task in self.cancelled:
            if self.homes[task].status != "cancelled":
                raise Broken(f"{task} was cancelled, and is {self.homes[task].status}")

    def left(self) -> list[str]:
        return [
            task
            for task, home in self.homes.items()
            if home.status == "pending"
            and all(self.settings[scope].is_open for scope in self.scopes_of(task))
        ]

    def at_end(self) -> None:
        """What ended leaves nothing behind that would be read again and again."""
        for scope, line in self.lines.items():
            is_closed = not self.settings[scope].is_open
            items = [place for place in line if not place[1].startswith("@")]
            if items and not is_closed and not self.has_faults:
                raise Broken(f"items of nobody in {scope}: {items}")

    def swept(self) -> None:
        """The sweep finds lines that nobody serves, and pages that ended without their tasks."""
        marked = [scope for scope in self.lines if not self.has_marks or scope in self.marks]
        for scope in marked:
            if self.lines[scope] and self.settings[scope].is_open:
                self._sweep_line(scope)
        for task, home in self.homes.items():
            if home.status == "pending" and home.line is None:
                self.send("page", (task,))
        for scope in marked:
            if "/" not in scope and self.records[scope].lacks_server(self.now_ms):
                self.send("serve", (scope, None))

    def _sweep_line(self, scope: str) -> None:
        self.records[scope] = replace(self.records[scope], waits=True)
        business = scope.partition("/")[0]
        if business != scope and business in self.settings:
            first = min(self.lines[scope])[0]
            self.lines[business][first, f"@{scope}"] = 0
            self.records[scope] = replace(self.records[scope], listed=str(first))
            self.records[business] = replace(self.records[business], waits=True)
        elif not self.records[scope].is_served(self.now_ms):
            self.send("serve", (scope, None))
