"""Explores a world of processes: which one goes on, who dies, which request fails.

A process is a generator. Each `yield` is one atomic request, message, or begin or end of a call.
The explorer picks what happens next: a process, a second of time (who is not picked is frozen), a
death, a message that is lost or doubled, a write whose reply is lost or that arrives late.
"""

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

SECOND = 1_000
Way = tuple[str, list[tuple[int, str]]]  # what is broken, and the steps, each with its second
UNSURE = "unsure"  # the reply of a write that may have been carried out
FAULTS = ("kill", "lose", "dup", "lost", "late")


class Broken(AssertionError):
    """A promise does not hold; the message says which."""


@dataclass
class Request:
    """`kind`: read, write, send, call, await or sleep."""

    kind: str
    do: Callable[[], Any] = lambda: None
    calls: tuple[int, ...] = ()  # whose ends are awaited
    until_ms: int = 0
    may_be_late: bool = True


Process = Generator[Request, Any, None]


@dataclass(eq=False)
class Running:
    name: str
    offset_ms: int
    message: "Message | None"
    steps: Process = field(init=False)
    next: Request = field(init=False)
    is_alive: bool = True
    calls: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Message:
    number: int
    kind: str
    what: tuple[Any, ...]
    at_ms: int


@dataclass
class Call:
    task: str
    at_ms: int
    by: Running
    is_over: bool = False
    answer: str = ""


