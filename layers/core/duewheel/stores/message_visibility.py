"""When a message that was left comes back."""

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from duewheel.log import logger

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

_VISIBILITY_SECONDS_MAX = 43_200


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
