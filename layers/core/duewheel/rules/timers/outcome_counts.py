"""Outcome counts: what the outcomes of a timer's runs add to its counters. A page counts its runs
when they have ended."""

from enum import StrEnum

from duewheel.rules.tasks.task import Revival, Status, Task
from duewheel.rules.timers.occurrence_policy import Reason


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
