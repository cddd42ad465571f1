"""Lists of a business's tasks by due instant, merged from the 16 partitions of the list index.

The order is total: due instant, then partition, then the order that the index itself keeps within a
partition. So one position is enough to continue in all 16, and changes of tasks before it do not
affect what is behind it.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import chain
from typing import Annotated, TypeVar

from msgspec import Struct
from msgspec.structs import astuple, replace

from duewheel.rules.fields import From, To, period, says
from duewheel.rules.labels import NO_LABELS, Labels, has_all, written
from duewheel.rules.names import BizType, FlowKey, TaskKey, WantedTimerId
from duewheel.rules.query_string import LIMIT_DEFAULT, LIMIT_MAX, LabelledQuery, read_query
from duewheel.rules.tasks.dead_tasks import DeadFilter
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import (
    SECOND_MAX,
    Address,
    address_named,
    list_partition,
    partitions_of_business,
)

# One request reads no more, even if few of them match; the next page continues from there.
KEYS_MAX = 500
# A hundred tasks with all their headers and notes are 3 MB at most, and Lambda returns 4.5 MB.
PAYLOAD_BYTES_MAX = 1_400_000

_LATEST_MS = SECOND_MAX * 1000 + 999


class Order(StrEnum):
    ASC = "asc"
    DESC = "desc"


class Way(StrEnum):
    """In which order the tasks of a business are read that may match."""

    DUE = "due"  # by due instant: the list index
    DEATH = "death"  # by the instants of their deaths: the index of dead tasks
    KEYS = "keys"  # by their keys, which live tasks alone hold


def way_of(status: Status | None, key_prefix: str | None) -> Way:
    if status is Status.DEAD:
        return Way.DEATH
    return Way.KEYS if status is Status.PENDING and key_prefix is not None else Way.DUE


class ListQuery(Struct, frozen=True):
    """The query, the same on every page. `due_to_ms` is exclusive. Without a business: of all."""

    biz_type: str = ""
    status: Status | None = None
    due_from_ms: int | None = None
    due_to_ms: int | None = None
    order: Order = Order.ASC
    labels: Labels = NO_LABELS
    key_prefix: str | None = None
    flow_key: str | None = None
    timer_id: str | None = None
    death: DeadFilter | None = None  # of tasks that are dead; None: however they died

    @property
    def way(self) -> Way:
        return way_of(self.status, self.key_prefix)

    @property
    def named(self) -> tuple[str | None, ...]:
        """What the keys of the index do not say."""
        return self.key_prefix, self.flow_key, self.timer_id

    def takes(self, task: Task) -> bool:
        return (
            (self.status is None or task.status is self.status)
            and has_all(task.labels, self.labels)
            and (self.due_from_ms is None or self.due_from_ms <= task.due_ms)
            and (self.due_to_ms is None or task.due_ms < self.due_to_ms)
            and (self.key_prefix is None or (task.key or "").startswith(self.key_prefix))
            and self.flow_key in (None, task.flow_key)
            and self.timer_id in (None, task.occurrence and task.occurrence.timer_id)
            and (self.death is None or self.death.takes(task))
        )

    def keys_at_once(self, limit: int) -> int:
        """More keys are read if a filter may leave out most of them."""
        takes_all = self.status is None and not self.labels and not any(self.named)
        return limit if takes_all else LIMIT_MAX


class Room(Struct):
    """What is left of a page: of the items that it may have, of the records that it may look at,
    and of the payloads that it may contain."""

    items: int
    records: int = KEYS_MAX
    payload_bytes: int = PAYLOAD_BYTES_MAX

    @property
    def is_full(self) -> bool:
        return self.items <= 0 or self.records <= 0 or self.payload_bytes < 0

    def look(self) -> None:
        self.records -= 1

    def take(self, payload: str | None) -> None:
        self.items -= 1
        self.payload_bytes -= len((payload or "").encode())


class Listed(Struct, frozen=True):
    """Where the index has a task. It follows the task's record a moment later."""

    due_ms: int
    home: Address


class Stretch(Struct, frozen=True, kw_only=True):
    """The part of one partition that is still to be listed; both bounds are inclusive."""

    partition: str
    low_ms: int
    high_ms: int
    is_ascending: bool
    after: Listed | None = None


class Found(Struct, frozen=True):
    """The first keys of a stretch, and whether it may go on behind them."""

    keys: Sequence[Listed]
    goes_on: bool


def stretches(query: ListQuery, after: Listed | None) -> list[Stretch]:
    low_ms = 0 if query.due_from_ms is None else max(0, query.due_from_ms)
    high_ms = _LATEST_MS if query.due_to_ms is None else query.due_to_ms - 1
    is_ascending = query.order is Order.ASC
    found = []
    for number, partition in enumerate(partitions_of_business(query.biz_type)):
        low, high, start = low_ms, high_ms, None
        if after is not None:
            # The partitions before that of `after` have shown all they have at its instant.
            is_past = number < list_partition(after.home)
            start = after if number == list_partition(after.home) else None
            if is_ascending:
                low = after.due_ms + is_past
            else:
                high = after.due_ms - is_past
        if low <= high:
            found.append(
                Stretch(
                    partition=partition,
                    low_ms=low,
                    high_ms=high,
                    is_ascending=is_ascending,
                    after=start,
                )
            )
    return found


