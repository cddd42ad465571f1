"""Marks: which bulk operations have changed a task, so that none changes it twice.

An operation writes its mark in the same write as its change. A task with its mark is done: when its
page is carried out again after a crash, and when the walk meets it at another place. As many are
kept as a business has open operations, so those over the same tasks do not hide each other's.
"""

from msgspec.structs import replace

from duewheel.rules.bulk.operation import OPEN_MAX
from duewheel.rules.tasks.task import Task

MARKS_MAX = OPEN_MAX


class AlreadyMarked(Exception):
    """The operation has changed the task before."""


def is_marked(task: Task, mark: str) -> bool:
    return mark in (task.marks or "").split()


def marked(task: Task, mark: str) -> Task:
    if is_marked(task, mark):
        raise AlreadyMarked
    return replace(task, marks=" ".join([*(task.marks or "").split(), mark][-MARKS_MAX:]))
