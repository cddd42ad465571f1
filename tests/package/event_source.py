"""Simulates the event source mapping: receives, invokes, deletes messages that did not fail."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.package.events import slice_queue_batch


class EventSource:
    def __init__(self, sqs: Any, queue_url: str) -> None:
        self._sqs = sqs
        self._queue_url = queue_url

    def receive(self, wait_seconds: int = 0) -> list[Any]:
        answer = self._sqs.receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=wait_seconds,
            MessageSystemAttributeNames=["All"],
        )
        return list(answer.get("Messages", []))

    def deliver(self, messages: Sequence[Any], invoke: Callable[[Any], Any]) -> Any:
        answer = invoke(slice_queue_batch(messages))
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in messages:
            if message["MessageId"] not in failed:
                self._sqs.delete_message(
                    QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"]
                )
        return answer
