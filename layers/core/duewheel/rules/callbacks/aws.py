"""The callbacks of types `lambda`, `sqs`, `sns` and `eventbridge`, checked before they are stored.

Each names one resource, in the deployment's own Region, where its clients are. What passes here
is of the form that AWS takes, and is covered by the rights of the notifier.
"""

import re

from duewheel.rules.callbacks.allowed_targets import AllowedTargets, is_covered
from duewheel.rules.callbacks.function_names import function_name, is_plain
from duewheel.rules.callbacks.types import (
    EventBridgeCallback,
    LambdaCallback,
    SnsCallback,
    SqsCallback,
)
from duewheel.rules.fields import Fields, invalid
from duewheel.rules.refusals import TargetNotEnabled, TooLarge

# SQS and SNS take the characters of XML. Said by what they do not take: the few compile in a tenth
# of the time, which every cold start pays.
NOT_IN_A_MESSAGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


ATTRIBUTES_MAX = 6  # SQS takes ten; the delivery's own four come on top
ATTRIBUTES_BYTES_MAX = 4_096
SOURCE_CHARACTERS_MAX = 256
DETAIL_TYPE_CHARACTERS_MAX = 128
INVOCATIONS = ("sync", "async")  # the first is what it is when nothing is said

_ARN = re.compile(r"arn:([a-z-]+):([a-z]+):([a-z0-9-]+):([0-9]{12}):(.+)")
_QUEUE_URL = re.compile(
    r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([0-9]{12})"
    r"/([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)"
)
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo")
_EVENT_BUS = re.compile(r"[A-Za-z0-9._/-]{1,256}")
_GROUP_ID = re.compile(r"[!-~]{1,128}")
_ATTRIBUTE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_ATTRIBUTE_LENGTH_MAX = 128
_RESERVED_ATTRIBUTES = ("aws.", "amazon.", "duewheel-")


def lambda_callback(fields: Fields, allowed: AllowedTargets) -> LambdaCallback:
    _check_enabled(fields, allowed.function_arns, "TargetFunctionArns")
    fields.refuse_unknown(("type", "function", "invocation"))
    text = fields.text("function")
    named = function_name(text, allowed.scope)
    if named is None or named.partition != allowed.scope.partition:
        raise fields.invalid("function", "is no function's name or ARN, with or without an alias.")
    _check_region(fields, "function", named.region, allowed)
    _check_not_own(fields, "function", named.function_arn, allowed)
    _check_covered(fields, "function", named.arn, allowed.function_arns, "TargetFunctionArns")
    invocation = fields.text("invocation") if "invocation" in fields else INVOCATIONS[0]
    if invocation not in INVOCATIONS:
        raise fields.invalid("invocation", f"must be one of {', '.join(INVOCATIONS)}.")
    # A part of an ARN could be read otherwise than here.
    return LambdaCallback(text if is_plain(text) else named.arn, invocation == "sync")


def sqs_callback(fields: Fields, allowed: AllowedTargets, *, is_raw: bool) -> SqsCallback:
    _check_enabled(fields, allowed.queue_arns, "TargetQueueArns")
    fields.refuse_unknown(("type", "queue_url", "group_id", "attributes", "body"))
    url = fields.text("queue_url")
    found = _QUEUE_URL.fullmatch(url)
    if found is None:
        raise fields.invalid(
            "queue_url", "must be like https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE."
        )
    region, account, queue = found[1], found[2], found[3]
    _check_region(fields, "queue_url", region, allowed)
    arn = f"arn:{allowed.scope.partition}:sqs:{region}:{account}:{queue}"
    _check_not_own(fields, "queue_url", arn, allowed)
    _check_covered(fields, "queue_url", arn, allowed.queue_arns, "TargetQueueArns")
    return SqsCallback(url, _group_id(fields, queue), _attributes_of(fields), is_raw)


def sns_callback(fields: Fields, allowed: AllowedTargets, *, is_raw: bool) -> SnsCallback:
    _check_enabled(fields, allowed.topic_arns, "TargetTopicArns")
    fields.refuse_unknown(("type", "topic_arn", "group_id", "attributes", "body"))
    topic, arn = _named(fields, "topic_arn", "sns", "", allowed)
    if arn != fields.text("topic_arn") or not _TOPIC.fullmatch(topic):
        raise fields.invalid("topic_arn", "is no topic's ARN.")
    _check_covered(fields, "topic_arn", arn, allowed.topic_arns, "TargetTopicArns")
    return SnsCallback(arn, _group_id(fields, topic), _attributes_of(fields), is_raw)


