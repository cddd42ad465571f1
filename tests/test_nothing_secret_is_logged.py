"""Values of callers and receivers go through every path and appear in no log record.

Everything is logged here that is logged in Lambda: all loggers at DEBUG, as the functions set them,
and exceptions of functions, too. Each value to look for contains the same mark.
"""

import base64
import json
import logging
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore import endpoint

from duewheel.log import logger, quieten_libraries
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.rules.wheel.queue_messages import DirectMessage
from duewheel.stores.tasks import codec
from duewheel.workflows.wheel.send_messages import MessageSender, SendRefused
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do
from local.chaos.faults import Faults
from local.stack import LocalStack
from tests.support.bounds import quick_first
from tests.support.service import Service

MARK = "7c1f9e4b"
BUCKETS = 10_000_000  # the default of the template
SIGNING_SECRET = f"whsec_{MARK * 4}"
SIGNING_KEY = base64.b64decode(MARK * 4)
SECRET_HEADERS = {
    "Authorization": f"Bearer dw_{MARK}",
    "Cookie": f"session={MARK}",
    "User-Agent": f"caller/{MARK}",
    "X-Api-Key": MARK,
}
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/inbox-queue"
TOPIC = "arn:aws:sns:us-east-1:123456789012:inbox-topic"
PAYLOAD = {"card": MARK}
SOON = {"delay_seconds": 60, "payload": PAYLOAD}
AT_LEVEL = "DEBUG"
TWICE = {"retry": {"delays_seconds": [10]}}


