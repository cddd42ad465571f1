"""Keep the books: enter what the sweep met in the seconds it has finished.

The order makes it exact: first the sheets, then the entries go that told the facts, and only
then does the sweep pointer move, or a second leave its list of open places. A sweeper that sweeps
the same seconds again after a crash finds the facts still there, and in each sheet which seconds
it holds already. A second stays open when a write for it fails; all others are booked.
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
    Part,
    Sheet,
    SheetName,
    Tally,
    before,
    booked,
    joined,
)
from duewheel.stores.sweep.minute_statistics import StatisticsStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.sweep.sweep_second import SweptSecond

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
    ) -> frozenset[int]:
        """Book whole seconds, in any order; all others up to `up_to` have been booked before, or
        held nothing, but those that are still open. Returns the seconds that were not booked."""
        facts = joined(swept.met.facts for swept in finished)
        left = self._enter_all(facts, up_to, still_open, NO_PARTS)
        told = [swept for swept in finished if swept.reentries and swept.second not in left]
        try:
            self.tasks.delete_entries([entry for swept in told for entry in swept.reentries])
        except Exception:  # noqa: BLE001 - logged, and done again
            logger.exception("re-entries not deleted", action="not-booked")
            left |= {swept.second for swept in told}
        return frozenset(left)

    def partly(self, swept: SweptSecond, up_to: int, still_open: frozenset[int]) -> bool:
        """Book the homes that stand in the shards which follow each other in `swept`, of a second
        that is still open. Its re-entries stay: they are yet to tell which homes were met."""
        facts = before(swept.met.facts, swept.reached)
        return not self._enter_all(facts, up_to, still_open, {swept.second: swept.reached})

    def _enter_all(
        self,
        facts: Facts,
        up_to: int,
        still_open: frozenset[int],
        partly: Mapping[int, int],
    ) -> set[int]:
        """The seconds of which not all was entered."""

        def is_entered(name: SheetName, by_part: Mapping[Part, Tally]) -> bool:
            """One sheet that cannot be read or written holds up no other."""
            try:
                self._enter(name, lambda sheet: booked(sheet, by_part, up_to, still_open, partly))
            except Exception:  # noqa: BLE001 - logged, and its seconds stay open
                biz_type, minute = name
                logger.exception(
                    "not booked", action="not-booked", biz_type=biz_type, minute=minute
                )
                return False
            return True

        entered = fan_out(self.writers, is_entered, facts, facts.values())
        refused = [by for by, done in zip(facts.values(), entered, strict=True) if not done]
        return {second for by_part in refused for second, _ in by_part}

    def _enter(self, name: SheetName, brought_up: Callable[[Sheet], Sheet]) -> None:
        for _ in range(_TRIES):
            if Sheet(*name).expires_at <= self.clock.now_ms() // 1000:
                return  # of a task that lived longer than the statistics of its minute
            stored = self.statistics.read(name)
            after = brought_up(stored.sheet)
            if after == stored.sheet or self.statistics.write(stored, after):
                return
        raise BooksContested(f"the sheet {name} changed {_TRIES} times")
