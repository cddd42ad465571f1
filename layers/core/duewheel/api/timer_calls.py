"""The calls on timers: definitions, next occurrences, past runs."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from duewheel.interface.history.changes_view import ChangesView, changes_view
from duewheel.interface.http import (
    Answer,
    Call,
    Request,
    for_all_callers,
    json_answer,
    reads,
    writes,
)
from duewheel.interface.tasks.task_view import TasksView, TaskView, page_text, task_text
from duewheel.interface.timers.timer_view import (
    TimerDeletionView,
    TimersView,
    TimerView,
    UpcomingView,
    timer_answer,
    timers_view,
    upcoming_view,
)
from duewheel.rules.preconditions import IF_MATCH, IF_NONE_MATCH
from duewheel.rules.query_string import read_query
from duewheel.rules.refusals import (
    IdempotencyKeyReused,
    InvalidField,
    TargetNotEnabled,
    TimersShareName,
    TooManyCreates,
    UnknownTask,
    UnknownTimer,
    VersionMismatch,
)
from duewheel.rules.tasks.idempotency import HEADER
from duewheel.rules.tasks.requests import SINGLE_BYTES_MAX
from duewheel.rules.timers.next_occurrence import first_second, upcoming
from duewheel.rules.timers.requests import (
    NewTimerBody,
    PreviewBody,
    RunsQuery,
    TimerByNameBody,
    TimerByNameQuery,
    TimerChangeBody,
    TimersQuery,
    UpcomingQuery,
    named_timer,
    new_timer,
    preview_request,
    timer_change,
)
from duewheel.rules.timers.timer import Timer, checked_timer_id, no_such_timer
from duewheel.wiring import api, process
from duewheel.wiring import timers as wiring


def create_timer(request: Request) -> Answer:
    body, now_ms = request.text(SINGLE_BYTES_MAX), process.clock().now_ms()
    once, create = request.once(body), wiring.create_timer()
    try:
        new = new_timer(body, now_ms, api.allowed_targets())
    except InvalidField:  # its schedule may be over by now
        if (before := create.made_before(once)) is None:
            raise
        request.permit.check(before.biz_type)
        return _made(before)
    request.permit.check(new.biz_type)
    return _made(create(new, by=request.caller, once=once))


def list_timers(request: Request) -> Answer:
    query = read_query(request.query, TimersQuery)
    if query.biz_type is None:
        return json_answer(timers_view(api.read_timers().everywhere(query, request.access)))
    request.permit.check(query.biz_type)
    return json_answer(timers_view(api.read_timers().page(query, query.biz_type)))


def preview_schedule(request: Request) -> Answer:
    now_ms = process.clock().now_ms()
    query = preview_request(request.text(SINGLE_BYTES_MAX), now_ms)
    first = first_second(query.from_ms, now_ms // 1000)
    return json_answer(upcoming_view(upcoming(query.rules, 0, first, query.count)))


def read_timer(request: Request, timer_id: str) -> Answer:
    return timer_answer(api.read_timers().one(checked_timer_id(timer_id), request.permit))


def change_timer(request: Request, timer_id: str) -> Answer:
    change = timer_change(request.text(SINGLE_BYTES_MAX), api.allowed_targets())
    permitted, precondition = _permitted(request, timer_id), request.precondition
    return _shown(wiring.change_timer()(permitted, change, precondition, by=request.caller))


def enable_timer(request: Request, timer_id: str) -> Answer:
    enable = wiring.change_timer().enable
    return _shown(enable(_permitted(request, timer_id), request.precondition, by=request.caller))


def disable_timer(request: Request, timer_id: str) -> Answer:
    disable = wiring.change_timer().disable
    return _shown(disable(_permitted(request, timer_id), request.precondition, by=request.caller))


def delete_timer(request: Request, timer_id: str) -> Answer:
    checked = _permitted(request, timer_id)
    wiring.change_timer().delete(checked, request.precondition, by=request.caller)
    return json_answer(TimerDeletionView(checked))


def run_timer(request: Request, timer_id: str) -> Answer:
    once = request.once("")
    task = wiring.run_timer()(_permitted(request, timer_id), once)
    location = {"location": f"/v1/tasks/{task.task_id}"}
    return Answer(201, task_text(task), headers=location, log_fields={"task_ids": [task.task_id]})


def put_timer_by_name(request: Request, biz_type: str, timer_name: str) -> Answer:
    query = read_query(request.query, TimerByNameQuery)
    body = request.text(SINGLE_BYTES_MAX)
    named = named_timer(body, biz_type, timer_name, api.allowed_targets())
    put = wiring.timer_by_name().put
    done = put(named, request.precondition, by=request.caller, dry_run=query.is_dry_run)
    return _made(done.timer) if done.is_new else _shown(done.timer)


def read_timer_by_name(request: Request, biz_type: str, timer_name: str) -> Answer:
    timer_id = wiring.timer_by_name().find(biz_type, timer_name).timer_id
    return timer_answer(api.read_timers().one(timer_id, request.permit))


def delete_timer_by_name(request: Request, biz_type: str, timer_name: str) -> Answer:
    delete = wiring.timer_by_name().delete
    timer = delete(biz_type, timer_name, request.precondition, by=request.caller)
    return json_answer(TimerDeletionView(timer.timer_id))


def list_upcoming(request: Request, timer_id: str) -> Answer:
    query = read_query(request.query, UpcomingQuery)
    look = api.read_timers().upcoming
    return json_answer(upcoming_view(look(checked_timer_id(timer_id), query, request.permit)))


def list_runs(request: Request, timer_id: str) -> Answer:
    query = read_query(request.query, RunsQuery)
    page = api.read_timers().runs(checked_timer_id(timer_id), query, request.permit)
    return Answer(200, page_text(page.tasks, page.cursor))


def list_timer_changes(request: Request, timer_id: str) -> Answer:
    kept = api.read_changes().of_timer(checked_timer_id(timer_id))
    request.permit.check_found(kept.owner, no_such_timer())
    return json_answer(changes_view(kept))


def _permitted(request: Request, timer_id: str) -> str:
    """Checks the caller's right on the timer's business, which never changes."""
    return api.read_timers().find(checked_timer_id(timer_id), request.permit).timer_id


def _made(timer: Timer) -> Answer:
    shown = _shown(timer, 201, location=f"/v1/timers/{timer.timer_id}")
    return replace(shown, log_fields={"timer_id": timer.timer_id})


def _shown(timer: Timer, status: int = 200, **headers: str) -> Answer:
    (shown,) = api.read_timers().shown([timer])
    return timer_answer(shown, status, **headers)


_CHANGING = (UnknownTimer, VersionMismatch)
_SWITCH: dict[str, Any] = {"takes": (IF_MATCH,), "gives": ("ETag",)}

CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/timers": {
        "GET": reads(list_timers, TimersView, query=TimersQuery),
        "POST": writes(
            create_timer,
            TimerView,
            TargetNotEnabled,
            TooManyCreates,
            IdempotencyKeyReused,
            body=NewTimerBody,
            statuses=(201,),
            takes=(HEADER,),
            gives=("Location", "ETag"),
        ),
    },
    "/v1/timers/upcoming": {
        "POST": for_all_callers(preview_schedule, UpcomingView, body=PreviewBody)
    },
    "/v1/timers/by-name/{biz_type}/{timer_name}": {
        "GET": reads(read_timer_by_name, TimerView, UnknownTimer, TimersShareName, gives=("ETag",)),
        "PUT": writes(
            put_timer_by_name,
            TimerView,
            TargetNotEnabled,
            TooManyCreates,
            TimersShareName,
            VersionMismatch,
            body=TimerByNameBody,
            query=TimerByNameQuery,
            statuses=(200, 201),
            takes=(IF_MATCH, IF_NONE_MATCH),
            gives=("Location", "ETag"),
        ),
        "DELETE": writes(
            delete_timer_by_name,
            TimerDeletionView,
            *_CHANGING,
            TimersShareName,
            takes=(IF_MATCH,),
        ),
    },
    "/v1/timers/{timer_id}": {
        "GET": reads(read_timer, TimerView, UnknownTimer, gives=("ETag",)),
        "PATCH": writes(
            change_timer, TimerView, *_CHANGING, TargetNotEnabled, body=TimerChangeBody, **_SWITCH
        ),
        "DELETE": writes(delete_timer, TimerDeletionView, *_CHANGING, takes=(IF_MATCH,)),
    },
    "/v1/timers/{timer_id}/enable": {
        "POST": writes(enable_timer, TimerView, *_CHANGING, **_SWITCH)
    },
    "/v1/timers/{timer_id}/disable": {
        "POST": writes(disable_timer, TimerView, *_CHANGING, **_SWITCH)
    },
    "/v1/timers/{timer_id}/run": {
        "POST": writes(
            run_timer,
            TaskView,
            UnknownTimer,
            UnknownTask,
            TooManyCreates,
            IdempotencyKeyReused,
            statuses=(201,),
            takes=(HEADER,),
            gives=("Location",),
        )
    },
    "/v1/timers/{timer_id}/upcoming": {
        "GET": reads(list_upcoming, UpcomingView, UnknownTimer, query=UpcomingQuery)
    },
    "/v1/timers/{timer_id}/runs": {
        "GET": reads(list_runs, TasksView, UnknownTimer, query=RunsQuery)
    },
    "/v1/timers/{timer_id}/changes": {"GET": reads(list_timer_changes, ChangesView, UnknownTimer)},
}
