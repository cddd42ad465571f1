"""The audit: its request, and whether a task, an entry or a pointer is consistent.

For every task that it reads the audit applies `is_seen_to`, the rule of the sweep. It also checks
what the task depends on: its named entry, its key, and that it has no expiry while it is pending.
"""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from duewheel.rules import cursors
from duewheel.rules.fields import From, To, instant_or_none, invalid
from duewheel.rules.query_string import Query, read_query
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.verdict import is_seen_to
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import SECOND_MAX, Address, partition_of_business, task_id_at
from duewheel.rules.wheel.open_places import OpenPlace, is_in_open_place

# The time pointer runs ahead; this clock may differ from the leader's.
POINTER_AHEAD_MS = timing.AHEAD_MS + 10_000


class Wrong(StrEnum):
    """Stable words: part of the interface."""

    UNREADABLE = "unreadable"
    MISPLACED = "misplaced"
    PASSED = "passed"
    ENTRY_MISSING = "entry-missing"
    ENTRY_FOREIGN = "entry-foreign"
    ENTRY_EXPIRES = "entry-expires"
    PARKED_MISSING = "parked-missing"
    PARKED_FOREIGN = "parked-foreign"
    PARKED_EXPIRES = "parked-expires"
    RELEASE_MISSING = "release-missing"
    PENDING_EXPIRES = "pending-expires"
    NEVER_EXPIRES = "never-expires"
    KEY_MISSING = "key-missing"
    KEY_FOREIGN = "key-foreign"
    KEY_EXPIRES = "key-expires"
    HOME_GONE = "home-gone"
    SWEEP_AHEAD = "sweep-ahead"
    TIME_AHEAD = "time-ahead"


SENTENCES = {
    Wrong.UNREADABLE: "The record has attributes that this service does not write. It is not used.",
    Wrong.MISPLACED: "The task is at a place where this service would not have put it.",
    Wrong.PASSED: "The task is pending, and the sweep has passed the entry that it names.",
    Wrong.ENTRY_MISSING: "The task is pending, and no readable entry is where it should be.",
    Wrong.ENTRY_FOREIGN: "The task is pending, and the entry that it names is another task's.",
    Wrong.ENTRY_EXPIRES: "The task is pending, and its entry can be deleted by time.",
    Wrong.PARKED_MISSING: "The task is parked, and its release would not find it.",
    Wrong.PARKED_FOREIGN: "The task is parked, and its release would find another in its place.",
    Wrong.PARKED_EXPIRES: "The task is parked, and what leads its release to it can be deleted.",
    Wrong.RELEASE_MISSING: "The task is parked, and no record says that its business has any.",
    Wrong.PENDING_EXPIRES: "The task is pending, and can be deleted by time.",
    Wrong.NEVER_EXPIRES: "The task has ended, and will never be deleted.",
    Wrong.KEY_MISSING: "The task is pending, and its key is missing, or cannot be read.",
    Wrong.KEY_FOREIGN: "The task is pending, and its key names another task.",
    Wrong.KEY_EXPIRES: "The task is pending, and its key can be deleted by time.",
    Wrong.HOME_GONE: "The entry belongs to a task that was deleted too early.",
    Wrong.SWEEP_AHEAD: "The sweep pointer is ahead of the time pointer.",
    Wrong.TIME_AHEAD: "The time pointer is ahead of the time.",
}


class Pointing(Struct, frozen=True):
    """An item that names a home: a re-entry, a parked item or a key."""

    home: Address
    expires: bool


class AuditedTask(Struct, frozen=True):
    """A task with the items it rests on. `entry` is not used if the task names its home or is
    parked."""

    task: Task
    list_partition: str | None
    entry: Pointing | None = None
    key: Pointing | None = None
    parked: Pointing | None = None  # its parked item
    is_to_be_released: bool = False  # whether its business is known to have parked tasks


class Pointers(Struct, frozen=True):
    sweep_second: int
    time_second: int
    open_places: tuple[OpenPlace, ...] = ()

    def are_yet_to_sweep(self, entry: Address) -> bool:
        return entry.second > self.sweep_second or self.is_open(entry)

    def is_open(self, entry: Address) -> bool:
        return is_in_open_place(entry, self.open_places)


class Finding(Struct, frozen=True):
    wrong: Wrong
    task_id: str | None = None
    biz_type: str | None = None
    at: str | None = None  # slot and place of an item that is no readable task
    attribute: str | None = None

    @property
    def sentence(self) -> str:
        return SENTENCES[self.wrong]


def judged(audited: AuditedTask, pointers: Pointers) -> list[Finding]:
    """`pointers` must be read before the task: then no healthy task is behind them."""
    pending = _wrong_with_pending if audited.task.is_live else _wrong_with_ended
    found = [*_wrong_with_place(audited), *pending(audited, pointers)]
    return [Finding(wrong, audited.task.task_id, biz_type=audited.task.biz_type) for wrong in found]


