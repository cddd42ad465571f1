"""One run of a function while things go wrong: what its clock is off by, and how long it has.

Invariant: the run is known wherever it is at work, in its coroutines and in its pools' threads
too. One that died does nothing any more: whatever it still tries raises `Died`.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest.mock import patch

from local.clock import MovableClock
from local.functions import Died


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


def _skew_ms() -> int:
    run = current.get()
    return 0 if run is None else run.skew_ms


@contextmanager
def pools_keep_the_run() -> Iterator[None]:
    """A pool's threads work for whichever run handed the work in. Coroutines and
    `asyncio.to_thread` need no help."""
    submit = ThreadPoolExecutor.submit

    def submit_with_run(
        pool: ThreadPoolExecutor, work: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> "Future[Any]":
        return submit(pool, copy_context().run, work, *arguments, **named)

    with patch.object(ThreadPoolExecutor, "submit", submit_with_run):
        yield
