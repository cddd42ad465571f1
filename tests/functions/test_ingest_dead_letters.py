"""Dead letters of the ingest queue: listed with their reasons, and given back without a repeat."""

import json
from collections.abc import Sequence
from typing import Any

import boto3
import pytest

from duewheel.rules.ingest.verdict import RECEIVES_MAX, DeadLetter
from duewheel.rules.refusals import TooManyWrites
from duewheel.rules.tasks.task import Task
from duewheel.stores.ingest.queue import IngestQueue
from duewheel.wiring import process
from duewheel.workflows.tasks.create_tasks import CreateTasks
from infra.operate import dead_letters
from tests.functions.conftest import call
from tests.functions.ingest_poller import TASK, handed_out, poll, run, send, tasks_stored, waiting
from tests.functions.ingest_poller import dead_letters as letters
from tests.support.clock import ManualClock
from tests.support.recorder import Call, Recorder


def redriven() -> int:
    config = process.settings()
    urls = (config.ingest_dead_letter_queue_url, config.ingest_queue_url)
    return dead_letters.redriven_to_ingest(boto3.client("sqs"), *urls)


def test_a_list_says_why_and_nothing_of_what_was_asked_for(wired: ManualClock) -> None:
    message_id = send({**TASK, "delay_seconds": -1, "payload": "secret"})
    assert poll() == 0
    sqs, url = boto3.client("sqs"), process.settings().ingest_dead_letter_queue_url
    for _ in range(2):
        (line,) = dead_letters.listed(sqs, url, wired)
        assert line.startswith(f"{message_id}  invalid-field  delay_seconds: must be from 0")
        assert "secret" not in line


def test_what_can_be_created_by_then_is_and_the_rest_is_a_dead_letter_again(
    wired: ManualClock,
) -> None:
    no_callback = {name: value for name, value in TASK.items() if name != "callback"}
    send(no_callback)
    send("{rubbish")
    assert poll() == 0
    settings = {"callback": TASK["callback"]}
    assert call("PUT", "/v1/businesses/orders", settings)[0] == 201
    wired.advance_ms(10_000)
    assert redriven() == 2
    assert poll() == 0
    assert len(tasks_stored()) == 1
    ((letter, told),) = letters()
    assert (letter, told["problem"]) == ("{rubbish", "malformed-body")


def test_a_redrive_that_takes_hours_moves_each_letter_once(wired: ManualClock) -> None:
    config = process.settings()
    sqs, recorder = boto3.client("sqs"), Recorder()
    for number in range(45):
        sqs.send_message(QueueUrl=config.ingest_dead_letter_queue_url, MessageBody=str(number))

    def pass_time(made: Call) -> None:
        if made.operation == "ReceiveMessage":
            wired.advance_ms(600_000)

    recorder.attach(sqs)
    recorder.after = pass_time
    urls = (config.ingest_dead_letter_queue_url, config.ingest_queue_url)
    assert dead_letters.redriven_to_ingest(sqs, *urls) == 45
    assert (waiting(urls[0]), waiting(urls[1])) == (0, 45)


