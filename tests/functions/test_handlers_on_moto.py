"""The four handlers with their production wiring, on moto with the template's resources."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest

from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.wheel.queue_messages import PageMessage, encode
from duewheel.settings import SettingsError
from duewheel.wiring import process
from duewheel.wiring import wheel as wheel_wiring
from functions.api import app as api
from functions.notifier import app as notifier
from functions.scheduler import app as scheduler
from functions.sweeper import app as sweeper
from tests.functions.conftest import Context, call, event_from
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock

FAR_SECONDS = 200  # so far ahead that only the scheduler sends a message of the slice


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[bytes]]]:
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", bodies
    server.shutdown()
    server.server_close()


def create(url: str, in_seconds: float) -> dict[str, Any]:
    event = event_from("http-api-create-task.json")
    body = {"biz_type": "orders", "delay_seconds": in_seconds, "payload": {"order": 17}}
    event["body"] = json.dumps({**body, "callback": {"url": url}})
    answer = api.handler(event, Context())
    assert answer["statusCode"] == 201, answer
    task: dict[str, Any] = json.loads(answer["body"])
    return task


def tick() -> None:
    turns = iter([1_000_000])
    event = event_from("scheduled.json")
    scheduler.handler(event, Context(lambda: next(turns, 0)))


def received_batch(*extra: dict[str, Any]) -> dict[str, Any]:
    """The batch that Lambda's poller would receive now."""
    url = process.settings().slice_queue_url
    answer = boto3.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    records = [
        {"messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"]}
        for m in answer.get("Messages", [])
    ]
    return {"Records": [*records, *extra]}


def test_from_a_request_to_a_callback_through_all_handlers(
    wired: ManualClock, receiver: tuple[str, list[bytes]]
) -> None:
    url, bodies = receiver
    task = create(url, in_seconds=30)
    wired.advance_ms(30_000)
    tick()
    assert notifier.handler(received_batch(), Context()) == {"batchItemFailures": []}
    assert bodies == [b'{"order": 17}']

    wired.advance_ms(300_000)
    tick()
    sweeper.handler({}, Context())
    wired.advance_ms(300_000)
    sweeper.handler({}, Context())

    _, wheel = call("GET", "/v1/wheel")
    due_second = wired.now_ms() // 1000 - 600
    assert wheel["sweep_pointer"]["second"] >= due_second
    _, read = call("GET", f"/v1/tasks/{task['task_id']}")
    assert read["status"] == "delivered"


def test_only_the_messages_that_failed_are_reported(
    wired: ManualClock, receiver: tuple[str, list[bytes]]
) -> None:
    url, bodies = receiver
    create(url, in_seconds=0)
    garbage = {"messageId": "bad", "receiptHandle": "none", "body": "{rubbish"}
    answer = notifier.handler(received_batch(garbage), Context())

    assert answer == {"batchItemFailures": [{"itemIdentifier": "bad"}]}
    assert bodies == [b'{"order": 17}']


def test_a_message_that_is_in_a_batch_twice_is_delivered_once(
    wired: ManualClock, receiver: tuple[str, list[bytes]]
) -> None:
    url, bodies = receiver
    create(url, in_seconds=0)
    [record] = received_batch()["Records"]
    copy = {**record, "messageId": "another", "receiptHandle": "another"}

    answer = notifier.handler({"Records": [record, copy]}, Context())
    assert answer == {"batchItemFailures": []}
    assert bodies == [b'{"order": 17}']


def test_a_message_leased_by_another_run_is_hidden_and_reported(
    wired: ManualClock, receiver: tuple[str, list[bytes]]
) -> None:
    url, bodies = receiver
    create(url, in_seconds=FAR_SECONDS)
    wired.advance_ms(FAR_SECONDS * 1000)
    tick()
    batch = received_batch()
    message = json.loads(batch["Records"][0]["body"])
    page = PageLease(message["second"], message["shard"])
    assert isinstance(wheel_wiring.pages().take(page, "another", wired.now_ms(), 50_000), PageLease)
    answer = notifier.handler(batch, Context())
    assert [f["itemIdentifier"] for f in answer["batchItemFailures"]] == [
        batch["Records"][0]["messageId"]
    ]
    assert bodies == []

    wired.advance_ms(50_000)
    assert received_batch()["Records"] == [], "hidden until the lease has ended"
    wired.advance_ms(1_001)
    assert notifier.handler(received_batch(), Context()) == {"batchItemFailures": []}
    assert bodies == [b'{"order": 17}']


def invoked_with(*bodies: str) -> dict[str, Any]:
    return {"messages": list(bodies)}


def test_messages_of_the_second_link_are_delivered_without_a_report(
    wired: ManualClock, receiver: tuple[str, list[bytes]]
) -> None:
    url, bodies = receiver
    create(url, in_seconds=FAR_SECONDS)
    wired.advance_ms(FAR_SECONDS * 1000)
    tick()
    [record] = received_batch()["Records"]

    assert notifier.handler(invoked_with(record["body"]), Context()) is None
    assert bodies == [b'{"order": 17}']


@pytest.mark.parametrize("left", quick_first(["held", "unreadable"], pytest.mark.exhaustive))
def test_an_undelivered_message_of_the_second_link_fails_the_run_at_its_end(
    wired: ManualClock, receiver: tuple[str, list[bytes]], left: str
) -> None:
    """Asynchronous invocation ignores reported messages: only a failed run is tried again."""
    url, bodies = receiver
    create(url, in_seconds=FAR_SECONDS)
    wired.advance_ms(FAR_SECONDS * 1000)
    tick()
    [record] = received_batch()["Records"]
    bad = "{rubbish"
    if left == "held":
        held = PageLease(wired.now_ms() // 1000 - 1, 0)
        wheel_wiring.pages().take(held, "another", wired.now_ms(), 50_000)
        bad = encode(PageMessage(held.second, held.shard))
    with pytest.raises(notifier.MessagesLeft, match="1 of 2"):
        notifier.handler(invoked_with(bad, record["body"]), Context())

    assert bodies == [b'{"order": 17}']


def test_every_function_refuses_another_bucket_count_and_logs_both_values(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch, receiver: tuple[str, list[bytes]]
) -> None:
    create(receiver[0], in_seconds=30)
    process.start_anew(wired)
    monkeypatch.setenv("BUCKETS", "5000")

    for handler in (scheduler.handler, sweeper.handler):
        with pytest.raises(SettingsError, match=r"5000.*10000000"):
            handler({}, Context())
    status, problem = call("GET", "/v1/wheel")
    assert (status, problem["status"]) == (500, 500)
    assert "5000" in problem["detail"]
    assert "10000000" in problem["detail"]