def eventbridge_callback(fields: Fields, allowed: AllowedTargets) -> EventBridgeCallback:
    _check_enabled(fields, allowed.event_bus_arns, "TargetEventBusArns")
    fields.refuse_unknown(("type", "event_bus", "source", "detail_type"))
    name, arn = _named(fields, "event_bus", "events", "event-bus/", allowed)
    if not _EVENT_BUS.fullmatch(name):
        raise fields.invalid("event_bus", "is no event bus's name or ARN.")
    _check_covered(fields, "event_bus", arn, allowed.event_bus_arns, "TargetEventBusArns")
    source = _line(fields, "source", SOURCE_CHARACTERS_MAX)
    if source.lower().startswith("aws."):
        raise fields.invalid("source", "begins with aws., which is for AWS's own events.")
    detail_type = _line(fields, "detail_type", DETAIL_TYPE_CHARACTERS_MAX)
    return EventBridgeCallback(fields.text("event_bus"), source, detail_type)


def _named(
    fields: Fields, field: str, service: str, kind: str, allowed: AllowedTargets
) -> tuple[str, str]:
    """Name and ARN of what is given by either. A name alone is one of this account."""
    text = fields.text(field)
    if not text.startswith("arn:"):
        return text, allowed.scope.arn(service, f"{kind}{text}")
    found = _ARN.fullmatch(text)
    is_known = found and (found[1], found[2]) == (allowed.scope.partition, service)
    if not found or not is_known or not found[5].startswith(kind):
        raise fields.invalid(field, f"is no ARN like {allowed.scope.arn(service, f'{kind}NAME')}.")
    _check_region(fields, field, found[3], allowed)
    return found[5].removeprefix(kind), text


def _check_region(fields: Fields, name: str, region: str, allowed: AllowedTargets) -> None:
    if region != allowed.scope.region:
        raise fields.invalid(name, f"must be in {allowed.scope.region}, as this deployment is.")


def _check_enabled(fields: Fields, patterns: tuple[str, ...], parameter: str) -> None:
    if not patterns:
        raise TargetNotEnabled(
            f"{fields.where('type')}: this deployment does not deliver to {fields.text('type')}. "
            f"Its template parameter {parameter} names no resource.",
            fields.where("type"),
        )


def _check_not_own(fields: Fields, name: str, arn: str, allowed: AllowedTargets) -> None:
    """The notifier has rights on these for its own work, so no policy would stop it."""
    if allowed.is_own(arn):
        raise TargetNotEnabled(
            f"{fields.where(name)}: {arn} is this deployment's own, to which no task is delivered.",
            fields.where(name),
        )


def _check_covered(
    fields: Fields, name: str, arn: str, patterns: tuple[str, ...], parameter: str
) -> None:
    if not is_covered(arn, patterns):
        raise TargetNotEnabled(
            f"{fields.where(name)}: this deployment may not deliver to {arn}. "
            f"Its template parameter {parameter} does not cover it.",
            fields.where(name),
        )


def _group_id(fields: Fields, resource: str) -> str | None:
    if not resource.endswith(".fifo"):
        if "group_id" in fields:
            raise fields.invalid("group_id", "is for FIFO queues and topics, which end in .fifo.")
        return None
    group_id = fields.text("group_id")
    if not _GROUP_ID.fullmatch(group_id):
        raise fields.invalid("group_id", "must be 1 to 128 characters of visible ASCII.")
    return group_id


def _attributes_of(fields: Fields) -> tuple[tuple[str, str], ...]:
    if "attributes" not in fields:
        return ()
    nested = fields.nested("attributes")
    if len(nested.members) > ATTRIBUTES_MAX:
        raise invalid(nested.path, f"must have at most {ATTRIBUTES_MAX} attributes.")
    attributes = tuple((_attribute_name(nested, name), _text(nested, name)) for name in nested)
    if sum(len(name) + len(value.encode()) for name, value in attributes) > ATTRIBUTES_BYTES_MAX:
        message = f"The attributes are larger than {ATTRIBUTES_BYTES_MAX:,} bytes."
        raise TooLarge(message, nested.path)
    return attributes


def _attribute_name(fields: Fields, name: str) -> str:
    if len(name) > _ATTRIBUTE_LENGTH_MAX or not _ATTRIBUTE.fullmatch(name):
        raise fields.invalid(name, "is no name that a message attribute can have.")
    if name.lower().startswith(_RESERVED_ATTRIBUTES):
        raise fields.invalid(name, "begins like those of AWS or of the delivery itself.")
    return name


def _line(fields: Fields, name: str, length_max: int) -> str:
    text = _text(fields, name)
    if len(text) > length_max or not text.isprintable():
        raise fields.invalid(name, f"must be 1 to {length_max} printable characters.")
    return text


def _text(fields: Fields, name: str) -> str:
    text = fields.text(name)
    if not text or NOT_IN_A_MESSAGE.search(text):
        raise fields.invalid(name, "is empty, or has a character that no message may hold.")
    return text
