"""Every type of callback through the running stack, and the calls that its target received."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.stack import LocalStack
from tests.support.service import Service

QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/inbox-queue"
TOPIC = "arn:aws:sns:us-east-1:123456789012:inbox-topic"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:inbox-close"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:inbox-machine"
BUS = {"type": "eventbridge", "event_bus": "inbox-bus", "source": "shop", "detail_type": "due"}


@pytest.fixture(scope="module")
def running() -> Iterator[LocalStack]:
    with LocalStack(frozen=True) as stack:
        yield stack


@pytest.fixture
def service(running: LocalStack) -> Service:
    """The stack without tasks and calls of earlier tests."""
    service = Service(running.url)
    for name in (
        "inbox-close",
        "inbox-queue",
        "inbox-queue.fifo",
        "inbox-topic",
        "inbox-bus",
        "inbox-machine",
    ):
        service.call("DELETE", f"/_local/received/{name}")
    return service


def due(service: Service, callback: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"biz_type": "orders", "delay_seconds": 60, "payload": {"order": 17}, **more}
    status, task = service.call("POST", "/v1/tasks", {**body, "callback": callback})
    assert status == 201, task
    return dict(task)


@pytest.mark.parametrize(
    ("callback", "name", "method"),
    [
        ({"type": "lambda", "function": FUNCTION}, "inbox-close", "Invoke"),
        (
            {"type": "lambda", "function": "inbox-close:prod", "invocation": "async"},
            "inbox-close",
            "Invoke",
        ),
        ({"type": "sqs", "queue_url": QUEUE}, "inbox-queue", "SendMessage"),
        (
            {"type": "sqs", "queue_url": f"{QUEUE}.fifo", "group_id": "order-17"},
            "inbox-queue.fifo",
            "SendMessage",
        ),
        ({"type": "sns", "topic_arn": TOPIC}, "inbox-topic", "Publish"),
        (
            {"type": "sns", "topic_arn": f"{TOPIC}.fifo", "group_id": "order-17"},
            "inbox-topic.fifo",
            "Publish",
        ),
        (BUS, "inbox-bus", "PutEvents"),
        (
            {"type": "stepfunctions", "state_machine_arn": MACHINE},
            "inbox-machine",
            "StartExecution",
        ),
    ],
)
def test_a_callback_of_each_type_arrives_at_its_instant(
    service: Service, callback: dict[str, Any], name: str, method: str
) -> None:
    task = due(service, callback)
    assert callback.items() <= task["callback"].items()
    assert service.advance(59) == 0
    assert service.received(name) == []
    assert service.advance(1) == 1
    (got,) = service.received(name)
    assert got["method"] == method
    assert got["received_at"] == task["due_at"]
    body = json.loads(got["body"])
    brought = body.get("detail", body)
    assert brought.get("payload", brought) == {"order": 17}
    assert task["task_id"] in (brought.get("task_id"), got["headers"].get("duewheel-task-id"))
    assert service.task(task)["status"] == "delivered"


def test_a_failed_function_is_retried_unless_it_answers_stop(service: Service) -> None:
    callback = {"type": "lambda", "function": "inbox-close"}
    service.call("PUT", "/_local/received/inbox-close", {"status": 503, "times": 2})
    task = due(service, callback, retry={"delays_seconds": [10]})
    service.advance(100)
    history = service.task(task)["history"]
    assert [attempt["outcome"] for attempt in history] == ["retry", "retry"]
    assert history[0]["note"] == "ToldToFail: told to answer 503"
    assert service.task(task)["status"] == "dead"

    stopping = {"headers": {"duewheel-stop": "true"}}
    service.call("PUT", "/_local/received/inbox-close", stopping)
    stopped = due(service, callback)
    service.advance(60)
    assert (service.task(stopped)["status"], service.task(stopped)["reason"]) == ("dead", "stopped")


def test_a_raw_body_is_sent_unchanged_with_its_content_type(service: Service) -> None:
    raw = {"url": f"{service.url}/_local/inbox/raw", "body": "raw"}
    as_xml = {**raw, "headers": {"content-type": "application/xml"}}
    tasks = [
        due(service, as_xml, delay_seconds=60, payload='<paid order="17"/>'),
        due(service, raw, delay_seconds=61, payload="é"),
    ]
    service.advance(61)
    xml, text = service.received("raw")
    assert (xml["body"], text["body"]) == ('<paid order="17"/>', "é")
    assert xml["headers"]["content-type"] == "application/xml"
    assert text["headers"]["content-type"] == "text/plain; charset=utf-8"
    assert [service.task(task)["status"] for task in tasks] == ["delivered"] * 2


def test_unsupported_targets_are_refused(service: Service) -> None:
    body = {"biz_type": "orders", "delay_seconds": 60}
    callback = {"type": "lambda", "function": "another"}
    status, problem = service.call("POST", "/v1/tasks", {**body, "callback": callback})
    assert (status, problem["field"]) == (422, "callback.function")
    assert problem["type"] == "urn:duewheel:problem:target-not-enabled"


def test_the_answer_of_a_queue_cannot_be_set(service: Service) -> None:
    status, problem = service.call("PUT", "/_local/received/inbox-queue", {"status": 503})
    assert status == 422, problem
