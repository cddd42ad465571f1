"""One run of a function, and the execution environment that it runs in: what the clock and the AWS
calls of a moment belong to.

A dead process does nothing any more: whatever it still tries raises `Died`, which no handler
catches. A frozen one does nothing until another run of its function thaws it: what its threads were
about to do they do then.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from local.aws.functions import Died

DUPLICATE = "duplicate"  # the trouble of a run whose message was handed out, or sent, twice
FROZEN = "frozen with threads at work"


@dataclass(eq=False)
class Environment:
    """`deadline_seconds`: of the run that is in it. `threads_at_work`: beside the handler's own.
    `available_seconds`: from when on Lambda hands it out again. `notifier`: what it has wired."""

    function: str
    deadline_seconds: float = 0.0
    is_dead: bool = False
    is_frozen: bool = False
    threads_at_work: int = 0
    available_seconds: float = 0.0
    notifier: Any = None
    _waiting: list["asyncio.Future[None]"] = field(default_factory=list)

    def freeze(self) -> None:
        self.is_frozen = True

    def thaw(self, deadline_seconds: float) -> None:
        self.is_frozen, self.deadline_seconds = False, deadline_seconds
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def has_done(self, _: object = None) -> None:
        self.threads_at_work -= 1

    async def thawed(self) -> None:
        while self.is_frozen:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future


@dataclass(eq=False)
class Invocation:
    function: str
    number: int
    environment: Environment
    skew_ms: int
    messages: int = 1  # that it was given, each of which is a page or a part of one
    is_dead: bool = False
    troubles: list[str] = field(default_factory=list)  # faults that this run has met

    def die(self, why: str) -> None:
        self.is_dead = self.environment.is_dead = True
        self.troubles.append(why)
        raise Died(f"{self.function} {self.number}: {why}")

    def must_live(self, now_seconds: float) -> None:
        if self.is_dead or self.environment.is_dead:
            raise Died(f"{self.function} {self.number} is dead")
        if now_seconds >= self.environment.deadline_seconds:
            self.die("time is up")


current: ContextVar[Invocation | None] = ContextVar("invocation", default=None)


@contextmanager
def at_work() -> Iterator[None]:
    """A thread of the environment besides its handler's."""
    run = current.get()
    if run is None:
        yield
        return
    run.environment.threads_at_work += 1
    try:
        yield
    finally:
        run.environment.has_done()


@dataclass(frozen=True)
class Ended:
    """What became of an invocation; `answer` is there when it was not lost."""

    invocation: Invocation
    answer: Any = None
    error: BaseException | None = None

    @property
    def is_answered(self) -> bool:
        return self.error is None and not self.invocation.is_dead
