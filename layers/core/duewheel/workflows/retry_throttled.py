"""Retry throttled writes as long as the invocation has time.

Meanwhile the notifier begins no further page. So notifiers send no more writes than the table
accepts, and no callback has to be repeated.
"""

from collections.abc import Callable
from itertools import count
from typing import TypeVar

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.stores.dynamodb import Throttled
from duewheel.workflows.gather_all import in_thread

FIRST_PAUSE_MS = 100
PAUSE_MS_MAX = 2_000
# The last try begins so long before the invocation ends: the SDK's own pauses are up to 7 s.
TRY_MS_MAX = 8_000

T = TypeVar("T")


class RetryThrottled(Struct, frozen=True):
    clock: Clock
    random_unit: Callable[[], float]

    async def __call__(self, write: Callable[[], T], deadline_ms: int) -> T:
        """Calls at least once. `write` may find that an earlier try was carried out."""
        for tries in count():
            try:
                return await in_thread(write)
            except Throttled:
                pause = self._pause_ms(tries, deadline_ms)
                if pause is None:
                    raise
            await self.clock.sleep_until_ms(self.clock.now_ms() + pause)
        raise AssertionError

    def on_this_thread(self, write: Callable[[], T], deadline_ms: int) -> T:
        """The same for a caller with a thread of its own, which waits meanwhile."""
        for tries in count():
            try:
                return write()
            except Throttled:
                pause = self._pause_ms(tries, deadline_ms)
                if pause is None:
                    raise
            self.clock.sleep(pause / 1000)
        raise AssertionError

    def has_time(self, deadline_ms: int) -> bool:
        """Whether a try that begins now ends before the invocation does."""
        return self.clock.now_ms() <= deadline_ms - TRY_MS_MAX

    def _pause_ms(self, tries: int, deadline_ms: int) -> int | None:
        """None if there is no time for another try."""
        pause = pause_ms(tries, self.random_unit())
        return pause if self.clock.now_ms() + pause <= deadline_ms - TRY_MS_MAX else None


def pause_ms(tries: int, random_unit: float) -> int:
    """At least half of a doubling pause, with jitter, so that throttled writers spread out."""
    longest_ms: int = min(FIRST_PAUSE_MS * 2**tries, PAUSE_MS_MAX)
    return round(longest_ms * (1 + random_unit) / 2)
