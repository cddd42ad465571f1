"""Cancel a task: a cancel that gets a 2xx wins, and cancelling twice is one cancel."""

from msgspec import Struct

from duewheel.rules import settlement
from duewheel.rules.access import ANYTHING, Permit
from duewheel.rules.addresses import Address, address_of_task
from duewheel.rules.refusals import AlreadySettled
from duewheel.rules.task import Status, Task
from duewheel.stores.known_businesses import KnownBusinesses
from duewheel.workflows.steer import Steer


class CancelTask(Struct, frozen=True):
    steer: Steer
    known: KnownBusinesses

    def __call__(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        return self.at(address_of_task(task_id), permit=permit)

    def at(
        self,
        home: Address,
        reason: str = "cancelled by caller",
        permit: Permit = ANYTHING,
    ) -> Task:
        def cancelled(task: Task, now_ms: int) -> Task:
            kept_seconds = self.known.one(task.biz_type).retention_seconds
            return settlement.cancelled(task, reason, now_ms, kept_seconds)

        try:
            return self.steer(home, cancelled, permit)
        except AlreadySettled:
            task = self.steer.find(home)
            if task.status is Status.CANCELLED:
                return task
            raise
