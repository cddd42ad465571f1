"""The stack's clock: real time plus its advances, or frozen.

Invariant: it never goes back. While it is frozen `sleep` returns at once, and a wait for an instant
ends when the clock is set to it or runs again.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Condition, get_ident


@dataclass(eq=False, slots=True)
class _Sleeper:
    instant_ms: int
    thread: int
    loop: asyncio.AbstractEventLoop
    is_beside: bool
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class MovableClock:
    def __init__(self, start_ms: int | None = None, *, frozen: bool = False) -> None:
        self._changed = Condition()
        self._now_ms = real_ms() if start_ms is None else start_ms
        self._ahead_ms = self._now_ms - real_ms()
        self._frozen = frozen
        self._stopped = False
        self._sleepers: set[_Sleeper] = set()
        self._ticks = 0
        self._last_lain_down = 0.0

    def now_ms(self) -> int:
        with self._changed:
            if not self._frozen:
                self._now_ms = max(self._now_ms, real_ms() + self._ahead_ms)
            return self._now_ms

    @property
    def is_frozen(self) -> bool:
        return self._frozen

    def freeze(self) -> None:
        with self._changed:
            self.now_ms()
            self._frozen = True
            self._announce()

    def unfreeze(self) -> None:
        """Run on from the present instant."""
        with self._changed:
            if self._frozen:
                self._ahead_ms = self._now_ms - real_ms()
                self._frozen = False
                self._announce()

    @property
    def is_ahead(self) -> bool:
        """Of real time."""
        return self.now_ms() > real_ms()

    def follow_real_time(self) -> None:
        """Run in real time, of which it is not ahead."""
        with self._changed:
            self._ahead_ms = 0
            self._frozen = False
            self._announce()

    def set_ms(self, instant_ms: int) -> None:
        """Move the frozen clock ahead; a past instant has no effect."""
        with self._changed:
            if not self._frozen:
                raise RuntimeError("only a frozen clock can be set")
            self._now_ms = max(self._now_ms, instant_ms)
            self._wake(one for one in self._sleepers if one.instant_ms <= self._now_ms)

    def stop(self) -> None:
        """End every `sleep`. Waits for an instant never end: no work may begin any more."""
        with self._changed:
            self._stopped = True
            self._announce()

    @property
    def ticks(self) -> int:
        """The number of sleeps so far: each tick of the scheduler ends with a sleep."""
        return self._ticks

    def sleep(self, seconds: float) -> None:
        with self._changed:
            self._ticks += 1
            until_ms = self.now_ms() + seconds * 1000
            while not (self._frozen or self._stopped):
                missing_ms = until_ms - self.now_ms()
                if missing_ms <= 0:
                    return
                self._changed.wait(missing_ms / 1000)

    async def sleep_until_ms(self, instant_ms: int) -> None:
        await self._sleep_until(instant_ms, is_beside=False)

    async def sleep_beside_until_ms(self, instant_ms: int) -> None:
        """A thread that sleeps by this may still be working."""
        await self._sleep_until(instant_ms, is_beside=True)

    async def _sleep_until(self, instant_ms: int, *, is_beside: bool) -> None:
        if self.now_ms() >= instant_ms:
            return
        sleeper = _Sleeper(instant_ms, get_ident(), asyncio.get_running_loop(), is_beside)
        with self._changed:
            self._sleepers.add(sleeper)
            if not is_beside:
                self._last_lain_down = time.monotonic()
        try:
            while True:
                sleeper.wake.clear()
                missing_seconds = self._missing_seconds(instant_ms)
                if missing_seconds == 0:
                    return
                try:
                    async with asyncio.timeout(missing_seconds):
                        await sleeper.wake.wait()
                except TimeoutError:
                    pass  # by real time; the loop reads the clock
        finally:
            with self._changed:
                self._sleepers.discard(sleeper)

    def next_wake_ms(self) -> int | None:
        """The earliest instant of all waits."""
        with self._changed:
            return min((s.instant_ms for s in self._sleepers), default=None)

    def quiet_seconds(self) -> float:
        """How long ago, in real time, the last wait for an instant began."""
        return time.monotonic() - self._last_lain_down

    def threads_asleep(self) -> set[int]:
        """Threads that wait for a future instant."""
        with self._changed:
            now_ms = self.now_ms()
            waiting = {
                s.thread for s in self._sleepers if s.instant_ms > now_ms and not s.is_beside
            }
            return waiting - {s.thread for s in self._sleepers if s.instant_ms <= now_ms}

    def _missing_seconds(self, instant_ms: int) -> float | None:
        """None while the clock is frozen."""
        with self._changed:
            missing_ms = max(0, instant_ms - self.now_ms())
            if missing_ms and (self._frozen or self._stopped):
                return None
            return missing_ms / 1000

    def _announce(self) -> None:
        """All waits read the clock again."""
        self._changed.notify_all()
        self._wake(self._sleepers)

    @staticmethod
    def _wake(sleepers: Iterable[_Sleeper]) -> None:
        for sleeper in sleepers:
            sleeper.loop.call_soon_threadsafe(sleeper.wake.set)


def real_ms() -> int:
    return time.time_ns() // 1_000_000
