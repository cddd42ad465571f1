"""One run of a function with faults: the error of its clock, and its time limit.

Invariant: the run is known everywhere in it, also in its coroutines and in the threads of its
pools. After a crash every further call of it raises `Died`.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import NoReturn

from local.aws.functions import Died
from local.control.clock import MovableClock


@dataclass(slots=True)
class Run:
    clock: MovableClock  # the stack's, not its own
    skew_ms: int
    ends_ms: int
    died: str | None = None  # of what

    def left_ms(self) -> int:
        return max(0, self.ends_ms - self.clock.now_ms())

    def must_live(self) -> None:
        if self.died is not None:
            raise Died(self.died)

    def die(self, why: str) -> NoReturn:
        self.died = why
        raise Died(why)


current: ContextVar[Run | None] = ContextVar("run", default=None)


class SkewedClock:
    """The stack's clock as each run sees it."""

    def __init__(self, clock: MovableClock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms() + _skew_ms()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    async def sleep_until_ms(self, instant_ms: int) -> None:
        await self._clock.sleep_until_ms(instant_ms - _skew_ms())

    async def sleep_beside_until_ms(self, instant_ms: int) -> None:
        await self._clock.sleep_beside_until_ms(instant_ms - _skew_ms())


def _skew_ms() -> int:
    run = current.get()
    return 0 if run is None else run.skew_ms
