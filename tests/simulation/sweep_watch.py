"""How far the sweep is behind, every half minute, less the time in which it was broken itself.

It is broken while it has not been run, or not with success, for longer than the minute of its
schedule, and while the time pointer that it follows stands still.
"""

import asyncio
from itertools import pairwise

from duewheel.stores.wheel import pointers
from duewheel.wiring import process
from tests.simulation.service import Service
from tests.support.clock import NOON_MS

LOOK_SECONDS = 30
SCHEDULE_SECONDS = 60
TIME_POINTER_LATE_SECONDS = 10


class SweepWatch:
    def __init__(self, service: Service) -> None:
        self.behind_seconds_max = 0.0
        self._service = service
        self._held_up: list[float] = []  # half minutes in which there was nothing to follow

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        now = self._service.seconds()
        origin = process.origin()
        swept = process.pointers().read(pointers.SWEEP, origin).position - NOON_MS // 1000
        dispatched = process.pointers().read(pointers.TIME, origin).position - NOON_MS // 1000
        if dispatched < now - TIME_POINTER_LATE_SECONDS:
            self._held_up.append(now)
        swept = max(swept, 0)  # before that the service was not there
        broken_seconds = LOOK_SECONDS * sum(at > swept for at in self._held_up)
        broken_seconds += self._not_run_seconds(swept, now)
        self.behind_seconds_max = max(self.behind_seconds_max, now - swept - broken_seconds)

    def _not_run_seconds(self, begins: float, ends: float) -> float:
        """Beyond a minute from one run that succeeds to the next."""
        runs = [0.0, *self._service.succeeded["sweeper"], ends]
        return sum(
            max(0.0, later - earlier - SCHEDULE_SECONDS)
            for earlier, later in pairwise(runs)
            if later > begins
        )
