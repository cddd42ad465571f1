"""The document of a batch, and what its answer says of each task."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business, Defaults, changed
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.sns import SnsCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.callbacks.batch import (
    HEAD_BYTES_MAX,
    Batch,
    batch_headers,
    batch_id,
    document,
    document_bytes,
    outcomes_of_answer,
)
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.signature import signatures
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at
from tests.support.cases import each_case
from tests.support.clock import NOON_MS

OK = Outcome(Verdict.DELIVERED, "", status_code=200)


def a_task(number: int, **fields: Any) -> Task:
    home = address_at(NOON_MS + number, number.to_bytes(TOKEN_BYTES, "big"))
    task = Task.at(home, "orders", NOON_MS + number, NOON_MS, HttpCallback("https://a.example/"))
    return replace(task, **{"payload": f'{{"n": {number}}}', **fields})


TASKS = [a_task(number) for number in range(3)]
IDS = [task.task_id for task in TASKS]


def answered(body: bytes, answer: Outcome = OK, *, is_whole: bool = True) -> list[Verdict]:
    outcomes = outcomes_of_answer(TASKS, answer, body, is_whole=is_whole)
    return [outcome.verdict for outcome in outcomes.of_tasks]


ALL = [Verdict.DELIVERED] * 3
NONE = [Verdict.RETRY] * 3


# The document


def test_the_document_has_each_task_with_its_payload_as_it_was_written() -> None:
    payloads = ['{"a":1.0,  "a": "\\u00e9"}', "[1e400, -0.0]", None]
    tasks = [replace(task, payload=text) for task, text in zip(TASKS, payloads, strict=True)]
    tasks[1] = replace(tasks[1], key="order-17", attempts=2)
    text = document(tasks)
    assert '"payload": {"a":1.0,  "a": "\\u00e9"}}' in text
    assert '"payload": [1e400, -0.0]}' in text
    read = json.loads(text)
    assert (read["version"], read["biz_type"]) == (1, "orders")
    assert read["batch_id"] == batch_id(tasks)
    first, second, third = read["tasks"]
    assert first["due_at"] == "2027-01-15T08:00:00.000Z"
    assert (first["task_id"], first["attempt"], "key" in first) == (IDS[0], 1, False)
    assert (second["task_id"], second["attempt"], second["key"]) == (IDS[1], 3, "order-17")
    assert third["payload"] is None


def test_a_batch_has_the_same_id_while_its_attempts_are_the_same() -> None:
    assert batch_id(TASKS) == batch_id([*reversed(TASKS)])
    others = [
        TASKS[:2],
        [*TASKS[:2], replace(TASKS[2], attempts=1)],
        [*TASKS[:2], replace(TASKS[2], redrives=1)],
    ]
    assert len({batch_id(TASKS), *map(batch_id, others)}) == 4


def test_the_signature_is_over_the_id_of_the_batch_and_the_whole_body() -> None:
    secret, body = b"s" * 24, document(TASKS).encode()
    headers = batch_headers(TASKS, NOON_MS, (secret,), body)
    assert headers == {
        "webhook-id": batch_id(TASKS),
        "webhook-timestamp": str(NOON_MS // 1000),
        "webhook-signature": signatures((secret,), batch_id(TASKS), NOON_MS // 1000, body),
        "duewheel-batch": "3",
        "duewheel-biz-type": "orders",
    }
    assert "webhook-signature" not in batch_headers(TASKS, NOON_MS, (), body)


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=256)), min_size=1, max_size=9))
def test_a_document_has_no_more_bytes_than_its_tasks_and_a_head(texts: list[Any]) -> None:
    tasks = [
        a_task(number, payload=json.dumps(payload, ensure_ascii=False), key=key or None)
        for number, (payload, key) in enumerate(texts)
        if payload.isprintable()
    ]
    if tasks:
        size = len(document(tasks).encode())
        assert size <= HEAD_BYTES_MAX + sum(map(document_bytes, tasks))


# The answer


@each_case(
    ("body", "verdicts"),
    [
        (b"", ALL),
        (b"ok", ALL),
        (b"<html>failed</html>", ALL),
        (b'["failed"]', ALL),
        (b'{"done": true}', ALL),
        (b'{"note": {"failed": 7}}', ALL),
        (b'{"failed": []}', ALL),
        (b'\n {"failed": [], "more": 1}', ALL),
        (b'{"failed": [{"task_id": "unheard-of"}]}', ALL),
        (b'{"failed": 7}', NONE),
        (b'\xef\xbb\xbf{"failed": 7}', NONE),
        (b'{"failed": [7]}', NONE),
        (b'{"failed": [{}]}', NONE),
        (b'{"failed": [{"task_id": "a", "outcome": "later"}]}', NONE),
        (b'{"failed": [{"task_id": "a", "retry_after_seconds": -1}]}', NONE),
        (b'{"failed": [', NONE),
        (b'{"failed": [{"task_id": "\xff"}]}', NONE),
        (b'{"failed": ' + b"[" * 50_000, NONE),
        (b'{"failed": []}' + b" " * 70_000, NONE),
    ],
)
def test_an_answer_fails_all_tasks_only_if_it_wants_to_list_some_and_cannot_be_read(
    body: bytes, verdicts: list[Verdict]
) -> None:
    assert answered(body) == verdicts


def test_a_list_that_is_cut_off_fails_all_tasks() -> None:
    assert answered(b'{"failed": []}', is_whole=False) == NONE
    assert answered(b"<html>", is_whole=False) == ALL


def test_each_listed_task_has_its_own_outcome_and_all_others_are_delivered() -> None:
    body = {
        "failed": [
            {"task_id": IDS[0], "retry_after_seconds": 1e9, "note": "locked\n"},
            {"task_id": IDS[2], "outcome": "stop", "note": "no such order"},
            {"task_id": IDS[2], "outcome": "retry"},
        ]
    }
    outcomes = outcomes_of_answer(TASKS, OK, json.dumps(body).encode())
    first, second, third = outcomes.of_tasks
    assert outcomes.of_call == OK
    assert (first.verdict, first.retry_after_seconds) == (Verdict.RETRY, 86_400)
    assert first.note == f"{batch_id(TASKS)} of 3: locked"
    assert second.verdict is Verdict.DELIVERED
    assert (third.verdict, third.stopped_by_receiver) == (Verdict.STOP, True)
    assert third.note.endswith("of 3: the receiver said stop: no such order")


def test_an_answer_that_is_no_success_is_the_outcome_of_all_tasks_whatever_its_body_says() -> None:
    busy = Outcome(Verdict.RETRY, "busy", status_code=503, retry_after_seconds=7)
    outcomes = outcomes_of_answer(TASKS, busy, b'{"failed": []}').of_tasks
    assert {(one.verdict, one.status_code, one.retry_after_seconds) for one in outcomes} == {
        (Verdict.RETRY, 503, 7)
    }


# The setting


def with_batch(batch: Batch, callback: Callback | None) -> Business:
    business = Business("orders", Defaults(30, 10, 30))
    return changed(business, {"batch": batch, "callback": callback}, NOON_MS)


TO_QUEUE = SqsCallback("https://sqs.us-east-1.amazonaws.com/123456789012/q")
TO_TOPIC = SnsCallback("arn:aws:sns:us-east-1:123456789012:t")


@each_case(
    ("batch", "callback", "field"),
    [
        (Batch(2), HttpCallback("https://a.example/", "GET"), "batch"),
        (Batch(2), HttpCallback("https://a.example/", is_raw=True), "batch"),
        (Batch(2), StepFunctionsCallback("arn:aws:states:eu-west-1:1:stateMachine:m"), "batch"),
        (Batch(11), TO_QUEUE, "batch.tasks_max"),
        (Batch(10, 262_145), TO_TOPIC, "batch.bytes_max"),
    ],
)
def test_a_batch_that_the_callback_of_the_business_cannot_take_is_refused(
    batch: Batch, callback: Callback, field: str
) -> None:
    with pytest.raises(InvalidField) as refused:
        with_batch(batch, callback)
    assert refused.value.field == field


@each_case(
    ("batch", "callback"),
    [
        (Batch(100), None),
        (Batch(100, 1_000_000), HttpCallback("https://a.example/", "PUT")),
        (Batch(100), HttpCallback(headers=(("x", "y"),))),
        (Batch(100), LambdaCallback("orders")),
        (Batch(10, 1_000_000), TO_QUEUE),
    ],
)
def test_a_batch_that_the_callback_of_the_business_takes_is_kept(
    batch: Batch, callback: Callback | None
) -> None:
    assert with_batch(batch, callback).own.batch == batch
