"""The actions of bulk operations on one task, each with the mark of its operation in the same
write."""

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from duewheel.rules.access.grants import Access, Grant, Permit, Right
from duewheel.rules.bulk.marks import AlreadyMarked, is_marked, marked
from duewheel.rules.bulk.operation import Action, Operation
from duewheel.rules.fields import invalid
from duewheel.rules.names import AHEAD_SECONDS_MAX
from duewheel.rules.refusals import Refusal, Unavailable, WrittenTooLate
from duewheel.rules.tasks.task import Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.addresses import Address, address_named
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.change_task import Also, CancelTask, ChangeTask, PauseTask
from duewheel.workflows.tasks.redrive import RedriveTask

# The task as it is afterwards. Without the mark it was so already.
TaskAction = Callable[[Operation, Address, Permit, Also], Task]


class AsItIs(Exception):
    """The task is already as it is meant to be."""


class ChangeOneTask(Struct, frozen=True):
    """By the action of the operation. A task of another business is unknown."""

    tasks: TaskStore
    actions: Mapping[Action, TaskAction]

    def __call__(self, operation: Operation, item: str) -> bool:
        home, mark = address_named(item), operation.mark
        try:
            task = self.actions[operation.wish.action](
                operation, home, _permit(operation), partial(marked, mark=mark)
            )
        except AlreadyMarked:
            return True
        except AsItIs:
            return False
        except (Unavailable, WrittenTooLate):
            raise
        except Refusal:
            # It may have ended since this operation changed it.
            current = self.tasks.get(home)
            if current is None or not is_marked(current, mark):
                raise
            return True
        return is_marked(task, mark)


def _permit(operation: Operation) -> Permit:
    """Its business is all that the operation reaches."""
    grant = Grant(Right.WRITE, operation.biz_type)
    return Permit(Access(operation.created_by, (grant,)), Right.WRITE)


def _shifted_ms(operation: Operation, task: Task) -> int:
    shift_seconds = operation.wish.shift_seconds or 0
    due_ms = task.due_at_ms + shift_seconds * 1000
    if due_ms > operation.created_ms + AHEAD_SECONDS_MAX * 1000:
        raise invalid("shift_seconds", "would make the task due more than ten years ahead.")
    return max(0, due_ms)


class TaskActions(Struct, frozen=True):
    cancel_task: CancelTask
    change_task: ChangeTask
    redrive_task: RedriveTask
    pause_task: PauseTask

    def by_action(self) -> Mapping[Action, TaskAction]:
        return {
            Action.CANCEL: self.cancel,
            Action.RESCHEDULE: self.reschedule,
            Action.RUN: self.run,
            Action.REDRIVE: self.redrive,
            Action.PAUSE: self.pause,
            Action.RESUME: self.resume,
        }

    def cancel(self, operation: Operation, home: Address, permit: Permit, also: Also) -> Task:
        return self.cancel_task.at(home, permit=permit, also=also)

    def reschedule(self, operation: Operation, home: Address, permit: Permit, also: Also) -> Task:
        wish = operation.wish

        def change_of(task: Task) -> Change:
            due_ms = wish.due_ms
            if due_ms is None:
                return Change(due_ms=_shifted_ms(operation, task))
            if task.due_at_ms == due_ms and not is_marked(task, operation.mark):
                raise AsItIs
            return Change(due_ms=due_ms)

        return self.change_task.at(home, change_of, permit, also)

    def run(self, operation: Operation, home: Address, permit: Permit, also: Also) -> Task:
        return self.change_task.run_at(home, permit, also)

    def redrive(self, operation: Operation, home: Address, permit: Permit, also: Also) -> Task:
        return self.redrive_task.at(home, permit, also)

    def pause(self, operation: Operation, home: Address, permit: Permit, also: Also) -> Task:
        return self.pause_task.at(home, None, operation.created_by, permit, also)

    def resume(self, operation: Operation, home: Address, permit: Permit, also: Also) -> Task:
        return self.pause_task.resume_at(home, permit, also)
