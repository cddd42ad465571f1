"""The HTTP interface: an API Gateway event in, one call of a workflow, one answer out.

Every error of the service leaves as a problem document, and `handler` alone decides which.
Bodies, headers and callbacks are never logged: they are the callers' and may hold secrets.
"""

from functools import partial
from typing import Any

from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext
from msgspec.structs import asdict

from duewheel import __version__
from duewheel.api import business_calls, timer_calls, xtimer_calls
from duewheel.interface import problems
from duewheel.interface.answer import Answer, json_answer
from duewheel.interface.audit_view import audit_view
from duewheel.interface.calls import Calls
from duewheel.interface.list_view import page_text
from duewheel.interface.request import Request
from duewheel.interface.task_view import batch_text, task_text
from duewheel.interface.wheel_view import wheel_view
from duewheel.log import logger
from duewheel.rules.audit_request import audit_request
from duewheel.rules.change_request import change_request
from duewheel.rules.idempotency import asked_once
from duewheel.rules.key_request import prefix_request
from duewheel.rules.list_request import list_request
from duewheel.rules.refusals import Refusal
from duewheel.rules.task import Made
from duewheel.rules.task_request import (
    BATCH_BYTES_MAX,
    SINGLE_BYTES_MAX,
    batch_request,
    checked_biz_type,
    checked_key,
    single_request,
    upsert_request,
)
from duewheel.settings import SettingsError
from duewheel.wiring import api as wiring
from duewheel.wiring import process
from duewheel.workflows.create_once import Parse


def create_task(request: Request) -> Answer:
    body, allowed = request.text(SINGLE_BYTES_MAX), wiring.allowed_targets()
    (result,) = _created(
        request, body, lambda now_ms: [single_request(body, now_ms, allowed)], is_single=True
    )
    if isinstance(result, Refusal):
        raise result
    return _made(result)


def create_tasks(request: Request) -> Answer:
    body = request.text(BATCH_BYTES_MAX)
    parse = partial(batch_request, body, allowed=wiring.allowed_targets())
    return Answer(200, batch_text(_created(request, body, parse)))


def _created(
    request: Request, body: str, parse: Parse, *, is_single: bool = False
) -> list[Made | Refusal]:
    key = request.idempotency_key
    if key is None:
        return wiring.create_batch()(parse(process.clock().now_ms()))
    asked = asked_once(request.caller, key, request.path, body, is_single=is_single)
    return wiring.create_once()(asked, parse)


def list_tasks(request: Request) -> Answer:
    page = wiring.list_tasks()(list_request(request.query))
    return Answer(200, page_text(page.tasks, page.cursor))


def read_task(_: Request, task_id: str) -> Answer:
    return Answer(200, task_text(wiring.look_up().task(task_id)))


def cancel_task(_: Request, task_id: str) -> Answer:
    return Answer(200, task_text(wiring.cancel_task()(task_id)))


def change_task(request: Request, task_id: str) -> Answer:
    body, now_ms = request.text(SINGLE_BYTES_MAX), process.clock().now_ms()
    change = change_request(body, now_ms, wiring.allowed_targets())
    return Answer(200, task_text(wiring.change_task()(task_id, change)))


def run_task(_: Request, task_id: str) -> Answer:
    return Answer(200, task_text(wiring.change_task().run(task_id)))


def redrive_task(_: Request, task_id: str) -> Answer:
    return Answer(200, task_text(wiring.redrive_task()(task_id)))


def upsert_by_key(request: Request, biz_type: str, key: str) -> Answer:
    body, now_ms = request.text(SINGLE_BYTES_MAX), process.clock().now_ms()
    asked = upsert_request(body, biz_type, key, now_ms, wiring.allowed_targets())
    return _made(wiring.keyed_tasks().upsert(asked))


def read_by_key(_: Request, biz_type: str, key: str) -> Answer:
    checked = checked_biz_type(biz_type), checked_key(key)
    return Answer(200, task_text(wiring.keyed_tasks().read(*checked)))


