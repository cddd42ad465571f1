"""The lifecycle of a task: what to do with an entry that falls due, how the record of its task
changes with each attempt or postponement, and how the task ends.

The rule that keeps entries consistent: the home names the one entry that may fire.
"""

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome, Verdict, kept_answer
from duewheel.rules.callbacks.retry import delay_ms
from duewheel.rules.callbacks.types import KeepAnswers, RetryPolicy
from duewheel.rules.tasks.task import (
    Attempt,
    InLine,
    PostponedBy,
    Postponement,
    Reservation,
    Revival,
    Running,
    Status,
    Task,
)
from duewheel.rules.tolerance import Window
from duewheel.rules.wheel.addresses import Address

HISTORY_MAX = 10
REVIVALS_MAX = 10
STOPPED = "stopped"
EXHAUSTED = "attempts exhausted"
TOO_OLD = "older than max_age_seconds"
ABOUT_TO_GO_MS = 3_600_000  # so near to its expiry a record is not made pending again
# After a delivery: its run has ended, and AWS refuses its requests.
REDRIVABLE_AFTER_MS = 600_000
NOTE_CHARACTERS_MAX = 120  # keeps a small task under 1 KB after a normal delivery
WAIT_MS_MIN = 60_000  # of a task that is postponed by its lateness
WAIT_MS_MAX = 900_000


class FoundEntry(Struct, frozen=True):
    """An entry as read. `task` is set if the entry is itself the home."""

    address: Address
    home: Address
    task: Task | None


class Decision(Enum):
    DELIVER = "deliver"
    DROP = "drop"
    PLACE_LATER = "place later"
    EXPIRE = "expire"
    LAPSE = "lapse"  # its work is not reported as ended


def decide(entry: Address, home: Task | None, now_ms: int) -> Decision:
    if home is None or home.status is not Status.PENDING or home.entry != entry or home.parked:
        return Decision.DROP
    if home.next_ms // 1000 > entry.second and home.next_ms > now_ms:
        return Decision.PLACE_LATER
    if home.running is not None:
        return Decision.LAPSE
    if is_expired(home, now_ms):
        return Decision.EXPIRE
    return Decision.DELIVER


def is_expired(task: Task, instant_ms: int) -> bool:
    """Whether the task's grace is over at this instant."""
    if task.expires_after_seconds is None:
        return False
    return instant_ms > task.due_ms + task.expires_after_seconds * 1000


def attempt_made(
    task: Task,
    outcome: Outcome,
    started_ms: int,
    ended_ms: int,
    keep: KeepAnswers | None = None,
) -> Attempt:
    return Attempt(
        at_ms=started_ms,
        lateness_ms=max(0, started_ms - task.next_ms),
        duration_ms=ended_ms - started_ms,
        outcome=outcome.verdict.value,
        entry_second=task.entry.second,
        status_code=outcome.status_code,
        note=outcome.note[:NOTE_CHARACTERS_MAX],
        host=outcome.host,
        answer=kept_answer(outcome, keep, ended_ms),
    )


