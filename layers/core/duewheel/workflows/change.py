"""Change a pending task: another instant, payload or callback, or its call right now."""

from msgspec import Struct

from duewheel.rules.access import ANYTHING, Permit
from duewheel.rules.addresses import address_of_task
from duewheel.rules.change import Change, brought_forward, changed
from duewheel.rules.refusals import OfATimer
from duewheel.rules.task import Task
from duewheel.workflows.admit import Admit
from duewheel.workflows.steer import Steer


class ChangeTask(Struct, frozen=True):
    steer: Steer
    admit: Admit

    def __call__(self, task_id: str, change: Change, permit: Permit = ANYTHING) -> Task:
        home = address_of_task(task_id)

        def altered(task: Task, now_ms: int) -> Task:
            _check_own(task)
            after = changed(task, change, now_ms)
            is_another_call = change.callback is not None or change.sets_payload
            if is_another_call and not after.notice_of:
                self.admit.changed(after)
            return after

        return self.steer(home, altered, permit)

    def run(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        def altered(task: Task, now_ms: int) -> Task:
            _check_own(task)
            return brought_forward(task, now_ms)

        return self.steer(address_of_task(task_id), altered, permit)


def _check_own(task: Task) -> None:
    if task.occurrence is not None:
        raise OfATimer(
            f"Change the timer {task.occurrence.timer_id}, or run that now; this can be cancelled."
        )
