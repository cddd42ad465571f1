"""A clock that a test moves by hand. Sleeping moves it, except in `sleep_beside_until_ms`."""

import asyncio
from threading import RLock

NOON_MS = 1_800_000_000_000  # a whole second, far from any real now


class ManualClock:
    def __init__(self, now_ms: int = NOON_MS) -> None:
        self._now_ms = now_ms
        self._moving = RLock()  # threads move it side by side
        self._beside: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def set_ms(self, instant_ms: int) -> None:
        with self._moving:
            if instant_ms == self._now_ms:
                return
            self._now_ms = instant_ms
            for loop, moved in tuple(self._beside):
                loop.call_soon_threadsafe(moved.set)

    def advance_ms(self, ms: int) -> None:
        with self._moving:
            self.set_ms(self._now_ms + ms)

    def reach_ms(self, instant_ms: int) -> None:
        """Not back."""
        with self._moving:
            self.set_ms(max(self._now_ms, instant_ms))

    def sleep(self, seconds: float) -> None:
        self.advance_ms(round(seconds * 1000))

    async def sleep_until_ms(self, instant_ms: int) -> None:
        self.reach_ms(instant_ms)

    async def sleep_beside_until_ms(self, instant_ms: int) -> None:
        moved = asyncio.Event()
        mine = asyncio.get_running_loop(), moved
        self._beside.append(mine)
        try:
            while self._now_ms < instant_ms:
                moved.clear()
                await moved.wait()
        finally:
            self._beside.remove(mine)
