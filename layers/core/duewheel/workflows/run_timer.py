"""Run a timer now: an occurrence that somebody asked for, enabled or not, beside all others."""

from msgspec import Struct

from duewheel.rules.planning import manual_task
from duewheel.rules.refusals import TooManyWrites
from duewheel.rules.task import Task
from duewheel.rules.timer_ids import no_such_timer
from duewheel.stores.conditions import Throttled
from duewheel.stores.tasks import TaskStore
from duewheel.stores.timers import TimerStore
from duewheel.workflows.reenter import Reenter


class RunTimer(Struct, frozen=True):
    timers: TimerStore
    tasks: TaskStore
    reenter: Reenter

    def __call__(self, timer_id: str) -> Task:
        """As the timer stands when it is called, a moment later."""
        timer = self.timers.read(timer_id)
        if timer is None:
            raise no_such_timer()
        task = manual_task(timer, self.reenter.placing_now(), self.reenter.random_bytes())
        try:
            self.tasks.create(task)
        except Throttled as throttled:
            raise TooManyWrites from throttled
        self.reenter.announce([task.home])
        return task
