"""Which of a page's tasks may be called when: GCRA (virtual scheduling), with two lines before it.

`free_us` is GCRA's theoretical arrival time. A call takes a turn when its page is delivered, on
time or late. A task that waits on the wheel holds no turn. A task that finds no turn free gets a
place in a line, and an entry at that instant: in the line (`line_us`) or, if it has been in a line
before, in the line of the late (`late_us`). Both lines advance at the rate, and only say when a
task tries again. A task that comes from a line may take a turn that has just passed, and the late
may take turns that lie further ahead than those open to all others.

A task of high priority does not stand behind the line, and may take turns that lie further ahead
than those open to the late. Without a turn it gets a place in the shorter line, and coming from the
line of newcomers it is as the others there. One of low priority takes no turn before the end of
that line, and lines up among the late, behind which no newcomer stands.

Invariant: turns lie an interval apart. A call is made at its turn, or later by `slack_us` at most,
so a window of W seconds holds no more than rate * (W + slack) + 1 calls. No task is called before
its instant.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import (
    US_PER_MS,
    Cursors,
    Moves,
    ReservedTurns,
    Step,
    lengthened,
    places,
)
from duewheel.rules.delivery.priority import Rank
from duewheel.rules.tasks.task import Reservation, Task

WAIT_MS = 2_000  # in the notifier, for a turn; for a longer wait the task gets another entry
LATE_WAIT_MS = 5_000  # the same for the late, which have had more entries than others
HIGH_WAIT_MS = 6_000  # for high priority; there is a turn behind those that are open to the late
LOW_WAIT_MS = 1_000  # for low priority, so that there is a turn for newcomers
SLACK_US_MAX = 5_000_000
PERMIT_WAIT_MS = 250  # with a permit of its business, for a turn of its flow key
PERMITS_VERSION = 0  # of a place in the line of permits; that of a rate limit is an instant


class Tries(IntEnum):
    """How often a task has tried to get a turn, this time included."""

    FIRST = 1
    SECOND = 2
    MORE = 3


RankOf = Callable[[Task], Rank]


def all_normal(task: Task) -> Rank:
    return Rank.NORMAL


class TurnPlan(Struct, kw_only=True):
    """The plan for a page's tasks, by the cursors, and how it moves them. `soon`: the tasks that
    take a turn, each with its turn."""

    soon: list[tuple[Task, int]] = field(default_factory=list)
    line: list[Task] = field(default_factory=list)
    late: list[Task] = field(default_factory=list)
    moves: Moves = Moves()


def tries(task: Task, version: int) -> Tries:
    """A task that comes from another line of its business, for permits or of its flow key, has
    waited as well. If it lined up behind this one, it would go to and fro."""
    held = task.reservation
    if held is None or held.at_ms != task.next_ms:
        return Tries.FIRST
    if held.version not in (version, PERMITS_VERSION) and task.flow_key is None:
        return Tries.FIRST  # by former settings
    return Tries.MORE if held.is_late else Tries.SECOND


def slack_us(interval_us: int) -> int:
    """By how much a call may come after its turn: by one turn, so a window holds one call more."""
    return min(interval_us, SLACK_US_MAX)


def not_before(task: Task, from_ms: int) -> Task:
    """The task as if it were due at that instant, if that is later. It keeps its place."""
    if from_ms <= task.next_ms:
        return task
    held = task.reservation
    if held is not None and held.at_ms == task.next_ms:
        held = replace(held, at_ms=from_ms)
    return replace(task, next_ms=from_ms, reservation=held)


def has_waited(task: Task) -> Task:
    """The task as one that comes from a line, so that it does not stand behind one. It waited for a
    permit."""
    held = task.reservation
    if held is None or held.at_ms != task.next_ms:
        return replace(task, reservation=Reservation(task.next_ms, PERMITS_VERSION))
    return replace(task, reservation=replace(held, version=PERMITS_VERSION))


def guessed(tasks: Sequence[Task], seen: Cursors, now_ms: int) -> Cursors:
    """Where the cursors probably are: tasks of a line follow each other without a gap."""
    if tries(tasks[0], seen.version) is Tries.FIRST:
        return seen
    from_us = max(tasks[0].next_ms, now_ms) * US_PER_MS
    return replace(seen, free_us=max(seen.free_us, from_us))


class _Claim(Struct, frozen=True, kw_only=True):
    """The turns that are open to a task."""

    task: Task
    tried: Tries
    rank: Rank
    earliest_us: int
    latest_us: int

    @property
    def is_newcomer(self) -> bool:
        return self.tried is Tries.FIRST and self.rank is Rank.NORMAL

    def line_in(self, plan: TurnPlan, cursors: Cursors) -> list[Task]:
        """Where it waits if it takes no turn."""
        is_high = self.tried is Tries.FIRST and self.rank is Rank.HIGH
        if is_high and cursors.line_us < cursors.late_us:
            return plan.line
        return plan.line if self.is_newcomer else plan.late

    @property
    def minds_the_line(self) -> bool:
        """It takes a turn only behind the line, if that has not been lengthened meanwhile."""
        return self.is_newcomer or self.rank is Rank.LOW


def planned(
    tasks: Sequence[Task],
    cursors: Cursors,
    now_ms: int,
    rank_of: RankOf = all_normal,
    wait_ms_max: int | None = None,
) -> TurnPlan:
    """For tasks in the order of their instants, which all of the same kind and rank keep."""
    plan = TurnPlan()
    interval_us, free_us = cursors.interval_us, cursors.free_us
    least_us, most_us, minds_the_line = 0, None, False
    closed: set[tuple[Tries, Rank]] = set()
    claims = [_claim(task, rank_of(task), cursors, now_ms, wait_ms_max) for task in tasks]
    for claim in _in_turn(claims, cursors):
        turn_us, kind = max(free_us, claim.earliest_us), (claim.tried, claim.rank)
        is_behind = claim.minds_the_line and turn_us < cursors.line_us
        if kind in closed or turn_us > claim.latest_us or is_behind:
            closed.add(kind)
            claim.line_in(plan, cursors).append(claim.task)
            continue
        ahead_us = len(plan.soon) * interval_us
        least_us = max(least_us, claim.earliest_us - ahead_us)
        latest_us = claim.latest_us - ahead_us
        most_us = latest_us if most_us is None else min(latest_us, most_us)
        minds_the_line = minds_the_line or claim.minds_the_line
        plan.soon.append((claim.task, turn_us))
        free_us = turn_us + interval_us
    plan.moves = Moves(
        _taken(plan, cursors, least_us, most_us),
        _lined_up(plan.line, cursors.line_us, free_us, interval_us),
        _lined_up(plan.late, cursors.late_us, free_us, interval_us),
        max(cursors.line_us, least_us) if minds_the_line else None,
    )
    return plan


def _in_turn(claims: list[_Claim], cursors: Cursors) -> list[_Claim]:
    """In the order in which they get turns: of those whose instant a turn is behind, the one of the
    smallest rank. No turn stays free for a task that is not due yet."""
    if len({claim.rank for claim in claims}) < 2:
        return claims
    coming, ordered, free_us = list(claims), list[_Claim](), cursors.free_us
    while coming:
        turn_us = max(free_us, coming[0].earliest_us)
        ready = [claim for claim in coming if claim.earliest_us <= turn_us]
        first = min(ready, key=lambda claim: claim.rank)
        coming.remove(first)
        ordered.append(first)
        free_us = turn_us + cursors.interval_us
    return ordered


def _claim(
    task: Task, rank: Rank, cursors: Cursors, now_ms: int, wait_ms_max: int | None
) -> _Claim:
    tried = tries(task, cursors.version)
    now_us, due_us = now_ms * US_PER_MS, task.next_ms * US_PER_MS
    from_us = earliest_us = max(now_us, due_us)
    slack = slack_us(cursors.interval_us)
    if tried is not Tries.FIRST:
        # Its place was rounded up to the millisecond.
        earliest_us = max(due_us - US_PER_MS + 1, now_us - slack)
    ahead_us = _ahead_us(tried, rank, slack)
    if wait_ms_max is not None:
        ahead_us = min(ahead_us, wait_ms_max * US_PER_MS)
    return _Claim(
        task=task,
        tried=tried,
        rank=rank,
        earliest_us=earliest_us,
        latest_us=from_us + ahead_us,
    )


def _ahead_us(tried: Tries, rank: Rank, slack: int) -> int:
    """How far ahead a turn may lie that it takes."""
    if rank is Rank.HIGH and tried is not Tries.SECOND:
        return HIGH_WAIT_MS * US_PER_MS + 2 * slack
    if rank is Rank.LOW:
        return (LOW_WAIT_MS if tried is Tries.FIRST else WAIT_MS) * US_PER_MS
    if tried is Tries.MORE:
        return LATE_WAIT_MS * US_PER_MS + slack
    return WAIT_MS * US_PER_MS


def _taken(plan: TurnPlan, cursors: Cursors, least_us: int, most_us: int | None) -> Step | None:
    """All turns follow each other if the cursor is between `least_us` and `most_us`."""
    if not plan.soon:
        return None
    if cursors.free_us >= least_us:
        cost_us = len(plan.soon) * cursors.interval_us
        return Step(add_us=cost_us, least_us=least_us, most_us=most_us)
    first_us, last_us = plan.soon[0][1], plan.soon[-1][1]
    return Step(to_us=last_us + cursors.interval_us, most_us=first_us)


def _lined_up(tasks: Sequence[Task], end_us: int, free_us: int, interval_us: int) -> Step | None:
    if not tasks:
        return None
    from_us = max(free_us, tasks[0].next_ms * US_PER_MS)
    return lengthened(end_us, from_us, len(tasks) * interval_us)


def allocate(
    plan: TurnPlan, seen: Cursors, after: Cursors
) -> tuple[list[tuple[Task, int]], list[tuple[Task, Reservation]]]:
    """The tasks to call, each with the instant from which it may be called, and those to
    reschedule. `seen`: the cursors of the plan; `after`: the cursors as written."""
    free = plan.moves.free
    further_us = 0 if free is None else after.free_us - free.moved(seen.free_us)
    soon = [
        (task, max(task.next_ms, -(-(turn_us + further_us) // US_PER_MS)))
        for task, turn_us in plan.soon
    ]
    line = places(after.line_us, len(plan.line), after)
    late = places(after.late_us, len(plan.late), after)
    return soon, [*reserved(plan.line, line), *reserved(plan.late, late, is_late=True)]


def reserved(
    tasks: Sequence[Task], turns: ReservedTurns, *, is_late: bool = False
) -> list[tuple[Task, Reservation]]:
    """Each at its place in a line."""
    return [
        (task, Reservation(max(task.next_ms, place_ms), turns.version, is_late=is_late))
        for task, place_ms in zip(tasks, turns.instants_ms(), strict=True)
    ]
