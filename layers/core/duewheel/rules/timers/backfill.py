"""Backfill: make the runs of a timer whose instants are past, and that were not made then.

A run is identified by its timer and its instant by the schedule. It was made if there is a task of
that instant that was called, or that a caller has cancelled; one that the service itself cancelled
uncalled was not. A backfilled run has a record by timer and instant, so no two backfills make it.
"""

from typing import Annotated

from msgspec import Meta, Struct

from duewheel.rules.bulk.operation import Action, Backfill, Wish
from duewheel.rules.bulk.requests import PER_SECOND_MAX, NewOperation
from duewheel.rules.fields import Instant, RequestBody, decode, instant_ms, invalid, says
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Plan, Status, Task
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.timers.schedule import seconds_from
from duewheel.rules.timers.timer import Timer
from duewheel.rules.wheel.addresses import Second

RUNS_MAX = 10_000
PER_SECOND_DEFAULT = 10
# Their instants are near the end of their retention: they may be gone before they are looked at.
ABOUT_TO_GO_SECONDS = 3_600

_UNCALLED = (
    Reason.MISSED,
    Reason.SUPERSEDED,
    Reason.SKIPPED,
    Reason.DISABLED,
    Reason.CHANGED,
    Reason.DELETED,
)


class BackfillBody(RequestBody, kw_only=True, rename={"from_": "from"}):
    """Which runs are made: those with an instant from `from` on and before `to`."""

    from_: Annotated[Instant, says("In the past.")]
    to: Annotated[Instant, says("Not in the future.")]
    runs_per_second: Annotated[int, Meta(ge=1, le=PER_SECOND_MAX)] = PER_SECOND_DEFAULT
    dry_run: Annotated[bool, says("Count the runs that would be made, and make none.")] = False


class BackfillRequest(Struct, frozen=True, kw_only=True):
    """`to_second` is exclusive."""

    from_second: Second
    to_second: Second
    per_second: int
    dry_run: bool


def backfill_request(body: str, now_ms: int) -> BackfillRequest:
    read = decode(body, BackfillBody)
    from_ms, to_ms = instant_ms(read.from_, "from"), instant_ms(read.to, "to")
    if from_ms < 0:
        raise invalid("from", "must not be before 1970.")
    if to_ms > now_ms:
        raise invalid("to", "must not be in the future.")
    if from_ms >= to_ms:
        raise invalid("to", "must be after from.")
    return BackfillRequest(
        from_second=-(-from_ms // 1000),
        to_second=-(-to_ms // 1000),
        per_second=read.runs_per_second,
        dry_run=read.dry_run,
    )


def known_from(retention_seconds: int, now_ms: int) -> Second:
    """Of runs before that second it is not known whether they were made: they have been deleted."""
    return max(0, now_ms // 1000 - retention_seconds)


def new_operation(
    timer: Timer, asked: BackfillRequest, plan: Plan | None, retention_seconds: int, now_ms: int
) -> NewOperation:
    """`plan`: of its chain."""
    if plan is not None and asked.to_second > plan.planned_until_second:
        planned = rfc3339(plan.planned_until_second * 1000)
        raise invalid("to", f"must not be after {planned}: later runs are still planned.")
    known = known_from(retention_seconds, now_ms) + ABOUT_TO_GO_SECONDS
    made_from = max(asked.from_second, timer.created_ms // 1000)
    if made_from < min(asked.to_second, known):
        earliest = rfc3339(known * 1000)
        raise invalid(
            "from", f"must not be before {earliest}: the records of earlier runs are deleted."
        )
    last = asked.to_second - 1
    seconds = seconds_from(timer.rules.schedule, asked.from_second, RUNS_MAX + 1, last)
    if not seconds:
        raise invalid("from", "has no instant of the schedule between it and to.")
    if len(seconds) > RUNS_MAX:
        reached = rfc3339(seconds[-1] * 1000)
        raise invalid("to", f"must not be after {reached}: that is {RUNS_MAX:,} runs.")
    backfill = Backfill(timer.timer_id, asked.from_second, asked.to_second)
    wish = Wish(
        action=Action.BACKFILL,
        backfill=backfill,
        total=len(seconds),
        per_second=asked.per_second,
        dry_run=asked.dry_run,
    )
    return NewOperation(timer.biz_type, wish)


def was_made(task: Task) -> bool:
    """Of a task of this instant. A run by hand is of no instant of the schedule."""
    if task.occurrence is None or task.occurrence.manual:
        return False
    return task.status is not Status.CANCELLED or task.reason not in _UNCALLED