@pytest.mark.exhaustive
def test_what_is_refused_again_while_others_are_moved_is_not_moved_twice(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ingest function is at work meanwhile, and its letters come into the queue."""
    for number in range(25):
        send(f"{{rubbish {number}")
    while waiting():
        assert poll() == 0
    received = dead_letters._received

    def as_polled(*arguments: Any) -> Any:
        while waiting():
            assert poll() == 0
        return received(*arguments)

    monkeypatch.setattr(dead_letters, "_received", as_polled)
    assert redriven() == 25
    assert len({body for body, _ in letters()}) == 25


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_callback_is_refused_as_often_as_it_is_redriven(
    wired: ManualClock, attempts: int
) -> None:
    message_id = send(TASK, duewheel_attempt="3", idempotency_key="k-1")
    assert poll() == 0
    for _ in range(attempts):
        assert redriven() == 1
        assert poll() == 0
    assert tasks_stored() == []
    ((body, told),) = letters()
    assert (json.loads(body), told["problem"]) == (TASK, "callback-refused")
    assert (told["duewheel-attempt"], told["idempotency-key"]) == ("3", "k-1")
    assert told["message-id"] != message_id


def test_a_callback_that_sqs_gave_up_is_refused_at_the_redrive(wired: ManualClock) -> None:
    boto3.client("sqs").send_message(
        QueueUrl=process.settings().ingest_dead_letter_queue_url,
        MessageBody=json.dumps(TASK),
        MessageAttributes={"duewheel-attempt": {"DataType": "Number", "StringValue": "3"}},
    )
    assert redriven() == 1
    assert poll() == 0
    assert tasks_stored() == []


def test_what_was_left_of_a_batch_is_a_request_of_its_own(wired: ManualClock) -> None:
    no_callback = {name: value for name, value in TASK.items() if name != "callback"}
    send({"tasks": [TASK, no_callback, no_callback]}, idempotency_key="b-1")
    assert poll() == 0
    assert len(tasks_stored()) == 1
    assert call("PUT", "/v1/businesses/orders", {"callback": TASK["callback"]})[0] == 201
    wired.advance_ms(10_000)
    assert redriven() == 1
    assert poll() == 0
    assert (len(tasks_stored()), letters()) == (3, [])


def allow(wired: ManualClock, monkeypatch: pytest.MonkeyPatch, businesses: str) -> None:
    monkeypatch.setenv("INGEST_BUSINESSES", businesses)
    process.start_anew(wired)


def test_what_is_in_a_letter_is_not_made_by_a_repeat_of_its_message_as_well(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is allowed by then. The repeat may be the sender's, or SQS's own."""
    allow(wired, monkeypatch, "orders")
    body = {"tasks": [TASK, {**TASK, "biz_type": "shop"}, {**TASK, "retry": 1}]}
    send(body, idempotency_key="b-1")
    assert poll() == 0
    allow(wired, monkeypatch, "*")
    send(body, idempotency_key="b-1")
    assert poll() == 0
    assert len(tasks_stored()) == 1
    assert redriven() == 2, "a letter each time, which are one request"
    assert poll() == 0
    assert len(tasks_stored()) == 2
    left = [(json.loads(rest), told["problem"]) for rest, told in letters()]
    assert left == [({"tasks": [body["tasks"][2]]}, "invalid-field")] * 2


def test_what_a_limit_refused_to_the_end_is_made_by_the_redrive_alone(wired: ManualClock) -> None:
    limits = {"creates_per_second": 1, "creates_burst": 1}
    assert call("PUT", "/v1/businesses/orders", limits)[0] == 201
    body = {"tasks": [TASK, TASK]}
    send(body, idempotency_key="b-1")
    (record,) = handed_out()
    record["attributes"]["ApproximateReceiveCount"] = str(RECEIVES_MAX)
    assert run([record]) == set()
    wired.advance_ms(60_000)
    assert run([record]) == set(), "handed out once more"
    assert len(tasks_stored()) == 1
    wired.advance_ms(60_000)
    assert redriven() == 2
    boto3.client("sqs").delete_message(
        QueueUrl=process.settings().ingest_queue_url, ReceiptHandle=record["receiptHandle"]
    )
    assert poll() == 0
    assert (len(tasks_stored()), letters()) == (2, [])


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_repeated", [False, True])
def test_what_was_created_is_in_no_letter_though_it_is_not_allowed_any_more(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch, is_repeated: bool
) -> None:
    """Its letter would make it again as soon as it is."""
    limits = {"creates_per_second": 1, "creates_burst": 1}
    assert call("PUT", "/v1/businesses/limited", limits)[0] == 201
    limited = {**TASK, "biz_type": "limited"}
    body = {"tasks": [TASK, limited, limited]}
    send(body, idempotency_key="b-1")
    (record,) = handed_out()
    assert run([record]) == {record["messageId"]}
    assert len(tasks_stored()) == 2
    allow(wired, monkeypatch, "limited")
    wired.advance_ms(60_000)
    assert run([record]) == set()
    if is_repeated:
        assert run([record]) == set(), "handed out once more"
    allow(wired, monkeypatch, "*")
    assert (len(tasks_stored()), letters()) == (3, [])


def test_what_was_written_though_it_was_refused_for_load_is_in_no_letter(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier one of the SDK's tries was carried out, and its reply lost."""
    send({"tasks": [TASK, TASK]}, idempotency_key="b-1")
    (record,) = handed_out()
    record["attributes"]["ApproximateReceiveCount"] = str(RECEIVES_MAX)
    store = CreateTasks.store
    tries = []

    def store_at_last_and_lose_a_reply(batch: CreateTasks, tasks: Sequence[Task]) -> list[Any]:
        tries.append(tasks)
        if len(tries) == 1:
            return [TooManyWrites() for _ in tasks]
        return [*store(batch, tasks)[:-1], TooManyWrites()]

    with monkeypatch.context() as busy:
        busy.setattr(CreateTasks, "store", store_at_last_and_lose_a_reply)
        assert run([record]) == set()
    assert len(tries) == 2
    assert (len(tasks_stored()), letters()) == (2, [])


def test_what_is_left_of_a_batch_is_made_once_however_often_its_letter_was_written(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS took the first, and its reply was lost."""
    no_callback = {name: value for name, value in TASK.items() if name != "callback"}
    send({"tasks": [TASK, no_callback]})
    give_up = IngestQueue.give_up

    def lose_the_reply(queue: IngestQueue, letter: DeadLetter) -> None:
        give_up(queue, letter)
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(IngestQueue, "give_up", lose_the_reply)
        assert poll() == 1
    wired.advance_ms(91_000)
    assert poll() == 0
    assert waiting(process.settings().ingest_dead_letter_queue_url) == 2
    assert call("PUT", "/v1/businesses/orders", {"callback": TASK["callback"]})[0] == 201
    wired.advance_ms(10_000)
    assert redriven() == 2
    assert poll() == 0
    assert (len(tasks_stored()), letters()) == (2, [])


def test_a_batch_to_a_target_that_is_enabled_by_then_is_created(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the key that it was refused under, as a request that is repeated."""
    callback = {"type": "lambda", "function": "orders-close"}
    send({"tasks": [{**TASK, "callback": callback}] * 2})
    assert poll() == 0
    assert tasks_stored() == []
    arns = "arn:aws:lambda:us-east-1:123456789012:function:orders-*"
    monkeypatch.setenv("TARGET_FUNCTION_ARNS", arns)
    process.start_anew(wired)
    wired.advance_ms(10_000)
    assert redriven() == 1
    assert poll() == 0
    assert (len(tasks_stored()), letters()) == (2, [])


def test_a_letter_whose_message_may_have_made_its_task_makes_it_once_for_as_long_as_it_is_kept(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was created, and nobody heard of it."""

    def fail(*_: object) -> None:
        raise RuntimeError

    send(TASK)
    (record,) = handed_out()
    record["attributes"]["ApproximateReceiveCount"] = str(RECEIVES_MAX)
    with monkeypatch.context() as broken:
        broken.setattr("duewheel.stores.tasks.idempotency_records.RequestRecords.replace", fail)
        assert run([record]) == set()
    assert len(tasks_stored()) == 1
    boto3.client("sqs").delete_message(
        QueueUrl=process.settings().ingest_queue_url, ReceiptHandle=record["receiptHandle"]
    )
    wired.advance_ms(13 * 86_400_000)
    assert redriven() == 1
    wired.advance_ms(2 * 86_400_000)
    assert poll() == 0
    assert (waiting(), len(tasks_stored()), letters()) == (0, 1, [])


def test_a_message_that_sqs_gave_up_is_redriven_under_its_own_id(wired: ManualClock) -> None:
    """As when every run died: then it has no reason."""
    config = process.settings()
    sent = boto3.client("sqs").send_message(
        QueueUrl=config.ingest_dead_letter_queue_url, MessageBody=json.dumps(TASK)
    )
    assert redriven() == 1
    (record,) = handed_out()
    attributes = record["messageAttributes"]
    assert attributes["idempotency-key"]["stringValue"] == sent["MessageId"]
    assert run([record]) == set()
    assert len(tasks_stored()) == 1
