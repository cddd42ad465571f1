"""Verdicts on ingest messages, as pure functions."""

import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.ingest import verdict as ingest_verdict
from duewheel.rules.ingest.message import IngestMessage, message_of, request_of, wanted
from duewheel.rules.ingest.verdict import (
    LAST_TRY_AFTER_MS,
    RECEIVES_MAX,
    WAIT_SECONDS_MAX,
    is_last_try,
    judged,
)
from duewheel.rules.refusals import (
    IdempotencyKeyInUse,
    InvalidField,
    KeyTaken,
    NotPermitted,
    Refusal,
    TooManyCreates,
    TooManyWrites,
    Unavailable,
    UnknownTask,
    UnreadableItem,
)
from duewheel.rules.tasks.idempotency import IdempotentRequest, is_key
from duewheel.rules.tasks.task import Made, NewTask
from duewheel.rules.wheel.sharding import Placement
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_123
MESSAGE = IngestMessage(
    message_id="m-1",
    receipt_handle="handle",
    body="{}",
    sender="AROAEXAMPLE",
    sent_ms=NOW_MS,
    first_received_ms=NOW_MS,
    receives=1,
    attributes={},
)
TRANSIENT = [
    TooManyCreates(3_000),
    Unavailable("soon"),
    TooManyWrites(),
    IdempotencyKeyInUse("at work"),
    UnreadableItem("slot", "place", "status"),
]
FOR_GOOD = [InvalidField("a: b", "a"), NotPermitted("no", "biz_type"), KeyTaken("taken", "key")]
TASK = NewTask(
    biz_type="orders", due_ms=NOW_MS, callback=HttpCallback("https://example.com/")
).placed(Placement(now_ms=NOW_MS, lead_ms=500), b"12345678")
ALLOWED_IN_SQS = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")


def record(**more: Any) -> dict[str, Any]:
    system = {
        "SenderId": "AROAEXAMPLE:worker-7",
        "SentTimestamp": str(NOW_MS),
        "ApproximateFirstReceiveTimestamp": str(NOW_MS + 5),
        "ApproximateReceiveCount": "3",
    }
    return {
        "messageId": "m-1",
        "receiptHandle": "handle",
        "body": "{}",
        "attributes": system,
        "messageAttributes": {},
        **more,
    }


def test_a_record_is_read_as_lambda_writes_it() -> None:
    key = {"idempotency-key": {"dataType": "String", "stringValue": "k-1"}}
    message = message_of(record(messageAttributes=key))
    assert (message.key, message.sender) == ("k-1", "AROAEXAMPLE")
    assert (message.sent_ms, message.first_received_ms, message.receives) == (
        NOW_MS,
        NOW_MS + 5,
        3,
    )
    assert message_of(record()).key == "m-1"


def test_a_key_that_is_not_text_is_refused() -> None:
    binary = {"idempotency-key": {"dataType": "Binary", "binaryValue": "a2V5"}}
    with pytest.raises(InvalidField, match="idempotency-key"):
        request_of(message_of(record(messageAttributes=binary)), is_single=True)


@each_case("key", ["", "a b", "é", "x" * 256])
def test_an_invalid_key_is_left_out_of_the_dead_letter(key: str) -> None:
    """If it were replaced by a valid key, all refused messages would share that key at the
    redrive."""
    message = replace(MESSAGE, attributes={"idempotency-key": key})
    letter = judged(message, None, [FOR_GOOD[0]], 0, is_last=False).letter
    assert letter is not None
    assert "idempotency-key" not in letter.attributes


def test_a_repeat_is_recognised_by_key_and_body_only() -> None:
    first = request_of(MESSAGE, is_single=True)
    again = replace(MESSAGE, receipt_handle="other", receives=9, first_received_ms=NOW_MS + 9)
    assert request_of(again, is_single=True) == first
    redriven = replace(MESSAGE, message_id="m-2", attributes={"idempotency-key": "m-1"})
    assert request_of(redriven, is_single=True) == first
    assert request_of(replace(MESSAGE, message_id="m-2"), is_single=True).name != first.name
    assert request_of(replace(MESSAGE, body="{} "), is_single=True).digest != first.digest


