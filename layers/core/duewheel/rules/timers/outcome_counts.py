"""Outcome counts: what the outcomes of a timer's runs add to its counters, and how many of its
latest runs have failed. A page counts its runs when they have ended."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.tasks.task import Revival, Status, Task
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.wheel.addresses import Second


class Counted(StrEnum):
    FIRED = "fired"  # called for the first time
    DELIVERED = "delivered"
    DEAD = "dead"
    EXPIRED = "expired"
    MISSED = "missed"
    SUPERSEDED = "superseded"
    SKIPPED = "skipped"
    REPLACED = "replaced"


COUNTED_AS = {
    Reason.MISSED: Counted.MISSED,
    Reason.SUPERSEDED: Counted.SUPERSEDED,
    Reason.SKIPPED: Counted.SKIPPED,
    Reason.REPLACED: Counted.REPLACED,
}
OUTCOMES = {
    Status.DELIVERED: Counted.DELIVERED,
    Status.DEAD: Counted.DEAD,
    Status.EXPIRED: Counted.EXPIRED,
}


def has_counted(task: Task, what: Counted) -> bool:
    """Whether a redriven run counts as this already. A run counts once for each way in which it
    ended."""
    return any(_counted(revival, what) for revival in task.revivals)


def _counted(revival: Revival, what: Counted) -> bool:
    if what is Counted.FIRED:
        return revival.attempts > 0
    if revival.status is Status.CANCELLED:
        return revival.reason in COUNTED_AS and COUNTED_AS[Reason(revival.reason)] is what
    return OUTCOMES.get(revival.status) is what


class FailuresInARow(Struct, frozen=True):
    """Of the runs behind a second, in the order of their due instants: so it makes no difference in
    which order they end, and a run that is looked at twice counts once. `last`: the latest one that
    failed. `is_over`: no earlier run counts."""

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
