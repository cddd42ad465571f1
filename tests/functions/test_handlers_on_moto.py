"""The four handlers with their production wiring, on moto with the template's resources."""

import json
from typing import Any

import pytest

from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.wheel.queue_messages import PageMessage, encode
from duewheel.settings import SettingsError
from duewheel.wiring import process
from duewheel.wiring import wheel as wheel_wiring
from functions.notifier import app as notifier
from functions.scheduler import app as scheduler
from functions.sweeper import app as sweeper
from tests.functions.conftest import Context, call, created, received_batch, tick
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock
from tests.support.http_receiver import Receiver

FAR_SECONDS = 200  # so far ahead that only the scheduler sends a message of the slice


def test_from_a_request_to_a_callback_through_all_handlers(
    wired: ManualClock, receiver: Receiver
) -> None:
    task = created(receiver.url, delay_seconds=30, payload={"order": 17})
    wired.advance_ms(30_000)
    tick()
    assert notifier.handler(received_batch(), Context()) == {"batchItemFailures": []}
    assert receiver.bodies == ['{"order": 17}']

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


def test_only_the_messages_that_failed_are_reported(wired: ManualClock, receiver: Receiver) -> None:
    created(receiver.url, delay_seconds=0)
    garbage = {"messageId": "bad", "receiptHandle": "none", "body": "{rubbish"}
    answer = notifier.handler(received_batch(garbage), Context())

    assert answer == {"batchItemFailures": [{"itemIdentifier": "bad"}]}
    assert len(receiver.bodies) == 1


def test_a_message_that_is_in_a_batch_twice_is_delivered_once(
    wired: ManualClock, receiver: Receiver
) -> None:
    created(receiver.url, delay_seconds=0)
    [record] = received_batch()["Records"]
    copy = {**record, "messageId": "another", "receiptHandle": "another"}

    answer = notifier.handler({"Records": [record, copy]}, Context())
    assert answer == {"batchItemFailures": []}
    assert len(receiver.bodies) == 1


def test_a_message_leased_by_another_run_is_hidden_and_reported(
    wired: ManualClock, receiver: Receiver
) -> None:
    created(receiver.url, delay_seconds=FAR_SECONDS)
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
    assert receiver.bodies == []

    wired.advance_ms(50_000)
    assert received_batch()["Records"] == [], "hidden until the lease has ended"
    wired.advance_ms(1_001)
    assert notifier.handler(received_batch(), Context()) == {"batchItemFailures": []}
    assert len(receiver.bodies) == 1


def invoked_with(*bodies: str) -> dict[str, Any]:
    return {"messages": list(bodies)}


def test_messages_of_the_second_link_are_delivered_without_a_report(
    wired: ManualClock, receiver: Receiver
) -> None:
    created(receiver.url, delay_seconds=FAR_SECONDS)
    wired.advance_ms(FAR_SECONDS * 1000)
    tick()
    [record] = received_batch()["Records"]

    assert notifier.handler(invoked_with(record["body"]), Context()) is None
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize("left", quick_first(["held", "unreadable"], pytest.mark.exhaustive))
def test_an_undelivered_message_of_the_second_link_fails_the_run_at_its_end(
    wired: ManualClock, receiver: Receiver, left: str
) -> None:
    """Asynchronous invocation ignores reported messages: only a failed run is tried again."""
    created(receiver.url, delay_seconds=FAR_SECONDS)
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

    assert len(receiver.bodies) == 1


def test_every_function_refuses_another_bucket_count_and_logs_both_values(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    created(receiver.url, delay_seconds=30)
    process.start_anew(wired)
    monkeypatch.setenv("BUCKETS", "5000")

    for handler in (scheduler.handler, sweeper.handler):
        with pytest.raises(SettingsError, match=r"5000.*10000000"):
            handler({}, Context())
    status, problem = call("GET", "/v1/wheel")
    assert (status, problem["status"]) == (500, 500)
    assert "5000" in problem["detail"]
    assert "10000000" in problem["detail"]
