"""Publish to an SNS topic, standard or FIFO."""

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
from duewheel.rules.fields import joined_path, whole_text

_ARN = re.compile(
    r"arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:(?:[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo)"
)


class SnsCallbackBody(MessageBody, kw_only=True, rename={"resource": "topic_arn"}):
    """To a topic."""

    type: Literal["sns"] = "sns"
    resource: Annotated[str, Meta(pattern=whole_text(_ARN), description="a topic's ARN")]


class SnsCallback(MessageCallback, frozen=True, tag="sns"):
    topic_arn: str

    @property
    def resource(self) -> str:
        return self.topic_arn.rpartition(":")[2]


def _read(body: SnsCallbackBody, allowed: AllowedTargets, path: str) -> SnsCallback:
    where = joined_path(path, "topic_arn")
    topic, arn = TARGET.named(body.resource, where, allowed)
    TARGET.check_covered(arn, where, allowed)
    return SnsCallback(arn, **message_members(body, topic, path))


TARGET = message_target(
    body=SnsCallbackBody,
    callback=SnsCallback,
    address="topic_arn",
    address_as="TopicArn",
    text_as="Message",
    read=_read,
    service="sns",
    action="sns:Publish",
    client="sns",
    operation="publish",
)
