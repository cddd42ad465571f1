"""When a timer is due: which seconds its definition contains.

All times are whole seconds since the epoch; a second identifies an occurrence. The cron expression
names local times. This module decides which instants they have, also for local times that a day
lacks or has twice. `contains` and `seconds_from` agree on every second.
"""

from collections.abc import Callable, Iterator
from datetime import date
from enum import StrEnum
from functools import lru_cache
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from duewheel.rules.timers.cron.expression import DAY_SECONDS, Cron, day_of, midnight_of
from duewheel.rules.timers.cron.standard import read_cron
from duewheel.rules.timers.time_zones import (
    Moments,
    earliest_local_time,
    latest_local_time,
    moments_of,
    offset_at,
    zone_named,
)
from duewheel.rules.wheel.addresses import SECOND_MAX, Second

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

# A schedule without an occurrence in so many years never has one: the rarest date recurs in 40, and
# the years that a cron expression may name span 130.
SEARCH_SECONDS_MAX = 131 * 366 * DAY_SECONDS


class Dialect(StrEnum):
    """How the fields of a cron expression are read."""

    CRON = "cron"  # 5 fields, or 6 with seconds first
    CRONEXPR = "cronexpr"  # 5 fields; a 6th is the year; of 7 the first are seconds


class DstGap(StrEnum):
    """The rule for a local time that a day does not have."""

    SKIP = "skip"
    SHIFT = "shift"  # to the first instant after the gap


class DstOverlap(StrEnum):
    """Which of the two instants of a local time that a day has twice."""

    FIRST = "first"
    LAST = "last"
    BOTH = "both"


class Schedule(Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly one of `cron` and `every_seconds`. An interval counts from `anchor_second`, which is
    the first it may contain. `start_second` and `end_second` are the first and the last second
    there may be."""

    cron: str | None = None
    dialect: Dialect = Dialect.CRON
    every_seconds: Annotated[int, Meta(ge=1, le=SECOND_MAX)] | None = None
    anchor_second: Second = 0
    timezone: str = "UTC"
    start_second: Second | None = None
    end_second: Second | None = None
    dst_gap: DstGap = DstGap.SHIFT
    dst_overlap: DstOverlap = DstOverlap.FIRST
    exclude: tuple[str, ...] = ()  # dates (YYYY-MM-DD) in its zone


_Pick = Callable[[Moments], int]
_first_of, _last_of = attrgetter("first"), attrgetter("last")
_PICKS: dict[DstOverlap, tuple[_Pick, ...]] = {
    DstOverlap.FIRST: (_first_of,),
    DstOverlap.LAST: (_last_of,),
    DstOverlap.BOTH: (_first_of, _last_of),
}


def next_second(schedule: Schedule, after: int) -> int | None:
    """The first of its seconds after that one; None if there is none."""
    found = seconds_from(schedule, after + 1, 1)
    return found[0] if found else None


def seconds_from(schedule: Schedule, first: int, limit: int, until: int | None = None) -> list[int]:
    """Its seconds from `first` on, at most `limit` of them, and none after `until`."""
    first = max(first, _start_of(schedule))
    last = min(_end_of(schedule), first + SEARCH_SECONDS_MAX)
    if until is not None:
        last = min(last, until)
    if last < first:
        return []
    if schedule.every_seconds is not None:
        seconds = _of_interval(schedule, schedule.every_seconds, first, last)
    else:
        seconds = _of_cron(schedule, first, last)
    return list(islice(seconds, limit))


def contains(schedule: Schedule, second: int) -> bool:
    """The same result as a search by `seconds_from`, without reading the hours around a change."""
    if not _start_of(schedule) <= second <= _end_of(schedule):
        return False
    if schedule.every_seconds is not None:
        return _has_any(_of_interval(schedule, schedule.every_seconds, second, second))
    zone = zone_named(schedule.timezone)
    local_time = second + offset_at(zone, second)
    if _has_any(_local_times(schedule, local_time, local_time)):
        moments = moments_of(zone, local_time)
        return second in (pick(moments) for pick in _PICKS[schedule.dst_overlap])
    before = second + offset_at(zone, second - 1)
    is_after_gap = schedule.dst_gap is DstGap.SHIFT and before < local_time
    return is_after_gap and _has_any(_local_times(schedule, before, local_time - 1))


def cron_of(schedule: Schedule) -> Cron:
    """Raises NotUnderstood."""
    assert schedule.cron is not None
    return _cron_of(schedule.cron, schedule.dialect)


def _of_interval(schedule: Schedule, every: int, first: int, last: int) -> Iterator[int]:
    zone = zone_named(schedule.timezone)
    excluded = _excluded(schedule)
    second = _counted(schedule, every, first)
    while second <= last:
        if excluded and (day := day_of(second + offset_at(zone, second))) in excluded:
            next_day = moments_of(zone, midnight_of(day) + DAY_SECONDS).first
            second = max(second + every, _counted(schedule, every, next_day))
        else:
            yield second
            second += every


def _counted(schedule: Schedule, every: int, first: int) -> int:
    """The interval's first second from `first` on."""
    anchor = schedule.anchor_second
    return max(anchor, anchor - (anchor - first) // every * every)


def _of_cron(schedule: Schedule, first: int, last: int) -> Iterator[int]:
    zone = zone_named(schedule.timezone)
    earliest, latest = earliest_local_time(zone, first), latest_local_time(zone, last)
    rising = merge(
        *(
            _instants(schedule, zone, pick, _local_times(schedule, earliest, latest))
            for pick in _PICKS[schedule.dst_overlap]
        )
    )
    for second, _ in groupby(rising):  # a shifted one may equal another one
        if second > last:
            return
        if second >= first:
            yield second


def _instants(
    schedule: Schedule, zone: "ZoneInfo", pick: _Pick, local_times: Iterator[int]
) -> Iterator[int]:
    """One for each local time; they rise too, since all take the same one of two moments."""
    gap_until = 0
    for local_time in local_times:
        if local_time < gap_until:
            continue
        moments = moments_of(zone, local_time)
        if moments.gap_until is not None:
            gap_until = moments.gap_until
            if schedule.dst_gap is DstGap.SKIP:
                continue
        yield pick(moments)


def _local_times(schedule: Schedule, first: int, last: int) -> Iterator[int]:
    return cron_of(schedule).local_times(first, last, without=_excluded(schedule))


def _has_any(numbers: Iterator[int]) -> bool:
    return next(numbers, None) is not None


def _excluded(schedule: Schedule) -> frozenset[date]:
    return frozenset(date.fromisoformat(day) for day in schedule.exclude)


def _start_of(schedule: Schedule) -> int:
    return max(0, schedule.start_second or 0)


def _end_of(schedule: Schedule) -> int:
    return SECOND_MAX if schedule.end_second is None else min(schedule.end_second, SECOND_MAX)


@lru_cache(maxsize=256)
def _cron_of(text: str, dialect: Dialect) -> Cron:
    if dialect is Dialect.CRON:
        return read_cron(text)
    # Imported here, since only timers of xTimer's clients need it.
    from duewheel.rules.timers.cron.cronexpr import read_cronexpr

    return read_cronexpr(text)
