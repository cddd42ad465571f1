"""Publish to an SNS topic, standard or FIFO."""

import re
from typing import Any

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.message import (
    MEMBERS,
    OPTIONAL_MEMBERS,
    SOMETIMES_SHOWN,
    MessageCallback,
    message_members,
    message_request,
    outcome_of_message,
    shown_message,
)
from duewheel.rules.callbacks.aws.target import ARN, AwsTarget, matching
from duewheel.rules.callbacks.payload_encoding import TaskData, text_of
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


def _shown(callback: SnsCallback) -> dict[str, object]:
    return {"topic_arn": callback.topic_arn, **shown_message(callback)}


def _request(callback: SnsCallback, task: TaskData) -> dict[str, Any]:
    text = text_of(task.payload, is_raw=callback.is_raw)
    return {
        "TopicArn": callback.topic_arn,
        "Message": text,
        **message_request(callback, task),
    }


TARGET = AwsTarget(
    name="sns",
    callback=SnsCallback,
    members={"topic_arn": matching(ARN), **MEMBERS},
    optional=OPTIONAL_MEMBERS,
    sometimes_shown=SOMETIMES_SHOWN,
    read=_read,
    shown=_shown,
    service="sns",
    action="sns:Publish",
    parameter="TargetTopicArns",
    client="sns",
    operation="publish",
    request=_request,
    outcome=outcome_of_message,
)
