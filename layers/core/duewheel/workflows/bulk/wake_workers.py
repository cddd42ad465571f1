"""Each minute: start a worker for each open operation that has none."""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.stores.bulk.operations import OperationStore

WORKERS_MAX = 10  # begun at once


class WakeWorkers(Struct, frozen=True):
    clock: Clock
    store: OperationStore
    wake: Callable[[], bool]

    def __call__(self) -> None:
        now_ms = self.clock.now_ms()
        found = self.store.open_ones()
        free = sum(one.is_free(now_ms) for one in found.operations)
        # A worker also removes what is left of those that have ended.
        for _ in range(min(max(free, bool(found.ended)), WORKERS_MAX)):
            self.wake()
