"""Each minute: start workers if open operations have none."""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.bulk.open_ones import WORKERS
from duewheel.stores.bulk.operations import OperationStore


class WakeWorkers(Struct, frozen=True):
    clock: Clock
    store: OperationStore
    wake: Callable[[], bool]

    def __call__(self) -> None:
        now_ms = self.clock.now_ms()
        found = self.store.open_ones()
        free = sum(one.is_free(now_ms) for one in found.operations)
        # A worker also removes what is left of those that have ended.
        for _ in range(min(max(free, bool(found.ended)), WORKERS)):
            self.wake()
