"""When messages that are worked on, or were left, come back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from duewheel.log import logger

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

_VISIBILITY_SECONDS_MAX = 43_200


class NotHidden(Exception):
    """SQS did not take it for some or all."""


def hide(client: "SQSClient", url: str, receipt_handle: str, seconds: int) -> None:
    """Let a message come back after `seconds`. Should SQS refuse, it comes back after its queue's
    own visibility, which is longer than anybody may still be at work on it."""
    try:
        client.change_message_visibility(
            QueueUrl=url,
            ReceiptHandle=receipt_handle,
            VisibilityTimeout=min(max(0, seconds), _VISIBILITY_SECONDS_MAX),
        )
    except (ClientError, BotoCoreError) as error:
        logger.warning("message not hidden", action="hide-refused", error=str(error))


def hide_all(client: "SQSClient", url: str, receipt_handles: Sequence[str], seconds: int) -> None:
    """Hide up to ten messages in one request, counted from when SQS carries it out."""
    entries: list[Any] = [
        {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
        for number, handle in enumerate(receipt_handles)
    ]
    try:
        answer = client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    except (ClientError, BotoCoreError) as error:
        raise NotHidden(str(error)) from error
    if failed := answer.get("Failed"):
        raise NotHidden(str(failed))
