"""A clock that stands still until a test moves it; sleeping moves it."""

NOON_MS = 1_800_000_000_000  # a whole second, far from any real now


class ManualClock:
    def __init__(self, now_ms: int = NOON_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def set_ms(self, instant_ms: int) -> None:
        self._now_ms = instant_ms

    def advance_ms(self, ms: int) -> None:
        self._now_ms += ms

    def sleep(self, seconds: float) -> None:
        self._now_ms += round(seconds * 1000)

    async def sleep_until_ms(self, instant_ms: int) -> None:
        self._now_ms = max(self._now_ms, instant_ms)
