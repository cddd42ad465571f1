"""The production wiring of the handlers, on moto with the template's resources."""

import json
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import boto3
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
from tests.support.http_receiver import Receiver

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


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def event_from(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / name).read_text())
    return event


def http_event(method: str, target: str, body: Any = None, **headers: str) -> dict[str, Any]:
    """A request as API Gateway passes it on: a text as it is, bytes in Base64, all else as JSON."""
    event = event_from("http-api-create-task.json")
    event["rawPath"], _, event["rawQueryString"] = target.partition("?")
    event["requestContext"]["http"] |= {"method": method, "path": event["rawPath"]}
    event["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
    del event["body"]
    if isinstance(body, bytes):
        event["body"], event["isBase64Encoded"] = b64encode(body).decode(), True
    elif body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    return event


def text_of(answer: dict[str, Any]) -> str:
    body: str = answer["body"]
    return b64decode(body).decode() if answer["isBase64Encoded"] else body


def call(method: str, path: str, body: Any = None, query: str = "") -> tuple[int, Any]:
    """Call the API function; returns status and body."""
    return sent(method, f"{path}?{query}", body)[:2]


def pages_of(path: str, query: str = "", method: str = "GET") -> list[dict[str, Any]]:
    """All pages of a list, as far as it ends."""
    pages: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(1_000):
        status, page = call(method, path, query=f"{query}{cursor}")
        assert status == 200, page
        pages.append(page)
        if page["cursor"] is None:
            return pages
        cursor = f"&cursor={page['cursor']}"
    raise AssertionError("the list never ended")


def created(url: str = "https://receiver.example/", **fields: Any) -> dict[str, Any]:
    """A task of the business `orders`, due in ten minutes unless the fields say otherwise."""
    new = {"biz_type": "orders", "callback": {"url": url}, **fields}
    if not fields.keys() & {"due_at", "due_ms"}:
        new = {"delay_seconds": 600, **new}
    status, task = call("POST", "/v1/tasks", new)
    assert status == 201, task
    return dict(task)


def sent(
    method: str, target: str, body: Any = None, *, raw: bool = False, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Call the API function with headers; returns status, body and headers. `raw`: the answer's
    body as text."""
    answer = api.handler(http_event(method, target, body, **headers), Context())
    text = text_of(answer)
    return answer["statusCode"], text if raw else json.loads(text), answer["headers"]


def tick() -> None:
    turns = iter([1_000_000])
    scheduler.handler(event_from("scheduled.json"), Context(lambda: next(turns, 0)))


def received(url: str) -> list[dict[str, Any]]:
    answer = boto3.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return list(answer.get("Messages", []))


def records_of(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As Lambda's poller hands them to a function."""
    return [
        {"messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"]}
        for m in messages
    ]


def received_batch(*extra: dict[str, Any]) -> dict[str, Any]:
    """The batch that Lambda's poller would receive now."""
    records = records_of(received(process.settings().slice_queue_url))
    return {"Records": [*records, *extra]}
