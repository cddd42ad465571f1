"""Stop a timer whose receiver has said stop, where its owner wants it so.

On condition that it stands as it was called: who has changed it since may have mended what the
receiver complained of, and the next occurrence will tell.
"""

from dataclasses import dataclass, replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules import settlement
from duewheel.rules.business import RETENTION_SECONDS_MIN
from duewheel.rules.timer import Timer
from duewheel.stores.conditions import Conflict
from duewheel.stores.tasks import TaskStore
from duewheel.stores.timers import TimerStore


@dataclass(frozen=True, slots=True)
class StopTimer:
    clock: Clock
    tasks: TaskStore
    timers: TimerStore

    def __call__(self, timer: Timer) -> None:
        now_ms = self.clock.now_ms()
        stopped = replace(
            timer,
            enabled=False,
            ended=False,
            chain=None,
            version=timer.version + 1,
            updated_ms=now_ms,
        )
        actions = []
        chain = self.tasks.get_many([timer.chain]).get(timer.chain) if timer.chain else None
        if chain is not None and chain.is_live:
            ended = settlement.cancelled(chain, "timer disabled", now_ms, RETENTION_SECONDS_MIN)
            actions.append({"Update": self.tasks.update_request(chain, ended)})
        try:
            is_stopped = self.timers.change(timer, stopped, actions)
        except Conflict:
            is_stopped = False
        logger.warning(
            "the receiver said stop",
            action="timer-stopped" if is_stopped else "timer-not-stopped",
            timer_id=timer.timer_id,
        )
