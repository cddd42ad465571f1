"""Cancel a task: a cancel that gets a 2xx wins, one that comes too late is told so."""

from dataclasses import dataclass

from duewheel.clock import Clock
from duewheel.rules import settlement, wheel
from duewheel.rules.addresses import address_of_task
from duewheel.rules.refusals import AlreadySettled, TooLate, UnknownTask
from duewheel.rules.task import Status, Task
from duewheel.stores.tasks import TaskStore

# Between read and write somebody else may change the task; each loss shows who was first.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class CancelTask:
    clock: Clock
    tasks: TaskStore
    lead_ms: int
    retention_seconds: int

    def __call__(self, task_id: str) -> Task:
        home = address_of_task(task_id)
        for _ in range(_TRIES):
            task = self.tasks.get(home)
            if task is None or settlement.is_gone(task, self.clock.now_ms()):
                raise UnknownTask("There is no task with this id.", "task_id")
            if task.status is Status.CANCELLED:
                return task
            if task.status is not Status.PENDING:
                raise AlreadySettled(f"The task is {task.status.value} already.")
            if (cancelled := self._cancel(task)) is not None:
                return cancelled
        raise TooLate("The task is being worked on: its call may be under way.")

    def _cancel(self, task: Task) -> Task | None:
        cut_off_ms = wheel.cut_off_ms(task.next_ms, self.lead_ms)
        now_ms = self.clock.now_ms()
        if now_ms >= cut_off_ms:
            raise TooLate(
                "The cut-off has passed: the call may be under way.", cut_off_ms=cut_off_ms
            )
        cancelled = settlement.cancelled(
            task, "cancelled by caller", now_ms, self.retention_seconds
        )
        if not self.tasks.change(task, cancelled):
            return None
        if self.clock.now_ms() >= cut_off_ms:
            # Written, but answered after the cut-off: a notifier may have read the task before.
            raise TooLate(
                "The cancel was written, but only after the cut-off: the call may be under way.",
                cut_off_ms=cut_off_ms,
            )
        if not task.names_its_home:
            self.tasks.delete_entry(task.entry)
        return cancelled
