"""Which of the tasks that wait is served first.

One rule: a task counts as due ten minutes later for each class below high. So it rises a class for
each ten minutes that it is late, and none waits for ever.

High priority holds among the tasks of its own business alone. Between businesses low priority
yields, and nothing overtakes.
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


class Rank(IntEnum):
    """Its priority at this instant, as far as it has risen; the smallest is served first."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


_RANKS = {Priority.HIGH: Rank.HIGH, Priority.NORMAL: Rank.NORMAL, Priority.LOW: Rank.LOW}


def order_ms(task: Task, business: Business) -> int:
    """Of tasks of a business that wait for the same, the one with the smallest is served first."""
    return waits_since_ms(task, business) + _own_rank(task, business) * RISES_EVERY_MS


def rank(task: Task, business: Business, now_ms: int) -> Rank:
    late_ms = max(0, now_ms - waits_since_ms(task, business))
    return Rank(max(Rank.HIGH, _own_rank(task, business) - late_ms // RISES_EVERY_MS))


def place_ms(task: Task, business: Business, came_ms: int) -> int:
    """Where a call stands among those of all businesses: as it came, or, if its priority is low, as
    one that comes when it has risen."""
    if _own_rank(task, business) is not Rank.LOW:
        return came_ms
    return max(came_ms, waits_since_ms(task, business) + RISES_EVERY_MS)


def _own_rank(task: Task, business: Business) -> Rank:
    return _RANKS[task.priority or business.priority]


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
