"""The calls on tasks: by their ids, by their callers' keys, in batches and in lists."""

from collections.abc import Mapping

from duewheel.interface.http import Answer, Call, Request, encoded, reads, writes
from duewheel.interface.tasks.task_view import (
    BatchResultsView,
    TasksView,
    TaskView,
    batch_text,
    page_text,
    task_text,
)
from duewheel.rules import refusals
from duewheel.rules.delivery.waiting import Wait
from duewheel.rules.names import checked_biz_type, checked_key
from duewheel.rules.query_string import read_query
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.idempotency import HEADER, idempotent_request
from duewheel.rules.tasks.listing import TasksQuery, list_request
from duewheel.rules.tasks.pause import PAUSE_BYTES_MAX, PauseBody, until_from
from duewheel.rules.tasks.requests import (
    BATCH_BYTES_MAX,
    SINGLE_BYTES_MAX,
    NewTaskBody,
    NewTasksBody,
    PrefixQuery,
    TaskByKeyBody,
    batch_request,
    permitted,
    single_request,
    upsert_request,
)
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.tasks.updates import TaskChangeBody, change_request
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.wiring import api as wiring
from duewheel.wiring import changing, creating, process
from duewheel.workflows.tasks.create_idempotent import Parse
from duewheel.workflows.tasks.key_prefix import CancelledKeys
from duewheel.workflows.tasks.list_tasks import Page


def create_task(request: Request) -> Answer:
    body, allowed = request.text(SINGLE_BYTES_MAX), wiring.allowed_targets()

    def parse(now_ms: int) -> list[NewTask | Refusal]:
        new = single_request(body, now_ms, allowed)
        request.permit.check(new.biz_type)
        return [new]

    (result,) = _created(request, body, parse, is_single=True)
    if isinstance(result, Refusal):
        raise result
    return _made(result)


def create_tasks(request: Request) -> Answer:
    body, allowed = request.text(BATCH_BYTES_MAX), wiring.allowed_targets()

    def parse(now_ms: int) -> list[NewTask | Refusal]:
        return permitted(batch_request(body, now_ms, allowed), request.permit)

    results = _created(request, body, parse)
    tasks = [result.task for result in results if isinstance(result, Made)]
    log_fields = {
        "task_ids": [task.task_id for task in tasks],
        "biz_types": sorted({task.biz_type for task in tasks}),
    }
    return Answer(200, batch_text(results), log_fields=log_fields)


def _created(
    request: Request, body: str, parse: Parse, *, is_single: bool = False
) -> list[Made | Refusal]:
    key = request.idempotency_key
    if key is None:
        return creating.create_tasks()(parse(process.clock().now_ms()))
    query = idempotent_request(request.caller, key, request.path, body, is_single=is_single)
    return creating.create_idempotent()(query, parse)


def list_tasks(request: Request) -> Answer:
    query = list_request(request.query)
    if not query.query.biz_type:
        return _listed(wiring.list_tasks().everywhere(query, request.access))
    request.permit.check(query.query.biz_type)
    return _listed(wiring.list_tasks()(query))


def _listed(page: Page) -> Answer:
    return Answer(200, page_text(page.tasks, page.cursor, page.looked_at))


def read_task(request: Request, task_id: str) -> Answer:
    return _read(creating.change_pending().find(address_of_task(task_id), request.permit))


def cancel_task(request: Request, task_id: str) -> Answer:
    return _changed(creating.cancel_task()(task_id, request.permit))


def change_task(request: Request, task_id: str) -> Answer:
    body, now_ms = request.text(SINGLE_BYTES_MAX), process.clock().now_ms()
    change = change_request(body, now_ms, wiring.allowed_targets())
    return _changed(changing.change_task()(task_id, change, request.permit))


def run_task(request: Request, task_id: str) -> Answer:
    return _made_due(changing.change_task().run(task_id, request.permit))


def pause_task(request: Request, task_id: str) -> Answer:
    until_ms = until_from(request.optional_text(PAUSE_BYTES_MAX), process.clock().now_ms())
    return _changed(changing.pause_task()(task_id, until_ms, request.caller, request.permit))


def resume_task(request: Request, task_id: str) -> Answer:
    return _changed(changing.pause_task().resume(task_id, request.permit))


def redrive_task(request: Request, task_id: str) -> Answer:
    return _made_due(changing.redrive_task()(task_id, request.permit))


def put_task_by_key(request: Request, biz_type: str, key: str) -> Answer:
    body, now_ms = request.text(SINGLE_BYTES_MAX), process.clock().now_ms()
    query = upsert_request(body, biz_type, key, now_ms, wiring.allowed_targets())
    return _made(creating.keyed_tasks().upsert(query))


def read_task_by_key(_: Request, biz_type: str, key: str) -> Answer:
    checked = checked_biz_type(biz_type), checked_key(key)
    return _read(creating.keyed_tasks().read(*checked))


