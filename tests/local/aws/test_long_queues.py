"""Queues whose messages are not counted at every call give the same answers as moto's."""

import json
from contextlib import nullcontext
from random import Random
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.aws import emulator
from local.aws.emulator import Emulator
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock

STORIES = [(0, 30), (0, 80), (1, 80)]  # seed and steps
COUNTS = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "VisibilityTimeout",
    "RedrivePolicy",
]


def outcomes(seed: int, steps: int) -> list[Any]:
    """The answers of each step of a random sequence on two queues; receipt handles are replaced by
    their messages."""
    chance, clock = Random(seed), ManualClock()
    with Emulator(clock):
        sqs = boto3.client("sqs")
        dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
        policy = {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:123456789012:dead"}
        redrive = json.dumps({**policy, "maxReceiveCount": 3})
        attributes = {"VisibilityTimeout": "7", "RedrivePolicy": redrive}
        url = sqs.create_queue(QueueName="q", Attributes=attributes)["QueueUrl"]
        handles: list[tuple[str, str]] = []  # all of them, with outdated ones
        answers: list[Any] = []
        for step in range(steps):
            clock.advance_ms(chance.choice((0, 1, 999, 3_000)))
            match chance.randrange(6):
                case 0 | 1:
                    answers.append(_send(sqs, url, step, chance.randint(0, 4)))
                case 2 | 3:
                    queue, count = chance.choice((url, url, dead)), chance.randint(1, 10)
                    got = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=count)
                    for message in got.get("Messages", []):
                        handles.append((queue, message["ReceiptHandle"]))
                        answers.append(message["Body"])
                case 4:
                    answers.append(_delete(sqs, chance, url, handles))
                case _:
                    answers.append(_hide(sqs, chance, handles))
            answers.append([_counts(sqs, queue) for queue in (url, dead)])
        return answers


def _send(sqs: Any, url: str, step: int, delay_seconds: int) -> Any:
    entries = [
        {"Id": str(n), "MessageBody": f"{step}.{n}", "DelaySeconds": n * delay_seconds}
        for n in range(3)
    ]
    answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    return [entry["Id"] for entry in answer["Successful"]]


def _delete(sqs: Any, chance: Random, url: str, handles: list[tuple[str, str]]) -> Any:
    queue, handle = chance.choice([*handles, (url, "no handle")])
    entries = [{"Id": "0", "ReceiptHandle": handle}]
    answer = sqs.delete_message_batch(QueueUrl=queue, Entries=entries)
    return [each["Code"] for each in answer.get("Failed", [])]


def _hide(sqs: Any, chance: Random, handles: list[tuple[str, str]]) -> Any:
    if not handles:
        return None
    queue, handle = chance.choice(handles)
    seconds = chance.randint(0, 9)
    try:
        sqs.change_message_visibility(
            QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=seconds
        )
    except ClientError as error:
        return error.response["Error"]["Code"]
    return seconds


def _counts(sqs: Any, url: str) -> Any:
    return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=COUNTS)["Attributes"]


@pytest.mark.parametrize(("seed", "steps"), quick_first(STORIES, pytest.mark.exhaustive))
def test_queues_give_the_answers_of_unpatched_moto(
    seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = outcomes(seed, steps)
    monkeypatch.setattr(emulator, "queues_counted_when_asked", nullcontext)
    assert outcomes(seed, steps) == ours
    assert any(isinstance(each, str) for each in ours)


def test_sending_does_not_count_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    with Emulator(ManualClock()):
        sqs = boto3.client("sqs")
        url = sqs.create_queue(QueueName="q")["QueueUrl"]
        counted: list[object] = []
        monkeypatch.setattr(
            emulator.sqs_models.Queue,
            "approximate_number_of_messages",
            property(counted.append),
        )
        sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "m"}])
        assert counted == []
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=COUNTS)
        assert counted
