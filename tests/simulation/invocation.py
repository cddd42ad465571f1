"""One run of a function: what the clock and the AWS calls of a moment belong to.

A dead process does nothing any more: whatever it still tries raises `Died`, which no handler
catches.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from local.functions import Died

DUPLICATE = "duplicate"  # the trouble of a run whose message was handed out, or sent, twice


@dataclass
class Invocation:
    function: str
    number: int
    deadline_seconds: float
    skew_ms: int
    is_dead: bool = False
    troubles: list[str] = field(default_factory=list)  # faults that this run has met

    def die(self, why: str) -> None:
        self.is_dead = True
        self.troubles.append(why)
        raise Died(f"{self.function} {self.number}: {why}")

    def must_live(self, now_seconds: float) -> None:
        if self.is_dead:
            raise Died(f"{self.function} {self.number} is dead")
        if now_seconds >= self.deadline_seconds:
            self.die("time is up")


current: ContextVar[Invocation | None] = ContextVar("invocation", default=None)


@dataclass(frozen=True)
class Ended:
    """What became of an invocation; `answer` is there when it was not lost."""

    invocation: Invocation
    answer: Any = None
    error: BaseException | None = None

    @property
    def is_answered(self) -> bool:
        return self.error is None and not self.invocation.is_dead