def cancel_task_by_key(request: Request, biz_type: str, key: str) -> Answer:
    checked = checked_biz_type(biz_type), checked_key(key)
    return _changed(creating.keyed_tasks().cancel(*checked, request.permit))


def list_tasks_by_key_prefix(request: Request, biz_type: str) -> Answer:
    query = read_query(request.query, PrefixQuery)
    live = wiring.key_prefix().live
    page = live(checked_biz_type(biz_type), query.key_prefix, query.cursor, query.limit)
    return Answer(200, page_text(page.tasks, page.cursor))


def cancel_tasks_by_key_prefix(request: Request, biz_type: str) -> Answer:
    query = read_query(request.query, PrefixQuery)
    cancel = wiring.key_prefix().cancel
    cancelled = cancel(checked_biz_type(biz_type), query.key_prefix, query.cursor, request.permit)
    return Answer(200, encoded(cancelled), log_fields={"key_prefix": query.key_prefix})


def _read(task: Task) -> Answer:
    callback = wiring.callback_now()(task)
    return Answer(200, task_text(task, wiring.why_waiting()(task), callback))


def _changed(task: Task, waiting: Wait | None = None) -> Answer:
    log_fields = {"task_id": task.task_id, "biz_type": task.biz_type}
    return Answer(200, task_text(task, waiting), log_fields=log_fields)


def _made_due(task: Task) -> Answer:
    return _changed(task, wiring.why_waiting().of_due(task))


def _made(made: Made) -> Answer:
    task_id = made.task.task_id
    return Answer(
        201 if made.is_new else 200,
        task_text(made.task),
        headers={"location": f"/v1/tasks/{task_id}"},
        log_fields={"task_ids": [task_id], "biz_type": made.task.biz_type},
    )


_CREATED = {"statuses": (201, 200), "gives": ("Location",)}
_BY_ID = (refusals.MalformedTaskId, refusals.UnknownTask)
_STEERING = (refusals.TooLate, refusals.AlreadySettled)
_ONCE = (refusals.IdempotencyKeyInUse, refusals.IdempotencyKeyReused)

CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/tasks": {
        "GET": reads(list_tasks, TasksView, refusals.ListIndexOff, query=TasksQuery),
        "POST": writes(
            create_task,
            TaskView,
            refusals.TargetNotEnabled,
            refusals.TooManyCreates,
            refusals.KeyTaken,
            *_ONCE,
            body=NewTaskBody,
            takes=(HEADER,),
            **_CREATED,
        ),
    },
    "/v1/tasks/batch": {
        "POST": writes(create_tasks, BatchResultsView, *_ONCE, body=NewTasksBody, takes=(HEADER,))
    },
    "/v1/tasks/{task_id}": {
        "GET": reads(read_task, TaskView, *_BY_ID),
        "PATCH": writes(
            change_task,
            TaskView,
            *_BY_ID,
            *_STEERING,
            refusals.OfATimer,
            refusals.TargetNotEnabled,
            refusals.TooManyCreates,
            body=TaskChangeBody,
        ),
        "DELETE": writes(cancel_task, TaskView, *_BY_ID, *_STEERING),
    },
    "/v1/tasks/{task_id}/run": {
        "POST": writes(
            run_task, TaskView, *_BY_ID, *_STEERING, refusals.OfATimer, refusals.TooManyCreates
        )
    },
    "/v1/tasks/{task_id}/pause": {
        "POST": writes(
            pause_task,
            TaskView,
            *_BY_ID,
            *_STEERING,
            refusals.OfATimer,
            body=PauseBody,
            needs_body=False,
        )
    },
    "/v1/tasks/{task_id}/resume": {"POST": writes(resume_task, TaskView, *_BY_ID, *_STEERING)},
    "/v1/tasks/{task_id}/redrive": {
        "POST": writes(
            redrive_task, TaskView, *_BY_ID, refusals.NotRedrivable, refusals.TooManyCreates
        )
    },
    "/v1/businesses/{biz_type}/tasks": {
        "GET": reads(list_tasks_by_key_prefix, TasksView, query=PrefixQuery),
        "DELETE": writes(cancel_tasks_by_key_prefix, CancelledKeys, query=PrefixQuery),
    },
    "/v1/businesses/{biz_type}/tasks/{key}": {
        "GET": reads(read_task_by_key, TaskView, refusals.UnknownTask),
        "PUT": writes(
            put_task_by_key,
            TaskView,
            refusals.TargetNotEnabled,
            refusals.TooManyCreates,
            refusals.TooLate,
            body=TaskByKeyBody,
            **_CREATED,
        ),
        "DELETE": writes(cancel_task_by_key, TaskView, refusals.UnknownTask, *_STEERING),
    },
}
