"""Failures in a row: how many of a timer's latest runs have ended undelivered.

They are counted by the runs themselves, in the order of their due instants, and not by their ends:
so it makes no difference in which order they end, and a run that is looked at twice counts once.
"""

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Second


class FailuresInARow(Struct, frozen=True):
    """Of the runs behind a second. `last`: the latest one that failed. `is_over`: no earlier run
    counts."""

    behind: Second
    count: int = 0
    last: Task | None = None
    is_over: bool = False

    def before(self, task: Task) -> "FailuresInARow":
        """With the next earlier run. One that has not ended, or was never called, says nothing, nor
        does a run by hand."""
        if task.occurrence is None or task.occurrence.manual:
            return self
        if task.occurrence.second <= self.behind:
            return replace(self, is_over=True)
        if task.status is Status.DELIVERED:
            return replace(self, is_over=True)
        if not has_failed(task):
            return self
        return replace(self, count=self.count + 1, last=self.last or task)


def has_failed(task: Task) -> bool:
    """Whether it was called, and ended undelivered by itself."""
    return task.status in (Status.DEAD, Status.EXPIRED) and task.attempts > 0