def merged(found: Iterable[Found], order: Order) -> Found:
    """In order, up to where a partition has more than was read of it."""
    found = list(found)
    # Stable: within a partition the index's own order stays.
    keys = sorted(chain.from_iterable(part.keys for part in found), key=lambda k: _rank(k, order))
    ends = [_rank(part.keys[-1], order) for part in found if part.goes_on]
    if ends:
        keys = [key for key in keys if _rank(key, order) <= min(ends)]
    return Found(keys, bool(ends))


def is_ahead(task: Task, last: Listed, order: Order) -> bool:
    """The task has moved to a position that a later page reads."""
    return order_of_due(task.due_ms, order) > order_of_due(last.due_ms, order)


def order_of_due(due_ms: int, order: Order) -> int:
    return due_ms if order is Order.ASC else -due_ms


def written_position(last: Listed) -> str:
    return f"{last.due_ms} {last.home.name}"


def position_from(written: str) -> Listed:
    due_ms, _, name = written.partition(" ")
    return Listed(int(due_ms), address_named(name))


class Halves(Struct, frozen=True):
    """A list of pending tasks in two halves: those that are due from `now_ms` on in due order, then
    the overdue ones, the latest first. Tasks that have ended are mostly in the second."""

    now_ms: int

    def first(self, query: ListQuery) -> ListQuery:
        return replace(query, due_from_ms=self.now_ms)

    def second(self, query: ListQuery) -> ListQuery:
        due_to_ms = min(self.now_ms, query.due_to_ms or self.now_ms)
        return replace(query, due_to_ms=due_to_ms, order=Order.DESC)

    @property
    def middle(self) -> str:
        """The position at which the second half begins."""
        return f"{self.now_ms} {_MIDDLE} {self.now_ms}"

    def written(self, position: str) -> str:
        return f"{position} {self.now_ms}"


_MIDDLE = "-"


def halves_of(query: ListQuery, position: str | None, now_ms: int) -> Halves | None:
    """None for a list in one piece: of a caller that says where it begins, for example."""
    if position is not None:
        words = position.split(" ")
        return Halves(int(words[2])) if len(words) > 2 else None
    is_ahead = query.due_to_ms is None or query.due_to_ms > now_ms
    is_live = query.status is Status.PENDING and query.order is Order.ASC
    return Halves(now_ms) if is_live and is_ahead and query.due_from_ms is None else None


def place_in_halves(position: str | None, halves: Halves) -> tuple[bool, str | None]:
    """Whether it is in the second half, and the position within the half."""
    if position is None:
        return False, None
    due_ms, name, _ = position.split(" ")
    if name == _MIDDLE:
        return True, None
    return int(due_ms) < halves.now_ms, f"{due_ms} {name}"


def reached_ms(position: str, way: Way) -> int | None:
    """The instant that a list has reached: of dead tasks that of the death, of all others that in
    which they are due; None of keys."""
    words = position.split(" ")
    match way:
        case Way.KEYS:
            return None
        case Way.DEATH:
            return int(words[1])
        case Way.DUE:
            return int(words[0])


def question_of(query: ListQuery) -> tuple[str | int | None, ...]:
    """What a cursor is good for."""
    return "tasks by due instant", *astuple(query)[:5], *query.named, *written(query.labels)


def _rank(key: Listed, order: Order) -> tuple[int, int]:
    return order_of_due(key.due_ms, order), list_partition(key.home)


class TasksQuery(LabelledQuery):
    biz_type: Annotated[BizType, says("All that the caller reaches, if it is left out.")] | None = (
        None
    )
    status: Status | None = None
    due_from: From | None = None
    due_to: To | None = None
    order: Order = Order.ASC
    key_prefix: Annotated[TaskKey, says("What the key begins with.")] | None = None
    flow_key: FlowKey | None = None
    timer_id: WantedTimerId | None = None


class ListRequest(Struct, frozen=True):
    query: ListQuery
    limit: int = LIMIT_DEFAULT
    cursor: str | None = None


def list_request(query_string: str) -> ListRequest:
    read = read_query(query_string, TasksQuery)
    due_from_ms, due_to_ms = period(("due_from", read.due_from), ("due_to", read.due_to))
    query = ListQuery(
        biz_type=read.biz_type or "",
        status=read.status,
        due_from_ms=due_from_ms,
        due_to_ms=due_to_ms,
        order=read.order,
        labels=read.labels,
        key_prefix=read.key_prefix,
        flow_key=read.flow_key,
        timer_id=read.timer_id,
    )
    return ListRequest(query, read.limit, read.cursor)


K = TypeVar("K")
V = TypeVar("V")


def filled(
    keys: Sequence[K],
    find: Callable[[K], V | None],
    payload_of: Callable[[V], str | None],
    position_of: Callable[[K], str],
    room: Room,
    *,
    goes_on: bool,
) -> tuple[list[V], str | None]:
    """The tasks of a page that the keys lead to, and the position of the last key that was read for
    them if there are more. `find` returns None for a task that is not shown. `goes_on`: there are
    more keys."""
    found: list[V] = []
    for number, key in enumerate(keys, start=1):
        room.look()
        if (one := find(key)) is not None:
            found.append(one)
            room.take(payload_of(one))
        if room.is_full:
            return found, position_of(key) if goes_on or number < len(keys) else None
    return found, position_of(keys[-1]) if goes_on and keys else None
