"""The wheel's two pointers, moved while no function moves them.

Invariant: a pointer only moves forward. It is read and moved where the emulator stores it: the
clock does so some times between two events, and each request to the database would cost more than
the event.
"""

from collections.abc import Callable
from functools import cached_property
from secrets import token_bytes

from duewheel.rules.wheel.leader_election import Pointer
from duewheel.rules.wheel.open_places import first_open_second
from duewheel.stores import registry_keys
from duewheel.stores.wheel import pointers
from duewheel.stores.wheel.pointers import PointerStore, pointer_from
from local.aws.emulator import Emulator

_ME = "movable clock"


class WheelPointers:
    def __init__(
        self, emulator: Emulator, store: PointerStore, buckets: int, now_ms: Callable[[], int]
    ) -> None:
        self._emulator = emulator
        self._store = store
        self._buckets = buckets
        self._now_ms = now_ms

    @cached_property
    def _origin(self) -> int:
        return self._store.shape(self._buckets, self._now_ms(), token_bytes(32)).origin

    def positions(self) -> tuple[int, int]:
        """The time pointer, and the last second up to which the sweep has finished all."""
        sweep = self._read(pointers.SWEEP)
        swept = first_open_second(sweep.open_places, sweep.position) - 1
        return self._read(pointers.TIME).position, swept

    def skip_time_to(self, second: int) -> None:
        self._skip_to(pointers.TIME, second)

    def skip_sweep_to(self, second: int) -> None:
        self._skip_to(pointers.SWEEP, second)

    def _read(self, name: str) -> Pointer:
        item = self._emulator.item(self._store.table, registry_keys.pointer(name))
        return pointer_from(name, self._origin, item)

    def _skip_to(self, name: str, second: int) -> None:
        seen = self._read(name)
        if seen.epoch == 0:  # no function has claimed it, so it may not be stored
            self._store.skip_to(name, self._origin, second)
        elif second > seen.position:
            key, position = registry_keys.pointer(name), {"N": str(second)}
            self._emulator.set_attribute(self._store.table, key, "position", position)

    def free_leases(self) -> None:
        """Leader and standby have ended; their leases would only delay their successor."""
        for name in (pointers.TIME, pointers.SWEEP):
            while (seen := self._read(name)).owner or seen.standby or seen.candidate:
                mine = self._store.claim(seen, _ME, self._now_ms())
                if mine is not None:
                    self._store.release(mine, mine.position, self._now_ms())
