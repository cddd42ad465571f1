"""Publish to an SNS topic, standard or FIFO."""

import re

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.message import MessageCallback, message_members, message_target
from duewheel.rules.callbacks.aws.target import ARN, matching
from duewheel.rules.fields import Fields

_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo")


class SnsCallback(MessageCallback, frozen=True, tag="sns"):
    topic_arn: str


def _read(fields: Fields, allowed: AllowedTargets) -> SnsCallback:
    topic, arn = TARGET.named(fields, "topic_arn", allowed)
    if arn != fields.text("topic_arn") or not _TOPIC.fullmatch(topic):
        raise fields.invalid("topic_arn", "is no topic's ARN.")
    TARGET.check_covered(fields, "topic_arn", arn, allowed)
    return SnsCallback(arn, **message_members(fields, topic))


TARGET = message_target(
    name="sns",
    callback=SnsCallback,
    address="topic_arn",
    schema=matching(ARN),
    address_as="TopicArn",
    text_as="Message",
    read=_read,
    service="sns",
    action="sns:Publish",
    parameter="TargetTopicArns",
    client="sns",
    operation="publish",
)
