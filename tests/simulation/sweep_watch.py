"""How far the sweep is behind, every half minute, less the time in which it was broken itself.

It is broken while it has not been run, or not with success, for longer than the minute of its
schedule, and while the time pointer that it follows stands still.
"""

import asyncio
from itertools import pairwise
from typing import NamedTuple

from duewheel.stores.wheel import pointers
from duewheel.wiring import process
from tests.simulation.service import Service
from tests.support.clock import NOON_MS

LOOK_SECONDS = 30
SCHEDULE_SECONDS = 60
TIME_POINTER_LATE_SECONDS = 10


class BrokenSpan(NamedTuple):
    """For tasks that are owed later than `passed`."""

    begins: float
    ends: float
    passed: float = 0.0


class SweepWatch:
    def __init__(self, service: Service) -> None:
        self.behind_seconds_max = 0.0
        self._service = service
        # Half minutes in which there was nothing to follow, and where the time pointer stood.
        self._held_up: list[tuple[float, float]] = []

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
            self._held_up.append((now, dispatched))
        swept = max(swept, 0)  # before that the service was not there
        broken_seconds: float = LOOK_SECONDS * sum(at > swept for at, _ in self._held_up)
        broken_seconds += sum(ends - begins for begins, ends in self._not_run(now) if ends > swept)
        self.behind_seconds_max = max(self.behind_seconds_max, now - swept - broken_seconds)

    def broken_spans(self) -> list[BrokenSpan]:
        """Unsorted; they may overlap. A standing time pointer hinders what it has not passed."""
        held_up = [BrokenSpan(at - LOOK_SECONDS, at, passed) for at, passed in self._held_up]
        return held_up + [BrokenSpan(*span) for span in self._not_run(self._service.seconds())]

    def _not_run(self, until: float) -> list[tuple[float, float]]:
        """Beyond a minute from one run that succeeds to the next."""
        runs = [0.0, *self._service.succeeded["sweeper"], until]
        spans = [(earlier + SCHEDULE_SECONDS, later) for earlier, later in pairwise(runs)]
        return [(begins, ends) for begins, ends in spans if begins < ends]
