"""Batches that a receiver accepts, and the answers to them."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from standardwebhooks import Webhook  # another implementation than ours

from duewheel import Delivery, NotGenuine, ReceivedBatch, Receiver, StopTask
from duewheel.deliveries import deliveries_of

SECRET = f"whsec_{base64.b64encode(bytes(24)).decode()}"
SENT_AT = 1_896_078_605
BATCH_ID = "batch_" + "0a" * 12
BODY = f"""{{"version": 1, "batch_id": "{BATCH_ID}", "biz_type": "orders", "tasks": [
  {{"task_id": "AQG1", "due_at": "2030-01-31T08:30:00.000Z", "attempt": 1, "new": [{{}}],
    "payload": {{"a":1.0,  "a": "\\u00e9, ]}}"}}}},
  {{"task_id": "AQG2", "due_at": "2030-01-31T08:30:00.500Z", "attempt": 3, "key": "order-18",
    "payload": null}}]}}""".encode()


def signed(body: bytes = BODY, webhook_id: str = BATCH_ID) -> dict[str, str]:
    signature = Webhook(SECRET).sign(
        webhook_id, datetime.fromtimestamp(SENT_AT, UTC), body.decode()
    )
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(SENT_AT),
        "webhook-signature": signature,
        "content-type": "application/json",
    }


@pytest.fixture
def receiver() -> Receiver:
    return Receiver(SECRET, now=lambda: SENT_AT)


def failed(answer: tuple[str, int, dict[str, str]]) -> list[dict[str, Any]]:
    body, status, headers = answer
    assert (status, headers["content-type"]) == (200, "application/json")
    listed: list[dict[str, Any]] = json.loads(body).get("failed", [])
    return listed


def test_a_batch_has_a_delivery_for_each_task(receiver: Receiver) -> None:
    batch = receiver.verify_batch(signed(), BODY)
    first, second = batch
    assert (batch.batch_id, len(batch), batch.is_batch) == (BATCH_ID, 2, True)
    assert (first.task_id, first.attempt, first.biz_type, first.key) == ("AQG1", 1, "orders", None)
    assert first.body == b'{"a":1.0,  "a": "\\u00e9, ]}"}'
    assert first.payload == {"a": "é, ]}"}
    assert (second.task_id, second.attempt, second.key) == ("AQG2", 3, "order-18")
    assert second.due_at == datetime(2030, 1, 31, 8, 30, 0, 500_000, UTC)
    assert second.payload is None
    assert failed(batch.answer()) == []


def test_a_forged_batch_is_refused(receiver: Receiver) -> None:
    with pytest.raises(NotGenuine):
        receiver.verify_batch(signed(), BODY.replace(b"AQG1", b"AQG9"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        BODY.replace(b'"version": 1', b'"version": 2'),
        BODY.replace(b"0a0a", b"0b0b"),
        BODY[:-1],
    ],
)
def test_a_genuine_request_that_is_no_batch_that_this_client_reads_raises(
    receiver: Receiver, body: bytes
) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        receiver.verify_batch(signed(body), body)


def test_each_task_is_handled_by_itself_and_failures_are_in_the_answer(receiver: Receiver) -> None:
    done: list[str] = []

    def handle(delivery: Delivery) -> None:
        if delivery.task_id == "AQG2":
            raise KeyError("secret detail")
        done.append(delivery.task_id)

    batch = receiver.verify_batch(signed(), BODY)
    assert failed(receiver.handle_each(batch, handle)) == [
        {"task_id": "AQG2", "outcome": "retry", "note": "KeyError"}
    ]
    again = receiver.verify_batch(signed(), BODY)
    receiver.handle_each(again, lambda delivery: done.append(f"again {delivery.task_id}"))
    assert done == ["AQG1", "again AQG2"]


def test_a_handler_may_end_a_task(receiver: Receiver) -> None:
    def handle(delivery: Delivery) -> None:
        raise StopTask("no such order")

    batch = receiver.verify_batch(signed(), BODY)
    assert [one["outcome"] for one in failed(receiver.handle_each(batch, handle))] == ["stop"] * 2


def test_a_task_that_is_being_handled_is_tried_again(receiver: Receiver) -> None:
    batch = receiver.verify_batch(signed(), BODY)
    first, _ = batch
    with receiver.once(first):
        answer = receiver.handle_each(batch, lambda delivery: None)
    assert [one["task_id"] for one in failed(answer)] == ["AQG1"]


def test_a_batch_as_a_whole_is_answered_by_what_was_reported(receiver: Receiver) -> None:
    batch = receiver.verify_batch(signed(), BODY)
    first, second = batch
    batch.retry(first, "locked", after_seconds=60)
    batch.stop(second, "gone")
    assert failed(batch.answer()) == [
        {"task_id": "AQG1", "outcome": "retry", "note": "locked", "retry_after_seconds": 60},
        {"task_id": "AQG2", "outcome": "stop", "note": "gone"},
    ]


def reported(batch: ReceivedBatch, kind: str) -> tuple[str, int, dict[str, str]]:
    (only,) = batch
    if kind == "retry":
        batch.retry(only, "locked", after_seconds=1.6)
    if kind == "stop":
        batch.stop(only, "gone")
    return batch.answer()


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("none", ("", 204, {})),
        ("retry", ("locked", 503, {"retry-after": "2"})),
        ("stop", ("gone", 422, {"duewheel-stop": "true"})),
    ],
)
def test_a_single_call_is_a_batch_of_one_that_is_answered_by_its_status(
    receiver: Receiver, kind: str, answer: tuple[str, int, dict[str, str]]
) -> None:
    body = b'{"order": 17}'
    batch = receiver.verify_batch(signed(body, "AQG3"), body)
    assert not batch.is_batch
    assert [delivery.payload for delivery in batch] == [{"order": 17}]
    assert reported(batch, kind) == answer


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)


@hypothesis.given(st.lists(st.tuples(JSON, st.booleans()), max_size=4))
def test_every_payload_arrives_byte_for_byte(given: list[tuple[Any, bool]]) -> None:
    payloads = [json.dumps(value, ensure_ascii=is_ascii) for value, is_ascii in given]
    tasks = ", ".join(
        f'{{"task_id": "A{n}", "due_at": "2030-01-31T08:30:00Z", "attempt": 1, "payload": {text}}}'
        for n, text in enumerate(payloads)
    )
    head = f'"version": 1, "batch_id": "{BATCH_ID}", "biz_type": "orders"'
    body = f'{{{head}, "tasks": [{tasks}]}}'.encode()
    found = deliveries_of(body, BATCH_ID, SENT_AT)
    assert [delivery.body.decode() for delivery in found] == payloads


def test_a_payload_that_is_nested_too_deeply_fails_its_own_task_alone(receiver: Receiver) -> None:
    body = BODY.replace(b'"payload": null', b'"payload": ' + b"[" * 30_000 + b"]" * 30_000)
    batch = receiver.verify_batch(signed(body), body)
    answer = receiver.handle_each(batch, lambda delivery: delivery.payload)
    assert [one["task_id"] for one in failed(answer)] == ["AQG2"]