def judged_pointers(pointers: Pointers, now_ms: int) -> list[Finding]:
    found = []
    if pointers.sweep_second > pointers.time_second:
        found.append(Finding(Wrong.SWEEP_AHEAD, at="sweep pointer"))
    if pointers.time_second * 1000 > now_ms + POINTER_AHEAD_MS:
        found.append(Finding(Wrong.TIME_AHEAD, at="time pointer"))
    return found


def unreadable(damaged: UnreadableItem) -> Finding:
    """The id is that of the task whose home is there, if one is."""
    return Finding(
        Wrong.UNREADABLE,
        task_id_at(damaged.slot, damaged.place),
        at=f"{damaged.slot} {damaged.place}",
        attribute=damaged.wrong,
    )


def _wrong_with_place(audited: AuditedTask) -> Iterator[Wrong]:
    """The slot follows from the place, or the item would not have been read; the partition in the
    list index follows from the home; and no place is earlier than its writer's clock, except of an
    occurrence, which falls due first at the entry that it names."""
    task = audited.task
    listed = partition_of_business(task.biz_type, task.home)
    is_elsewhere_listed = audited.list_partition not in (None, listed)
    first_ms = task.home.instant_ms
    if task.first_second is not None:
        first_ms = task.first_second * 1000 + 999
    if is_elsewhere_listed or first_ms < task.created_ms - timing.SKEW_MS:
        yield Wrong.MISPLACED


def _wrong_with_pending(audited: AuditedTask, pointers: Pointers) -> Iterator[Wrong]:
    task = audited.task
    if task.expires_at is not None:
        yield Wrong.PENDING_EXPIRES
    if task.parked:
        yield from _wrong_with_parked(audited)
    elif not is_seen_to(task, pointers.sweep_second, pointers.is_open):
        yield Wrong.PASSED
    elif not task.names_its_home:
        yield from _wrong_with(
            audited.entry,
            task.home,
            (Wrong.ENTRY_MISSING, Wrong.ENTRY_FOREIGN, Wrong.ENTRY_EXPIRES),
        )
    if task.key is not None:
        yield from _wrong_with(
            audited.key, task.home, (Wrong.KEY_MISSING, Wrong.KEY_FOREIGN, Wrong.KEY_EXPIRES)
        )


def _wrong_with_parked(audited: AuditedTask) -> Iterator[Wrong]:
    yield from _wrong_with(
        audited.parked,
        audited.task.home,
        (Wrong.PARKED_MISSING, Wrong.PARKED_FOREIGN, Wrong.PARKED_EXPIRES),
    )
    if not audited.is_to_be_released:
        yield Wrong.RELEASE_MISSING


def _wrong_with(
    item: Pointing | None, home: Address, words: tuple[Wrong, Wrong, Wrong]
) -> Iterator[Wrong]:
    missing, foreign, expires = words
    if item is None:
        yield missing
    elif item.home != home:
        yield foreign
    elif item.expires:
        yield expires


def _wrong_with_ended(audited: AuditedTask, _: Pointers) -> Iterator[Wrong]:
    if audited.task.expires_at is None:
        yield Wrong.NEVER_EXPIRES


AROUND_NOW_MS = 3_600_000  # an hour back, and an hour ahead


class AuditRequest(Struct, frozen=True):
    """Whole seconds, both included."""

    first_second: int
    last_second: int
    cursor: str | None = None


class Position(Struct, frozen=True):
    """What comes next: the items of this slice behind `after`."""

    second: int
    shard: int = 0
    shards: int = 1
    after: str | None = None


class AuditQuery(Query, rename={"from_": "from"}):
    from_: From | None = None
    to: To | None = None
    cursor: str | None = None


def audit_request(query_string: str, now_ms: int) -> AuditRequest:
    read = read_query(query_string, AuditQuery)
    from_ms, to_ms = instant_or_none(read.from_, "from"), instant_or_none(read.to, "to")
    if to_ms is None:
        to_ms = now_ms + AROUND_NOW_MS
    if from_ms is None:
        from_ms = max(0, min(now_ms, to_ms) - AROUND_NOW_MS)
    if not 0 <= from_ms < to_ms:
        raise invalid("from", "must be from 1970 on and earlier than to.")
    last_second = min((to_ms - 1) // 1000, SECOND_MAX)
    return AuditRequest(from_ms // 1000, last_second, read.cursor)


def cursor_at(position: Position, request: AuditRequest, secret: bytes) -> str:
    text = f"{position.second} {position.shard} {position.shards} {position.after or ''}"
    return cursors.sealed(text, _question(request), secret)


def position_of(request: AuditRequest, secret: bytes) -> Position:
    if request.cursor is None:
        return Position(request.first_second)
    text = cursors.opened(request.cursor, _question(request), secret)
    second, shard, shards, after = text.split(" ", 3)
    return Position(int(second), int(shard), int(shards), after or None)


def _question(request: AuditRequest) -> tuple[str | int, ...]:
    return ("audit", request.first_second, request.last_second)
