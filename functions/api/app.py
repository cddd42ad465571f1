"""The HTTP interface: an API Gateway event in, one call of a workflow, one answer out.

Every error of the service leaves as a problem document, and only this file maps them.
Bodies, headers and URLs are never logged: they are the callers' and may hold secrets.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext

from duewheel import __version__, wiring
from duewheel.interface import bodies, problems
from duewheel.interface.task_view import batch_text, task_text
from duewheel.interface.wheel_view import wheel_view
from duewheel.log import logger
from duewheel.rules.refusals import MethodNotAllowed, Refusal, Unavailable, UnknownCall
from duewheel.rules.task import NewTask
from duewheel.rules.task_request import (
    BATCH_BYTES_MAX,
    SINGLE_BYTES_MAX,
    batch_request,
    single_request,
)
from duewheel.settings import SettingsError

_ALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

app = APIGatewayHttpResolver()


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    answer = app.resolve(event, context)
    answer["body"], answer["isBase64Encoded"] = bodies.sent(answer["body"])
    return answer


def create_task() -> Response[str]:
    task = wiring.create_tasks().one(
        single_request(_body(SINGLE_BYTES_MAX), wiring.clock().now_ms())
    )
    return _answer(201, task_text(task), {"Location": f"/v1/tasks/{task.task_id}"})


def create_tasks() -> Response[str]:
    requests = batch_request(_body(BATCH_BYTES_MAX), wiring.clock().now_ms())
    good = [request for request in requests if isinstance(request, NewTask)]
    created = iter(wiring.create_tasks().many(good) if good else ())
    results = [next(created) if isinstance(request, NewTask) else request for request in requests]
    return _answer(200, batch_text(results))


def read_task(task_id: str) -> Response[str]:
    return _answer(200, task_text(wiring.look_up().task(task_id)))


def cancel_task(task_id: str) -> Response[str]:
    return _answer(200, task_text(wiring.cancel_task()(task_id)))


def read_wheel() -> Response[str]:
    return _answer(200, json.dumps(wheel_view(wiring.look_up().wheel())))


def read_health() -> Response[str]:
    wiring.settings()  # a deployment that is configured wrongly is not well
    return _answer(200, json.dumps({"status": "ok", "version": __version__}))


_CALLS: dict[str, dict[str, Callable[..., Response[str]]]] = {
    "/v1/tasks": {"POST": create_task},
    "/v1/tasks/batch": {"POST": create_tasks},
    "/v1/tasks/<task_id>": {"GET": read_task, "DELETE": cancel_task},
    "/v1/wheel": {"GET": read_wheel},
    "/v1/health": {"GET": read_health},
}


def _register(path: str, calls: Mapping[str, Callable[..., Response[str]]]) -> None:
    allow = ", ".join(calls)

    def refuse_method(**_: str) -> Response[str]:
        refusal = MethodNotAllowed(f"This call takes {allow}.")
        return _problem(problems.problem_of(refusal), {"Allow": allow})

    for method in _ALL_METHODS:
        app.route(path, method)(calls.get(method, refuse_method))


def refuse_unknown_call(_: NotFoundError) -> Response[str]:
    event = app.current_event
    return refuse(UnknownCall(f"{event.http_method} {event.path} is no call of this service."))


def refuse(refusal: Refusal) -> Response[str]:
    headers = (
        {"Retry-After": str(problems.RETRY_AFTER_SECONDS)}
        if isinstance(refusal, Unavailable)
        else {}
    )
    return _problem(problems.problem_of(refusal), headers)


def report_misconfiguration(error: SettingsError) -> Response[str]:
    logger.error("deployment misconfigured", action="misconfigured", reason=str(error))
    return _problem(problems.misconfigured(str(error)))


def report_failure(error: Exception) -> Response[str]:
    logger.exception("call failed", action="call-failed", call=_call())
    return _problem(problems.internal(app.current_event.request_context.request_id))


def _call() -> str:
    return f"{app.current_event.http_method} {app.current_event.path}"


def _body(bytes_max: int) -> str:
    event = app.current_event
    return bodies.received(event.body, bool(event.is_base64_encoded), bytes_max)


def _problem(problem: problems.Problem, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(
        status_code=int(str(problem["status"])),
        content_type=problems.CONTENT_TYPE,
        body=json.dumps(problem),
        headers=headers or {},
    )


def _answer(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(
        status_code=status, content_type="application/json", body=text, headers=headers or {}
    )


_ANSWERS_TO: dict[type[Exception], Callable[[Any], Response[str]]] = {
    NotFoundError: refuse_unknown_call,
    Refusal: refuse,
    SettingsError: report_misconfiguration,
    Exception: report_failure,
}

for _path, _calls in _CALLS.items():
    _register(_path, _calls)
for _error, _answer_to in _ANSWERS_TO.items():
    app.exception_handler(_error)(_answer_to)