@dataclass
class Scenario:
    """`faults`: how many of each kind may happen. `freezes`: time passes while processes could go
    on. `answers`: of the first call of a task. `is_slow`: calls end with their time-out.
    `has_blocks`: servers give tasks away."""

    build: Callable[["Scenario", Mapping[str, bool]], Any]
    tasks: Mapping[str, Mapping[str, Any]]
    pages: tuple[tuple[int, tuple[str, ...]], ...]
    scopes: Mapping[str, Mapping[str, Any]]
    api: tuple[tuple[str, ...], ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    freezes: bool = True
    answers: Mapping[str, str] = field(default_factory=dict)
    is_slow: bool = False
    has_blocks: bool = False
    until_seconds: int = 14
    side_by_side: int = 3
    serves_max: int = 25
    offsets: tuple[int, ...] = (0,)


class Run:
    """One way through a scenario. `world` has `now_ms`, `queue`, `running`, `calls`, `late` and
    `started(message)`, and checks its promises."""

    def __init__(self, scenario: Scenario, rules: Mapping[str, bool]) -> None:
        self.scenario = scenario
        self.world = scenario.build(scenario, rules)
        self.left = dict(scenario.faults)
        self.trace: list[tuple[int, str]] = []

    # What may happen next

    def choices(self, *, calm: bool = False) -> list[tuple[Any, ...]]:
        world, found = self.world, []
        for one in world.running:
            found += self._of_process(one, calm=calm)
        for number, call in enumerate(world.calls):
            if not call.is_over and not self.scenario.is_slow:
                found.append(("end", number, world.answer_of(call.task)))
        if len(world.running) < self.scenario.side_by_side:
            for message in world.queue:
                found += self._of_message(message, calm=calm)
        if not calm:
            found += [("thaw", number) for number in range(len(world.late))]
        can_go_on = any(one[0] == "run" for one in found)
        is_over = world.now_ms >= self.scenario.until_seconds * SECOND
        if calm:
            if not any(one[0] in ("run", "deliver", "end") for one in found):
                found.append(("tick",))
        elif not is_over and (self.scenario.freezes or not can_go_on):
            found.append(("tick",))
        return found

    def _of_process(self, one: Running, *, calm: bool) -> list[tuple[Any, ...]]:
        step = one.next
        found: list[tuple[Any, ...]] = []
        if not calm and self.left.get("kill") and one.message is not None:
            found.append(("kill", one))
        if step.kind == "await" and not any(self.world.calls[n].is_over for n in step.calls):
            return found
        if step.kind == "sleep" and self.world.now_ms + one.offset_ms < step.until_ms:
            return found
        found.append(("run", one))
        if step.kind == "write" and not calm:
            found += [("lost", one)] if self.left.get("lost") else []
            found += [("late", one)] if self.left.get("late") and step.may_be_late else []
        return found

    def _of_message(self, message: Message, *, calm: bool) -> list[tuple[Any, ...]]:
        if message.at_ms > self.world.now_ms:
            return []
        found: list[tuple[Any, ...]] = [("deliver", message)]
        if not calm and self.left.get("lose") and message.kind in ("serve", "block"):
            found.append(("lose", message))
        if not calm and self.left.get("dup"):
            found.append(("dup", message))
        return found

    # What happens

    def do(self, choice: tuple[Any, ...]) -> None:
        world, (kind, *what) = self.world, choice
        self.trace.append((world.now_ms // SECOND, self._said(choice)))
        if kind in FAULTS:
            self.left[kind] -= 1
            world.has_faults = True
        match kind:
            case "tick":
                world.is_frozen |= any(one[0] == "run" for one in self.choices())
                world.now_ms += SECOND
                world.time_passed()
            case "end":
                world.ended(*what)
            case "deliver":
                world.queue.remove(what[0])
                self._begin(what[0])
            case "dup":
                self._begin(what[0])
            case "lose":
                world.queue.remove(what[0])
            case "kill":
                world.killed(what[0])
            case "thaw":
                world.late.pop(what[0])()
            case _:
                self._step(what[0], kind)
        world.check()

    def _begin(self, message: Message) -> None:
        self.start(f"{message.kind} {' '.join(map(str, message.what))}", message)

    def start(self, name: str, message: Message | None, process: Any = None) -> None:
        offsets = self.scenario.offsets
        world = self.world
        one = Running(
            f"{name}.{world.begun}", offsets[world.begun % len(offsets)] * SECOND, message
        )
        world.begun += 1
        one.steps = world.started(one, message) if process is None else process(one)
        world.running.append(one)
        self._resume(one, None)

    def _step(self, one: Running, kind: str) -> None:
        if kind == "late":
            self.world.late.append(one.next.do)
            self._resume(one, UNSURE)
        else:
            reply = one.next.do()
            self._resume(one, UNSURE if kind == "lost" else reply)

    def _resume(self, one: Running, reply: Any) -> None:
        try:
            one.next = one.steps.send(reply)
        except StopIteration:
            one.is_alive = False
            self.world.running.remove(one)

    def _said(self, choice: tuple[Any, ...]) -> str:
        kind, *what = choice
        if kind == "run":
            return f"{what[0].name} {what[0].next.kind}"
        said = [getattr(one, "name", None) or getattr(one, "kind", None) or one for one in what]
        return " ".join(map(str, (kind, *said)))

    # To the end, without faults

    def finish(self, rng: random.Random) -> None:
        world = self.world
        for sweep in range(7):
            for _ in range(1_500):
                while world.late:
                    world.late.pop(0)()
                choices = self.choices(calm=True)
                others = [one for one in choices if one[0] != "tick"]
                if not others and not world.queue and not world.running:
                    break
                self.do(rng.choice(others or choices))
            left = world.left()
            if not left:
                world.at_end()
                return
            if not world.has_faults:
                raise Broken(f"lost wake-up: {left} wait, nobody died and nothing was lost")
            world.now_ms += 60 * SECOND
            self.trace.append((world.now_ms // SECOND, f"sweep {sweep}"))
            world.swept()
        raise Broken(f"lost: {world.left()} are never called")


WEIGHTS = {"run": 6, "deliver": 2, "end": 1.5, "tick": 1.2, "fault": 1, "thaw": 0.4}


class Walk:
    """One random way."""

    def __init__(self, run: Run, rng: random.Random) -> None:
        self._run = run
        self._rng = rng
        self._is_faulty = rng.random() < 0.7
        self._ranks: dict[Any, float] = {}
        self._frozen_until: dict[Any, int] = {}

    def step(self) -> bool:
        """False: nothing can happen any more."""
        rng, groups = self._rng, self._groups()
        names = [n for n in groups if n != "fault" or (self._is_faulty and rng.random() < 0.12)]
        if names:
            name = rng.choices(names, [WEIGHTS[n] for n in names])[0]
            self._run.do(self._ranked(groups[name]) if name == "run" else rng.choice(groups[name]))
        return bool(groups)

    def _groups(self) -> dict[str, list[tuple[Any, ...]]]:
        rng, world = self._rng, self._run.world
        if self._run.scenario.freezes and world.running and rng.random() < 0.07:
            until_ms = world.now_ms + rng.randint(3, 14) * SECOND
            self._frozen_until[rng.choice(world.running)] = until_ms
        groups: dict[str, list[tuple[Any, ...]]] = {}
        for choice in self._run.choices():
            acts = choice[0] in ("run", "lost", "late")
            if not acts or self._frozen_until.get(choice[1], 0) <= world.now_ms:
                groups.setdefault("fault" if choice[0] in FAULTS else choice[0], []).append(choice)
        return groups

    def _ranked(self, choices: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """By ranks that seldom change: long runs of one process, and long freezes."""
        rng = self._rng
        choice = max(choices, key=lambda one: self._ranks.setdefault(one[1], rng.random()))
        if rng.random() < 0.15:
            self._ranks[choice[1]] = rng.random()
        return choice


def walk(scenario: Scenario, rules: Mapping[str, bool], seed: int, depth: int = 90) -> Way | None:
    """What is broken on one random way, and the way."""
    rng = random.Random(seed)
    scenario.offsets = rng.choice([(0,), (1, -1), (-1, 1), (1, 1, -1), (-1, -1, 1)])
    run = Run(scenario, rules)
    one = Walk(run, rng)
    try:
        for call in scenario.api:
            run.start(" ".join(call), None, run.world.api(*call))
        for _ in range(depth):
            if not one.step():
                break
        run.finish(rng)
    except Broken as broken:
        return str(broken), run.trace
    return None
