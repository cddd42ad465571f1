"""The queues to the notifiers, one for each lane: send, hide and delete messages."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.wheel.queue_messages import Message, encode

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef

_VISIBILITY_SECONDS_MAX = 43_200
_MESSAGES_PER_BATCH = 10
# A message that a notifier works on, or that waits for one, is not visible.
_WAITING: tuple["QueueAttributeNameType", ...] = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
)
M = TypeVar("M", bound=Message)


class Refused(Struct, frozen=True):
    """The receipts that SQS refused: `again` may be retried; those in `for_good` may not, since
    their messages are visible again or deleted."""

    again: frozenset[str] = frozenset()
    for_good: frozenset[str] = frozenset()


def at_once(_: Message) -> int:
    return 0


class SliceQueue(Struct, frozen=True):
    client: "SQSClient"
    url: str

    def reach(self) -> list[str]:
        self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        return [self.url]

    def send(self, messages: Iterable[M], delay_seconds: Callable[[M], int] = at_once) -> list[M]:
        """Send all messages, each with its delay; return those that SQS did not accept. If a
        request gets no answer, the rest is not tried: each further batch would wait as long."""
        waiting = list(messages)
        refused: list[M] = []
        for start in range(0, len(waiting), _MESSAGES_PER_BATCH):
            batch = waiting[start : start + _MESSAGES_PER_BATCH]
            failed = self._send(batch, delay_seconds)
            if failed is None:
                return [*refused, *waiting[start:]]
            refused.extend(failed)
        return refused

    def waiting(self) -> int | None:
        """About how many messages are in the queue, without delayed ones; None if unknown."""
        try:
            answer = self.client.get_queue_attributes(
                QueueUrl=self.url, AttributeNames=list(_WAITING)
            )
        except (ClientError, BotoCoreError) as error:
            logger.warning("queue not counted", action="queue-refused", error=str(error))
            return None
        return sum(int(answer["Attributes"][name]) for name in _WAITING)

    def hide(self, receipt_handle: str, seconds: int) -> None:
        """Let a message come back after `seconds`. If SQS refuses, it comes back after the
        visibility of its queue, which is longer than any run."""
        try:
            self.client.change_message_visibility(
                QueueUrl=self.url,
                ReceiptHandle=receipt_handle,
                VisibilityTimeout=min(max(0, seconds), _VISIBILITY_SECONDS_MAX),
            )
        except (ClientError, BotoCoreError) as error:
            logger.warning("message not hidden", action="hide-refused", error=str(error))

    def hide_all(self, receipt_handles: Sequence[str], seconds: int) -> Refused:
        """Hide up to ten messages in one request, counted from when SQS executes it."""
        entries: list[Any] = [
            {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for number, handle in enumerate(receipt_handles)
        ]
        try:
            answer = self.client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            logger.warning("messages not hidden", action="hide-refused", error=str(error))
            return Refused(again=frozenset(receipt_handles))
        failed = answer.get("Failed")
        if not failed:
            return Refused()
        logger.warning("messages not hidden", action="hide-refused", failed=failed)
        handles = {receipt_handles[int(one["Id"])]: _is_for_good(one) for one in failed}
        return Refused(
            frozenset(handle for handle, is_for_good in handles.items() if not is_for_good),
            frozenset(handle for handle, is_for_good in handles.items() if is_for_good),
        )

    def _send(self, batch: list[M], delay_seconds: Callable[[M], int]) -> list[M] | None:
        """The messages of the batch that were refused; None if there was no answer."""
        entries: list[Any] = [
            {
                "Id": str(number),
                "MessageBody": encode(message),
                "DelaySeconds": delay_seconds(message),
            }
            for number, message in enumerate(batch)
        ]
        try:
            answer = self.client.send_message_batch(QueueUrl=self.url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            logger.warning("queue refused", action="queue-refused", error=str(error))
            return None
        failed = answer.get("Failed", [])
        if failed:
            logger.warning("queue refused", action="queue-refused", failed=failed)
        return [batch[number] for number in sorted(int(entry["Id"]) for entry in failed)]


def _is_for_good(failed: "BatchResultErrorEntryTypeDef") -> bool:
    return failed["SenderFault"] and "Throttl" not in failed["Code"]
