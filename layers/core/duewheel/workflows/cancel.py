"""Cancel a task: a cancel that gets a 2xx wins, and cancelling twice is one cancel."""

from dataclasses import dataclass

from duewheel.rules import settlement
from duewheel.rules.addresses import Address, address_of_task
from duewheel.rules.refusals import AlreadySettled
from duewheel.rules.task import Status, Task
from duewheel.workflows.steer import Steer


@dataclass(frozen=True, slots=True)
class CancelTask:
    steer: Steer
    retention_seconds: int

    def __call__(self, task_id: str) -> Task:
        return self.at(address_of_task(task_id))

    def at(self, home: Address) -> Task:
        try:
            return self.steer(home, self._cancelled)
        except AlreadySettled:
            task = self.steer.find(home)
            if task.status is Status.CANCELLED:
                return task
            raise

    def _cancelled(self, task: Task, now_ms: int) -> Task:
        return settlement.cancelled(task, "cancelled by caller", now_ms, self.retention_seconds)
