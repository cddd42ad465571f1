"""Parked tasks: their items in the slots of their business, and what a release does.

A parked item belongs to one parking of one task: its place follows from the entry on which the task
fell due, which is never named again. So parking is idempotent, and deleting an item that is done
cannot delete another parking's item.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from duewheel.rules.businesses.rate_limit import ReservedTurns
from duewheel.rules.delivery.reservations import reserved
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.lifecycle import is_expired
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address, parked_place, parked_slot

# Released without a limit, a millisecond apart: a second gets as many as one partition takes.
APART_MS = 1
# Side by side, each part four milliseconds apart: 250 a second, as many as a shard is given.
PART_APART_MS = 4
BLOCKS_IN_LINE = 10  # of a hundred items; one run releases so many, more are released by slot
PAUSE_MARK_BYTES = 12  # random, in the mark that identifies a pause


class ParkedItem(Struct, frozen=True):
    slot: str
    place: str
    home: Address


class Parking(Struct, frozen=True):
    """The record of a business or flow key that may have parked tasks, as read. `mark`: of the
    latest pause. `unpaused_ms`: since when it was seen unpaused after it."""

    scope: str
    mark: str | None
    unpaused_ms: int | None


Release = tuple[Task, Task]  # as it was parked, and what it becomes but for its entry


class Fate(Enum):
    RELEASE = "release"
    DROP = "drop"  # its task has ended, or has moved on
    LEAVE = "leave"  # a notifier is parking this task, or crashed: its page is run again


def fate_of(item: ParkedItem, home: Task | None) -> Fate:
    """`home` is None if it is gone."""
    if home is None or not home.is_live or parked_place(home.entry) != item.place:
        return Fate.DROP
    if not home.parked:
        return Fate.LEAVE
    # A run that crashed may have left an item of another pause.
    is_its_item = item.slot == parked_slot(home.parked_scope, home.home)
    return Fate.RELEASE if is_its_item else Fate.DROP


def is_called_on_release(task: Task, now_ms: int) -> bool:
    """If False it needs no turn: it is due later, or its grace is over."""
    return task.next_ms <= now_ms and not is_expired(task, now_ms)


def at_their_places(tasks: Sequence[Task], turns: ReservedTurns, now_ms: int) -> list[Release]:
    """Each at its place in the line of the rate limit."""
    return [
        (task, lifecycle.rescheduled(task, reservation, now_ms))
        for task, reservation in reserved(tasks, turns)
    ]


def in_line(
    tasks: Sequence[Task], from_ms: int, now_ms: int, part: int | None = None
) -> list[Release]:
    """One behind the other, in their order; those of a part between those of the others."""
    apart_ms, shift_ms = APART_MS, 0
    if part is not None:
        apart_ms, shift_ms = PART_APART_MS, part % PART_APART_MS
    return [
        (task, lifecycle.released(task, from_ms + shift_ms + apart_ms * number, now_ms))
        for number, task in enumerate(tasks)
    ]


def line_length_ms(count: int, part: int | None) -> int:
    return count * (APART_MS if part is None else PART_APART_MS)


def as_they_are(tasks: Sequence[Task], now_ms: int) -> list[Release]:
    return [(task, lifecycle.released(task, task.next_ms, now_ms)) for task in tasks]


def is_over(parking: Parking, empty_since_ms: int, parkers_gone_ms: int) -> bool:
    """Whether nothing is parked, and no process can still park by an old read of the pause.
    `empty_since_ms`: when the slots were found empty."""
    return (
        parking.unpaused_ms is not None
        and empty_since_ms >= parking.unpaused_ms + parkers_gone_ms + timing.SKEW_MS
    )
