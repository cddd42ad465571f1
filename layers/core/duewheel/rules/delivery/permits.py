"""Permits: how many calls of a business may be under way at once, over all notifiers (a semaphore
whose permits are leased).

A run holds permits until an instant by its own clock, and renews them. It begins a call only if the
call ends by then. A holder counts until this instant has passed by all clocks, so the permits of a
run that crashed come back by themselves.

Work that goes on after its call holds a permit of its own until it ends, or lapses. Tasks that wait
give back those of work that has ended otherwise.

Runs whose tasks wait say so in the record, with the order of the first one (`priority.py`). A run
that waits for an earlier one is served first: the others leave free permits to it, and give it
theirs as their calls end.

A task that finds no permit in its patience gets a place in a line: an instant at which it tries
again. Places lie apart by the duration of a call, divided by the limit. The line begins behind the
tasks that wait in runs with permits, which call them. Tasks that have not been in the line line up
behind it; those that come from it and find no permit line up among the late, as for a rate limit
(`reservations.py`).

Invariant: at no instant are more permits held than the limit that the latest run to take some knew.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import US_PER_MS, ReservedTurns
from duewheel.rules.delivery.reservations import LATE_WAIT_MS, PERMITS_VERSION, WAIT_MS
from duewheel.rules.tasks.task import Reservation, Task
from duewheel.rules.wheel.timing import SKEW_MS

BEGIN_MS = 5_000  # calls begin for so long by permits that are not renewed
SURE_MS = 2_000  # a run that takes a permit for a call may still begin it for so long
RENEWED_EVERY_MS = 1_500  # at most
YIELD_MS = 4_000  # a task that is earlier by less has to wait
WAITING_MS = 3_000  # a run without permits counts as waiting for so long
IDLE_MS = 500  # a run gives back permits that it will not use for so long
AHEAD_MS = 150  # before a task is due its run takes a permit
RETRY_MS = 100  # of a run that has no permit
MORE_MS = 500  # of one that has fewer than it wants
CALL_US_FIRST = 500_000  # the duration of a call until one was measured
CALL_US_MAX = 3_600_000_000
RECENT_CALLS = 20  # the mean has about so many
LINE_SHARE = 0.8  # places are a little closer than calls last, so that no permit is idle
WAITERS_MAX = 20  # runs without permits in the record; others just try again
VERSION = PERMITS_VERSION
_WORK = "task:"


class Holding(Struct, frozen=True, array_like=True):
    """Of one run: permits, until when, how many tasks wait in it for more of them, and the order of
    the first of these."""

    count: int
    until_ms: int
    waiting: int = 0
    first_order: int = 0

    def counts_at(self, now_ms: int) -> bool:
        return now_ms <= self.until_ms + SKEW_MS


class Permits(Struct, frozen=True, kw_only=True):
    """The record: `held` by token of the holder; the mean duration of calls; the ends of the line
    and of that of the late. `version` counts the changes of what is held, 0: there is no record."""

    version: int = 0
    held: Mapping[str, Holding] = field(default_factory=dict)
    call_us: int = CALL_US_FIRST
    line_us: int = 0
    late_us: int = 0

    def interval_us(self, limit: int) -> int:
        """The distance of places in the line."""
        return max(1, round(self.call_us * LINE_SHARE / limit))

    def waiting(self, now_ms: int) -> int:
        """Tasks in runs that have permits: these call them."""
        return sum(one.waiting for one in self.held.values() if one.count and one.counts_at(now_ms))

    def has_line(self, now_ms: int) -> bool:
        end_us = max(self.line_us, self.late_us)
        return end_us > now_ms * US_PER_MS or self.waiting(now_ms) > 0

    def line_from_ms(self, limit: int, task: Task, now_ms: int) -> int:
        """Where places for this task and those behind it may begin. Newcomers line up behind the
        late."""
        ahead_us = self.waiting(now_ms) * self.interval_us(limit)
        from_ms = max(task.next_ms, now_ms + ahead_us // US_PER_MS)
        return from_ms if is_placed(task) else max(from_ms, self.late_us // US_PER_MS)


class Wanted(Struct, frozen=True, kw_only=True):
    """What a run wants: permits for calls that are under way or due, `at_least` those under way,
    until an instant. `first_order`: of the first task that waits. `ended`: its calls since the last
    change, and how long all of them took."""

    owner: str
    count: int
    at_least: int
    until_ms: int
    first_order: int = 0
    ended: tuple[int, int] = (0, 0)


def share(permits: Permits, wanted: Wanted, limit: int, now_ms: int) -> int:
    """How many of the wanted permits a run gets, or keeps when its calls have ended."""
    others = _others(permits, wanted.owner, now_ms)
    free = limit - sum(one.count for one in others.values())
    earlier_ms = wanted.first_order - YIELD_MS
    yielded = sum(one.waiting for one in others.values() if one.first_order < earlier_ms)
    return max(0, min(wanted.count, free - yielded))


def changed(permits: Permits, wanted: Wanted, limit: int, now_ms: int) -> Permits | None:
    """The record with the share of a run; None if nothing would change."""
    count = max(wanted.at_least, share(permits, wanted, limit, now_ms))
    waiting = max(0, wanted.count - count)
    until_ms = wanted.until_ms if count else min(wanted.until_ms, now_ms + WAITING_MS)
    mine = Holding(count, until_ms, waiting, wanted.first_order if waiting else 0)
    noted = permits.held.get(wanted.owner)
    if _is_known(noted, mine):
        return None
    others = _others(permits, wanted.owner, now_ms)
    is_newcomer = noted is None and not count
    if is_newcomer and sum(not one.count for one in others.values()) >= WAITERS_MAX:
        return None
    held = {wanted.owner: mine} if wanted.count else {}
    return replace(
        permits,
        version=permits.version + 1,
        held={**others, **held},
        call_us=_mean_us(permits.call_us, *wanted.ended),
    )


def held_by_work(permits: Permits, task_id: str, until_ms: int) -> Permits:
    """With the permit of work that goes on after its call, beside that of the call."""
    held = {**permits.held, _work(task_id): Holding(1, until_ms)}
    return replace(permits, version=permits.version + 1, held=held)


def given_back_by_work(
    permits: Permits, task_id: str, took_ms: int, until_ms: int
) -> Permits | None:
    """`until_ms`: of the work that has ended. A later one is of the next attempt, which may work
    before this is written."""
    mine = permits.held.get(_work(task_id))
    if mine is None or mine.until_ms > until_ms:
        return None
    held = {name: one for name, one in permits.held.items() if name != _work(task_id)}
    call_us = _mean_us(permits.call_us, 1, took_ms)
    return replace(permits, version=permits.version + 1, held=held, call_us=call_us)


def work_in(permits: Permits) -> dict[str, Holding]:
    """By task id."""
    return {
        name.removeprefix(_WORK): one
        for name, one in permits.held.items()
        if name.startswith(_WORK)
    }


def without_work(permits: Permits, over: Mapping[str, Holding]) -> Permits | None:
    """Without the permits of work that is over, but for those that were put anew since."""
    seen = {_work(task_id): one for task_id, one in over.items()}
    held = {name: one for name, one in permits.held.items() if seen.get(name) != one}
    if len(held) == len(permits.held):
        return None
    return replace(permits, version=permits.version + 1, held=held)


def _work(task_id: str) -> str:
    return _WORK + task_id


def _others(permits: Permits, owner: str, now_ms: int) -> dict[str, Holding]:
    return {
        name: one for name, one in permits.held.items() if name != owner and one.counts_at(now_ms)
    }


def _is_known(noted: Holding | None, mine: Holding) -> bool:
    """Whether the record says so already, and for long enough."""
    if noted is None:
        return not mine.count and not mine.waiting
    is_same = (noted.count, noted.waiting > 0) == (mine.count, mine.waiting > 0)
    is_wanted = mine.count > 0 or mine.waiting > 0
    return is_same and is_wanted and mine.until_ms - noted.until_ms < RENEWED_EVERY_MS


def _mean_us(mean_us: int, calls: int, took_ms: int) -> int:
    """With the calls that have ended since; the latest count more."""
    if not calls:
        return mean_us
    latest_us = took_ms * US_PER_MS / calls
    share = 1 - (1 - 1 / RECENT_CALLS) ** calls
    return min(max(1, round(mean_us + (latest_us - mean_us) * share)), CALL_US_MAX)


def is_placed(task: Task) -> bool:
    """Whether it comes from the line of permits."""
    held = task.reservation
    return held is not None and held.version == VERSION and held.at_ms == task.next_ms


def is_in_a_line(task: Task) -> bool:
    """Whether it comes from this line, or from that of a rate limit."""
    held = task.reservation
    return held is not None and held.at_ms == task.next_ms


def patience_ms(task: Task) -> int:
    """How long a task waits for a permit while its run has none."""
    held = task.reservation
    is_late = held is not None and is_placed(task) and held.is_late
    return LATE_WAIT_MS if is_late else WAIT_MS


def by_line(tasks: Sequence[Task], order: Callable[[Task], int]) -> list[list[Task]]:
    """Newcomers, and the late: those that come from the line; each in their order."""
    ordered = sorted(tasks, key=order)
    newcomers = [task for task in ordered if not is_placed(task)]
    return [some for some in (newcomers, [t for t in ordered if is_placed(t)]) if some]


def placed(tasks: Sequence[Task], places: ReservedTurns) -> list[tuple[Task, Reservation]]:
    """The tasks in their order, each with its place in the line."""
    return [
        (task, Reservation(max(task.next_ms, at_ms), VERSION, is_late=is_placed(task)))
        for task, at_ms in zip(tasks, places.instants_ms(), strict=True)
    ]
