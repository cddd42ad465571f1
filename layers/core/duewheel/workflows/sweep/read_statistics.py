"""Statistics of a business: the counts of the sweep, and those that it will add for the last
seconds.

Behind the sweep pointer the minutes are complete, except for seconds that are open. These, and the
seconds from there up to now, are read as the sweep will read them, and counted in memory only. The
stored minutes are read after that: if the sweep has counted those seconds in between, each minute
says that it holds them already.
"""

from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules.sweep.minute_statistics import (
    Facts,
    MinuteStats,
    SeenTasks,
    Statistics,
    StatsRequest,
    merge,
    merge_into,
)
from duewheel.rules.wheel.leader_election import Pointer
from duewheel.rules.wheel.open_places import first_open_second
from duewheel.stores.dynamodb import chunks
from duewheel.stores.sweep.minute_statistics import StatisticsStore
from duewheel.stores.wheel import pointers
from duewheel.stores.wheel.pointers import PointerStore
from duewheel.workflows.sweep.read_second import ReadSecond

READERS = 16
# Bounds what one request reads ahead of the sweep: minutes of a quiet wheel, less of a crowded one.
SECONDS_AHEAD_MAX = 600
HOMES_AHEAD_MAX = 10_000


class ReadStatistics(Struct, frozen=True, kw_only=True):
    clock: Clock
    pointers: PointerStore
    origin: int
    read_second: ReadSecond
    statistics: StatisticsStore
    readers: ThreadPoolExecutor

    def __call__(self, biz_type: str, request: StatsRequest) -> Statistics:
        swept = self.pointers.read(pointers.SWEEP, self.origin)
        closed_until = first_open_second(swept.open_places, swept.position)
        facts, counted_until = self._not_booked(swept, closed_until, request)
        stored = self.statistics.between(biz_type, request.first_minute, request.last_minute)
        minutes = {(stats.biz_type, stats.minute): stats for stats in stored}
        for name, by_part in facts.items():
            if name[0] == biz_type and request.first_minute <= name[1] <= request.last_minute:
                stats = minutes.get(name, MinuteStats(*name))
                minutes[name] = merge_into(stats, by_part, counted_until - 1)
        return Statistics(
            first_minute=request.first_minute,
            last_minute=request.last_minute,
            closed_until_second=closed_until,
            counted_until_second=counted_until,
            minutes=[minutes[name] for name in sorted(minutes)],
        )

    def _not_booked(
        self, swept: Pointer, closed_until: int, request: StatsRequest
    ) -> tuple[Facts, int]:
        """The counts that will be added for the last seconds, and the first second that was not
        read."""
        now_second = self.clock.now_ms() // 1000
        if request.last_minute < closed_until // 60:
            return {}, swept.position + 1
        last = min(now_second, swept.position + SECONDS_AHEAD_MAX)
        still_open = sorted({place.second for place in swept.open_places})
        found: list[Facts] = []
        homes_read = 0
        for seconds in chunks([*still_open, *range(swept.position + 1, last + 1)], READERS):
            for second, read in zip(
                seconds, fan_out(self.readers, self._read, seconds), strict=True
            ):
                homes_read += read.size
                if not read.is_whole or homes_read > HOMES_AHEAD_MAX:
                    return merge(found), second
                found.append(read.met.facts)
        return merge(found), last + 1

    def _read(self, second: int) -> "_Read":
        read = _Read(second)
        for part in self.read_second(second):
            read.size += part.size
            read.met.add(part.shard, part.homes)
            if read.size > HOMES_AHEAD_MAX:
                read.is_whole = False
                break
        return read


class _Read:
    """The part of a second that was read: a crowded one may be too large."""

    def __init__(self, second: int) -> None:
        self.met = SeenTasks(second)
        self.size = 0
        self.is_whole = True
