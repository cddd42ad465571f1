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
from duewheel.rules.callbacks.aws.target import ARN
from duewheel.rules.fields import invalid, joined_path, whole_text

_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo")


class SnsBody(MessageBody, kw_only=True):
    type: Literal["sns"] = "sns"
    topic_arn: Annotated[str, Meta(pattern=whole_text(ARN), description="a topic's ARN")]


class SnsCallback(MessageCallback, frozen=True, tag="sns"):
    topic_arn: str


def _read(body: SnsBody, allowed: AllowedTargets, path: str) -> SnsCallback:
    where = joined_path(path, "topic_arn")
    topic, arn = TARGET.named(body.topic_arn, where, allowed)
    if not _TOPIC.fullmatch(topic):
        raise invalid(where, "must be a topic's ARN.")
    TARGET.check_covered(arn, where, allowed)
    return SnsCallback(arn, **message_members(body, topic, path))


TARGET = message_target(
    body=SnsBody,
    callback=SnsCallback,
    address="topic_arn",
    address_as="TopicArn",
    text_as="Message",
    read=_read,
    service="sns",
    action="sns:Publish",
    parameter="TargetTopicArns",
    client="sns",
    operation="publish",
)
