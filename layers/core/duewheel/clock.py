"""The one place that reads the time; all other code gets a clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Real time in AWS; the local stack and the tests bring clocks that can be moved."""

    def now_ms(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...

    async def sleep_until_ms(self, instant_ms: int) -> None:
        """Return no earlier than `instant_ms` by this clock."""

    async def sleep_beside_until_ms(self, instant_ms: int) -> None:
        """The same, for tasks that keep a run alive beside its work."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))

    async def sleep_until_ms(self, instant_ms: int) -> None:
        import asyncio  # only the notifier needs it, and it slows cold starts

        # A timer may fire a fraction early; "never before its due instant" is kept here.
        while (missing_ms := instant_ms - self.now_ms()) > 0:
            await asyncio.sleep(missing_ms / 1000)

    async def sleep_beside_until_ms(self, instant_ms: int) -> None:
        await self.sleep_until_ms(instant_ms)
