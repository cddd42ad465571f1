"""Sweep: the second pointer, which follows the first and passes only what is finished.

After it has passed a second, none of that second's tasks can be lost: each is settled,
or named by an entry ahead of the pointer.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules import leadership, sweep_bound, wheel
from duewheel.rules.leadership import Pointer, Step
from duewheel.stores import pointers
from duewheel.stores.headers import HeaderStore
from duewheel.stores.pointers import PointerStore
from duewheel.workflows.keep_books import KeepBooks
from duewheel.workflows.read_second import ReadSecond, WholeSecond
from duewheel.workflows.sweep_second import SweepSecond

RESERVE_MS = 10_000
LOOK_AHEAD_SECONDS_MAX = 900
HOMES_HELD_MAX = 10_000  # in memory, of seconds that are not booked yet


class Sweep(Struct, frozen=True):
    clock: Clock
    pointers: PointerStore
    read_second: ReadSecond
    sweep_second: SweepSecond
    keep_books: KeepBooks
    headers: HeaderStore
    origin: int
    lag_ms: int
    aws_ms: Callable[[], int]

    def run(self, me: str, remaining_ms: Callable[[], int]) -> None:
        """Sweep as far as may be; a second that is not finished is left to the next run."""
        seen = self.pointers.read(pointers.SWEEP, self.origin)
        if leadership.next_step(seen, me, self.clock.now_ms()) is not Step.CLAIM:
            return
        mine = self.pointers.claim(seen, me, self.clock.now_ms())
        if mine is None:
            return
        dispatched = self.pointers.read(pointers.TIME, self.origin).position
        # By a clock that is ahead, what has not come up would have been dispatched long ago.
        now_ms = wheel.not_ahead_ms(self.clock.now_ms(), self.aws_ms())
        notes = sweep_bound.noted(mine.notes, dispatched, now_ms, self.lag_ms)
        bound = sweep_bound.sweepable_second(notes, now_ms, self.lag_ms)
        noted = self.pointers.advance(mine, mine.position, now_ms, notes)
        if noted is not None:
            self._sweep_to(noted, mine.position if bound is None else bound, remaining_ms)

    def _sweep_to(self, mine: Pointer, bound: int, remaining_ms: Callable[[], int]) -> None:
        position = mine.position
        written_ms = self.clock.now_ms()
        passed: list[WholeSecond] = []  # those with anything in them, not booked yet
        made_good = 0  # seconds passed whose pages had been sent again, and were worked off
        while position < bound and remaining_ms() > RESERVE_MS:
            whole = self.read_second(position + 1)
            if not self.sweep_second(whole):
                logger.info("sweep waits", action="sweep-waits", second=position + 1)
                ahead = range(position + 2, bound + 1)[:LOOK_AHEAD_SECONDS_MAX]
                self._look_ahead(ahead, 2 * made_good, remaining_ms)
                if self.sweep_second.is_held_by_slow_lane(whole):
                    self._clear_slow_lane(ahead, remaining_ms)
                break
            position += 1
            made_good += whole.was_made_good
            if whole.has_header:
                self.headers.let_go(position)
            if whole.size:
                passed.append(whole)
            if self._is_write_due(written_ms, passed):
                self.keep_books(passed)
                written_ms = self.clock.now_ms()
                moved = self.pointers.advance(mine, position, written_ms)
                if moved is None:
                    return
                mine, passed = moved, []
        self.keep_books(passed)
        self.pointers.release(mine, position, self.clock.now_ms())

    def _look_ahead(
        self, seconds: range, occupied_max: int, remaining_ms: Callable[[], int]
    ) -> None:
        """The pointer waits; what is lost behind that second is sent again meanwhile. The more
        of it is worked off the further ahead, twice as far with each run; while nothing is
        worked off, not at all, so that a backlog is not multiplied."""
        for second in seconds:
            if occupied_max <= 0 or remaining_ms() <= RESERVE_MS:
                return
            whole = self.read_second(second)
            if whole.size:
                occupied_max -= 1
                self.sweep_second(whole)

    def _clear_slow_lane(self, seconds: range, remaining_ms: Callable[[], int]) -> None:
        """The pointer waits for a page that is called in the slow lane. What waits there behind
        it is put off, or the lane would work at the very second where the sweep stands, and keep
        it for as long as it has more than it can take."""
        for second in seconds:
            if remaining_ms() <= RESERVE_MS:
                return
            self.sweep_second.put_off_slow_pages(self.read_second(second))

    def _is_write_due(self, written_ms: int, passed: Sequence[WholeSecond]) -> bool:
        if self.clock.now_ms() - written_ms >= leadership.POINTER_WRITE_EVERY_MS:
            return True
        return sum(whole.size for whole in passed) > HOMES_HELD_MAX
