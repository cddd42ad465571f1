"""Send a message to an SQS queue, standard or FIFO."""

import re

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.message import MessageCallback, message_members, message_target
from duewheel.rules.callbacks.aws.target import check_not_own, check_region, matching
from duewheel.rules.fields import Fields

_QUEUE_URL = re.compile(
    r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([0-9]{12})"
    r"/([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)"
)


class SqsCallback(MessageCallback, frozen=True, tag="sqs"):
    queue_url: str


def _read(fields: Fields, allowed: AllowedTargets) -> SqsCallback:
    url = fields.text("queue_url")
    found = _QUEUE_URL.fullmatch(url)
    if found is None:
        raise fields.invalid(
            "queue_url", "must be like https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE."
        )
    region, account, queue = found[1], found[2], found[3]
    check_region(fields, "queue_url", region, allowed)
    arn = f"arn:{allowed.scope.partition}:sqs:{region}:{account}:{queue}"
    check_not_own(fields, "queue_url", arn, allowed)
    TARGET.check_covered(fields, "queue_url", arn, allowed)
    return SqsCallback(url, **message_members(fields, queue))


TARGET = message_target(
    name="sqs",
    callback=SqsCallback,
    address="queue_url",
    schema=matching(_QUEUE_URL),
    address_as="QueueUrl",
    text_as="MessageBody",
    read=_read,
    service="sqs",
    action="sqs:SendMessage",
    parameter="TargetQueueArns",
    client="sqs",
    operation="send_message",
)
