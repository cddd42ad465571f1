"""The parts that a message to a queue and one to a topic share."""

import re
from collections.abc import Mapping
from typing import Any

from duewheel.rules.callbacks.aws.target import (
    AwsTarget,
    Schema,
    choice,
    matching,
    message_text,
    status_of,
)
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import (
    BODIES,
    TaskData,
    attributes_of,
    deduplication_id,
    is_raw,
    text_of,
)
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import Fields, invalid
from duewheel.rules.refusals import TooLarge

ATTRIBUTES_MAX = 6  # SQS takes ten; the delivery's own four come on top
ATTRIBUTES_BYTES_MAX = 4_096

_GROUP_ID = re.compile(r"[!-~]{1,128}")
_ATTRIBUTE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_ATTRIBUTE_LENGTH_MAX = 128
_RESERVED_ATTRIBUTES = ("aws.", "amazon.", "duewheel-")

_MEMBERS: Mapping[str, Schema] = {
    "group_id": {
        **matching(_GROUP_ID),
        "description": "Needed for FIFO queues and topics, and for no other.",
    },
    "attributes": {
        "type": "object",
        "additionalProperties": {"type": "string", "minLength": 1},
        "propertyNames": matching(_ATTRIBUTE),
        "maxProperties": ATTRIBUTES_MAX,
    },
    "body": choice(BODIES),
}


class MessageCallback(
    AwsCallback,
    frozen=True,
    kw_only=True,
    rename={"group_id": "group", "is_raw": "raw", "queue_url": "queue", "topic_arn": "topic"},
):
    """`group_id` is there for a FIFO queue or topic, and for no other."""

    group_id: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    is_raw: bool = False


def message_members(fields: Fields, resource: str) -> dict[str, Any]:
    """Of a callback to this queue or topic."""
    return {
        "group_id": _group_id(fields, resource),
        "attributes": _attributes(fields),
        "is_raw": is_raw(fields),
    }


def message_target(
    *, address: str, schema: Schema, address_as: str, text_as: str, **declared: Any
) -> AwsTarget:
    """`address`: the member that names the queue or topic. In the request to AWS it and the text
    are called `address_as` and `text_as`. All else is declared as for any target."""

    def shown(callback: MessageCallback) -> dict[str, object]:
        return {address: getattr(callback, address), **_shown(callback)}

    def request(callback: MessageCallback, task: TaskData) -> dict[str, Any]:
        text = text_of(task.payload, is_raw=callback.is_raw)
        return {address_as: getattr(callback, address), text_as: text, **_request(callback, task)}

    return AwsTarget(
        members={address: schema, **_MEMBERS},
        optional=("group_id", "attributes", "body"),
        sometimes_shown=("group_id", "body"),
        shown=shown,
        request=request,
        outcome=_outcome,
        **declared,
    )


def _shown(callback: MessageCallback) -> dict[str, object]:
    """`body` is shown only if it was requested."""
    return {
        **({} if callback.group_id is None else {"group_id": callback.group_id}),
        "attributes": dict(callback.attributes),
        **({"body": "raw"} if callback.is_raw else {}),
    }


def _request(callback: MessageCallback, task: TaskData) -> dict[str, Any]:
    """Its attributes, those of the delivery last; for a FIFO its group, and the id by which AWS
    drops repeats."""
    attributes = dict(callback.attributes) | attributes_of(task)
    members: dict[str, Any] = {
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
    }
    if callback.group_id is not None:
        members["MessageGroupId"] = callback.group_id
        parts = [callback.group_id, callback.attributes, callback.is_raw]
        members["MessageDeduplicationId"] = deduplication_id(task, parts)
    return members


def _outcome(answer: Mapping[str, Any], now_ms: int) -> Outcome:
    return Outcome(
        Verdict.DELIVERED, f"message {answer['MessageId']}", status_code=status_of(answer)
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


def _attributes(fields: Fields) -> tuple[tuple[str, str], ...]:
    if "attributes" not in fields:
        return ()
    nested = fields.nested("attributes")
    if len(nested.members) > ATTRIBUTES_MAX:
        raise invalid(nested.path, f"must have at most {ATTRIBUTES_MAX} attributes.")
    attributes = tuple((_checked_name(nested, name), message_text(nested, name)) for name in nested)
    if sum(len(name) + len(value.encode()) for name, value in attributes) > ATTRIBUTES_BYTES_MAX:
        message = f"The attributes are larger than {ATTRIBUTES_BYTES_MAX:,} bytes."
        raise TooLarge(message, nested.path)
    return attributes


def _checked_name(fields: Fields, name: str) -> str:
    if len(name) > _ATTRIBUTE_LENGTH_MAX or not _ATTRIBUTE.fullmatch(name):
        raise fields.invalid(name, "is no name that a message attribute can have.")
    if name.lower().startswith(_RESERVED_ATTRIBUTES):
        raise fields.invalid(name, "begins like those of AWS or of the delivery itself.")
    return name
