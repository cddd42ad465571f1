"""The notice of what became of a task: a task of its own, due at once.

The nearest `on_outcome` that names the outcome makes it: that of the task (or of the timer of a
run), else that of its business. A notice is marked as one, so that its own end makes none.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import encode
from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.types import OnOutcome, Told
from duewheel.rules.fields import Count, Instant, says
from duewheel.rules.instants import rfc3339, rfc3339_or_none
from duewheel.rules.names import BizType, TimerId
from duewheel.rules.tasks.task import NewTask, Status, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES
from duewheel.rules.wheel.sharding import Placement

TOLD_OF = {
    Status.DELIVERED: Told.DELIVERED,
    Status.DEAD: Told.DEAD,
    Status.EXPIRED: Told.EXPIRED,
    Status.CANCELLED: Told.CANCELLED,
}


def asked_for(task: Task, told: Told, business: Business) -> OnOutcome | None:
    """Who is told; None: nobody."""
    if task.notice_of is not None or task.is_internal:
        return None
    return _first(told, task.on_outcome, business)


def asked_for_runs(on_outcome: OnOutcome | None, business: Business) -> OnOutcome | None:
    """Who is told of missed runs of a timer that has this `on_outcome`."""
    return _first(Told.MISSED, on_outcome, business)


def asked_for_disabled(on_outcome: OnOutcome | None, business: Business) -> OnOutcome | None:
    """Who is told that the service disabled a timer that has this `on_outcome`."""
    return _first(Told.DISABLED, on_outcome, business)


def _first(told: Told, own: OnOutcome | None, business: Business) -> OnOutcome | None:
    for one in (own, business.own.on_outcome):
        if one is not None and told in one.outcomes:
            return one
    return None


class MissedRuns(Struct, kw_only=True):
    count: Count
    first_at: Instant
    last_at: Instant


class OutcomeNotice(Struct, kw_only=True):
    """What a notice tells; the body of its request."""

    outcome: Told
    task_id: Annotated[str, says("null if it is of several runs, or of a timer.")] | None
    biz_type: BizType
    key: str | None
    timer_id: TimerId | None
    reason: Annotated[str, says("Why, where there is more to say than the outcome.")] | None
    due_at: Instant
    settled_at: Instant | None
    attempts: Count
    last_error: str | None
    last_status_code: int | None
    runs: (
        Annotated[MissedRuns, says("Of several missed runs that no task stands for.")] | UnsetType
    ) = UNSET
    payload: Annotated[Raw, says("If it was asked for: the text as it was sent.")] | UnsetType = (
        UNSET
    )


def notice(ended: Task, told: Told, asked: OnOutcome, placement: Placement) -> Task:
    """The same for the same end and the same placement, by any process."""
    payload = Raw(b"null" if ended.payload is None else ended.payload.encode())
    body = OutcomeNotice(
        outcome=told,
        task_id=ended.task_id,
        biz_type=ended.biz_type,
        key=ended.key,
        timer_id=None if ended.occurrence is None else ended.occurrence.timer_id,
        reason=ended.reason,
        due_at=rfc3339(ended.due_at_ms),
        settled_at=rfc3339_or_none(ended.settled_ms),
        attempts=ended.attempts,
        last_error=ended.last_error,
        last_status_code=ended.history[-1].status_code if ended.history else None,
        payload=payload if asked.with_payload else UNSET,
    )
    return _placed(ended, f"{ended.redrives}", asked, body, placement)


def notice_of_runs(
    of: Task,
    timer_id: str,
    reason: str,
    due_seconds: Sequence[int],
    asked: OnOutcome,
    placement: Placement,
) -> Task:
    """One notice of runs that were only counted. `of`: a task of the timer, in the version in which
    they were; `due_seconds`, in order."""
    first, last = due_seconds[0], due_seconds[-1]
    body = OutcomeNotice(
        outcome=Told.MISSED,
        task_id=None,
        biz_type=of.biz_type,
        key=None,
        timer_id=timer_id,
        reason=reason,
        due_at=rfc3339(last * 1000),
        settled_at=rfc3339(placement.now_ms),
        attempts=0,
        last_error=None,
        last_status_code=None,
        runs=MissedRuns(
            count=len(due_seconds),
            first_at=rfc3339(first * 1000),
            last_at=rfc3339(last * 1000),
        ),
    )
    return _placed(of, f"{of.version} {first} {last}", asked, body, placement)


def notice_of_disabled(
    run: Task, timer_id: str, version: int, reason: str, asked: OnOutcome, placement: Placement
) -> Task:
    """That a timer was disabled after this run, which made it that version."""
    body = OutcomeNotice(
        outcome=Told.DISABLED,
        task_id=None,
        biz_type=run.biz_type,
        key=None,
        timer_id=timer_id,
        reason=reason,
        due_at=rfc3339(run.due_at_ms),
        settled_at=rfc3339(placement.now_ms),
        attempts=run.attempts,
        last_error=run.last_error,
        last_status_code=run.history[-1].status_code if run.history else None,
    )
    return _placed(run, f"{version}", asked, body, placement)


def _placed(
    of: Task, said: str, asked: OnOutcome, body: OutcomeNotice, placement: Placement
) -> Task:
    named, person = f"{of.home.name} {said}".encode(), body.outcome.value.encode()
    token = blake2b(named, digest_size=TOKEN_BYTES, person=person).digest()
    new = NewTask(
        biz_type=of.biz_type,
        due_ms=placement.now_ms,
        callback=asked.callback,
        payload=encode(body).decode(),
    )
    return replace(new.placed(placement, token), notice_of=body.task_id or body.timer_id)