def test_a_body_with_tasks_is_a_batch_and_any_other_a_single_task() -> None:
    task = '{"biz_type": "orders", "delay_seconds": 5, "payload": 1.0}'
    single = wanted(replace(MESSAGE, body=task))
    assert single.is_single
    (made,) = single.tasks(NOW_MS, HTTP_ALONE, ANYTHING)
    assert isinstance(made, NewTask)
    assert made.due_ms == NOW_MS + 5_000
    several = wanted(replace(MESSAGE, body=f'{{"tasks": [{task}, {{}}]}}'))
    assert several.bodies is not None
    assert [bytes(one).decode() for one in several.bodies] == [task, "{}"]
    first, second = several.tasks(NOW_MS, HTTP_ALONE, ANYTHING)
    assert (first, type(second)) == (made, InvalidField)


def test_the_last_try_depends_on_receives_and_age() -> None:
    assert not is_last_try(replace(MESSAGE, receives=RECEIVES_MAX - 1), NOW_MS)
    assert is_last_try(replace(MESSAGE, receives=RECEIVES_MAX), NOW_MS)
    assert not is_last_try(MESSAGE, NOW_MS + LAST_TRY_AFTER_MS - 1)
    assert is_last_try(MESSAGE, NOW_MS + LAST_TRY_AFTER_MS)


@each_case("refusal", TRANSIENT)
def test_a_transient_refusal_is_retried_and_becomes_a_dead_letter_at_the_last_try(
    refusal: Refusal,
) -> None:
    waits = judged(MESSAGE, None, [refusal], 0.5, is_last=False)
    assert waits.letter is None
    assert waits.wait_seconds is not None
    last = judged(MESSAGE, None, [refusal], 0.5, is_last=True)
    assert last.wait_seconds is None
    assert last.letter is not None
    assert last.letter.attributes["problem"] == refusal.type


@each_case("refusal", FOR_GOOD)
def test_a_permanent_refusal_becomes_a_dead_letter_immediately(refusal: Refusal) -> None:
    verdict = judged(MESSAGE, None, [refusal], 0.5, is_last=False)
    assert verdict.wait_seconds is None
    assert verdict.letter is not None
    assert verdict.letter.body == MESSAGE.body


def test_a_message_whose_tasks_were_created_is_done() -> None:
    made = Made(TASK)
    for bodies, results in ((None, [made]), ([Raw("{}")] * 2, [made, made])):
        verdict = judged(MESSAGE, bodies, results, 0.5, is_last=True)
        assert (verdict.wait_seconds, verdict.letter) == (None, None)


def test_a_message_whose_task_was_deleted_since_is_done() -> None:
    gone = UnknownTask("deleted since", "key")
    verdict = judged(MESSAGE, None, [gone], 0.5, is_last=False)
    assert (verdict.wait_seconds, verdict.letter) == (None, None)


def test_the_key_of_a_rest_follows_from_its_message_and_its_tasks() -> None:
    def key(number: int, results: list[Made | Refusal], **message: Any) -> str:
        bodies = [Raw(str(index)) for index in range(len(results))]
        letter = judged(
            replace(MESSAGE, receives=number, **message), bodies, results, 0.5, is_last=True
        ).letter
        assert letter is not None
        assert is_key(letter.attributes["idempotency-key"])
        return letter.attributes["idempotency-key"]

    refused, made = FOR_GOOD[0], Made(TASK)
    assert key(1, [refused, made, made]) == key(7, [TRANSIENT[0], made, made])
    assert key(1, [refused, made, made]) != key(1, [made, refused, made])
    assert key(1, [refused, made, made]) != key(1, [refused, made, made], message_id="m-2")


RESULTS = st.lists(
    st.one_of(st.just(Made(TASK)), st.sampled_from(TRANSIENT), st.sampled_from(FOR_GOOD)),
    min_size=1,
    max_size=12,
)


