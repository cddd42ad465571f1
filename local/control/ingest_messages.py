"""The operations on the ingest queue that AWS gives its owner: to send a message, and to list dead
letters, which stay where they are."""

from collections.abc import Mapping
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError

from duewheel.rules.callbacks.payload_encoding import NOT_IN_A_MESSAGE
from duewheel.rules.ingest.message import KEY_ATTRIBUTE
from duewheel.rules.instants import rfc3339
from local.aws.http_api import Request
from local.control.problems import BadInput

_HIDDEN_SECONDS = 60  # from the next read of the queue


class IngestMessages:
    def __init__(self, sqs: Any, url: str, dead_letter_url: str) -> None:
        self._sqs = sqs
        self._url = url
        self._dead_letter_url = dead_letter_url
        self._one_at_a_time = Lock()

    def send(self, request: Request) -> str:
        """The body is the message's; the header of an idempotency key becomes its attribute."""
        try:
            body = _checked("body", request.body.decode())
        except UnicodeDecodeError as error:
            raise BadInput("The body is not UTF-8 text.", status=400) from error
        key = request.joined_headers().get(KEY_ATTRIBUTE)
        attributes = {}
        if key is not None:
            value = _checked(KEY_ATTRIBUTE, key)
            attributes[KEY_ATTRIBUTE] = {"DataType": "String", "StringValue": value}
        try:
            answer = self._sqs.send_message(
                QueueUrl=self._url, MessageBody=body, MessageAttributes=attributes
            )
        except ClientError as error:
            raise BadInput(f"SQS refuses the message: {error}", status=400) from error
        return str(answer["MessageId"])

    def dead_letters(self) -> list[dict[str, Any]]:
        with self._one_at_a_time:
            messages = self._all_hidden()
            for message in messages:
                self._sqs.change_message_visibility(
                    QueueUrl=self._dead_letter_url,
                    ReceiptHandle=message["ReceiptHandle"],
                    VisibilityTimeout=0,
                )
        return [_shown(message) for message in messages]

    def _all_hidden(self) -> list[Mapping[str, Any]]:
        messages: list[Mapping[str, Any]] = []
        while received := self._sqs.receive_message(
            QueueUrl=self._dead_letter_url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=0,
            VisibilityTimeout=_HIDDEN_SECONDS,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages"):
            messages += received
        return messages


def _checked(name: str, text: str) -> str:
    if not text or NOT_IN_A_MESSAGE.search(text):
        raise BadInput(f"The {name} is empty, or has a character that no message may hold.")
    return text


def _shown(message: Mapping[str, Any]) -> dict[str, Any]:
    attributes = message.get("MessageAttributes", {})
    return {
        "message_id": message["MessageId"],
        "body": message["Body"],
        "attributes": {name: value["StringValue"] for name, value in attributes.items()},
        "sent_at": rfc3339(int(message["Attributes"]["SentTimestamp"])),
    }
