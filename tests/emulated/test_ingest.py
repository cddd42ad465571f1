"""Messages to the queue that the stack prints become tasks or dead letters."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.template import ACCOUNT_ID, REGION
from tests.emulated.account import Account
from tests.emulated.deployment import Deployment
from tests.emulated.emulator import Emulator
from tests.emulated.observed import FAR_SECONDS, delivered, task, until, user
from tests.support.http_receiver import Receiver


@pytest.fixture(scope="module")
def sender(whole: Deployment) -> Any:
    """A client of SQS for a user to whom IAM permits to send to this queue."""
    name = whole.outputs["IngestQueueUrl"].rsplit("/", 1)[-1]
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}"
    credentials = user(whole.emulator, "sender", "sqs:SendMessage", arn)
    return whole.emulator.client_of(credentials, "sqs")


def test_a_message_of_a_permitted_sender_becomes_a_task_that_is_delivered(
    whole: Deployment, sender: Any, key: Mapping[str, str], receiver: Receiver
) -> None:
    """Through the queue, the ingest function, the scheduler, the slice queue and the notifier."""
    body = task({"url": receiver.url}, FAR_SECONDS, "by message")
    sender.send_message(QueueUrl=whole.outputs["IngestQueueUrl"], MessageBody=json.dumps(body))

    until(lambda: receiver.bodies != [], "the callback")

    assert receiver.bodies == ['"by message"']
    delivered(whole, receiver.headers[0]["webhook-id"], headers=key)


def test_an_event_of_a_permitted_rule_becomes_a_task(
    whole: Deployment, account: Account, receiver: Receiver
) -> None:
    name = whole.outputs["IngestQueueUrl"].rsplit("/", 1)[-1]
    account.ask_by_event(
        f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}", task({"url": receiver.url}, 1, "by event")
    )

    until(lambda: receiver.bodies != [], "the callback")

    assert receiver.bodies == ['"by event"']


def test_a_sender_without_permission_is_refused(whole: Deployment, emulator: Emulator) -> None:
    passer_by = emulator.client_of(user(emulator, "passer-by"), "sqs")

    with pytest.raises(ClientError, match="AccessDenied"):
        passer_by.send_message(QueueUrl=whole.outputs["IngestQueueUrl"], MessageBody="{}")


def test_an_invalid_message_becomes_a_dead_letter_with_the_reason(
    whole: Deployment, sender: Any, emulator: Emulator
) -> None:
    queue = whole.outputs["IngestQueueUrl"]
    wrong = json.dumps(task({"url": "https://example.com/"}, -1, None))
    strange = json.dumps(task({"url": "https://example.com/"}, 1, None) | {"biz_type": "shop"})
    for body in (wrong, strange):
        sender.send_message(QueueUrl=queue, MessageBody=body)

    letters: dict[str, str] = {}

    def are_there() -> bool:
        letters.update(dead_letters(emulator, whole.outputs["IngestDeadLetterQueueUrl"]))
        return len(letters) == 2

    until(are_there, "the dead letters")
    assert letters == {wrong: "invalid-field", strange: "not-permitted"}


def dead_letters(emulator: Emulator, url: str) -> dict[str, str]:
    """Bodies, with their problems."""
    found = emulator.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    return {
        letter["Body"]: letter["MessageAttributes"]["problem"]["StringValue"]
        for letter in found.get("Messages", [])
    }