def cancel_by_key(_: Request, biz_type: str, key: str) -> Answer:
    checked = checked_biz_type(biz_type), checked_key(key)
    return Answer(200, task_text(wiring.keyed_tasks().cancel(*checked)))


def list_by_prefix(request: Request, biz_type: str) -> Answer:
    asked = prefix_request(request.query)
    live = wiring.key_prefix().live
    page = live(checked_biz_type(biz_type), asked.prefix, asked.cursor, asked.limit)
    return Answer(200, page_text(page.tasks, page.cursor))


def cancel_by_prefix(request: Request, biz_type: str) -> Answer:
    asked = prefix_request(request.query)
    cancel = wiring.key_prefix().cancel
    return json_answer(asdict(cancel(checked_biz_type(biz_type), asked.prefix, asked.cursor)))


def _made(made: Made) -> Answer:
    location = {"location": f"/v1/tasks/{made.task.task_id}"}
    return Answer(201 if made.is_new else 200, task_text(made.task), headers=location)


def read_wheel(_: Request) -> Answer:
    return json_answer(wheel_view(wiring.look_up().wheel()))


def read_audit(request: Request) -> Answer:
    asked = audit_request(request.query, process.clock().now_ms())
    return json_answer(audit_view(wiring.audit()(asked)))


def read_health(_: Request) -> Answer:
    process.settings()  # a deployment that is configured wrongly is not well
    return json_answer({"status": "ok", "version": __version__})


CALLS = Calls(
    {
        "/v1/tasks": {"GET": list_tasks, "POST": create_task},
        "/v1/tasks/batch": {"POST": create_tasks},
        "/v1/tasks/{task_id}": {"GET": read_task, "PATCH": change_task, "DELETE": cancel_task},
        "/v1/tasks/{task_id}/run": {"POST": run_task},
        "/v1/tasks/{task_id}/redrive": {"POST": redrive_task},
        "/v1/businesses": {"GET": business_calls.list_businesses},
        "/v1/businesses/{biz_type}": {
            "GET": business_calls.read_business,
            "PUT": business_calls.configure_business,
            "DELETE": business_calls.delete_business,
        },
        "/v1/businesses/{biz_type}/pause": {"POST": business_calls.pause_business},
        "/v1/businesses/{biz_type}/resume": {"POST": business_calls.resume_business},
        "/v1/businesses/{biz_type}/changes": {"GET": business_calls.read_changes},
        "/v1/businesses/{biz_type}/dead": {"GET": business_calls.list_dead},
        "/v1/businesses/{biz_type}/redrive": {"POST": business_calls.redrive_dead},
        "/v1/businesses/{biz_type}/tasks": {"GET": list_by_prefix, "DELETE": cancel_by_prefix},
        "/v1/businesses/{biz_type}/tasks/{key}": {
            "GET": read_by_key,
            "PUT": upsert_by_key,
            "DELETE": cancel_by_key,
        },
        "/v1/businesses/{biz_type}/stats": {"GET": business_calls.read_statistics},
        **timer_calls.CALLS,
        **xtimer_calls.CALLS,
        "/v1/wheel": {"GET": read_wheel},
        "/v1/audit": {"GET": read_audit},
        "/v1/health": {"GET": read_health},
    }
)


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return _answer(Request.of(event)).event()


def _answer(request: Request) -> Answer:
    try:
        return CALLS.answer(request)
    except Refusal as refusal:
        return problems.refused(refusal)
    except SettingsError as error:
        logger.error("deployment misconfigured", action="misconfigured", reason=str(error))
        return problems.misconfigured(str(error))
    except Exception:  # noqa: BLE001 - logged with its traceback, and answered as a 500
        call = f"{request.method} {request.path}"
        logger.exception("call failed", action="call-failed", call=call)
        return problems.internal(request.request_id)
