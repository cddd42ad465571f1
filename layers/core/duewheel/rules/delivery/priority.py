"""Which of the tasks that wait is served first.

A task counts as due ten minutes later for each class below high. So a task of low priority that is
twenty minutes late is served before one of high priority that falls due now, and only tasks that
fall due within these twenty minutes can be served before it: none waits for ever.
"""

from enum import IntEnum

from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.retry import delay_ms
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.lifecycle import due_since_ms
from duewheel.rules.tasks.task import Task

RISES_EVERY_MS = 600_000
BACKLOG_MS = 5_000  # a page that is later waited behind others
_DEFERRED_SECONDS_MAX = 60  # the sweep waits for longer for a page of the slow lane
_DEFERRED_TIMES = 3
_BELOW_HIGH = {Priority.HIGH: 0, Priority.NORMAL: 1, Priority.LOW: 2}


class Rank(IntEnum):
    """Its priority at this instant; the smallest is served first. `RISEN`: of another priority, and
    so late that it competes with those of high priority."""

    HIGH = 0
    RISEN = 1
    NORMAL = 2
    LOW = 3


def priority_of(task: Task, business: Business) -> Priority:
    return task.priority or business.priority


def order_ms(task: Task, business: Business) -> int:
    """Of tasks that wait for the same, the one with the smallest is served first."""
    below = _BELOW_HIGH[priority_of(task, business)]
    return waits_since_ms(task, business) + below * RISES_EVERY_MS


def rank(task: Task, business: Business, now_ms: int) -> Rank:
    below = _BELOW_HIGH[priority_of(task, business)]
    if not below:
        return Rank.HIGH
    late_ms = max(0, now_ms - waits_since_ms(task, business))
    match below - late_ms // RISES_EVERY_MS:
        case 2:
            return Rank.LOW
        case 1:
            return Rank.NORMAL
        case _:
            return Rank.RISEN


def deferred_seconds(late_ms: int) -> int:
    """How much later the tasks of low priority of a late page are called: so that the notifiers
    that the lanes share first reach the pages that made this one late."""
    return min(_DEFERRED_TIMES * late_ms // 1000, _DEFERRED_SECONDS_MAX)


def waits_since_ms(task: Task, business: Business) -> int:
    """Since when it could be called, however often it was rescheduled since. Of a task that is
    retried it is not known exactly, and may be too late by the delay of its retry."""
    if not task.attempts or not task.history:
        return max(due_since_ms(task), task.created_ms)
    last = task.history[-1]
    policy = task.retry or business.retry
    return last.at_ms + last.duration_ms + (delay_ms(policy, task.attempts, 1.0) or 0)
