"""Stop a timer whose receiver has said stop, where its owner wants it so.

On condition that it stands as it was called: who has changed it since may have mended what the
receiver complained of, and the next occurrence will tell.
"""

from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.changes import THE_SERVICE
from duewheel.rules.precondition import Precondition
from duewheel.rules.refusals import Refusal
from duewheel.rules.timer import Timer
from duewheel.workflows.change_timer import ChangeTimer


class StopTimer(Struct, frozen=True):
    change_timer: ChangeTimer

    def __call__(self, timer: Timer) -> None:
        try:
            as_called = Precondition(version=timer.version)
            self.change_timer.disable(timer.timer_id, as_called, by=THE_SERVICE)
        except Refusal as refusal:
            logger.warning(
                "the receiver said stop, and the timer goes on",
                action="timer-not-stopped",
                timer_id=timer.timer_id,
                reason=refusal.detail,
            )
            return
        logger.warning("the receiver said stop", action="timer-stopped", timer_id=timer.timer_id)
