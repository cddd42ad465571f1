"""How far the sweep is behind, every half minute, less the time in which it was broken itself.

It is broken while the sweeper, the scheduler, DynamoDB or the pointers' own partition is down, and
from a run of it that failed to the next one that does not.
"""

import asyncio
from collections.abc import Iterable

from duewheel.stores import pointers
from duewheel.wiring import process
from tests.simulation.service import Service
from tests.support.clock import NOON_MS

LOOK_SECONDS = 30
BEHIND_SECONDS_MAX = 240  # the sweep delay, a minute of the schedule, and a minute of its notes
TIME_POINTER_LATE_SECONDS = 10
_ITS_OWN = ("dynamodb", "sweeper", "scheduler")


class SweepWatch:
    def __init__(self, service: Service) -> None:
        self.behind_seconds_max = 0.0
        self._service = service
        self._broken: list[float] = []  # half minutes, by their end

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        now = self._service.seconds()
        origin = process.origin()
        swept = process.pointers().read(pointers.SWEEP, origin).position - NOON_MS // 1000
        dispatched = process.pointers().read(pointers.TIME, origin).position - NOON_MS // 1000
        if self._is_broken(now, dispatched):
            self._broken.append(now)
        broken_seconds = LOOK_SECONDS * sum(at > swept for at in self._broken)
        self.behind_seconds_max = max(self.behind_seconds_max, now - swept - broken_seconds)

    def _is_broken(self, now: float, dispatched: int) -> bool:
        if self._service.failed_last["sweeper"] or dispatched < now - TIME_POINTER_LATE_SECONDS:
            return True
        return any(self._was_down(second) for second in _seconds(now - LOOK_SECONDS, now))

    def _was_down(self, second: float) -> bool:
        faults = self._service.faults
        is_down = any(faults.is_down(what, second) for what in _ITS_OWN)
        return is_down or faults.is_partition_down("pointer", second)


def _seconds(begins: float, ends: float) -> Iterable[float]:
    return (begins + number for number in range(int(ends - begins) + 1))
