"""Marks: which bulk operations have changed a task, so that none changes it twice.

An operation writes its mark in the same write as its change. A task with its mark is done: when its
page is carried out again after a crash, and when the walk meets it at another place. As many are
kept as a business has open operations, those of the operations that were made last. So a mark that
is older than all of these may have been dropped, and its operation leaves the task as it is.
"""

from msgspec.structs import replace

from duewheel.rules.bulk.operation import OPEN_MAX
from duewheel.rules.refusals import VersionMismatch
from duewheel.rules.tasks.task import Task

MARKS_MAX = OPEN_MAX


class AlreadyMarked(Exception):
    """The operation has changed the task before."""


def is_marked(task: Task, mark: str) -> bool:
    return mark in (task.marks or "").split()


def marked(task: Task, mark: str) -> Task:
    if is_marked(task, mark):
        raise AlreadyMarked
    marks = sorted([*(task.marks or "").split(), mark])
    if len(marks) > MARKS_MAX and marks[0] == mark:
        raise VersionMismatch(
            f"{MARKS_MAX} later operations have changed the task; whether this one has is unknown."
        )
    return replace(task, marks=" ".join(marks[-MARKS_MAX:]))
