"""Outcome counts: what the outcomes of a timer's runs add to its counters.

A page counts the runs that are in the index. The chain counts those that step records name, when
they have ended: it folds them into the counters, up to a second.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import groupby

from msgspec import Struct

from duewheel.rules.tasks.task import Revival, Status, Task
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.wheel.addresses import Address

OPEN_MAX = 20  # with them the record of the counters stays below a kilobyte
FOLDED_BEHIND_SECONDS = 60  # of now: most runs that are due have ended by then
KEPT_SECONDS_MIN = 2 * 86_400  # of runs that are folded: a chain falls due once a day at least


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


def is_folded(task: Task) -> bool:
    """Whether the next outcome of this run is counted by folding, and not by its page: until its
    first end."""
    return task.occurrence is not None and not task.occurrence.indexed and not task.redrives


def counts_of(task: Task) -> Counter[Counted]:
    """What its first end counts as, and the first call of one that has not ended."""
    return _counts(task.revivals[0] if task.revivals else task)


def has_counted(task: Task, what: Counted) -> bool:
    """Whether a redriven run counts as this already. A run counts once for each way in which it
    ended."""
    return any(what in _counts(revival) for revival in task.revivals)


def _counts(ended: Task | Revival) -> Counter[Counted]:
    counts = Counter[Counted]()
    if ended.attempts:
        counts[Counted.FIRED] = 1
    if ended.status in OUTCOMES:
        counts[OUTCOMES[ended.status]] = 1
    if ended.status is Status.CANCELLED and ended.reason in COUNTED_AS:
        counts[COUNTED_AS[Reason(ended.reason)]] = 1
    return counts


class Folded(Struct, frozen=True):
    """The runs that step records name and that are due before `until_second` are in the counters,
    except for those that had not ended."""

    until_second: int = 0
    open_homes: tuple[Address, ...] = ()


class Fold(Struct, frozen=True):
    counts: Counter[Counted]
    after: Folded


def fold(
    before: Folded, homes: Sequence[Address], tasks: Mapping[Address, Task], until_second: int
) -> Fold:
    """Count what has ended of the homes left open and of these, which are all that are due before
    `until_second`, in order. It stops at a second whose runs cannot all be left open."""
    counts = Counter[Counted]()
    still_open = _fold(before.open_homes, tasks, counts)
    for second, group in groupby(homes, key=lambda home: home.second):
        more = Counter[Counted]()
        pending = _fold(list(group), tasks, more)
        if len(still_open) + len(pending) > OPEN_MAX:
            until_second = second
            break
        still_open += pending
        counts += more
    return Fold(counts, Folded(until_second, tuple(still_open)))


def _fold(
    homes: Sequence[Address], tasks: Mapping[Address, Task], counts: Counter[Counted]
) -> list[Address]:
    """Those that have not ended. One that is not there was withdrawn, or never put."""
    pending = []
    for home in homes:
        task = tasks.get(home)
        if task is None or (task.occurrence is not None and task.occurrence.indexed):
            continue
        if task.is_live and not task.redrives:
            pending.append(home)
        else:
            counts.update(counts_of(task))
    return pending
