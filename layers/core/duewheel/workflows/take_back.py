"""Take back: delete what a timer has planned ahead, once it is disabled or deleted.

Each transaction deletes a page of occurrences, each if it stands as it was planned, and holds only
while the timer stands as it was read. So nothing is deleted once the timer is enabled again, and
whatever plans it then finds a place free or taken, and never one that is freed later. An occurrence
that is left is cancelled when it comes up.
"""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.addresses import Address, header_place
from duewheel.rules.planning import TAKEN_BACK_MIN
from duewheel.rules.timer import Timer
from duewheel.stores.conditions import Conflict
from duewheel.stores.planned_runs import PlannedRuns
from duewheel.stores.timer_runs import RunIndex
from duewheel.stores.timers import TimerStore
from duewheel.workflows.reenter import Reenter

PAGE = TAKEN_BACK_MIN - 1  # a transaction takes a hundred parts, and one is the check
_TRIES = 5


class TakeBack(Struct, frozen=True):
    clock: Clock
    planned: PlannedRuns
    timers: TimerStore
    index: RunIndex
    reenter: Reenter

    def __call__(self, timer_id: str, timer: Timer | None, until_ms: int) -> bool:
        """Of a timer that is stopped, as it was read. Returns whether there may be more."""
        placing = self.reenter.placing()
        second = placing.now_ms // 1000
        while placing.is_near(second):
            second += 1
        behind: str | None = header_place(second)
        taken, is_refused = 0, False
        while behind is not None and self.clock.now_ms() < until_ms:
            homes, goes_on = self.index.page(
                timer_id, newest_first=False, behind=behind, limit=PAGE
            )
            deleted = self._deleted(homes, timer_id, timer)
            if is_refused := deleted is None:
                break
            taken += deleted
            behind = homes[-1].place if goes_on and homes else None
        logger.info("runs taken back", action="taken-back", timer_id=timer_id, count=taken)
        return is_refused or taken > 0

    def _deleted(self, homes: list[Address], timer_id: str, timer: Timer | None) -> int | None:
        """None: the timer has been changed, and may still be stopped."""
        for number in range(_TRIES):
            try:
                return self.planned.take_back(homes, self.timers.unchanged(timer_id, timer))
            except Conflict:
                self.clock.sleep(0.05 * (number + 1))  # somebody is changing the timer, or a run
        return None
