"""Read what a page of the businesses within reach shows together: what holds tasks back, what
became of the last hour's, what they died of.

The work of a request is bounded. Nothing ahead of the sweep is read, so figures of minutes are two
to three minutes old. Deaths are looked for in a few businesses with tasks since yesterday: first in
those of which most failed in the hour.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules import cursors
from duewheel.rules.access.grants import Access
from duewheel.rules.bulk.open_ones import in_turn
from duewheel.rules.bulk.operation import Operation
from duewheel.rules.businesses.lanes import BusinessLane
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.usage import Usage
from duewheel.rules.query_string import PageQuery
from duewheel.rules.sweep.minute_statistics import MINUTES_DEFAULT, NOTHING, MinuteStats, Tally
from duewheel.rules.tasks import death_groups
from duewheel.rules.tasks.dead_tasks import Found, Stretch
from duewheel.rules.tasks.death_groups import DeathGroup
from duewheel.rules.tasks.task import Status
from duewheel.stores.bulk.operations import OperationStore
from duewheel.stores.sweep.minute_statistics import MINUTES_PER_DAY, StatisticsStore
from duewheel.stores.tasks.indexes import DeadIndex
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.pointers import SWEEP, PointerStore
from duewheel.workflows.businesses.known import Known
from duewheel.workflows.businesses.read import ReadBusinesses
from duewheel.workflows.tasks.list_tasks import current_tasks

READERS = 16
DEATHS_OF_MAX = 10  # businesses; each costs seventeen queries
DEATHS_MAX = 25  # of a business
DEATHS_MS = 86_400_000
OPERATIONS_MAX = 50

_QUESTION = ("overview",)


class BusinessNow(Struct, frozen=True, kw_only=True):
    business: Business
    usage: Usage
    hour: Tally
    died_since: int = 0  # how many deaths were found that `hour` does not have yet

    def is_worth_showing(self, now_ms: int) -> bool:
        """False if it has nothing that holds tasks back, and had none in the hour."""
        business = self.business
        is_held = business.paused or business.paused_flow_keys or business.health.breakers
        is_slow = business.lane_at(now_ms) is BusinessLane.SLOW
        has_some = self.hour != NOTHING or self.died_since > 0
        return bool(is_held) or is_slow or has_some or _is_used(self.usage)


class Deaths(Struct, frozen=True, kw_only=True):
    """`businesses`, `tasks`: how many were looked at. `goes_on`: more died in that time."""

    since_ms: int
    businesses: int
    tasks: int
    goes_on: bool
    groups: list[DeathGroup]
    uncounted: Mapping[str, int]  # by business, those of minutes that are not counted yet


class Overview(Struct, frozen=True, kw_only=True):
    """`minutes`: of all businesses looked at together, those with something, in order."""

    now_ms: int
    first_minute: int
    last_minute: int
    minutes: list[MinuteStats]
    businesses: list[BusinessNow]  # in the order of their names
    deaths: Deaths
    operations: list[Operation]  # that are open, on the first page
    looked_at: int  # businesses
    cursor: str | None


class ReadOverview(Struct, frozen=True, kw_only=True):
    clock: Clock
    pointers: PointerStore
    origin: int
    businesses: ReadBusinesses
    statistics: StatisticsStore
    index: DeadIndex
    operations: OperationStore
    tasks: TaskStore
    readers: ThreadPoolExecutor
    secret: bytes

    def __call__(self, query: PageQuery, access: Access) -> Overview:
        after = cursors.opened(query.cursor, _QUESTION, self.secret)
        each = self.businesses.known.each(access, after, query.limit + 1)
        found = list(islice(each, query.limit + 1))
        goes_on, found = len(found) > query.limit, found[: query.limit]
        last = found[-1].business.biz_type if goes_on else None
        swept = self.pointers.read(SWEEP, self.origin, strongly=False).position
        now_ms = self.clock.now_ms()
        last_minute = (swept + 1) // 60 - 1
        first_minute = last_minute - MINUTES_DEFAULT + 1
        readable = [one for one in found if one.business.damaged is None]
        minutes = self._minutes(readable, first_minute, last_minute)
        shown = self._businesses(readable, minutes, now_ms)
        deaths = self._deaths(readable, shown, now_ms, (last_minute + 1) * 60_000)
        died = deaths.uncounted
        shown = [replace(one, died_since=died.get(one.business.biz_type, 0)) for one in shown]
        return Overview(
            now_ms=now_ms,
            first_minute=first_minute,
            last_minute=last_minute,
            minutes=_together(minutes),
            businesses=[one for one in shown if one.is_worth_showing(now_ms)],
            deaths=deaths,
            operations=self._operations(access) if query.cursor is None else [],
            looked_at=len(found),
            cursor=cursors.sealed(last, _QUESTION, self.secret),
        )

    def _minutes(self, found: Sequence[Known], first: int, last: int) -> list[MinuteStats]:
        """A query for each business with tasks on that day, two around midnight."""

        def read(biz_type: str) -> list[MinuteStats]:
            return self.statistics.between(biz_type, first, last, strongly=False)

        names = _with_tasks(found, first // MINUTES_PER_DAY)
        return [stats for some in fan_out(self.readers, read, names) for stats in some]

    def _businesses(
        self, found: Sequence[Known], minutes: Iterable[MinuteStats], now_ms: int
    ) -> list[BusinessNow]:
        """Limits are read of businesses with tasks since yesterday."""
        of_limits = self.businesses.read_usage.of_limits
        active = set(_with_tasks(found, _day(now_ms - DEATHS_MS)))
        hours: dict[str, Tally] = {}
        for stats in minutes:
            hours[stats.biz_type] = hours.get(stats.biz_type, NOTHING) + stats.tally
        known = self.businesses.with_health([one.business for one in found])
        some = [business for business in known if business.biz_type in active]
        usages = dict(
            zip(
                (business.biz_type for business in some),
                fan_out(self.readers, of_limits, some),
                strict=True,
            )
        )
        return [
            BusinessNow(
                business=business,
                usage=usages.get(business.biz_type, Usage()),
                hour=hours.get(business.biz_type, NOTHING),
            )
            for business in known
        ]

    def _operations(self, access: Access) -> list[Operation]:
        found = self.operations.open_ones().operations
        return in_turn(one for one in found if access.reaches(one.biz_type))[:OPERATIONS_MAX]

    def _deaths(
        self,
        found: Sequence[Known],
        shown: Sequence[BusinessNow],
        now_ms: int,
        counted_until_ms: int,
    ) -> Deaths:
        since_ms = now_ms - DEATHS_MS
        hours = {one.business.biz_type: one.hour for one in shown}
        names = _with_tasks(found, _day(since_ms))
        names.sort(key=lambda name: _may_have_died(hours[name]), reverse=True)
        stretch = Stretch(low_ms=since_ms, high_ms=now_ms, is_ascending=False)

        def read(biz_type: str) -> Found:
            found = self.index.first(biz_type, stretch, DEATHS_MAX)
            latest = found.died[:DEATHS_MAX]
            return Found(latest, found.goes_on or len(latest) < len(found.died))

        parts = [read(name) for name in names[:DEATHS_OF_MAX]]
        homes = [died.home for part in parts for died in part.died]
        tasks = current_tasks(self.tasks, homes, now_ms)
        return Deaths(
            since_ms=since_ms,
            businesses=len(parts),
            tasks=len(homes),
            goes_on=any(part.goes_on for part in parts) or len(names) > DEATHS_OF_MAX,
            groups=death_groups.grouped(tasks.values(), since_ms),
            uncounted=Counter(
                task.biz_type
                for task in tasks.values()
                if task.status is Status.DEAD and (task.settled_ms or 0) >= counted_until_ms
            ),
        )


def _may_have_died(hour: Tally) -> tuple[int, bool]:
    """The order in which deaths are looked for. One of which nothing is counted may be new."""
    return hour.dead + hour.failed_attempts, hour == NOTHING


def _with_tasks(found: Iterable[Known], day: int) -> list[str]:
    """The businesses of which the sweep has counted a task on this day or later."""
    return [one.business.biz_type for one in found if one.day is not None and one.day >= day]


def _together(minutes: Iterable[MinuteStats]) -> list[MinuteStats]:
    tallies: dict[int, Tally] = {}
    for stats in minutes:
        tallies[stats.minute] = tallies.get(stats.minute, NOTHING) + stats.tally
    return [
        MinuteStats(biz_type="", minute=minute, tally=tallies[minute]) for minute in sorted(tallies)
    ]


def _is_used(usage: Usage) -> bool:
    calls, permits = usage.calls, usage.permits
    return (calls is not None and calls.waiting > 0) or (
        permits is not None and permits.used + permits.waiting > 0
    )


def _day(now_ms: int) -> int:
    return now_ms // 86_400_000