class Records(logging.Handler):
    """Each record, as the text that is written."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.texts: list[str] = []
        self.actions: set[str] = set()
        self._plain = logging.Formatter("%(name)s %(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        own = logger.registered_formatter if record.name == logger.name else self._plain
        self.texts.append(own.format(record))
        self.actions.add(getattr(record, "action", ""))

    def with_the_mark(self) -> list[str]:
        """The first few, each shortened."""
        raw = repr(SIGNING_KEY)[2:-1]
        return [text[:300] for text in self.texts if MARK in text or raw in text][:5]


@pytest.fixture
def records() -> Iterator[Records]:
    """Like Lambda, which sets the loggers to a function's log level, here DEBUG, before it imports
    the function."""
    root, kept = logging.getLogger(), Records()
    before = root.level, logger.log_level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    logger.setLevel(logging.DEBUG)
    quieten_libraries()
    yield kept
    root.removeHandler(kept)
    root.setLevel(before[0])
    logger.setLevel(before[1])


@pytest.fixture
def receiver() -> Iterator[str]:
    """Fails, redirects or answers nonsense to every request, with secrets in its answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"] or 0))
            status = int(self.path.strip("/").partition("?")[0])
            self.send_response(status, f"no {MARK}")
            self.send_header("location", f"http://127.0.0.1:1/{MARK}")
            self.send_header("x-trace", MARK)
            self.send_header("content-length", str(len(MARK)))
            self.end_headers()
            self.wfile.write(MARK.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Caller(Service):
    """Sends a secret in each header, and an unknown query."""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {**SECRET_HEADERS, **headers}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def creates(self, callback: dict[str, Any], **more: Any) -> dict[str, Any]:
        body = {"biz_type": "orders", **SOON, **TWICE, "callback": callback, **more}
        status, task = self.call("POST", "/v1/tasks", body)
        assert status == 201, task
        return dict(task)


def callbacks(inbox: str, receiver: str) -> Iterator[dict[str, Any]]:
    """Of every type, and for every way in which a call can end."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    headers = {"headers": {"x-token": MARK}}
    yield {"url": f"{inbox}/ok?token={MARK}", **headers}
    for status in (301, 400, 401, 410, 429, 503):
        yield {"url": f"{receiver}/{status}?token={MARK}", **headers}
    yield {"url": f"{nobody}/?token={MARK}", **headers}
    yield {"url": f"http://nowhere.invalid/{MARK}?token={MARK}", **headers}
    yield {"url": f"https://127.0.0.1:{receiver.rpartition(':')[2]}/{MARK}", **headers}
    for function in ("inbox-close", "inbox-fails", "inbox-nobody-made"):
        yield {"type": "lambda", "function": function}
    yield {"type": "sqs", "queue_url": QUEUE, "attributes": {"token": MARK}}
    yield {"type": "sqs", "queue_url": f"{QUEUE}.fifo", "group_id": MARK}
    yield {"type": "sqs", "queue_url": f"{QUEUE}-that-is-not", "attributes": {"token": MARK}}
    yield {"type": "sns", "topic_arn": TOPIC, "attributes": {"token": MARK}}
    yield {"type": "sns", "topic_arn": f"{TOPIC}-that-is-not"}
    bus = {"type": "eventbridge", "source": "shop", "detail_type": "due"}
    yield {**bus, "event_bus": "inbox-bus"}
    yield {**bus, "event_bus": "inbox-that-is-not"}


def businesses(caller: Caller, inbox: str) -> None:
    settings = {
        "callback": {"url": f"{inbox}/default?token={MARK}", "headers": {"x-token": MARK}},
        "on_outcome": {
            "outcomes": ["delivered", "dead", "expired", "cancelled", "missed"],
            "callback": {"url": f"{inbox}/told?token={MARK}", "headers": {"x-token": MARK}},
            "with_payload": True,
        },
        "signing_secrets": [SIGNING_SECRET],
    }
    assert caller.call("PUT", "/v1/businesses/orders", settings)[0] == 201
    slow = {"calls_per_second": 5, **settings}
    assert caller.call("PUT", "/v1/businesses/slow", slow)[0] == 201
    for wrong in (
        {"signing_secrets": [f"whsec_{MARK}"]},
        {"signing_secrets": SIGNING_SECRET},
        {"secrets": {"token": f"{MARK} "}},
        {"callback": {"headers": {"x-team": f"{MARK} {{{{secret:}}}}"}}},
        {"callback": {"url": f"ftp://user:{MARK}@host/"}},
        {"allowed_hosts": [f"{MARK}:{MARK}"]},
        {MARK: MARK},
    ):
        assert caller.call("PUT", "/v1/businesses/orders", wrong)[0] == 422


def refused(caller: Caller) -> None:
    hook = {"url": "http://receiver.example/"}
    good = {"biz_type": "orders", "delay_seconds": 60, "callback": hook}
    for wrong in (
        f'{{"payload": "{MARK}'.encode(),
        f'["{MARK}"]'.encode(),
        b'"\xff' + MARK.encode() + b'"',
        {**good, "biz_type": f"!{MARK}"},
        {**good, "delay_seconds": MARK},
        {**good, "due_at": MARK},
        {**good, "key": f" {MARK}"},
        {**good, MARK: MARK},
        {**good, "callback": {**hook, "method": MARK}},
        {**good, "callback": {"url": f"http://user:{MARK}@receiver.example/"}},
        {**good, "callback": {**hook, "headers": {"x-token": f"{MARK}\n{MARK}"}}},
        {**good, "callback": {"type": "sqs", "queue_url": f"https://elsewhere/{MARK}"}},
    ):
        assert caller.call("POST", "/v1/tasks", wrong)[0] in (400, 422), wrong
    for query in (f"cursor={MARK}", f"biz_type=orders&cursor={MARK}", f"{MARK}={MARK}"):
        assert caller.call("GET", f"/v1/tasks?{query}")[0] in (400, 422)
    key = {"Idempotency-Key": MARK}
    assert caller.call("POST", "/v1/tasks", good, **key)[0] == 201
    assert caller.call("POST", "/v1/tasks", {**good, "payload": MARK}, **key)[0] in (409, 422)
    assert caller.call("GET", f"/v1/tasks/{MARK}?token={MARK}")[0] in (400, 404)


def changed(caller: Caller, inbox: str) -> None:
    hook = {"callback": {"url": f"{inbox}/ok?token={MARK}"}}
    task = caller.creates(hook["callback"])
    path = f"/v1/tasks/{task['task_id']}"
    caller.call(
        "PATCH", path, {"payload": {"card": [MARK]}, "callback": {"url": f"{inbox}/{MARK}"}}
    )
    caller.call("POST", f"{path}/run", {"token": MARK})
    beat = {**SOON, **hook}
    for _ in range(2):
        caller.call("PUT", "/v1/businesses/orders/tasks/dog", beat)
    caller.call("DELETE", "/v1/businesses/orders/tasks?key_prefix=d")
    tasks = [{"biz_type": "slow", **SOON, **hook} for _ in range(3)]
    caller.call("POST", "/v1/tasks/batch", {"tasks": [*tasks, {**tasks[0], "callback": MARK}]})
    timer = {"biz_type": "orders", "name": "t", "every_seconds": 30, **hook, "payload": PAYLOAD}
    caller.call("POST", "/v1/timers", timer)
    param = {
        "url": f"{inbox}/x?token={MARK}",
        "method": "POST",
        "header": {"x": [MARK]},
        "body": MARK,
    }
    new = {"app": "shop", "name": "x", "cron": "30 * * * * * *", "notifyHTTPParam": param}
    made = caller.call("POST", "/api/timer/v1/def", new)[1]
    caller.call("POST", "/api/timer/v1/enable", {"id": made["id"], "app": "shop"})


def damaged(caller: Caller, inbox: str) -> None:
    """Items edited by hand, and an invalid message."""
    dynamodb = boto3.client("dynamodb")
    for attribute in (
        "callback",
        "payload",
        "status",
        "retry",
        "version",
        "attempts",
        "created_ms",
    ):
        task = caller.creates({"url": f"{inbox}/ok?token={MARK}"}, key=f"hurt-{attribute}")
        dynamodb.update_item(
            TableName="duewheel-Wheel",
            Key=codec.key(address_of_task(task["task_id"]), BUCKETS),
            UpdateExpression="SET #damaged = :mark",
            ExpressionAttributeNames={"#damaged": attribute},
            ExpressionAttributeValues={":mark": {"S": MARK}},
        )
        caller.call("GET", f"/v1/tasks/{task['task_id']}")
        caller.call("DELETE", f"/v1/businesses/orders/tasks/hurt-{attribute}")
    sqs = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName="duewheel-SliceQueue")["QueueUrl"]
    for text in (
        MARK,
        f'{{"second":"{MARK}"}}',
        f'{{"second":1,"entries":["{MARK}"]}}',
    ):
        sqs.send_message(QueueUrl=url, MessageBody=text)


def ingested(caller: Caller, inbox: str) -> None:
    """Messages that are valid, partly valid, not JSON, and more than a limit allows."""
    limits = {"creates_per_second": 1}
    assert caller.call("PUT", "/v1/businesses/few", limits)[0] == 201
    task = {"biz_type": "orders", **SOON, "callback": {"url": f"{inbox}/ok?token={MARK}"}}
    task |= {"payload": {"card": MARK}}
    few = {**task, "biz_type": "few"}
    for body in (
        task,
        few,
        few,
        {"tasks": [task, {**task, MARK: MARK}, {**few, "key": f" {MARK}"}]},
        {**task, "callback": MARK},
        f'{{"payload": "{MARK}'.encode(),
    ):
        assert caller.call("POST", "/_local/ingest", body)[0] == 202
    key = {"Idempotency-Key": MARK}
    assert caller.call("POST", "/_local/ingest", task, **key)[0] == 202
    assert caller.call("POST", "/_local/ingest", {**task, "payload": MARK}, **key)[0] == 202


def live(stack: LocalStack, receiver: str) -> list[dict[str, Any]]:
    caller = Caller(stack.url)
    inbox = f"{stack.url}/_local/inbox"
    caller.call("PUT", "/_local/received/inbox-fails", {"status": 503})
    businesses(caller, inbox)
    refused(caller)
    tasks = [caller.creates(callback) for callback in callbacks(inbox, receiver)]
    changed(caller, inbox)
    damaged(caller, inbox)
    ingested(caller, inbox)
    caller.advance(400)
    assert len(caller.call("GET", "/_local/ingest/dead")[1]["messages"]) == 4
    for path in ("stats", "dead", "tasks?key_prefix=hurt"):
        caller.call("GET", f"/v1/businesses/orders/{path}")
    caller.call("GET", "/v1/audit")
    for which in ({"reason": MARK}, {}):
        chosen = {"status": "dead", **which}
        redrive = {"biz_type": "orders", "action": "redrive", "filter": chosen}
        caller.call("POST", "/v1/operations", redrive)
    caller.advance(100)
    return [caller.call("GET", f"/v1/tasks/{task['task_id']}")[1] for task in tasks]


@pytest.mark.exhaustive
def test_no_content_of_a_task_is_logged_in_any_outcome(records: Records, receiver: str) -> None:
    with LocalStack(frozen=True, log_level=AT_LEVEL) as stack:
        tasks = live(stack, receiver)
        notices = Service(stack.url).received("told")
    assert {task["status"] for task in tasks} == {"delivered", "dead"}
    assert MARK in str(notices), "they were part of the notices"
    assert {"unreadable", "message-failed", "change"} <= records.actions
    assert records.with_the_mark() == []


def test_no_api_key_is_logged(records: Records) -> None:
    new = {"name": "orders service", "grants": [{"right": "write", "businesses": "orders"}]}
    task = {"biz_type": "orders", **SOON, "callback": {"url": "http://receiver.example/"}}
    with LocalStack(frozen=True, asks_for_keys=True, log_level=AT_LEVEL) as stack:
        caller = Caller(stack.url)

        def by(key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
            return caller.call(method, path, body, Authorization=f"Bearer {key}")

        admin = str(stack.admin_key)
        made = by(admin, "POST", "/v1/keys", new)[1]
        path = f"/v1/keys/{made['key_id']}"
        rotated = by(admin, "POST", f"{path}/rotate", {"overlap_seconds": 600})[1]
        keys = [made["key"], rotated["key"]]
        assert [by(key, "POST", "/v1/tasks", task)[0] for key in keys] == [201, 201]
        mistyped = rotated["key"][:-1] + "~"
        assert by(mistyped, "POST", "/v1/tasks", task)[0] == 403
        assert by(rotated["key"], "DELETE", path)[0] in (403, 404)
        assert by(admin, "DELETE", path)[0] == 200
        caller.advance(60)
        assert [by(key, "POST", "/v1/tasks", task)[0] for key in keys] == [403, 403]
    secrets = [key.split("_")[2] for key in (admin, *keys)]
    assert "change" in records.actions
    assert not [text for text in records.texts if any(secret in text for secret in secrets)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2])
def test_no_content_is_logged_when_requests_to_aws_fail(
    records: Records, receiver: str, seed: int
) -> None:
    with LocalStack(frozen=True, faults=Faults(0.2, seed), log_level=AT_LEVEL) as stack:
        caller = Caller(stack.url)
        inbox = f"{stack.url}/_local/inbox"
        for _ in range(5):
            caller.call("PUT", "/v1/businesses/orders", {"signing_secrets": [SIGNING_SECRET]})
        for callback in callbacks(inbox, receiver):
            body = {"biz_type": "orders", **SOON, **TWICE, "callback": callback}
            caller.call("POST", "/v1/tasks", body)
        caller.advance(300)
        _, faults = caller.call("GET", "/_local/faults")
    assert sum(faults["injected"].values()) > 50
    assert records.with_the_mark() == []


@pytest.mark.parametrize(
    "fault", quick_first([Fault.FAILED, Fault.LOST_AFTER, Fault.THROTTLED], pytest.mark.exhaustive)
)
def test_a_call_that_fails_as_a_whole_logs_no_content(
    records: Records, receiver: str, fault: Fault
) -> None:
    def fail(request: Any, handle: Handle) -> Reply | None:
        return do(fault, request, handle, Random(1))

    with LocalStack(frozen=True, log_level=AT_LEVEL) as stack:
        caller = Caller(stack.url)
        inbox = f"{stack.url}/_local/inbox"
        no_wait = SimpleNamespace(sleep=lambda seconds: None)  # before a retry of the SDK
        with answered_by(fail), patch.object(endpoint, "time", no_wait):
            settings = {"signing_secrets": [SIGNING_SECRET]}
            answers = [caller.call("PUT", "/v1/businesses/orders", settings)]
            for callback in callbacks(inbox, receiver):
                body = {"biz_type": "orders", **SOON, "callback": callback}
                answers.append(caller.call("POST", "/v1/tasks", body))
    assert {status for status, _ in answers} <= {500, 503}
    assert "call-failed" in records.actions
    assert records.with_the_mark() == []


def test_the_error_of_a_message_that_both_links_refuse_does_not_quote_it() -> None:
    """It may contain records of attempts, and an exception is logged."""

    class Refuses:
        def send(self, messages: list[Any], *_: Any) -> list[Any]:
            return list(messages)

    refusing: Any = Refuses()
    message = DirectMessage(1_800_000_000, (), called=(f'{{"note": "{MARK}"}}',))
    with pytest.raises(SendRefused) as refused:
        MessageSender({message.lane: refusing}, refusing).send_or_raise(message)
    assert MARK not in str(refused.value)


AT_DEBUG = """
import logging
logging.getLogger().setLevel(logging.DEBUG)
from duewheel.log import logger
print(logging.getLogger("botocore.endpoint").getEffectiveLevel(), logger.log_level)
"""


def test_at_debug_only_the_functions_log_more_and_not_the_libraries() -> None:
    """In a process of its own, as Lambda starts one."""
    environment = {**os.environ, "POWERTOOLS_LOG_LEVEL": "DEBUG", "PYTHONPATH": "layers/core"}
    done = subprocess.run(
        [sys.executable, "-c", AT_DEBUG],
        capture_output=True,
        env=environment,
        check=True,
        text=True,
    )
    assert done.stdout.split() == [str(logging.WARNING), str(logging.DEBUG)]
