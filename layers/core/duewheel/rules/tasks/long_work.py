"""Work that goes on after a call: what its receiver may report, and what became of the attempt that
a report is about.

A report names an attempt by its token. It counts only while that attempt is the task's next one, or
under way: later it is refused, and the refusal says what happened.
"""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from duewheel.rules.callbacks.completion import WithinSeconds
from duewheel.rules.callbacks.outcome import Outcome, Verdict, note_from
from duewheel.rules.callbacks.payload_encoding import AttemptName
from duewheel.rules.callbacks.retry import RETRY_AFTER_SECONDS_MAX
from duewheel.rules.fields import RequestBody, decode, given, invalid, says
from duewheel.rules.refusals import NotRunning
from duewheel.rules.tasks.lifecycle import NOTE_CHARACTERS_MAX
from duewheel.rules.tasks.task import Status, Task

REPORT_BYTES_MAX = 16_384  # of a body
RESULT_BYTES_MAX = 2_048
REASON_CHARACTERS_MAX = 1_000

_Result = Annotated[str, says(f"At most {RESULT_BYTES_MAX:,} bytes; kept with the task.")]
_Reason = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=REASON_CHARACTERS_MAX,
        description=f"The first {NOTE_CHARACTERS_MAX} characters are kept.",
    ),
]
_Note = Annotated[str, Meta(max_length=NOTE_CHARACTERS_MAX, description="How far the work is.")]
_RetryAfter = Annotated[
    float,
    Meta(ge=0, le=RETRY_AFTER_SECONDS_MAX),
    says("The next attempt is not made before."),
]


class CompletionBody(RequestBody):
    result: _Result | UnsetType = UNSET


class FailureBody(RequestBody):
    reason: _Reason | UnsetType = UNSET
    retry: Annotated[bool, says("false: the task is dead.", default=True)] | UnsetType = UNSET
    retry_after_seconds: _RetryAfter | UnsetType = UNSET


class ProgressBody(RequestBody):
    note: _Note | UnsetType = UNSET
    complete_within_seconds: WithinSeconds | UnsetType = UNSET


def result_from(body: str | None) -> str | None:
    result = given(decode(body, CompletionBody).result, None) if body else None
    if result is not None and len(result.encode()) > RESULT_BYTES_MAX:
        raise invalid("result", f"must have at most {RESULT_BYTES_MAX:,} bytes.")
    return result


def failure_from(body: str | None) -> Outcome:
    read = decode(body, FailureBody) if body else FailureBody()
    reason = given(read.reason, "the receiver reported a failure")
    if read.retry is False:
        return Outcome(Verdict.STOP, note_from(reason), stopped_by_receiver=True)
    after = given(read.retry_after_seconds, None)
    return Outcome(Verdict.RETRY, note_from(reason), retry_after_seconds=after)


def progress_from(body: str | None) -> tuple[str | None, int | None]:
    """The note and the seconds, where they are given."""
    read = decode(body, ProgressBody) if body else ProgressBody()
    note = given(read.note, None)
    return note and note_from(note), given(read.complete_within_seconds, None)


def lapsed(task: Task) -> Outcome:
    """Nothing was reported."""
    assert task.running is not None
    note = f"not completed within {task.running.within_seconds} s"
    if task.running.note:
        note += f"; last progress: {task.running.note}"
    return Outcome(Verdict.RETRY, note_from(note))


def is_open(task: Task, name: AttemptName) -> bool:
    """Whether this attempt is the one that a report now decides."""
    return task.is_live and (task.redrives, task.attempts + 1) == (name.redrives, name.number)


def is_complete_by(task: Task, name: AttemptName) -> bool:
    return task.status is Status.DELIVERED and _was_latest(task, name)


def is_failed_by(task: Task, name: AttemptName, outcome: Outcome) -> bool:
    """Whether the attempt counts as failed already, in the way that is reported."""
    if task.status in (Status.DELIVERED, Status.CANCELLED) or not _was_latest(task, name):
        return False
    return outcome.verdict is Verdict.RETRY or task.status is Status.DEAD


def not_running(task: Task, name: AttemptName) -> NotRunning:
    if not task.is_live:
        reason = f": {task.reason}" if task.reason else ""
        return NotRunning(f"The task is {task.status.value}{reason}.")
    if _was_latest(task, name):
        return NotRunning(f"Attempt {name.number} has failed: {task.last_error}.")
    return NotRunning(f"Attempt {name.number} is over. The task goes on with another one.")


def _was_latest(task: Task, name: AttemptName) -> bool:
    return (task.redrives, task.attempts) == (name.redrives, name.number)
