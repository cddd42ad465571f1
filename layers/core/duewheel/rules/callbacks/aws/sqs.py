"""Send a message to an SQS queue, standard or FIFO."""

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
from duewheel.rules.callbacks.aws.target import AwsTarget, check_not_own, check_region, matching
from duewheel.rules.callbacks.payload_encoding import TaskData, text_of
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


def _shown(callback: SqsCallback) -> dict[str, object]:
    return {"queue_url": callback.queue_url, **shown_message(callback)}


def _request(callback: SqsCallback, task: TaskData) -> dict[str, Any]:
    body = text_of(task.payload, is_raw=callback.is_raw)
    return {
        "QueueUrl": callback.queue_url,
        "MessageBody": body,
        **message_request(callback, task),
    }


TARGET = AwsTarget(
    name="sqs",
    callback=SqsCallback,
    members={"queue_url": matching(_QUEUE_URL), **MEMBERS},
    optional=OPTIONAL_MEMBERS,
    sometimes_shown=SOMETIMES_SHOWN,
    read=_read,
    shown=_shown,
    service="sqs",
    action="sqs:SendMessage",
    parameter="TargetQueueArns",
    client="sqs",
    operation="send_message",
    request=_request,
    outcome=outcome_of_message,
)
