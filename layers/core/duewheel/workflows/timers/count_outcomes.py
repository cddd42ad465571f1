"""Count the outcomes of runs that step records name: fold those that have ended into the counters
of their timer, and show the others beside these.

One conditional write moves the second up to which runs are counted, and adds their counts. So each
run is counted once, whichever chains and planners are at work.
"""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.outcome_counts import (
    FOLDED_BEHIND_SECONDS,
    Counted,
    Folded,
    counts_of,
    fold,
)
from duewheel.rules.wheel.addresses import Address, header_place
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.step_records import StepRecordStore

READ_AT_ONCE = 500
SHOWN_MAX = 300  # runs that are not folded yet, of a timer that is read


class CountOutcomes(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    records: StepRecordStore
    counters: CounterStore

    def fold(self, timer_id: str, planned_until_second: int, until_ms: int) -> bool:
        """Fold the runs that are due before that second: later ones may still be put. Returns
        whether there are more, or some that have not ended."""
        limit = READ_AT_ONCE
        while True:
            counters = self.counters.read(timer_id)
            before = counters.folded
            due_before = self._now_second() - FOLDED_BEHIND_SECONDS
            last = max(before.until_second, min(due_before, planned_until_second))
            homes, more_are_due, are_more = self._unfolded(timer_id, before, last, limit)
            if not homes and not before.open_homes:
                return are_more
            # Runs of its last second may be on the next page.
            end = homes[-1].second if more_are_due else last
            complete = [home for home in homes if home.second < end]
            if more_are_due and not complete:  # a tolerance gathers many runs in one second
                limit *= 2
                continue
            folded = fold(before, complete, self._tasks(before, complete), end)
            if folded.after == before:
                return True
            if not self.counters.fold(timer_id, counters, folded.after, folded.counts):
                return True
            is_full = folded.after.until_second < end
            if is_full or not more_are_due or self.clock.now_ms() >= until_ms:
                return is_full or are_more or bool(folded.after.open_homes)

    def shown(self, timer_id: str) -> dict[str, int]:
        """The counters, with the runs that are not folded yet."""
        counters = self.counters.read(timer_id)
        homes, *_ = self._unfolded(timer_id, counters.folded, self._now_second() + 1, SHOWN_MAX)
        counts = Counter[Counted]()
        with unavailable_when_throttled():
            tasks = self._tasks(counters.folded, homes)
        for task in tasks.values():
            if task.occurrence is not None and not task.occurrence.indexed:
                counts.update(counts_of(task))
        return {name: count + counts[Counted(name)] for name, count in counters.counts.items()}

    def _unfolded(
        self, timer_id: str, folded: Folded, before_second: int, limit: int
    ) -> tuple[list[Address], bool, bool]:
        """Those due before this second, in order; whether there may be more of them; and whether
        there are any others."""
        behind = header_place(folded.until_second)
        homes, goes_on = self.records.page(
            timer_id, newest_first=False, behind=behind, limit=limit, consistent=True
        )
        due = [home for home in homes if home.second < before_second]
        return due, goes_on and 0 < len(due) == len(homes), goes_on or len(due) < len(homes)

    def _tasks(self, folded: Folded, homes: list[Address]) -> Mapping[Address, Task]:
        return self.tasks.get_many([*folded.open_homes, *homes])

    def _now_second(self) -> int:
        return self.clock.now_ms() // 1000
