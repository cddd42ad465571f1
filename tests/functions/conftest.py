"""The production wiring of the handlers, on moto with the template's resources."""

import json
import uuid
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from duewheel.log import logger
from duewheel.wiring import process
from functions.api import app as api
from functions.authorizer import app as authorizer
from functions.bulk import app as bulk
from functions.ingest import app as ingest
from functions.notifier import app as notifier
from functions.scheduler import app as scheduler
from functions.stack_timers import app as stack_timers
from functions.sweeper import app as sweeper
from local.aws.calling_function import as_function
from local.aws.permissions import hold_functions_to_their_roles
from local.aws.policies import roles_of
from local.aws.resources import Resources
from tests.support.clock import ManualClock

HANDLERS = {
    "api": api,
    "authorizer": authorizer,
    "bulk": bulk,
    "ingest": ingest,
    "notifier": notifier,
    "scheduler": scheduler,
    "sweeper": sweeper,
    "stack_timers": stack_timers,
}
EVENTS = Path(__file__).parents[2] / "infra" / "events"


@dataclass
class Context:
    remaining_ms: Callable[[], int] = lambda: 60_000
    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:function"
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms()


@pytest.fixture
def wired(resources: Resources, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    for function in {"api", "ingest", "stack_timers"} & set(roles_of(resources)):
        for name, value in resources.environment(function).items():
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("ALLOWED_PRIVATE_CIDRS", "127.0.0.0/8")
    monkeypatch.setenv("AUTH_MODE", "iam")
    monkeypatch.setenv("IAM_DEFAULT", "admin")
    for name, role in roles_of(resources).items():
        module = HANDLERS[name]
        monkeypatch.setattr(module, "handler", as_function(role, module.handler))
    hold_functions_to_their_roles()
    process.start_anew(clock)
    return clock


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    """What the functions write into their logs."""
    written, level = StringIO(), logger.log_level
    monkeypatch.setattr(logger.registered_handler, "stream", written)
    logger.setLevel("INFO")
    yield written
    logger.setLevel(level)


def event_from(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / name).read_text())
    return event


def call(method: str, path: str, body: Any = None, query: str = "") -> tuple[int, Any]:
    """Call the API function; returns status and body."""
    event = event_from("http-api-create-task.json")
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["requestContext"]["http"]["method"] = method
    event["rawQueryString"] = query
    del event["body"]
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    answer = api.handler(event, Context())
    text = b64decode(answer["body"]) if answer["isBase64Encoded"] else answer["body"]
    return answer["statusCode"], json.loads(text)


def created(**fields: Any) -> dict[str, Any]:
    """A task of the business `orders`, due in ten minutes unless the fields say otherwise."""
    new = {"biz_type": "orders", "callback": {"url": "https://receiver.example/"}, **fields}
    if not fields.keys() & {"due_at", "due_ms"}:
        new = {"delay_seconds": 600, **new}
    status, task = call("POST", "/v1/tasks", new)
    assert status == 201, task
    return dict(task)


def sent(
    method: str, path: str, body: Any = None, *, raw: bool = False, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Call the API function with headers; returns status, body and headers. `raw`: the request's
    body as text."""
    event = event_from("http-api-create-task.json")
    event["rawPath"] = event["requestContext"]["http"]["path"] = path.partition("?")[0]
    event["rawQueryString"] = path.partition("?")[2]
    event["requestContext"]["http"]["method"] = method
    event["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
    event["body"] = "" if body is None else json.dumps(body)
    answer = api.handler(event, Context())
    text = answer["body"]
    return answer["statusCode"], text if raw else json.loads(text), answer["headers"]
