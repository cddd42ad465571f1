"""Whether an occurrence that falls due is called, by its timer as it is now.

Planned occurrences stay when a timer changes; here the change takes effect. Planner and notifier
use the same rule for misfires.
"""

from enum import StrEnum

from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.tasks.task import Occurrence, Task
from duewheel.rules.timers.payload_template import filled_in
from duewheel.rules.timers.planning import due_second_of
from duewheel.rules.timers.schedule import contains, next_second, seconds_from
from duewheel.rules.timers.timer import Misfire, Rules, Timer

GONE = 410
_LOOKED_AT_MAX = 1_000


class Reason(StrEnum):
    """Why an occurrence is cancelled; stable words, part of the interface."""

    DELETED = "timer deleted"
    DISABLED = "timer disabled"
    CHANGED = "timer changed"
    MISSED = "missed"
    SUPERSEDED = "superseded"
    SKIPPED = "skipped"
    REPLACED = "replaced"  # it was cancelled for a later one


def skip_reason(
    task: Task, occurrence: Occurrence, timer: Timer | None, now_ms: int
) -> Reason | None:
    """None: it is to be called."""
    if timer is None:
        return Reason.DELETED
    if occurrence.manual:
        return None
    if not timer.enabled:
        return Reason.DISABLED
    if not _is_contained(task, occurrence, timer):
        return Reason.CHANGED
    if _is_in_gap(task, occurrence, timer):
        return Reason.DISABLED
    return misfire(task, occurrence, timer, now_ms)


def misfire(task: Task, occurrence: Occurrence, timer: Timer, now_ms: int) -> Reason | None:
    """Of one that has not been called yet and is late by more than the grace."""
    rules = timer.rules
    is_late = now_ms > task.due_ms + rules.grace_seconds * 1000
    if not is_late or task.attempts or task.redrives or occurrence.manual:
        return None
    match rules.misfire:
        case Misfire.ALL:
            return None
        case Misfire.SKIP:
            return Reason.MISSED
        case Misfire.LATEST:
            is_last = not _is_later_one_due(occurrence, timer, now_ms // 1000)
            return None if is_last else Reason.SUPERSEDED


def reason_of_misfires(rules: Rules) -> Reason:
    """Of those that are misfired and have a later one behind them."""
    return Reason.MISSED if rules.misfire is Misfire.SKIP else Reason.SUPERSEDED


def with_timer_fields(task: Task, occurrence: Occurrence, timer: Timer) -> Task:
    """The occurrence with what its timer says: payload, callback, retry policy, grace, tolerance,
    priority, flow key, labels and who is told of its outcome. A redrive has no grace."""
    rules = timer.rules
    return replace(
        task,
        payload=None if rules.payload is None else filled_in(rules.payload, task, occurrence),
        callback=rules.callback,
        retry=rules.retry,
        expires_after_seconds=None if task.redrives else rules.expires_after_seconds,
        tolerance_seconds=rules.tolerance_seconds or None,
        priority=rules.priority,
        flow_key=rules.flow_key,
        labels=rules.labels,
        on_outcome=rules.on_outcome,
    )


def should_disable_timer(timer: Timer, outcome: Outcome) -> bool:
    """Whether the receiver answered that it needs no more calls, and the timer follows such
    answers. Other answers end only the occurrence, and a call that was not made has no answer."""
    if not timer.rules.disable_on_stop or outcome.verdict is not Verdict.STOP:
        return False
    return outcome.stopped_by_receiver or outcome.status_code == GONE


def _is_contained(task: Task, occurrence: Occurrence, timer: Timer) -> bool:
    rules = timer.rules
    if _behind_last_run(occurrence, timer) > 0:
        return False
    due = due_second_of(timer, occurrence.second)
    return due * 1000 == task.due_ms and contains(rules.schedule, occurrence.second)


def _behind_last_run(occurrence: Occurrence, timer: Timer) -> int:
    """Above zero if it is behind the last run that `max_runs` permits, which has zero. The number
    of one that an earlier chain may have planned does not show that."""
    if timer.rules.max_runs is None:
        return -1
    begun = 0 if timer.chain is None else timer.chain.second
    if begun < occurrence.second < timer.sizes.until_second:
        return -1 if timer.last_second is None else occurrence.second - timer.last_second
    return occurrence.number - timer.rules.max_runs


def _is_in_gap(task: Task, occurrence: Occurrence, timer: Timer) -> bool:
    """The occurrence lies in a gap: a slow planner wrote it while the timer was disabled and
    enabled again, or it was planned before and is late. An occurrence that has attempts
    continues."""
    if task.attempts or task.redrives:
        return False
    return timer.gap_of(occurrence.second) is not None


def _is_later_one_due(occurrence: Occurrence, timer: Timer, now: int) -> bool:
    """With jitter a later one may be due before an earlier one is; all of a nominal second that
    is older than the jitter and the tolerance are."""
    schedule = timer.rules.schedule
    if _behind_last_run(occurrence, timer) >= 0:
        return False
    following = next_second(schedule, occurrence.second)
    while following is not None and (over := timer.gap_of(following)) is not None:
        following = next_second(schedule, over)
    if following is None or following > now:
        return False
    if following + timer.rules.late_seconds_max <= now:
        return True
    later = seconds_from(schedule, following, _LOOKED_AT_MAX, now)
    return any(
        due_second_of(timer, second) <= now for second in later if timer.gap_of(second) is None
    )
