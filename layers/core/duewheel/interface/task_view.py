"""A task in an answer. The payload stands in it as the very text that came in.

So the answer is put together as text: everything else is written by `json`, and the payload
is set between two halves, never in the place of something that other text could contain.
"""

from collections.abc import Sequence

from duewheel.interface.answer import compact
from duewheel.interface.callback_view import callback_view
from duewheel.interface.problems import problem_of
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import Refusal
from duewheel.rules.task import Attempt, Made, RetryPolicy, Status, Task


def task_text(task: Task) -> str:
    before = compact(_before_payload(task))
    after = compact(_after_payload(task))
    payload = "null" if task.payload is None else task.payload
    return f'{before[:-1]},"payload":{payload},{after[1:]}'


def batch_text(results: Sequence[Made | Refusal]) -> str:
    return '{"results":[' + ",".join(map(_result_text, results)) + "]}"


def _result_text(result: Made | Refusal) -> str:
    if isinstance(result, Made):
        status = 201 if result.is_new else 200
        return f'{{"status":{status},"task":{task_text(result.task)}}}'
    return compact({"status": result.status, "problem": problem_of(result)})


def _before_payload(task: Task) -> dict[str, object]:
    is_pending = task.status is Status.PENDING
    return {
        "task_id": task.task_id,
        "biz_type": task.biz_type,
        "key": task.key,
        "status": task.status.value,
        "reason": task.reason,
        "parked": False,  # no business can be paused yet; the shape is kept for it
        "due_at": rfc3339(task.due_ms),
        "next_at": rfc3339(task.next_ms) if is_pending else None,
        "attempts": task.attempts,
    }


def _after_payload(task: Task) -> dict[str, object]:
    return {
        "callback": callback_view(task.callback),
        **_when_asked_for(task),
        "created_at": rfc3339(task.created_ms),
        "updated_at": rfc3339(task.updated_ms),
        "settled_at": None if task.settled_ms is None else rfc3339(task.settled_ms),
        "expires_at": None if task.expires_at is None else rfc3339(task.expires_at * 1000),
        "lateness_ms": task.lateness_ms,
        "last_error": task.last_error,
        "history": [_attempt(attempt) for attempt in task.history],
    }


def _when_asked_for(task: Task) -> dict[str, object]:
    """What the caller may leave to the service's defaults appears only when it was given."""
    members: dict[str, object] = {}
    if task.retry is not None:
        members["retry"] = _retry(task.retry)
    if task.expires_after_seconds is not None:
        members["expires_after_seconds"] = _number(task.expires_after_seconds)
    return members


def _retry(retry: RetryPolicy) -> dict[str, object]:
    if retry.delays_seconds:
        return {
            "attempts": retry.attempts_max,
            "delays_seconds": [_number(delay) for delay in retry.delays_seconds],
        }
    return {
        "attempts": retry.attempts_max,
        "first_delay_seconds": _number(retry.first_delay_seconds),
        "factor": _number(retry.factor),
        "max_delay_seconds": _number(retry.delay_max_seconds),
    }


def _attempt(attempt: Attempt) -> dict[str, object]:
    return {
        "at": rfc3339(attempt.at_ms),
        "lateness_ms": attempt.lateness_ms,
        "outcome": attempt.outcome,
        "status_code": attempt.status_code,
        "duration_ms": attempt.duration_ms,
        "note": attempt.note,
    }


def _number(value: float) -> float:
    """As a caller would write it: 60, not 60.0."""
    return int(value) if value == int(value) else value
