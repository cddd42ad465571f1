"""Sweep: the second pointer, which follows the first and passes only what is finished.

After it has passed a second, none of that second's tasks can be lost: each is settled,
or named by an entry ahead of the pointer.
"""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import counts
from duewheel.rules import leadership, sweep_bound, wheel
from duewheel.rules.leadership import Pointer, Step
from duewheel.rules.metric_lines import (
    OPEN_PLACE_AGE,
    OPEN_PLACES,
    POINTER_LAG,
    SWEEP_LAG,
    SWEPT,
)
from duewheel.rules.open_places import age_seconds, oldest_first
from duewheel.stores import pointers
from duewheel.stores.headers import HeaderStore
from duewheel.stores.pointers import PointerStore
from duewheel.workflows.keep_books import KeepBooks
from duewheel.workflows.sweep_second import SweepSecond, SweptSecond

RESERVE_MS = 10_000
LOOK_AHEAD_SECONDS_MAX = 900
HOMES_HELD_MAX = 10_000  # in memory, of seconds that are not booked yet


class Sweep(Struct, frozen=True):
    clock: Clock
    pointers: PointerStore
    sweep_second: SweepSecond
    keep_books: KeepBooks
    headers: HeaderStore
    origin: int
    lag_ms: int
    aws_ms: Callable[[], int]

    def run(self, me: str, remaining_ms: Callable[[], int]) -> None:
        """Sweep as far as may be; a second that is not finished is left to the next run."""
        seen = self.pointers.read(pointers.SWEEP, self.origin)
        _measure(seen, self.clock.now_ms())
        if leadership.next_step(seen, me, self.clock.now_ms()) is not Step.CLAIM:
            return
        mine = self.pointers.claim(seen, me, self.clock.now_ms())
        if mine is None:
            return
        dispatched = self.pointers.read(pointers.TIME, self.origin).position
        counts.measured(POINTER_LAG, wheel.lag_seconds(dispatched, self.clock.now_ms()))
        # By a clock that is ahead, what has not come up would have been dispatched long ago.
        now_ms = wheel.not_ahead_ms(self.clock.now_ms(), self.aws_ms())
        notes = sweep_bound.noted(mine.notes, dispatched, now_ms, self.lag_ms)
        bound = sweep_bound.sweepable_second(notes, now_ms, self.lag_ms)
        noted = self.pointers.advance(mine, mine.position, now_ms, notes)
        if noted is not None:
            self._sweep_to(noted, mine.position if bound is None else bound, remaining_ms)

    def _sweep_to(self, mine: Pointer, bound: int, remaining_ms: Callable[[], int]) -> None:
        run = _Run(self, mine, remaining_ms)
        made_good = 0  # seconds passed whose pages had been sent again, and were worked off
        while run.position < bound and run.may_go_on():
            swept = self.sweep_second(run.position + 1, run.may_go_on)
            if not swept.is_finished:
                logger.info("sweep waits", action="sweep-waits", second=swept.second)
                ahead = range(swept.second + 1, bound + 1)[:LOOK_AHEAD_SECONDS_MAX]
                self._look_ahead(ahead, 2 * made_good, run.may_go_on)
                if swept.waits_for_slow_lane:
                    self._clear_slow_lane(ahead, run.may_go_on)
                break
            made_good += swept.was_made_good
            if swept.has_header:
                self.headers.let_go(swept.second)
            run.has_passed(swept)
        run.end()

    def _look_ahead(self, seconds: range, occupied_max: int, may_go_on: Callable[[], bool]) -> None:
        """The pointer waits; what is lost behind that second is sent again meanwhile. The more
        of it is worked off the further ahead, twice as far with each run; while nothing is
        worked off, not at all, so that a backlog is not multiplied."""
        for second in seconds:
            if occupied_max <= 0 or not may_go_on():
                return
            if self.sweep_second(second, may_go_on).size:
                occupied_max -= 1

    def _clear_slow_lane(self, seconds: range, may_go_on: Callable[[], bool]) -> None:
        """The pointer waits for a page that is called in the slow lane. What waits there behind
        it is put off, or the lane would work at the very second where the sweep stands, and keep
        it for as long as it has more than it can take."""
        for second in seconds:
            if not may_go_on():
                return
            self.sweep_second.put_off_slow_pages(second)


def _measure(seen: Pointer, now_ms: int) -> None:
    """Before each run, also one that another sweeper's lease ends at once."""
    counts.measured(SWEEP_LAG, wheel.lag_seconds(seen.position, now_ms))
    if seen.open_places:
        oldest = oldest_first(seen.open_places)[0]
        counts.measured(OPEN_PLACES, len(seen.open_places))
        counts.measured(OPEN_PLACE_AGE, age_seconds(oldest, now_ms))


class _Run:
    """One turn of a sweeper: its lease, and what it has passed and not booked yet."""

    def __init__(self, sweep: Sweep, mine: Pointer, remaining_ms: Callable[[], int]) -> None:
        self.position = mine.position
        self._sweep = sweep
        self._mine: Pointer | None = mine  # None when another has it
        self._remaining_ms = remaining_ms
        self._written_ms = sweep.clock.now_ms()
        self._passed: list[SweptSecond] = []  # those with anything in them

    def may_go_on(self) -> bool:
        """Asked every so often, for the lease is renewed on the way: a second may take long."""
        if self._sweep.clock.now_ms() - self._written_ms >= leadership.POINTER_WRITE_EVERY_MS:
            self._write()
        return self._mine is not None and self._remaining_ms() > RESERVE_MS

    def has_passed(self, swept: SweptSecond) -> None:
        self.position = swept.second
        counts.add(SWEPT, swept.size)
        if swept.size:
            self._passed.append(swept)
        if sum(swept.size for swept in self._passed) > HOMES_HELD_MAX:
            self._write()

    def end(self) -> None:
        if self._mine is not None:
            self._sweep.keep_books(self._passed)
            now_ms = self._sweep.clock.now_ms()
            self._sweep.pointers.release(self._mine, self.position, now_ms)

    def _write(self) -> None:
        """The books first: nobody goes back to a second that the pointer has passed."""
        if self._mine is not None:
            self._sweep.keep_books(self._passed)
            self._passed = []
            self._written_ms = self._sweep.clock.now_ms()
            self._mine = self._sweep.pointers.advance(self._mine, self.position, self._written_ms)
