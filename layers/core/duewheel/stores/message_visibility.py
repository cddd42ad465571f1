"""When messages that are worked on, or were left, come back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef

_VISIBILITY_SECONDS_MAX = 43_200


class Refused(Struct, frozen=True):
    """The receipts that SQS did not take: those to be tried `again`, and those that it refuses for
    good, since their messages are hidden no more, or deleted."""

    again: frozenset[str] = frozenset()
    for_good: frozenset[str] = frozenset()


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


def hide_all(
    client: "SQSClient", url: str, receipt_handles: Sequence[str], seconds: int
) -> Refused:
    """Hide up to ten messages in one request, counted from when SQS carries it out."""
    entries: list[Any] = [
        {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
        for number, handle in enumerate(receipt_handles)
    ]
    try:
        answer = client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
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


def _is_for_good(failed: "BatchResultErrorEntryTypeDef") -> bool:
    return failed["SenderFault"] and "Throttl" not in failed["Code"]
