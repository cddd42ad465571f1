"""Record statistics: count the facts of the seconds that the sweep has finished.

The order makes the counts exact: first the minutes are written, then the re-entries that led to the
facts are deleted, and only then the sweep pointer moves, or a second leaves the list of open
places. A sweeper that sweeps the same seconds again after a crash reads the same facts, and each
minute says which seconds it already counts. If a write for a second fails, that second stays open;
all others are counted.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.log import logger
from duewheel.rules.sweep.minute_statistics import (
    NO_PARTS,
    Facts,
    MinuteName,
    MinuteStats,
    Part,
    Tally,
    before,
    merge,
    merge_into,
)
from duewheel.stores.sweep.minute_statistics import StatisticsStore
from duewheel.stores.sweep.seen_businesses import SeenBusinesses
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.sweep.sweep_second import SweptSecond

WRITERS = 8
_TRIES = 4


class StatisticsContended(Exception):
    """Another sweeper keeps writing the same minutes; the next run continues."""


class RecordStatistics(Struct, frozen=True, kw_only=True):
    clock: Clock
    statistics: StatisticsStore
    tasks: TaskStore
    seen: SeenBusinesses
    writers: ThreadPoolExecutor

    def __call__(
        self,
        finished: Sequence[SweptSecond],
        up_to: int,
        still_open: frozenset[int] = frozenset(),
    ) -> frozenset[int]:
        """Count whole seconds, in any order. All others up to `up_to` have been counted before, or
        held nothing, except those still open. Returns the seconds that were not counted."""
        facts = merge(swept.met.facts for swept in finished)
        left = self._enter_all(facts, up_to, still_open, NO_PARTS)
        counted = [swept for swept in finished if swept.reentries and swept.second not in left]
        try:
            self.tasks.delete_entries([entry for swept in counted for entry in swept.reentries])
        except Exception:  # noqa: BLE001 - logged, and done again
            logger.exception("re-entries not deleted", action="not-booked")
            left |= {swept.second for swept in counted}
        return frozenset(left)

    def partly(self, swept: SweptSecond, up_to: int, still_open: frozenset[int]) -> bool:
        """Count the homes in the consecutive shards of `swept`, a second that is still open. Its
        re-entries stay: the homes that they point to are not counted yet."""
        facts = before(swept.met.facts, swept.reached)
        return not self._enter_all(facts, up_to, still_open, {swept.second: swept.reached})

    def _enter_all(
        self,
        facts: Facts,
        up_to: int,
        still_open: frozenset[int],
        partly: Mapping[int, int],
    ) -> set[int]:
        """The seconds that are not counted completely."""

        def is_entered(name: MinuteName, by_part: Mapping[Part, Tally]) -> bool:
            """A minute that cannot be read or written delays no other."""
            try:
                self._enter(
                    name, lambda stats: merge_into(stats, by_part, up_to, still_open, partly)
                )
            except Exception:  # noqa: BLE001 - logged, and its seconds stay open
                biz_type, minute = name
                logger.exception(
                    "statistics not recorded", action="not-booked", biz_type=biz_type, minute=minute
                )
                return False
            return True

        entered = fan_out(self.writers, is_entered, facts, facts.values())
        refused = [by for by, done in zip(facts.values(), entered, strict=True) if not done]
        return {second for by_part in refused for second, _ in by_part}

    def _enter(self, name: MinuteName, brought_up: Callable[[MinuteStats], MinuteStats]) -> None:
        for _ in range(_TRIES):
            if MinuteStats(*name).expires_at <= self.clock.now_ms() // 1000:
                return  # of a task that lived longer than the statistics of its minute
            stored = self.statistics.read(name)
            after = brought_up(stored.stats)
            if after == stored.stats or self.statistics.write(stored, after):
                self.seen.note(*name)
                return
        raise StatisticsContended(f"the minute {name} changed {_TRIES} times")
