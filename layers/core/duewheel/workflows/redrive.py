"""Redrive: give a dead task new attempts, beginning now."""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules import settlement
from duewheel.rules.access import ANYTHING, Permit
from duewheel.rules.addresses import Address, address_of_task
from duewheel.rules.refusals import NotRedrivable, no_such_task
from duewheel.rules.task import Status, Task
from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter
from duewheel.workflows.unavailable import unavailable_when_throttled


class RedriveTask(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    reenter: Reenter

    def __call__(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        return self.at(address_of_task(task_id), permit)

    def at(self, home: Address, permit: Permit = ANYTHING) -> Task:
        now_ms = self.clock.now_ms()
        task = self.tasks.get(home)
        if task is None or task.is_internal or settlement.is_gone(task, now_ms):
            raise no_such_task()
        permit.check_found(task.biz_type, no_such_task())
        if task.status is not Status.DEAD:
            raise NotRedrivable(
                f"Only a dead task can be redriven; this one is {task.status.value}."
            )
        if settlement.is_about_to_go(task, now_ms):
            # TTL may delete the record at any moment, whatever is written to it first.
            raise NotRedrivable("The task is about to be deleted; create it anew.")
        entry = self.reenter.put(home, now_ms)
        redriven = settlement.redriven(task, entry, now_ms)
        with unavailable_when_throttled():
            is_back = self._bring_back(task, redriven)
        if not is_back:
            raise NotRedrivable(
                "The task has just been changed by another, or its key names another task."
            )
        self.reenter.announce([entry])
        return redriven

    def _bring_back(self, dead: Task, redriven: Task) -> bool:
        if dead.key is None:
            return self.tasks.change(dead, redriven)
        return self.keys.redrive(dead, redriven)
