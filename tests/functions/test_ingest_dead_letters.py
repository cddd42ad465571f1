"""Dead letters of the ingest queue: the list with reasons, and the redrive without duplicates."""

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


def test_the_list_shows_reasons_and_no_content(wired: ManualClock) -> None:
    message_id = send({**TASK, "delay_seconds": -1, "payload": "secret"})
    assert poll() == 0
    sqs, url = boto3.client("sqs"), process.settings().ingest_dead_letter_queue_url
    for _ in range(2):
        (line,) = dead_letters.listed(sqs, url, wired)
        assert line.startswith(f"{message_id}  invalid-field  delay_seconds: must be from 0")
        assert "secret" not in line


def test_a_redrive_creates_valid_tasks_and_the_rest_become_dead_letters_again(
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
    ((letter, attributes),) = letters()
    assert (letter, attributes["problem"]) == ("{rubbish", "malformed-body")


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
def test_a_letter_refused_again_during_the_redrive_is_not_moved_twice(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ingest function runs during the redrive, and sends new letters to the queue."""
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
def test_a_callback_to_the_ingest_queue_is_refused_at_each_redrive(
    wired: ManualClock, attempts: int
) -> None:
    message_id = send(TASK, duewheel_attempt="3", idempotency_key="k-1")
    assert poll() == 0
    for _ in range(attempts):
        assert redriven() == 1
        assert poll() == 0
    assert tasks_stored() == []
    ((body, attributes),) = letters()
    assert (json.loads(body), attributes["problem"]) == (TASK, "callback-refused")
    assert (attributes["duewheel-attempt"], attributes["idempotency-key"]) == ("3", "k-1")
    assert attributes["message-id"] != message_id


def test_a_callback_moved_to_the_dead_letters_by_sqs_is_refused_at_the_redrive(
    wired: ManualClock,
) -> None:
    boto3.client("sqs").send_message(
        QueueUrl=process.settings().ingest_dead_letter_queue_url,
        MessageBody=json.dumps(TASK),
        MessageAttributes={"duewheel-attempt": {"DataType": "Number", "StringValue": "3"}},
    )
    assert redriven() == 1
    assert poll() == 0
    assert tasks_stored() == []


def test_the_rest_of_a_batch_is_a_separate_request(wired: ManualClock) -> None:
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


def test_a_repeat_of_the_message_does_not_create_tasks_of_its_letter(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is allowed by then. The sender or SQS may repeat the message."""
    allow(wired, monkeypatch, "orders")
    body = {"tasks": [TASK, {**TASK, "biz_type": "shop"}, {**TASK, "retry": 1}]}
    send(body, idempotency_key="b-1")
    assert poll() == 0
    allow(wired, monkeypatch, "*")
    send(body, idempotency_key="b-1")
    assert poll() == 0
    assert len(tasks_stored()) == 1
    assert redriven() == 2, "two letters of one request"
    assert poll() == 0
    assert len(tasks_stored()) == 2
    left = [(json.loads(rest), attributes["problem"]) for rest, attributes in letters()]
    assert left == [({"tasks": [body["tasks"][2]]}, "invalid-field")] * 2


def test_a_task_refused_at_the_last_try_is_created_by_the_redrive_alone(wired: ManualClock) -> None:
    limits = {"creates_per_second": 1}
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
def test_a_created_task_is_in_no_letter_after_its_business_is_disallowed(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch, is_repeated: bool
) -> None:
    """A letter with the task would create it again as soon as it is allowed."""
    limits = {"creates_per_second": 1}
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


def test_a_task_that_was_written_in_a_throttled_try_is_in_no_letter(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier try of the SDK was carried out, and its reply was lost."""
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


def test_the_rest_of_a_batch_is_created_once_from_several_letters(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS accepted the first letter, and its reply was lost."""
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


def test_a_batch_is_created_by_the_redrive_once_its_target_is_enabled(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its idempotency key, like a repeated request."""
    callback = {"type": "lambda", "function": "orders-close"}
    send({"tasks": [{**TASK, "callback": callback}] * 2})
    assert poll() == 0
    assert tasks_stored() == []
    arns = "arn:aws:lambda:us-east-1:123456789012:function:orders-*"
    monkeypatch.setenv("TARGET_ARNS", arns)
    process.start_anew(wired)
    wired.advance_ms(10_000)
    assert redriven() == 1
    assert poll() == 0
    assert (len(tasks_stored()), letters()) == (2, [])


def test_a_letter_whose_task_may_exist_creates_it_once_at_any_time(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task was created, and the run died before its record."""

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
    """It has no reason, for example because every run died."""
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
