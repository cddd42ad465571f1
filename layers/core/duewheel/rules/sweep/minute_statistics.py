"""Statistics by the minute: which minute counts a task, and when, so that each fact counts once.

The sweep finishes every second once. It reads the homes in the second and the homes that its
re-entries point to. It counts the facts of that second in their records: the task fell due in it
for the first time, an attempt on an entry of it failed, the entry that settled the task is in it.
None of this changes after the second is finished, so finishing it again gives the same counts. A
second is counted when nothing of it is open; so a second that stays open is counted after later
ones.

A second too large for one run is counted in parts: its own homes shard by shard, and at last, in
one part, the homes that its re-entries point to. Re-entries in two shards may point to one home, so
such a home belongs to no single shard.

The record of a minute says what it holds: all facts of the seconds up to `up_to`, except those in
`lacks`, which were open when it was written; of these the shards before the one in `partly`.

A task counts in the minute in which it first fell due, a failed attempt in its own. The internal
tasks that plan timers count nowhere.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import starmap
from operator import add

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.fields import From, To, instant_or_none, invalid
from duewheel.rules.query_string import Query, read_query
from duewheel.rules.sweep.verdict import HomeState
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import SHARDS_MAX, Address

# Up to and including each bound; the last class is what is later still.
LATENESS_BOUNDS_MS = (10, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 60_000, 600_000)
_NO_LATENESS = (0,) * (len(LATENESS_BOUNDS_MS) + 1)


class Tally(Struct, frozen=True):
    """By the statuses that tasks have now: a redrive takes its task out again. The largest lateness
    stays."""

    created: int = 0
    delivered: int = 0
    dead: int = 0
    expired: int = 0
    cancelled: int = 0
    failed_attempts: int = 0
    lateness_sum_ms: int = 0
    lateness_max_ms: int = 0
    lateness_classes: tuple[int, ...] = _NO_LATENESS  # how many were delivered so late

    @property
    def settled(self) -> int:
        return self.delivered + self.dead + self.expired + self.cancelled

    @property
    def pending(self) -> int:
        return self.created - self.settled

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            created=self.created + other.created,
            delivered=self.delivered + other.delivered,
            dead=self.dead + other.dead,
            expired=self.expired + other.expired,
            cancelled=self.cancelled + other.cancelled,
            failed_attempts=self.failed_attempts + other.failed_attempts,
            lateness_sum_ms=self.lateness_sum_ms + other.lateness_sum_ms,
            lateness_max_ms=max(self.lateness_max_ms, other.lateness_max_ms),
            lateness_classes=tuple(
                starmap(add, zip(self.lateness_classes, other.lateness_classes, strict=True))
            ),
        )


NOTHING = Tally()


def delivered_so_late(lateness_ms: int) -> Tally:
    classes = list(_NO_LATENESS)
    classes[bisect_left(LATENESS_BOUNDS_MS, lateness_ms)] = 1
    return Tally(
        delivered=1,
        lateness_sum_ms=lateness_ms,
        lateness_max_ms=lateness_ms,
        lateness_classes=tuple(classes),
    )


KEPT_DAYS = 90
NO_PARTS: Mapping[int, int] = {}

_ENDED = {
    Status.DEAD: Tally(dead=1),
    Status.EXPIRED: Tally(expired=1),
    Status.CANCELLED: Tally(cancelled=1),
}


class MinuteStats(Struct, frozen=True):
    """One minute of one business."""

    biz_type: str
    minute: int  # since the epoch
    tally: Tally = NOTHING
    up_to: int = -1  # the last second whose facts are in it
    lacks: frozenset[int] = frozenset()  # seconds before that whose facts are not
    partly: Mapping[int, int] = NO_PARTS  # of some of these: the first shard that is not in it

    def holds(self, second: int, part: int) -> bool:
        if second not in self.lacks:
            return second <= self.up_to
        return part < self.partly.get(second, 0)

    @property
    def expires_at(self) -> int:
        return self.minute * 60 + KEPT_DAYS * 86_400


class Statistics(Struct, frozen=True, kw_only=True):
    """The statistics of a range of minutes."""

    first_minute: int
    last_minute: int
    closed_until_second: int  # before it, only tasks still pending will change their minute
    counted_until_second: int  # what came up from here on is not in it
    minutes: list[MinuteStats]  # of minutes in which there was something, in order

    @property
    def total(self) -> Tally:
        return sum((stats.tally for stats in self.minutes), NOTHING)


MinuteName = tuple[str, int]  # business and minute
Part = tuple[int, int]  # second and shard
Facts = dict[MinuteName, dict[Part, Tally]]  # by the part in which they were read
ELSEWHERE = SHARDS_MAX  # the part behind all shards: homes that re-entries point to


class SeenTasks:
    """The facts of one second: its homes, slice by slice, each once however many of its entries are
    there."""

    def __init__(self, second: int) -> None:
        self.facts: Facts = {}
        self._second = second
        self._from_elsewhere: set[Address] = set()

    def add(self, shard: int, homes: Iterable[HomeState]) -> None:
        """Add the homes of one slice. A home that is in this second itself counts only there."""
        for home in homes:
            part = shard
            if home.home.second != self._second:
                if home.home in self._from_elsewhere:
                    continue
                self._from_elsewhere.add(home.home)
                part = ELSEWHERE
            for minute, tally in _facts(home, self._second):
                by_part = self.facts.setdefault((home.biz_type, minute), {})
                key = self._second, part
                by_part[key] = by_part.get(key, NOTHING) + tally


def merge(all_facts: Iterable[Facts]) -> Facts:
    """The facts of several seconds together."""
    together: Facts = defaultdict(dict)
    for facts in all_facts:
        for name, by_part in facts.items():
            together[name].update(by_part)
    return dict(together)


def before(facts: Facts, shard: int) -> Facts:
    """Those of the shards before this one."""
    kept = {
        name: {part: tally for part, tally in by_part.items() if part[1] < shard}
        for name, by_part in facts.items()
    }
    return {name: by_part for name, by_part in kept.items() if by_part}


def merge_into(
    stats: MinuteStats,
    by_part: Mapping[Part, Tally],
    up_to: int,
    still_open: frozenset[int] = frozenset(),
    partly: Mapping[int, int] = NO_PARTS,
) -> MinuteStats:
    """The minute with the parts of `by_part` that it does not hold yet. After it, all seconds up to
    `up_to` except those `still_open` are counted; of a second in `partly` the shards before the
    given one."""
    new = [tally for part, tally in by_part.items() if not stats.holds(*part)]
    lacked = {second for second in stats.lacks if second > up_to or second in still_open}
    now_open = {second for second in still_open if stats.up_to < second <= up_to}
    whole = {second for second, _ in by_part} - partly.keys()
    lacks = frozenset(lacked | now_open) - whole
    reached = {second: max(partly.get(second, 0), stats.partly.get(second, 0)) for second in lacks}
    return replace(
        stats,
        tally=sum(new, stats.tally),
        up_to=max(stats.up_to, up_to),
        lacks=lacks,
        partly={second: shard for second, shard in reached.items() if shard},
    )


def _facts(home: HomeState, second: int) -> Iterator[tuple[int, Tally]]:
    if home.is_plan:
        return
    settled_in = None if home.status is Status.PENDING else home.entry.second
    seen = [revival for revival in home.revivals if revival.is_seen]
    ended_in = [revival.ended for revival in seen]
    # The sweep may have been past the home's second when the home was put.
    expected_in = home.home.second if home.first_second is None else home.first_second
    first_up = min(s for s in (expected_in, settled_in, *ended_in) if s is not None)
    minute = first_up // 60
    if first_up == second:
        yield minute, Tally(created=1)
    if settled_in == second:
        yield minute, _ended_as(home.status, home.lateness_ms)
    for revival in seen:
        if revival.ended == second:
            yield minute, _ended_as(revival.status, revival.lateness_ms)
        if revival.revived == second:
            yield minute, _taken_out(_ended_as(revival.status, revival.lateness_ms))
    if failed := home.failed_seconds.count(second):
        yield second // 60, Tally(failed_attempts=failed)


def _ended_as(status: Status, lateness_ms: int | None) -> Tally:
    return _ENDED[status] if status in _ENDED else delivered_so_late(lateness_ms or 0)


def _taken_out(tally: Tally) -> Tally:
    return Tally(
        delivered=-tally.delivered,
        dead=-tally.dead,
        expired=-tally.expired,
        cancelled=-tally.cancelled,
        lateness_sum_ms=-tally.lateness_sum_ms,
        lateness_classes=tuple(-count for count in tally.lateness_classes),
    )


MINUTE_MS = 60_000
MINUTES_MAX = 1_440
MINUTES_DEFAULT = 60


class StatsRequest(Struct, frozen=True):
    """Whole minutes since the epoch, both included."""

    first_minute: int
    last_minute: int


class StatsQuery(Query, rename={"from_": "from"}):
    from_: From | None = None
    to: To | None = None


def stats_request(query_string: str, now_ms: int) -> StatsRequest:
    """Bounds within a minute mean the whole of it; left out, the last hour."""
    read = read_query(query_string, StatsQuery)
    from_ms, to_ms = instant_or_none(read.from_, "from"), instant_or_none(read.to, "to")
    if to_ms is None:
        to_ms = now_ms + 1
    if from_ms is None:
        from_ms = max(0, to_ms - MINUTES_DEFAULT * MINUTE_MS)
    if not 0 <= from_ms < to_ms:
        raise invalid("from", "must be from 1970 on and earlier than to.")
    request = StatsRequest(from_ms // MINUTE_MS, (to_ms - 1) // MINUTE_MS)
    if request.last_minute - request.first_minute >= MINUTES_MAX:
        raise invalid("from", f"to and from span more than {MINUTES_MAX:,} minutes.")
    return request
