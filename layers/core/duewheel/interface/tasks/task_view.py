"""Tasks in answers: one, a batch, a page of a list, a page of redrives.

The payload is in an answer byte for byte. So the answer is joined as text: everything else is
written by `json`, and the payload is put between two halves, never in the place of a text that
could occur elsewhere.
"""

from collections.abc import Iterable, Sequence

from duewheel.interface.callbacks.callback_view import callback_view
from duewheel.interface.http import compact
from duewheel.interface.problems import problem_of
from duewheel.rules.callbacks.retry import number_said, retry_members
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.task import Attempt, Made, Status, Task
from duewheel.workflows.tasks.dead_tasks import Redriven


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
        "parked": task.parked,
        "due_at": rfc3339(task.due_ms),
        "next_at": rfc3339(task.next_ms) if is_pending else None,
        "attempts": task.attempts,
    }


def _after_payload(task: Task) -> dict[str, object]:
    return {
        "callback": None if task.callback is None else callback_view(task.callback),
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
    """Optional members appear only if the request set them."""
    members: dict[str, object] = {}
    if task.retry is not None:
        members["retry"] = retry_members(task.retry)
    if task.expires_after_seconds is not None:
        members["expires_after_seconds"] = number_said(task.expires_after_seconds)
    if task.notice_of is not None:
        members["notice_of"] = task.notice_of
    if (occurrence := task.occurrence) is not None:
        members["timer_id"] = occurrence.timer_id
        members["occurrence_at"] = rfc3339(occurrence.second * 1000)
        members["number"] = None if occurrence.manual else occurrence.number
    return members


def _attempt(attempt: Attempt) -> dict[str, object]:
    return {
        "at": rfc3339(attempt.at_ms),
        "lateness_ms": attempt.lateness_ms,
        "outcome": attempt.outcome,
        "status_code": attempt.status_code,
        "duration_ms": attempt.duration_ms,
        "note": attempt.note,
    }


def redriven_view(redriven: Redriven) -> dict[str, object]:
    return {
        "redriven": redriven.redriven,
        "refused": [
            {"task_id": task_id, "problem": problem_of(refusal)}
            for task_id, refusal in redriven.refused
        ],
        "cursor": redriven.cursor,
    }


def page_text(tasks: Iterable[Task], cursor: str | None) -> str:
    return '{"tasks":[' + ",".join(map(task_text, tasks)) + f'],"cursor":{compact(cursor)}}}'
