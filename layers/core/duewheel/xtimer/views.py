"""The answers of the xTimer interface: a code (0 for success), its message, the data."""

from hashlib import blake2b
from typing import Annotated, Literal

from msgspec import Meta, Struct

from duewheel.interface.http import Answer, compact
from duewheel.rules.callbacks.payload_encoding import text_of
from duewheel.rules.callbacks.secret_headers import shown_value
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.fields import Count, Instant, says
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import MalformedBody, Refusal
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.timer import Timer
from duewheel.xtimer.app_names import app_of
from duewheel.xtimer.requests import XTimerId

MALFORMED = -1

_INACTIVE, _ACTIVE = 1, 2
_NOT_RUN, _RUNNING, _SUCCEEDED, _FAILED = range(4)


class XTimerDone(Struct):
    code: Literal[0] = 0
    msg: Literal["success"] = "success"


class XTimerCreated(XTimerDone, kw_only=True):
    id: XTimerId


class XTimerShownParam(Struct):
    url: str
    method: str
    header: dict[str, list[str]]
    body: str


class XTimerTimerView(Struct, rename={"param": "notifyHTTPParam"}, kw_only=True):
    """A property that xTimer lacks (an interval, a callback of another type) is empty."""

    id: XTimerId
    app: str
    name: str
    status: Annotated[int, says("1: inactive, 2: active.", enum=[1, 2])]
    cron: str
    param: XTimerShownParam | None


class XTimerRead(XTimerDone, kw_only=True):
    data: XTimerTimerView


class XTimerList(XTimerDone, kw_only=True):
    data: list[XTimerTimerView]
    total: Count


class XTimerRecordView(
    Struct,
    rename={"timer_id": "timerID", "run_timer": "runTimer", "cost_time": "costTime"},
    kw_only=True,
):
    id: Count
    app: str
    timer_id: XTimerId
    output: str
    run_timer: Instant
    cost_time: Count
    status: Annotated[
        int,
        says("0: not called yet, 1: tried again, 2: delivered, 3: all else.", enum=[0, 1, 2, 3]),
    ]


class XTimerRecords(XTimerDone, kw_only=True):
    data: list[XTimerRecordView]
    total: Count


class XTimerRefusalView(Struct):
    code: Annotated[
        int,
        Meta(
            description="The status that `/v1` would have answered; -1 with HTTP 400.",
            extra_json_schema={"not": {"const": 0}},
        ),
    ]
    msg: str


def refused(refusal: Refusal) -> Answer:
    """The code of a refusal is the status that `/v1` would answer."""
    if isinstance(refusal, MalformedBody):
        return Answer(400, compact({"code": MALFORMED, "msg": refusal.detail}))
    return Answer(200, compact({"code": refusal.status, "msg": refusal.detail}))


def timer_view(timer: Timer) -> XTimerTimerView:
    callback = timer.rules.callback
    return XTimerTimerView(
        id=int(timer.timer_id),
        app=app_of(timer.biz_type),
        name=timer.rules.name,
        status=_ACTIVE if timer.enabled else _INACTIVE,
        cron=timer.rules.schedule.cron or "",
        param=_param(callback, timer.rules.payload) if isinstance(callback, HttpCallback) else None,
    )


def record_view(task: Task, timer_id: str) -> XTimerRecordView:
    last = task.history[-1] if task.history else None
    second = task.due_ms // 1000 if task.occurrence is None else task.occurrence.second
    return XTimerRecordView(
        id=_number_of(task),
        app=app_of(task.biz_type),
        timer_id=int(timer_id),
        output=task.reason or "" if last is None else last.note,
        run_timer=rfc3339(second * 1000),
        cost_time=0 if last is None else max(0, last.duration_ms),
        status=_status(task),
    )


def _param(callback: HttpCallback, payload: str | None) -> XTimerShownParam:
    header: dict[str, list[str]] = {}
    for name, value in callback.headers:
        header.setdefault(name, []).append(shown_value(name, value))
    body = "" if payload is None else text_of(payload, is_raw=callback.is_raw)
    return XTimerShownParam(callback.url, callback.method, header, body)


def _status(task: Task) -> int:
    match task.status:
        case Status.PENDING:
            return _RUNNING if task.attempts else _NOT_RUN
        case Status.DELIVERED:
            return _SUCCEEDED
        case _:
            return _FAILED


def _number_of(task: Task) -> int:
    """A number derived from the task id, since xTimer's clients take only numbers."""
    return int.from_bytes(blake2b(task.task_id.encode(), digest_size=6).digest(), "big")
