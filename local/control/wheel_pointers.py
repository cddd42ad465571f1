"""The wheel's two pointers, moved while no function moves them.

Invariant: a pointer only moves forward, and only through the store's own functions.
"""

from collections.abc import Callable
from functools import cached_property
from secrets import token_bytes

from duewheel.rules.wheel.open_places import first_open_second
from duewheel.stores.wheel import pointers
from duewheel.stores.wheel.pointers import PointerStore

_ME = "movable clock"


class WheelPointers:
    def __init__(self, store: PointerStore, buckets: int, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._buckets = buckets
        self._now_ms = now_ms

    @cached_property
    def _origin(self) -> int:
        return self._store.shape(self._buckets, self._now_ms(), token_bytes(32)).origin

    def positions(self) -> tuple[int, int]:
        """The time pointer, and the last second up to which the sweep has finished all."""
        time_pointer = self._store.read(pointers.TIME, self._origin)
        sweep = self._store.read(pointers.SWEEP, self._origin)
        return time_pointer.position, first_open_second(sweep.open_places, sweep.position) - 1

    def skip_time_to(self, second: int) -> None:
        self._store.skip_to(pointers.TIME, self._origin, second)

    def skip_sweep_to(self, second: int) -> None:
        self._store.skip_to(pointers.SWEEP, self._origin, second)

    def free_leases(self) -> None:
        """Leader and standby have ended; their leases would only delay their successor."""
        for name in (pointers.TIME, pointers.SWEEP):
            while (
                (seen := self._store.read(name, self._origin)).owner
                or seen.standby
                or seen.candidate
            ):
                mine = self._store.claim(seen, _ME, self._now_ms())
                if mine is not None:
                    self._store.release(mine, mine.position, self._now_ms())
