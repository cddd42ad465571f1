"""Lambda: environments, their growth, cold starts, and the share of a processor that each has."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bench import limits
from bench.cloud.assumed import COLD_START, VCPU_MB, Knobs
from bench.cloud.loop import Loop
from bench.cloud.rates import full
from bench.cloud.wheel_state import Writer
from duewheel.rules.wheel.queue_messages import Message

_TRY_AGAIN_MS = 100  # the interval at which the model checks whether an environment may be added

Ended = Callable[[Sequence["Failed"]], None]


@dataclass(frozen=True)
class Failed:
    """A message of a run, and the instant at which it becomes visible again."""

    message: Message
    again_after_ms: float


@dataclass(eq=False)
class Processor:
    """A function's share of a processor: one piece of work at a time, slower with less memory."""

    memory_mb: int
    free_ms: float = 0

    def done_ms(self, now_ms: float, cpu_ms: float) -> float:
        share = min(1.0, self.memory_mb / VCPU_MB)
        self.free_ms = max(self.free_ms, now_ms) + cpu_ms / share
        return self.free_ms


@dataclass(eq=False)
class Environment:
    """One notifier's process. `lines`: its call slots, until the call is settled."""

    processor: Processor
    begun_ms: float = 0
    lines: int = 0
    writer: Writer = field(default_factory=Writer)
    waiting: list[Any] = field(default_factory=list)  # calls, by when they are due
    due: list[Any] = field(default_factory=list)  # those that are, by priority
    next_ms: float | None = None  # when it checks them again


class Functions:
    """The notifier. `handle` begins the work of one invocation, and calls back when it has ended
    with the messages that failed."""

    def __init__(self, loop: Loop, random: Random, knobs: Knobs) -> None:
        self._loop = loop
        self._random = random
        self._knobs = knobs
        self._most = min(knobs.account_concurrency, limits.PROVISIONED_MOST.value)
        # Documented for ten seconds; refilled continuously.
        self._growth = full(limits.LAMBDA_ENVIRONMENTS_IN_10_S.value / 10, seconds=10)
        self._made = 0
        self._idle = [self._new() for _ in range(int(self._most))] if knobs.is_warm else []
        self._waiting: deque[tuple[Sequence[Message], Ended]] = deque()
        self._is_trying = False
        self.handle: Callable[[Environment, Sequence[Message], Ended], None]
        self.busy_ms = 0.0
        self.runs = 0
        self.running = 0
        self.running_most = 0

    def invoke(self, messages: Sequence[Message], ended: Ended) -> None:
        self._waiting.append((messages, ended))
        self._begin_all()

    def _begin_all(self) -> None:
        while self._waiting:
            environment, cold_ms = self._environment()
            if environment is None:
                if not self._is_trying:
                    self._is_trying = True
                    self._loop.at(self._loop.now_ms + _TRY_AGAIN_MS, self._try_again)
                return
            messages, ended = self._waiting.popleft()
            self.running += 1
            self.running_most = max(self.running_most, self.running)
            self.runs += 1
            environment.begun_ms = self._loop.now_ms
            self._loop.at(self._loop.now_ms + cold_ms, self._handle, environment, messages, ended)

    def _try_again(self) -> None:
        self._is_trying = False
        self._begin_all()

    def _environment(self) -> tuple[Environment | None, float]:
        if self._idle:
            return self._idle.pop(), 0
        if self._made < self._most and self._growth.take(self._loop.now_ms, 1) >= 1:
            return self._new(), COLD_START.drawn(self._random)
        return None, 0

    def _new(self) -> Environment:
        self._made += 1
        return Environment(Processor(self._knobs.notifier_mb))

    def _handle(self, environment: Environment, messages: Sequence[Message], ended: Ended) -> None:
        def over(failed: Sequence[Failed]) -> None:
            self.running -= 1
            self.busy_ms += self._loop.now_ms - environment.begun_ms
            environment.lines = 0
            self._idle.append(environment)
            ended(failed)
            self._begin_all()

        self.handle(environment, messages, over)
