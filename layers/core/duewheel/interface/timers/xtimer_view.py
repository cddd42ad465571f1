"""The answers of the xTimer interface: a code (0 for success), its message, the data."""

from collections.abc import Sequence
from hashlib import blake2b

from duewheel.interface.http import Answer, compact
from duewheel.rules.callbacks.payload_encoding import text_of
from duewheel.rules.callbacks.secret_headers import shown_value
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import MalformedBody, Refusal
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.timer import Timer
from duewheel.rules.timers.xtimer.app_names import app_of

SUCCESS = "success"
MALFORMED = -1

_INACTIVE, _ACTIVE = 1, 2
_NOT_RUN, _RUNNING, _SUCCEEDED, _FAILED = range(4)


def done(**members: object) -> Answer:
    return Answer(200, compact({"code": 0, "msg": SUCCESS, **members}))


def refused(refusal: Refusal) -> Answer:
    """The code of a refusal is the status that `/v1` would answer."""
    if isinstance(refusal, MalformedBody):
        return Answer(400, compact({"code": MALFORMED, "msg": refusal.detail}))
    return Answer(200, compact({"code": refusal.status, "msg": refusal.detail}))


def timer_view(timer: Timer) -> dict[str, object]:
    """A property that xTimer lacks (an interval, a callback of another type) is empty."""
    callback = timer.rules.callback
    return {
        "id": int(timer.timer_id),
        "app": app_of(timer.biz_type),
        "name": timer.rules.name,
        "status": _ACTIVE if timer.enabled else _INACTIVE,
        "cron": timer.rules.schedule.cron or "",
        "notifyHTTPParam": (
            _param(callback, timer.rules.payload) if isinstance(callback, HttpCallback) else None
        ),
    }


def timers_view(timers: Sequence[Timer]) -> list[dict[str, object]]:
    return [timer_view(timer) for timer in timers]


def record_view(task: Task, timer_id: str) -> dict[str, object]:
    last = task.history[-1] if task.history else None
    second = task.due_ms // 1000 if task.occurrence is None else task.occurrence.second
    return {
        "id": _number_of(task),
        "app": app_of(task.biz_type),
        "timerID": int(timer_id),
        "output": task.reason or "" if last is None else last.note,
        "runTimer": rfc3339(second * 1000),
        "costTime": 0 if last is None else max(0, last.duration_ms),
        "status": _status(task),
    }


def _param(callback: HttpCallback, payload: str | None) -> dict[str, object]:
    header: dict[str, list[str]] = {}
    for name, value in callback.headers:
        header.setdefault(name, []).append(shown_value(name, value))
    body = "" if payload is None else text_of(payload, is_raw=callback.is_raw)
    return {"url": callback.url, "method": callback.method, "header": header, "body": body}


def _status(task: Task) -> int:
    match task.status:
        case Status.PENDING:
            return _RUNNING if task.attempts else _NOT_RUN
        case Status.DELIVERED:
            return _SUCCEEDED
        case _:
            return _FAILED


def _number_of(task: Task) -> int:
    """An id that is a number, as its clients have them; the task's own is none."""
    return int.from_bytes(blake2b(task.task_id.encode(), digest_size=6).digest(), "big")
