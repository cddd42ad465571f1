"""Send a message to an SQS queue, standard or FIFO."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.message import (
    MessageBody,
    MessageCallback,
    message_members,
    message_target,
)
from duewheel.rules.callbacks.aws.target import check_not_own, check_region
from duewheel.rules.fields import joined_path, whole_text

_QUEUE_URL = re.compile(
    r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([0-9]{12})"
    r"/([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)"
)


class SqsCallbackBody(MessageBody, kw_only=True, rename={"resource": "queue_url"}):
    """To a queue."""

    type: Literal["sqs"] = "sqs"
    resource: Annotated[
        str,
        Meta(
            pattern=whole_text(_QUEUE_URL),
            description="like https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE",
        ),
    ]


class SqsCallback(MessageCallback, frozen=True, tag="sqs"):
    queue_url: str

    @property
    def resource(self) -> str:
        return self.queue_url.rpartition("/")[2]


def _read(body: SqsCallbackBody, allowed: AllowedTargets, path: str) -> SqsCallback:
    where = joined_path(path, "queue_url")
    found = _QUEUE_URL.fullmatch(body.resource)
    assert found is not None  # by its pattern
    region, account, queue = found[1], found[2], found[3]
    check_region(region, where, allowed)
    arn = f"arn:{allowed.scope.partition}:sqs:{region}:{account}:{queue}"
    check_not_own(arn, where, allowed)
    TARGET.check_covered(arn, where, allowed)
    return SqsCallback(body.resource, **message_members(body, queue, path))


TARGET = message_target(
    body=SqsCallbackBody,
    callback=SqsCallback,
    address="queue_url",
    address_as="QueueUrl",
    text_as="MessageBody",
    read=_read,
    service="sqs",
    action="sqs:SendMessage",
    client="sqs",
    operation="send_message",
)
