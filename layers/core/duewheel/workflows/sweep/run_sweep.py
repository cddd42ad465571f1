"""Run the sweep: move the sweep pointer past seconds that are finished or noted as open.

No task behind the pointer can be lost: it is settled, parked, or names an entry ahead of the
pointer or in an open place. A place that the sweep cannot finish is noted as open, and read again
in each run. The pointer waits only while the list of open places is full.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import (
    OPEN_PLACE_AGE,
    OPEN_PLACES,
    POINTER_LAG,
    SWEEP_LAG,
    SWEPT,
    counts,
)
from duewheel.rules.sweep import horizon
from duewheel.rules.sweep.resends import Evidence, Unbegun, chosen
from duewheel.rules.wheel import leader_election, timing
from duewheel.rules.wheel.leader_election import Pointer, Step
from duewheel.rules.wheel.open_places import (
    OF_ONE_SECOND_MAX,
    OpenPlace,
    OpenPlaces,
    Why,
    age_seconds,
    oldest_first,
)
from duewheel.stores.wheel import pointers
from duewheel.stores.wheel.pointers import PointerStore
from duewheel.stores.wheel.sharding import HeaderStore
from duewheel.workflows.sweep.record_statistics import RecordStatistics
from duewheel.workflows.sweep.sweep_second import SweepSecond, SweptSecond, Unfinished

RESERVE_MS = 10_000
HOMES_HELD_MAX = 10_000  # in memory, of seconds that are not counted yet
# How long a run works on open places, and then on new seconds, before it changes to the other.
TURN_MS = 15_000
FAILURES_IN_A_ROW_MAX = 10


class Sweep(Struct, frozen=True, kw_only=True):
    clock: Clock
    pointers: PointerStore
    sweep_second: SweepSecond
    record_statistics: RecordStatistics
    headers: HeaderStore
    origin: int
    lag_ms: int
    aws_ms: Callable[[], int]

    def run(self, me: str, remaining_ms: Callable[[], int]) -> None:
        """Read all open places once, and sweep as far as possible."""
        seen = self.pointers.read(pointers.SWEEP, self.origin)
        _measure(seen, self.clock.now_ms())
        if leader_election.next_step(seen, me, self.clock.now_ms()) is not Step.CLAIM:
            return
        mine = self.pointers.claim(seen, me, self.clock.now_ms())
        if mine is None:
            return
        dispatched = self.pointers.read(pointers.TIME, self.origin).position
        counts.measured(POINTER_LAG, timing.lag_seconds(dispatched, self.clock.now_ms()))
        notes, bound = self.look_ahead(mine, dispatched)
        noted = self.pointers.advance(mine, mine.position, self.now_ms(), notes)
        if noted is not None:
            self._take_turns(_Run(self, noted, remaining_ms), bound)

    def look_ahead(self, mine: Pointer, dispatched: int) -> tuple[horizon.Notes, int]:
        """The known position of the time pointer, and how far that lets the sweep go."""
        now_ms = self.now_ms()
        notes = horizon.noted(mine.notes, dispatched, now_ms, self.lag_ms)
        bound = horizon.sweepable_second(notes, now_ms, self.lag_ms)
        return notes, mine.position if bound is None else bound

    def now_ms(self) -> int:
        """By a clock that is ahead, a task that is not due yet would look late."""
        return timing.not_ahead_ms(self.clock.now_ms(), self.aws_ms())

    def _take_turns(self, run: "_Run", bound: int) -> None:
        """Open places first; neither these nor new seconds delay the other."""
        waiting = deque(_Walk.again(place) for place in run.places)
        while True:
            self._turn(run, waiting, lambda: waiting.popleft() if waiting else None)
            self._turn(run, waiting, partial(run.next_second, bound))
            run.send_again()
            if not run.may_go_on() or not (waiting or run.has_more(bound)):
                break
            bound = run.look_ahead(bound)
        if run.position < bound and not run.places.has_room:
            logger.warning("sweep waits", action="sweep-waits", second=run.position + 1)
        run.end()

    def _turn(
        self, run: "_Run", waiting: "deque[_Walk]", following: Callable[[], "_Walk | None"]
    ) -> None:
        until_ms = self.clock.now_ms() + TURN_MS
        while run.may_go_on() and self.clock.now_ms() < until_ms:
            walk = following()
            if walk is None:
                return
            if not run.finish(walk, until_ms):
                waiting.append(walk)


class _Walk:
    """Over slices of one second: a single one, or all from `at` on, as many as the second has."""

    def __init__(self, second: int, at: int, end: int | None, since_ms: int) -> None:
        self.second = second
        self.at = at
        self.end = end  # None: not known yet
        self.since_ms = since_ms
        self.is_new = False
        self.is_stuck = False  # too much is open behind it: what was reached stays where it is
        self.is_judged = False  # nothing of the second is unfinished; it is not counted yet
        self.counted = 0  # the homes in the shards before this one are counted

    @classmethod
    def again(cls, place: OpenPlace) -> "_Walk":
        end = None if place.why is Why.NOT_REACHED else place.shard + 1
        walk = cls(place.second, place.shard, end, place.since_ms)
        if place.why is Why.NOT_COUNTED:
            walk.is_judged, walk.counted = True, place.shard
        return walk

    @property
    def is_over(self) -> bool:
        return self.end is None or self.at >= self.end


def _measure(seen: Pointer, now_ms: int) -> None:
    """Before each run, also one that ends at once because another sweeper has the lease."""
    counts.measured(SWEEP_LAG, timing.lag_seconds(seen.position, now_ms))
    if seen.open_places:
        oldest = oldest_first(seen.open_places)[0]
        counts.measured(OPEN_PLACES, len(seen.open_places))
        counts.measured(OPEN_PLACE_AGE, age_seconds(oldest, now_ms))


class _Run:
    """One run of a sweeper: its lease, the open places, and what is finished and not counted."""

    def __init__(self, sweep: Sweep, mine: Pointer, remaining_ms: Callable[[], int]) -> None:
        self.position = mine.position
        self.places = OpenPlaces(mine.open_places)
        self._sweep = sweep
        self._mine: Pointer | None = mine  # None when another has it
        self._notes = mine.notes
        self._remaining_ms = remaining_ms
        self._written_ms = sweep.clock.now_ms()
        self._swept: dict[int, SweptSecond] = {}  # seconds of which some slices are finished
        self._finished: list[SweptSecond] = []  # whole seconds that are not empty
        self._asked: list[Unbegun] = []
        self._seconds_sent = 0
        self._served: set[str] = set()  # businesses of pages that were sent again
        self._evidence = Evidence()
        self._failures = 0  # in a row, of new seconds

    def may_go_on(self) -> bool:
        """Called often, since it renews the lease: a second may take long."""
        if self._sweep.clock.now_ms() - self._written_ms >= leader_election.POINTER_WRITE_EVERY_MS:
            self._write()
        return self._mine is not None and self._remaining_ms() > RESERVE_MS

    def _has_time(self, until_ms: int) -> bool:
        return self.may_go_on() and self._sweep.clock.now_ms() < until_ms

    def has_more(self, bound: int) -> bool:
        return self.position < bound and self.places.has_room

    def next_second(self, bound: int) -> _Walk | None:
        """Passed at once, with all of it noted as open; finished places are taken off the list."""
        if not self.has_more(bound):
            return None
        self.position += 1
        walk = _Walk(self.position, 0, None, self._sweep.clock.now_ms())
        walk.is_new = True
        self._note(walk, "", Why.NOT_REACHED)
        return walk

    def look_ahead(self, bound: int) -> int:
        """How far the sweep may go by now, in a run that lasts."""
        if self._mine is None:
            return bound
        sweep = self._sweep
        dispatched = sweep.pointers.read(pointers.TIME, sweep.origin).position
        self._notes, ahead = sweep.look_ahead(self._mine, dispatched)
        return max(bound, ahead)

    def finish(self, walk: _Walk, until_ms: int) -> bool:
        """Finish its slices one after the other, and count the second if nothing of it is open any
        more. False if there was no time for all of this."""
        while not walk.is_judged:
            try:
                unfinished = self._look(walk)
            except Exception as error:  # noqa: BLE001 - logged; it must not hold up all the others
                self._failed(walk, error)
                unfinished = "", Why.FAILED
            self._step(walk, unfinished)
            if walk.is_judged or walk.is_over:
                break
            if not self._has_time(until_ms):
                return False
        if walk.is_judged and not self._has_counted(walk, until_ms):
            return False
        self._swept.pop(walk.second, None)
        return True

    def _failed(self, walk: _Walk, error: Exception) -> None:
        logger.exception("second not swept", action="slice-failed", second=walk.second)
        self._failures += walk.is_new
        if self._failures >= FAILURES_IN_A_ROW_MAX:
            raise error  # the failure is not that of a place

    def send_again(self) -> None:
        """Resend as many unbegun pages as there is evidence of lost messages."""
        if not self._asked:
            return
        # Counted again in each turn, after the pages were read as unbegun: in a long run others are
        # dispatched meanwhile. An unbegun slow page is postponed, not sent again.
        waiting = self._sweep.sweep_second.message_sender.waiting()
        seconds_max = self._evidence.seconds_max - self._seconds_sent
        pages = chosen(self._asked, seconds_max, waiting, self._served)
        self._seconds_sent += len({page.lease.second for page in pages})
        for page in pages:
            if not self.may_go_on():
                return
            self._asked.remove(page)
            try:
                self._sweep.sweep_second.send_again(page)
            except Exception:  # noqa: BLE001 - logged, and the place stays open
                logger.exception("not sent again", action="slice-failed", second=page.lease.second)
                self._asked.clear()
                return  # the places stay open

    def end(self) -> None:
        if self._mine is not None:
            self._book()
            self._book_in_parts()
            now_ms = self._sweep.clock.now_ms()
            places = tuple(self.places)
            self._sweep.pointers.release(self._mine, self.position, now_ms, places)

    def _look(self, walk: _Walk) -> Unfinished | None:
        second, shard = walk.second, walk.at
        sweep_second = self._sweep.sweep_second
        if walk.end is None and shard:
            walk.end = max(shard + 1, sweep_second.read_second.slices.shards_of(second))
        part = sweep_second.read_second.slice(second, shard)
        if walk.end is None:
            walk.end = part.whole.shards
        unfinished = sweep_second.finish(part, self.position, self.places.covers, self._asked)
        if unfinished is None and not part.may_change:  # else it is read again to be counted
            self._swept_of(walk).add(part)
        if walk.is_new:
            self._failures = 0
        return unfinished

    def _swept_of(self, walk: _Walk) -> SweptSecond:
        if walk.second not in self._swept:
            self._swept[walk.second] = SweptSecond(walk.second, walk.since_ms, walk.counted)
        return self._swept[walk.second]

    def _step(self, walk: _Walk, unfinished: Unfinished | None) -> None:
        """Note the result of the slice, and how far the walk has come."""
        if walk.end is None:
            return  # all of the second stays noted
        is_last = walk.at + 1 == walk.end
        if unfinished and not is_last:
            walk.is_stuck |= len(self.places.of(walk.second)) > OF_ONE_SECOND_MAX
        if not walk.is_stuck:
            if unfinished is None:
                self.places.close(walk.second, walk.at)
            else:
                self._note(walk, *unfinished)
        if is_last and not self.places.of(walk.second):
            walk.is_judged = True
            self._note_not_counted(self._swept_of(walk))
            return
        walk.at += 1
        if not walk.is_stuck and not is_last:
            self._note(walk, "", Why.NOT_REACHED)

    def _has_counted(self, walk: _Walk, until_ms: int) -> bool:
        """The second is finished: count it. Slices that other runs finished and did not count are
        read again; False if the run ends before that."""
        swept = self._swept_of(walk)
        try:
            while (shard := swept.missing) is not None:
                # Strongly consistent: the earlier read may be outdated, and a count is final.
                swept.add(
                    self._sweep.sweep_second.read_second.slice(
                        walk.second, shard, strongly=True, reentries_only=shard < swept.counted
                    )
                )
                if swept.missing is not None and not self._has_time(until_ms):
                    return False
            if swept.has_header:
                self._sweep.headers.let_go(walk.second)
        except Exception as error:  # noqa: BLE001 - logged; the second stays open
            self._failed(walk, error)
            return True
        self._evidence.made_good += swept.was_made_good
        self._evidence.done += walk.is_new and swept.was_done and not swept.was_made_good
        for place in self.places.of(walk.second):
            self.places.close(walk.second, place.shard)
        if swept.size:
            self._finished.append(swept)
        if sum(swept.size for swept in self._finished) > HOMES_HELD_MAX:
            self._write()
        return True

    def _note(self, walk: _Walk, page: str, why: Why) -> None:
        place = OpenPlace(
            second=walk.second, shard=walk.at, page=page, since_ms=walk.since_ms, why=why
        )
        self.places.note(place)

    def _note_not_counted(self, swept: SweptSecond) -> None:
        place = OpenPlace(
            second=swept.second, shard=swept.counted, since_ms=swept.since_ms, why=Why.NOT_COUNTED
        )
        self.places.note(place)

    def _book(self) -> None:
        """Statistics are written first: no run reads a second again that is neither ahead nor
        open."""
        finished, self._finished = self._finished, []
        if not finished:
            return
        left = self._sweep.record_statistics(finished, self.position, self.places.seconds)
        for swept in finished:
            if swept.second in left:
                self._note_not_counted(swept)
            else:
                counts.add(SWEPT, swept.size)

    def _book_in_parts(self) -> None:
        """Count the parts of unfinished seconds, so that the next run continues there. Finished
        seconds are counted before, so that a minute written now includes them."""
        for swept in self._swept.values():
            noted = self.places.at(swept.second, swept.counted)
            is_not_counted = noted is not None and noted.why is Why.NOT_COUNTED
            if not is_not_counted or swept.reached <= swept.counted:
                continue
            if self._sweep.record_statistics.partly(swept, self.position, self.places.seconds):
                self.places.close(swept.second, swept.counted)
                swept.counted = swept.reached
                self._note_not_counted(swept)

    def _write(self) -> None:
        if self._mine is not None:
            self._book()
            self._book_in_parts()
            self._written_ms = self._sweep.clock.now_ms()
            self._mine = self._sweep.pointers.advance(
                self._mine, self.position, self._written_ms, self._notes, tuple(self.places)
            )
