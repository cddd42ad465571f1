"""Dead tasks (dead letters) of a business: the filter of a list, and the position at which it
continues.

They are listed by the instant of their death, from either end. The index has sixteen partitions of
a business, by the home. A list merges them; tasks that died in the same millisecond are in the
order of partitions. A position has the last task that was read, and the end of the list at its
beginning: later deaths belong to another list, so a redrive ends though its tasks may die again.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import astuple

from duewheel.rules.fields import Instant, To, period, says
from duewheel.rules.instants import WrittenMs
from duewheel.rules.query_string import LIMIT_DEFAULT, PageQuery, read_query
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import (
    Address,
    address_named,
    list_partition,
    partitions_of_business,
)

TEXT_CHARACTERS_MAX = 120


class DeadFilter(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """None: any value. `until_ms` is exclusive. Stored."""

    since_ms: WrittenMs | None = None
    until_ms: WrittenMs | None = None
    reason: str | None = None
    status_code: int | None = None
    last_error: str | None = None  # what it contains

    def takes(self, task: Task) -> bool:
        """The record decides: the index follows it a moment later."""
        if task.status is not Status.DEAD or task.settled_ms is None:
            return False
        last_status = task.history[-1].status_code if task.history else None
        return (
            (self.since_ms is None or self.since_ms <= task.settled_ms)
            and (self.until_ms is None or task.settled_ms < self.until_ms)
            and (self.reason is None or self.reason == task.reason)
            and (self.status_code is None or self.status_code == last_status)
            and (self.last_error is None or self.last_error in (task.last_error or ""))
        )


class DeadRequest(Struct, frozen=True):
    wanted: DeadFilter
    limit: int = LIMIT_DEFAULT
    cursor: str | None = None


class Died(Struct, frozen=True):
    """Where the index has a dead task."""

    settled_ms: int
    home: Address

    def rank(self, *, is_ascending: bool) -> tuple[int, int]:
        instant_ms = self.settled_ms if is_ascending else -self.settled_ms
        return instant_ms, list_partition(self.home)


class Stretch(Struct, frozen=True, kw_only=True):
    """The deaths from `low_ms` to `high_ms`, both included, of which those behind `after` are still
    to be read."""

    low_ms: int
    high_ms: int
    after: Died | None = None
    is_ascending: bool = True


class Part(Struct, frozen=True):
    """The part of one partition that is still to be read."""

    partition: str
    low_ms: int
    high_ms: int
    after: Died | None


class Found(Struct, frozen=True):
    """The first ones of a part, and whether there may be more behind them."""

    died: Sequence[Died]
    goes_on: bool


def parts(biz_type: str, stretch: Stretch) -> list[Part]:
    """By partition. Those before that of `after` have shown all they have at its instant."""
    after, found = stretch.after, []
    for number, partition in enumerate(partitions_of_business(biz_type)):
        low_ms, high_ms, start = stretch.low_ms, stretch.high_ms, None
        if after is not None:
            is_past = number < list_partition(after.home)
            start = after if number == list_partition(after.home) else None
            if stretch.is_ascending:
                low_ms = after.settled_ms + is_past
            else:
                high_ms = after.settled_ms - is_past
        if low_ms <= high_ms:
            found.append(Part(partition, low_ms, high_ms, start))
    return found


def merged(found: Sequence[Found], *, is_ascending: bool) -> Found:
    """In order, up to where a partition has more than was read of it. Within a partition the order
    of the index stays."""

    def rank(died: Died) -> tuple[int, int]:
        return died.rank(is_ascending=is_ascending)

    died = sorted(chain.from_iterable(part.died for part in found), key=rank)
    ends = [rank(part.died[-1]) for part in found if part.goes_on]
    if ends:
        died = [one for one in died if rank(one) <= min(ends)]
    return Found(died, bool(ends))


def stretch_at(
    position: str | None, wanted: DeadFilter, now_ms: int, *, is_ascending: bool
) -> Stretch:
    """What is still to be read at a position; None: at the beginning."""
    after = None
    if position is not None:
        high, settled_ms, name = position.split(" ")
        now_ms, after = int(high), Died(int(settled_ms), address_named(name))
    return Stretch(
        low_ms=max(0, wanted.since_ms or 0),
        high_ms=now_ms if wanted.until_ms is None else min(now_ms, wanted.until_ms - 1),
        after=after,
        is_ascending=is_ascending,
    )


def position_behind(died: Died, stretch: Stretch) -> str:
    return f"{stretch.high_ms} {died.settled_ms} {died.home.name}"


def question_of(biz_type: str, wanted: DeadFilter) -> tuple[str | int | None, ...]:
    return "dead", biz_type, *astuple(wanted)


Reason = Literal["stopped", "attempts exhausted", "older than max_age_seconds"]
Since = Annotated[Instant, says("The instant of death, inclusive.")]
StatusCode = Annotated[int, Meta(ge=100, le=999, description="Of the last attempt.")]
ErrorText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=TEXT_CHARACTERS_MAX,
        description="A text that the task's contains.",
    ),
]


class DeadQuery(PageQuery):
    since: Since | None = None
    until: To | None = None
    reason: Reason | None = None
    status_code: StatusCode | None = None
    last_error: ErrorText | None = None


def dead_request(query_string: str) -> DeadRequest:
    read = read_query(query_string, DeadQuery)
    return DeadRequest(dead_filter(read), read.limit, read.cursor)


def dead_filter(read: DeadQuery, within: str = "") -> DeadFilter:
    since_ms, until_ms = period((f"{within}since", read.since), (f"{within}until", read.until))
    return DeadFilter(
        since_ms=since_ms,
        until_ms=until_ms,
        reason=read.reason,
        status_code=read.status_code,
        last_error=read.last_error,
    )
