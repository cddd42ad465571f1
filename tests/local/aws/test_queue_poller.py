"""The queue poller handles messages like Lambda's event source mapping."""

import json
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest

from local.aws.emulator import Emulator
from local.aws.functions import Function
from local.aws.queue_poller import ENVIRONMENTS_AWAKE, LONG_POLL_SECONDS, Mapped, QueuePoller
from local.control.clock import MovableClock
from tests.support.cases import each_case

START_MS = 1_800_000_000_000
VISIBILITY_SECONDS = 30


class Worker:
    """A function with set answers, which records its events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Any] = lambda event: {"batchItemFailures": []}

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        self.events.append(event)
        return self.answer(event)

    def bodies(self) -> list[str]:
        return [record["body"] for event in self.events for record in event["Records"]]


class Queues:
    """A queue with a dead-letter queue, polled for a worker, on a frozen clock."""

    def __init__(self, emulator: Emulator, clock: MovableClock) -> None:
        self.clock = clock
        self.emulator = emulator
        self.sqs = boto3.client("sqs")
        self.dead_url = self.sqs.create_queue(QueueName="dead")["QueueUrl"]
        redrive = {
            "deadLetterTargetArn": "arn:aws:sqs:us-east-1:123456789012:dead",
            "maxReceiveCount": 2,
        }
        self.url = self.sqs.create_queue(
            QueueName="work",
            Attributes={
                "VisibilityTimeout": str(VISIBILITY_SECONDS),
                "RedrivePolicy": json.dumps(redrive),
            },
        )["QueueUrl"]
        self.worker = Worker()
        function = Function("notifier", "notifier", "arn:notifier", 60_000, 128, self.worker)
        mapped = Mapped(function, self.url, "arn:work", 10, reports_item_failures=True)
        self.poller = QueuePoller(mapped, self.sqs, clock, has_visible=emulator.has_visible)
        self.poller.start()

    def send(self, *bodies: str) -> None:
        self.sqs.send_message_batch(
            QueueUrl=self.url,
            Entries=[{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)],
        )

    def is_settled(self) -> bool:
        now_ms = self.clock.now_ms()
        shown = any(ms <= now_ms for ms in self.emulator.messages_visible_at_ms(self.url))
        return not shown and not self.poller.is_at_work()

    def settle(self) -> None:
        while not self.is_settled():
            self.poller.nudge()

    def pass_visibility(self) -> None:
        self.clock.set_ms(self.clock.now_ms() + VISIBILITY_SECONDS * 1000)
        self.settle()

    def left(self, url: str | None = None) -> int:
        return len(self.emulator.messages_visible_at_ms(url or self.url))


@pytest.fixture
def queues() -> Iterator[Queues]:
    clock = MovableClock(START_MS, frozen=True)
    with Emulator(clock) as emulator:
        queues = Queues(emulator, clock)
        yield queues
        queues.poller.stop(5)


def test_a_record_has_the_members_that_aws_sends(queues: Queues) -> None:
    queues.send("hello")
    queues.settle()
    (record,) = queues.worker.events[0]["Records"]
    assert set(record) == {
        "messageId",
        "receiptHandle",
        "body",
        "attributes",
        "messageAttributes",
        "md5OfBody",
        "eventSource",
        "eventSourceARN",
        "awsRegion",
    }
    assert record["md5OfBody"] == "5d41402abc4b2a76b9719d911017c592"
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert record["attributes"]["SentTimestamp"] == str(START_MS)
    assert record["attributes"]["ApproximateFirstReceiveTimestamp"] == str(START_MS)
    assert (record["eventSource"], record["awsRegion"]) == ("aws:sqs", "us-east-1")


def test_processed_messages_are_deleted(queues: Queues) -> None:
    queues.send("a", "b")
    queues.settle()
    assert queues.left() == 0


def test_messages_reported_as_failed_are_received_again_after_their_visibility_timeout(
    queues: Queues,
) -> None:
    queues.worker.answer = lambda event: {
        "batchItemFailures": [
            {"itemIdentifier": record["messageId"]}
            for record in event["Records"]
            if record["body"] == "bad"
        ]
    }
    queues.send("good", "bad")
    queues.settle()
    assert queues.left() == 1
    queues.worker.answer = lambda event: None
    queues.pass_visibility()
    assert sorted(queues.worker.bodies()) == ["bad", "bad", "good"]
    assert queues.left() == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"batchItemFailures": [{"itemIdentifier": "nobody"}]},
        {"batchItemFailures": [{"itemIdentifier": ""}]},
        {"batchItemFailures": [{}]},
        ["nonsense"],
    ],
)
def test_an_invalid_answer_fails_the_whole_batch(queues: Queues, answer: Any) -> None:
    queues.worker.answer = lambda event: answer
    queues.send("a")
    queues.settle()
    assert queues.left() == 1


@pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": []}])
def test_an_empty_answer_is_a_success(queues: Queues, answer: Any) -> None:
    queues.worker.answer = lambda event: answer
    queues.send("a")
    queues.settle()
    assert queues.left() == 0


def test_a_failed_function_keeps_its_messages_in_the_queue(queues: Queues) -> None:
    def fail(event: dict[str, Any]) -> None:
        raise RuntimeError("no")

    queues.worker.answer = fail
    queues.send("a")
    queues.settle()
    assert queues.left() == 1


def test_a_message_that_fails_too_often_goes_to_the_dead_letter_queue(queues: Queues) -> None:
    queues.worker.answer = lambda event: ["nonsense"]
    queues.send("poison")
    queues.settle()
    queues.pass_visibility()
    assert (queues.left(), queues.left(queues.dead_url)) == (1, 0)
    queues.pass_visibility()
    assert (queues.left(), queues.left(queues.dead_url)) == (0, 1)
    assert queues.worker.bodies() == ["poison", "poison"]


def test_concurrent_invocations_are_bounded(queues: Queues) -> None:
    go_on = Event()
    queues.worker.answer = lambda event: go_on.wait(10) and None
    for number in range(ENVIRONMENTS_AWAKE + 1):
        queues.send(str(number))
        while len(queues.worker.events) < min(number + 1, ENVIRONMENTS_AWAKE):
            queues.poller.nudge()
    assert len(queues.worker.events) == ENVIRONMENTS_AWAKE
    go_on.set()
    queues.settle()
    assert len(queues.worker.events) == ENVIRONMENTS_AWAKE + 1


@each_case("is_here", [True, False])
def test_a_queue_in_another_process_is_asked_by_long_polls(is_here: bool) -> None:
    asked: SimpleQueue[dict[str, Any]] = SimpleQueue()
    sqs: Any = SimpleNamespace(receive_message=lambda **request: asked.put(request) or {})
    mapped = Mapped(Mock(), "https://queue", "arn:work", 10, reports_item_failures=True)
    poller = QueuePoller(
        mapped, sqs, MovableClock(), has_visible=(lambda _: True) if is_here else None
    )
    poller.start()
    assert asked.get()["WaitTimeSeconds"] == (0 if is_here else LONG_POLL_SECONDS)
    poller.stop(5)
