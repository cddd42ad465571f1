"""Which of a page's tasks may be called when: GCRA (virtual scheduling), with two lines before it.

`free_us` is GCRA's theoretical arrival time. A call takes a turn when its page is delivered, on
time or late. A task that waits on the wheel holds no turn. A task that finds no turn free gets a
place in a line, and an entry at that instant: in the line (`line_us`) or, if it has been in a line
before, in the line of the late (`late_us`). Both lines advance at the rate, and only say when a
task tries again. A task that comes from a line may take a turn that has just passed, and the late
may take turns that lie further ahead than those open to all others.

Invariant: turns lie an interval apart. A call is made at its turn, or later by `slack_us` at most,
so a window of W seconds holds no more than rate * (W + slack) + 1 calls. No task is called before
its instant.
"""

from collections.abc import Sequence
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
from duewheel.rules.tasks.task import Reservation, Task

WAIT_MS = 2_000  # in the notifier, for a turn; for a longer wait the task gets another entry
LATE_WAIT_MS = 5_000  # the same for the late, which have had more entries than others
SLACK_US_MAX = 5_000_000
GOOD_FOR_MS = 5_000  # a turn that an older release has taken


class Tries(IntEnum):
    """How often a task has tried to get a turn, this time included."""

    FIRST = 1
    SECOND = 2
    MORE = 3


class Plan(Struct):
    """The plan for a page's tasks, by the cursors, and how it moves them. `soon`: the tasks that
    take a turn, each with its turn."""

    soon: list[tuple[Task, int]] = field(default_factory=list)
    line: list[Task] = field(default_factory=list)
    late: list[Task] = field(default_factory=list)
    moves: Moves = Moves()


def holds_turn(task: Task, version: int, now_ms: int) -> bool:
    """Whether an older release took a turn for it that is still valid."""
    held = task.reservation
    is_counted = held is not None and held.is_turn and _is_good(task, held, version)
    return is_counted and now_ms <= task.next_ms + GOOD_FOR_MS


def tries(task: Task, version: int) -> Tries:
    held = task.reservation
    if held is None or held.is_turn or not _is_good(task, held, version):
        return Tries.FIRST
    return Tries.MORE if held.is_late else Tries.SECOND


def slack_us(interval_us: int) -> int:
    """By how much a call may come after its turn: by one turn, so a window holds one call more."""
    return min(interval_us, SLACK_US_MAX)


def guessed(tasks: Sequence[Task], seen: Cursors, now_ms: int) -> Cursors:
    """Where the cursors probably are: tasks of a line follow each other without a gap."""
    if tries(tasks[0], seen.version) is Tries.FIRST:
        return seen
    from_us = max(tasks[0].next_ms, now_ms) * US_PER_MS
    return replace(seen, free_us=max(seen.free_us, from_us))


def planned(tasks: Sequence[Task], cursors: Cursors, now_ms: int) -> Plan:
    """For tasks in the order of their instants, which each of the three kinds keeps."""
    plan = Plan()
    interval_us, free_us = cursors.interval_us, cursors.free_us
    least_us, most_us = 0, None
    closed: set[Tries] = set()
    for task in tasks:
        tried = tries(task, cursors.version)
        earliest_us, latest_us = _open_turns(task, tried, interval_us, now_ms)
        turn_us = max(free_us, earliest_us)
        is_behind_the_line = tried is Tries.FIRST and turn_us < cursors.line_us
        if tried in closed or turn_us > latest_us or is_behind_the_line:
            closed.add(tried)
            (plan.line if tried is Tries.FIRST else plan.late).append(task)
            continue
        ahead_us = len(plan.soon) * interval_us
        least_us = max(least_us, earliest_us - ahead_us)
        most_us = min(latest_us - ahead_us, latest_us if most_us is None else most_us)
        plan.soon.append((task, turn_us))
        free_us = turn_us + interval_us
    plan.moves = Moves(
        _taken(plan, cursors, least_us, most_us),
        _lined_up(plan.line, cursors.line_us, free_us, interval_us),
        _lined_up(plan.late, cursors.late_us, free_us, interval_us),
        max(cursors.line_us, least_us) if _has_first(plan, cursors) else None,
    )
    return plan


def _open_turns(task: Task, tried: Tries, interval_us: int, now_ms: int) -> tuple[int, int]:
    """The first and the last one that it may take."""
    now_us, due_us = now_ms * US_PER_MS, task.next_ms * US_PER_MS
    from_us = max(now_us, due_us)
    if tried is Tries.FIRST:
        return from_us, from_us + WAIT_MS * US_PER_MS
    slack = slack_us(interval_us)
    # Its place was rounded up to the millisecond.
    earliest_us = max(due_us - US_PER_MS + 1, now_us - slack)
    if tried is Tries.SECOND:
        return earliest_us, from_us + WAIT_MS * US_PER_MS
    return earliest_us, from_us + LATE_WAIT_MS * US_PER_MS + slack


def _taken(plan: Plan, cursors: Cursors, least_us: int, most_us: int | None) -> Step | None:
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


def _has_first(plan: Plan, cursors: Cursors) -> bool:
    return any(tries(task, cursors.version) is Tries.FIRST for task, _ in plan.soon)


def allocate(
    plan: Plan, seen: Cursors, after: Cursors
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


def _is_good(task: Task, reservation: Reservation, version: int) -> bool:
    return reservation.at_ms == task.next_ms and reservation.version == version