def begun(
    task: Task, call: Attempt, within_seconds: int, scopes: tuple[str, ...], now_ms: int
) -> Task:
    """Its receiver works on, and reports the end. It still needs an entry, at which it falls due
    if nothing is reported."""
    until_ms = now_ms + within_seconds * 1000
    running = Running(call=call, until_ms=until_ms, within_seconds=within_seconds, scopes=scopes)
    return replace(
        task,
        running=running,
        next_ms=until_ms,
        reservation=None,
        postponement=None,
        in_line=None,
        paused=None,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def reported_attempt(task: Task, outcome: Outcome, now_ms: int) -> Attempt:
    """The attempt whose outcome is reported, or that lapses. A report may come before the answer to
    the call is written. It counts in the second of the named entry: the sweep may have finished
    that of the call."""
    if task.running is None:
        return attempt_made(task, outcome, now_ms, now_ms)
    call = task.running.call
    return replace(
        call,
        duration_ms=now_ms - call.at_ms,
        outcome=outcome.verdict.value,
        entry_second=task.entry.second,
        note=outcome.note[:NOTE_CHARACTERS_MAX],
    )


def progressed(
    task: Task, running: Running, within_seconds: int, note: str | None, now_ms: int
) -> Task:
    """It keeps its entry: when that fires the notifier places the task again."""
    until_ms = max(running.until_ms, now_ms + within_seconds * 1000)
    after = replace(
        running,
        until_ms=until_ms,
        within_seconds=within_seconds,
        note=running.note if note is None else note,
    )
    return replace(
        task, running=after, next_ms=until_ms, updated_ms=now_ms, version=task.version + 1
    )


def delivered(task: Task, attempt: Attempt, now_ms: int, retention_seconds: int) -> Task:
    ended = _ended(_with_attempt(task, attempt), Status.DELIVERED, now_ms, retention_seconds)
    return replace(ended, lateness_ms=max(0, attempt.at_ms - task.due_ms), last_error=None)


def retry_at_ms(
    task: Task, usual: RetryPolicy, outcome: Outcome, now_ms: int, random_unit: float
) -> int | None:
    """The instant of the next attempt; None if there is none. `usual`: the policy of its business,
    for a task without one. A failure may be reported to another clock, which is behind that of the
    call: the delay counts from the call at the earliest."""
    if outcome.verdict is Verdict.STOP:
        return None
    policy = task.retry or usual
    wait_ms = delay_ms(policy, task.attempts + 1, random_unit, outcome.retry_after_seconds)
    called_ms = task.next_ms if task.running is None else task.running.call.at_ms
    return None if wait_ms is None else max(now_ms, called_ms) + wait_ms


def retry_window(
    task: Task, usual: RetryPolicy, usual_tolerance_seconds: int, instant_ms: int
) -> Window:
    """When the attempt that is due at this instant may be made. It has no tolerance if the end of
    that is behind the task's grace or age: the tolerance ends no task."""
    tolerance = task.tolerance_seconds
    if tolerance is None:
        tolerance = 0 if task.occurrence is not None else usual_tolerance_seconds
    latest_ms = instant_ms + tolerance * 1000
    if is_expired(task, latest_ms) or is_too_old(task, usual, latest_ms):
        tolerance = 0
    return Window(instant_ms, task.biz_type, tolerance)


def is_too_old(task: Task, usual: RetryPolicy, instant_ms: int) -> bool:
    """Whether the task is older at this instant than its policy allows. Its age counts from the
    latest redrive."""
    max_age_seconds = (task.retry or usual).max_age_seconds
    if max_age_seconds is None:
        return False
    return instant_ms > due_since_ms(task) + max_age_seconds * 1000


def due_since_ms(task: Task) -> int:
    redriven_ms = task.revivals[-1].revived * 1000 if task.revivals else 0
    return max(task.due_ms, redriven_ms)


def to_be_retried(task: Task, attempt: Attempt, next_ms: int, entry: Address, now_ms: int) -> Task:
    return replace(
        _with_attempt(task, attempt),
        next_ms=next_ms,
        entry=entry,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def rescheduled(task: Task, reservation: Reservation, now_ms: int) -> Task:
    """Not called yet, because of the rate limit of its business. It still needs an entry."""
    return replace(
        task,
        next_ms=reservation.at_ms,
        reservation=reservation,
        postponement=None,
        parked=False,
        parked_key=None,
        paused=None,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def parked(task: Task, now_ms: int, flow_key: str | None = None) -> Task:
    """It fell due while its business, or this flow key, was paused, and keeps that entry."""
    return replace(
        task,
        parked=True,
        parked_key=flow_key,
        reservation=None,
        postponement=None,
        paused=None,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def released(task: Task, next_ms: int, now_ms: int) -> Task:
    """No longer parked. It still needs an entry."""
    is_later = next_ms != task.next_ms
    return replace(
        task,
        parked=False,
        parked_key=None,
        next_ms=next_ms,
        postponement=Postponement(PostponedBy.RELEASE, next_ms) if is_later else None,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def postponed(task: Task, next_ms: int, now_ms: int, by: PostponedBy | None = None) -> Task:
    """Not called yet, and no attempt is used up: the breaker of its host is open, or its lane is
    full. Its reservation was for another instant, and is dropped. It still needs an entry."""
    return replace(
        task,
        next_ms=next_ms,
        running=None if task.running is None else replace(task.running, until_ms=next_ms),
        reservation=None,
        postponement=None if by is None else Postponement(by, next_ms),
        paused=None,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def put_in_line(task: Task, at_ms: int, now_ms: int) -> Task:
    """Not called yet: an earlier task of its flow key has not ended. It still needs an entry."""
    waits = task.in_line is not None and task.in_line.until_ms == task.next_ms
    from_ms = task.in_line.from_ms if task.in_line is not None and waits else task.next_ms
    return replace(
        postponed(task, at_ms, now_ms, PostponedBy.FLOW_KEY), in_line=InLine(at_ms, from_ms)
    )


def postponed_by_lateness(task: Task, now_ms: int, by: PostponedBy | None = None) -> Task:
    """About as long as it is late already: so it falls due a few times only, however long its lane
    is overloaded."""
    return postponed(task, now_ms + lateness_wait_ms(task, now_ms), now_ms, by)


def lateness_wait_ms(task: Task, now_ms: int) -> int:
    return min(max(now_ms - task.due_ms, WAIT_MS_MIN), WAIT_MS_MAX)


def reason_of_death(outcome: Outcome, next_ms: int | None) -> str:
    """`next_ms` is set if another attempt would only come too late."""
    if outcome.verdict is Verdict.STOP:
        return STOPPED
    return EXHAUSTED if next_ms is None else TOO_OLD


def dead(task: Task, attempt: Attempt, reason: str, now_ms: int, retention_seconds: int) -> Task:
    tried = _with_attempt(task, attempt)
    return replace(_ended(tried, Status.DEAD, now_ms, retention_seconds), reason=reason)


def expired_after(task: Task, attempt: Attempt, now_ms: int, retention_seconds: int) -> Task:
    """Only its grace prevents another attempt."""
    return expired(_with_attempt(task, attempt), now_ms, retention_seconds)


def expired(task: Task, now_ms: int, retention_seconds: int) -> Task:
    ended = _ended(task, Status.EXPIRED, now_ms, retention_seconds)
    return replace(ended, reason="not delivered within expires_after_seconds")


def cancelled(task: Task, reason: str, now_ms: int, retention_seconds: int) -> Task:
    return replace(_ended(task, Status.CANCELLED, now_ms, retention_seconds), reason=reason)


def brought_to(task: Task, entry: Address) -> Task:
    """With an entry that may be earlier than the second in which the task first falls due. The same
    write records the earlier second, since the sweep may finish the later second while the earlier
    one is open."""
    first = task.home.second if task.first_second is None else task.first_second
    if entry.second < first:
        return replace(task, entry=entry, first_second=entry.second)
    return replace(task, entry=entry)


def redrive_at_ms(task: Task, now_ms: int) -> int:
    """Now; but a task that was cancelled before its due instant is not called before that. One that
    was called before it, since it was run, may be."""
    return max(now_ms, task.due_ms) if task.status is Status.CANCELLED else now_ms


def redrivable_from_ms(task: Task) -> int:
    """A delivery may be written without a condition: until then the SDK may repeat the write, and
    would undo the redrive. Of other tasks the late delivery is what the redrive wants."""
    return task.updated_ms + REDRIVABLE_AFTER_MS if task.status is Status.DELIVERED else 0


def redriven(task: Task, entry: Address, now_ms: int) -> Task:
    """Pending again, with all its attempts before it; the history stays. It has no grace any more,
    since the redrive requests the call."""
    revival = Revival(
        ended=task.entry.second,
        revived=entry.second,
        status=task.status,
        lateness_ms=task.lateness_ms,
        reason=task.reason,
        attempts=task.attempts,
    )
    return replace(
        brought_to(task, entry),
        status=Status.PENDING,
        reason=None,
        attempts=0,
        redrives=task.redrives + 1,
        revivals=_kept((*task.revivals, revival)),
        expires_after_seconds=None,
        next_ms=redrive_at_ms(task, now_ms),
        settled_ms=None,
        result=None,
        expires_at=None,
        lateness_ms=None,
        notice_id=None,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def is_about_to_go(task: Task, now_ms: int) -> bool:
    return task.expires_at is not None and task.expires_at * 1000 <= now_ms + ABOUT_TO_GO_MS


def is_gone(task: Task, now_ms: int) -> bool:
    """TTL deletes within days; from its instant on an expired record counts as deleted."""
    return task.expires_at is not None and task.expires_at * 1000 <= now_ms


def _with_attempt(task: Task, attempt: Attempt) -> Task:
    answer, attempt = attempt.answer, replace(attempt, answer=None)
    status = None if attempt.status_code is None else f"status {attempt.status_code}"
    return replace(
        task,
        attempts=task.attempts + 1,
        history=(*task.history, attempt)[-HISTORY_MAX:],
        answer=task.answer if answer is None else answer,
        last_error=attempt.note or status,
        running=None,
        paused=None,
        reservation=None,
        postponement=None,
        in_line=None,
    )


def _kept(revivals: tuple[Revival, ...]) -> tuple[Revival, ...]:
    """The first one decides in which minute the task counts, and what a run first counts as; the
    latest may not be swept yet."""
    return (*revivals[:1], *revivals[1:][-REVIVALS_MAX:])


def _ended(task: Task, status: Status, now_ms: int, retention_seconds: int) -> Task:
    return replace(
        task,
        status=status,
        paused=None,
        settled_ms=now_ms,
        updated_ms=now_ms,
        expires_at=now_ms // 1000 + retention_seconds,
        running=None,
        reservation=None,
        postponement=None,
        in_line=None,
        parked=False,
        parked_key=None,
        version=task.version + 1,
    )
