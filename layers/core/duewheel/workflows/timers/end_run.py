"""A run whose receiver works on after its call, and its timer: what is called by it, and what its
end means for it.
"""

from msgspec import Struct

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.occurrence_policy import with_timer_fields
from duewheel.rules.timers.outcome_counts import OUTCOMES
from duewheel.rules.timers.timer import Timer
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.timers.disable_timer import DisableTimer
from duewheel.workflows.timers.keep_apart import WakeWaiting


class EndRun(Struct, frozen=True):
    timers: TimerStore
    counters: CounterStore
    disable_timer: DisableTimer
    wake: WakeWaiting

    def as_called(self, task: Task) -> tuple[Task, Timer | None]:
        """A pending occurrence has none of the fields of its timer. None: that is deleted, or
        cannot be read."""
        if task.occurrence is None:
            return task, None
        timer_id = task.occurrence.timer_id
        timer = self.timers.read_many([timer_id]).get(timer_id)
        if not isinstance(timer, Timer):
            return task, None
        return with_timer_fields(task, task.occurrence, timer), timer

    def ended(self, before: Task, timer: Timer | None, status: Status, outcome: Outcome) -> None:
        """The first call of an occurrence was counted by its page."""
        if before.occurrence is None:
            return
        if status in OUTCOMES:
            self.counters.add(before.occurrence.timer_id, {OUTCOMES[status]: 1})
        if timer is None:
            return
        self.wake(timer)
        if status in (Status.DEAD, Status.EXPIRED):
            self.disable_timer.after(timer, before, _of_receiver(before, timer, outcome))

    def left(self, before: Task) -> None:
        """A caller has cancelled a run that may have been under way."""
        _, timer = self.as_called(before)
        if timer is not None:
            self.wake(timer)


def _of_receiver(before: Task, timer: Timer, outcome: Outcome) -> Outcome | None:
    """A timer that was changed since the call goes on: the receiver does not know it as it is."""
    is_known = before.running is None or timer.updated_ms < before.running.call.at_ms
    return outcome if outcome.stopped_by_receiver and is_known else None
