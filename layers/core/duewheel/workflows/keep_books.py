"""Keep the books: enter what the sweep met in the seconds it has finished.

The order makes it exact: first the sheets, then the entries go that told the facts, and only
then does the sweep pointer move, or a second leave its list of open places. Who sweeps the same
seconds again after a crash finds the facts still there, and in each sheet which seconds it holds
already.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules.books import SheetName, booked, joined
from duewheel.rules.tally import Tally
from duewheel.stores.statistics import StatisticsStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.sweep_second import SweptSecond

WRITERS = 8
_TRIES = 4


class BooksContested(Exception):
    """Another sweeper writes the same sheets all the time; the next run goes on."""


class KeepBooks(Struct, frozen=True):
    clock: Clock
    statistics: StatisticsStore
    tasks: TaskStore
    writers: ThreadPoolExecutor

    def __call__(
        self,
        finished: Sequence[SweptSecond],
        up_to: int,
        still_open: frozenset[int] = frozenset(),
    ) -> None:
        """`finished` are whole seconds, in any order; all others up to `up_to` have been booked
        before, or held nothing, but those that are still open."""
        facts = joined(swept.met.facts for swept in finished)
        fan_out(
            self.writers,
            lambda name, by_second: self._enter(name, by_second, up_to, still_open),
            facts,
            facts.values(),
        )
        self.tasks.delete_entries([entry for swept in finished for entry in swept.reentries])

    def _enter(
        self,
        name: SheetName,
        by_second: dict[int, Tally],
        up_to: int,
        still_open: frozenset[int],
    ) -> None:
        for _ in range(_TRIES):
            sheet = self.statistics.sheets([name])[name]
            if sheet.expires_at <= self.clock.now_ms() // 1000:
                return  # of a task that lived longer than the statistics of its minute
            brought_up = booked(sheet, by_second, up_to, still_open)
            if brought_up == sheet or self.statistics.write(sheet, brought_up):
                return
        raise BooksContested(f"the sheet {name} changed {_TRIES} times")
