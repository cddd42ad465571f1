"""Change a pending task: another instant, payload or callback, or its call right now."""

from dataclasses import dataclass

from duewheel.rules.addresses import address_of_task
from duewheel.rules.change import Change, brought_forward, changed
from duewheel.rules.task import Task
from duewheel.workflows.steer import Steer


@dataclass(frozen=True, slots=True)
class ChangeTask:
    steer: Steer

    def __call__(self, task_id: str, change: Change) -> Task:
        home = address_of_task(task_id)
        return self.steer(home, lambda task, now_ms: changed(task, change, now_ms))

    def run(self, task_id: str) -> Task:
        return self.steer(address_of_task(task_id), brought_forward)