@given(results=RESULTS, unit=st.floats(0, 1, exclude_max=True), is_last=st.booleans())
def test_every_task_of_a_batch_is_created_retried_or_in_the_dead_letter(
    results: list[Made | Refusal], unit: float, is_last: bool
) -> None:
    bodies = [Raw(f'{{"payload":{n}}}') for n in range(len(results))]
    body = f'{{"tasks": [{", ".join(bytes(one).decode() for one in bodies)}]}}'
    message = replace(MESSAGE, body=body)
    verdict = judged(message, bodies, results, unit, is_last=is_last)
    refused = [n for n, result in enumerate(results) if isinstance(result, Refusal)]
    waits = any(results[n] in TRANSIENT for n in refused) and not is_last
    assert (verdict.wait_seconds is not None) == waits
    assert (verdict.letter is not None) == (bool(refused) and not waits)
    if verdict.letter is not None:
        written = [task["payload"] for task in json.loads(verdict.letter.body)["tasks"]]
        assert written == refused
        listed = json.loads(verdict.letter.attributes["problems"])
        assert [reason["index"] for reason in listed] == refused
        is_whole = len(refused) == len(results)
        assert (verdict.letter.body == body) == is_whole
        assert (verdict.letter.attributes["idempotency-key"] == message.key) == is_whole


@given(
    wait_ms=st.integers(1, 10**8),
    receives=st.integers(1, RECEIVES_MAX),
    unit=st.floats(0, 1, exclude_max=True),
)
def test_a_wait_is_at_least_the_one_of_the_limit_and_at_most_a_quarter_of_an_hour(
    wait_ms: int, receives: int, unit: float
) -> None:
    refusal = TooManyCreates(wait_ms)
    message = replace(MESSAGE, receives=receives)
    waits = judged(message, None, [refusal], unit, is_last=False).wait_seconds
    assert waits is not None
    assert min(refusal.retry_after_seconds, WAIT_SECONDS_MAX) <= waits <= WAIT_SECONDS_MAX


@each_case("refusal", [TooManyCreates(1_000), Unavailable("soon")])
def test_a_waiting_message_is_given_up_by_age_before_it_runs_out_of_receives(
    refusal: Refusal,
) -> None:
    for seed in range(50):
        random = Random(seed)
        message, now_ms = MESSAGE, NOW_MS
        while not is_last_try(message, now_ms):
            wait = judged(message, None, [refusal], random.random(), is_last=False).wait_seconds
            assert wait is not None
            now_ms += wait * 1000
            message = replace(message, receives=message.receives + 1)
        assert message.receives < RECEIVES_MAX
        assert LAST_TRY_AFTER_MS <= now_ms - NOW_MS <= LAST_TRY_AFTER_MS + WAIT_SECONDS_MAX * 1000


@given(detail=st.text(max_size=2_000), field=st.text(max_size=2_000), key=st.text(max_size=500))
def test_sqs_accepts_a_dead_letter_with_any_reason(detail: str, field: str, key: str) -> None:
    message = replace(MESSAGE, attributes={"idempotency-key": key})
    refusals: list[Made | Refusal] = [InvalidField(detail, field)] * 500
    letter = judged(message, [Raw("1")] * 500, refusals, 0, is_last=False).letter
    assert letter is not None
    for name, value in letter.attributes.items():
        assert ALLOWED_IN_SQS.fullmatch(value), name
    assert len(letter.attributes) <= 10
    size = sum(len(name) + 6 + len(value.encode()) for name, value in letter.attributes.items())
    assert size < 1_048_576 - 1_000_000
    assert json.loads(letter.attributes["problems"])


def test_the_reason_of_a_failure_contains_only_the_request_id() -> None:
    reason = ingest_verdict.failed("r-1")
    assert (reason.problem, "r-1" in reason.detail) == ("internal", True)


def test_a_message_is_read_with_the_instant_at_which_it_was_sent() -> None:
    assert request_of(MESSAGE, is_single=True).read_ms(NOW_MS + 9) == NOW_MS
    assert (
        IdempotentRequest(name="name", digest="digest", is_single=True).read_ms(NOW_MS + 9)
        == NOW_MS + 9
    )
