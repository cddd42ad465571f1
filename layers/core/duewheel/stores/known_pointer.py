"""Up to where seconds may have been handed over, as a process knows it without asking for every
task."""

from duewheel.clock import Clock
from duewheel.stores import pointers
from duewheel.stores.pointers import PointerStore

_READ_EVERY_MS = 10_000


class KnownTimePointer:
    """Read every ten seconds and taken to move with the clock in between; the near rule's
    margin covers what this is off by. A leader may reach as far ahead of the clock as the record
    says, whatever profile this process has, and does so only once every process knows it."""

    def __init__(self, store: PointerStore, clock: Clock, origin: int) -> None:
        self._store = store
        self._clock = clock
        self._origin = origin
        self._position = 0
        self._ahead_seconds = 0
        self._read_ms: int | None = None

    def __call__(self) -> int:
        now_ms = self._clock.now_ms()
        if self._read_ms is None or not 0 <= now_ms - self._read_ms < _READ_EVERY_MS:
            pointer = self._store.read(pointers.TIME, self._origin, strongly=False)
            self._position, self._read_ms = pointer.position, now_ms
            self._ahead_seconds = pointer.ahead_seconds
        position = self._position + (now_ms - self._read_ms) // 1000
        return (
            max(position, now_ms // 1000 + self._ahead_seconds) if self._ahead_seconds else position
        )
