"""The parts that a message to a queue and one to a topic share."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from duewheel.rules.callbacks.aws.target import (
    MESSAGE_TEXT,
    AwsTarget,
    message_text,
    status_of,
)
from duewheel.rules.callbacks.completion import WithinSeconds
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import (
    BodyMode,
    TaskData,
    attributes_of,
    deduplication_id,
    text_of,
)
from duewheel.rules.callbacks.timeouts import TimeoutSeconds
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import (
    RequestBody,
    given,
    invalid,
    joined_path,
    says,
    texts_of,
    whole_text,
)
from duewheel.rules.refusals import TooLarge

# SQS takes ten; the delivery's own four come on top, and one more with a completion token.
ATTRIBUTES_MAX = 6
ATTRIBUTES_BYTES_MAX = 4_096

_GROUP_ID = re.compile(r"[!-~]{1,128}")
_ATTRIBUTE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_ATTRIBUTE_LENGTH_MAX = 128
_RESERVED = re.compile(
    r"^(?:[aA][wW][sS]\.|[aA][mM][aA][zZ][oO][nN]\.|[dD][uU][eE][wW][hH][eE][eE][lL]-)"
)

_Attributes = Annotated[
    dict[
        Annotated[
            str,
            Meta(
                extra_json_schema={
                    "pattern": whole_text(_ATTRIBUTE),
                    "maxLength": _ATTRIBUTE_LENGTH_MAX,
                    "not": {"pattern": _RESERVED.pattern},
                }
            ),
        ],
        Annotated[Any, Meta(extra_json_schema=MESSAGE_TEXT)],
    ],
    says(f"At most {ATTRIBUTES_BYTES_MAX:,} bytes.", maxProperties=ATTRIBUTES_MAX),
]


class MessageBody(RequestBody, kw_only=True):
    """Each target declares these two, and the member that names its resource."""

    type: str
    resource: str
    group_id: (
        Annotated[
            str,
            Meta(
                pattern=whole_text(_GROUP_ID),
                description="1 to 128 characters of visible ASCII: needed for FIFO queues and "
                "topics, and for no other",
            ),
        ]
        | UnsetType
    ) = UNSET
    attributes: _Attributes | UnsetType = UNSET
    body: BodyMode | UnsetType = UNSET
    complete_within_seconds: WithinSeconds | UnsetType = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType = UNSET


class MessageCallback(
    AwsCallback,
    frozen=True,
    kw_only=True,
    rename={
        "group_id": "group",
        "is_raw": "raw",
        "queue_url": "queue",
        "topic_arn": "topic",
        "complete_within_seconds": "within",
    },
):
    """`group_id` is there for a FIFO queue or topic, and for no other."""

    group_id: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    is_raw: bool = False
    complete_within_seconds: int | None = None


def message_members(body: MessageBody, resource: str, path: str) -> dict[str, Any]:
    """Of a callback to this queue or topic."""
    within = given(body.complete_within_seconds, None)
    attributes = _attributes(given(body.attributes, {}), joined_path(path, "attributes"))
    if within is not None and len(attributes) == ATTRIBUTES_MAX:
        most = f"must have at most {ATTRIBUTES_MAX - 1} attributes beside complete_within_seconds."
        raise invalid(joined_path(path, "attributes"), most)
    return {
        "group_id": _group_id(body, resource, joined_path(path, "group_id")),
        "attributes": attributes,
        "is_raw": body.body == "raw",
        "complete_within_seconds": within,
    }


def message_target(*, address: str, address_as: str, text_as: str, **declared: Any) -> AwsTarget:
    """`address`: the member of a callback that names its queue or topic. `address_as` and
    `text_as`: its name and that of the text in the request to AWS. The rest as for any
    target."""

    def members(callback: MessageCallback) -> dict[str, Any]:
        """`body` and `complete_within_seconds` are shown only if they were requested."""
        within = callback.complete_within_seconds
        return {
            "resource": getattr(callback, address),
            "group_id": UNSET if callback.group_id is None else callback.group_id,
            "attributes": dict(callback.attributes),
            "body": "raw" if callback.is_raw else UNSET,
            "complete_within_seconds": UNSET if within is None else within,
        }

    def request(callback: MessageCallback, task: TaskData) -> dict[str, Any]:
        return {
            address_as: getattr(callback, address),
            text_as: text_of(task.payload, is_raw=callback.is_raw),
            **_request(callback, task),
        }

    return AwsTarget(members=members, request=request, outcome=_outcome, **declared)


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
        said = [callback.group_id, callback.attributes, callback.is_raw]
        if callback.complete_within_seconds is not None:  # a later attempt is no repeat
            said.append(task.attempts)
        members["MessageDeduplicationId"] = deduplication_id(task, said)
    return members


def _outcome(answer: Mapping[str, Any], now_ms: int) -> Outcome:
    return Outcome(
        Verdict.DELIVERED, f"message {answer['MessageId']}", status_code=status_of(answer)
    )


def _group_id(body: MessageBody, resource: str, where: str) -> str | None:
    group_id = given(body.group_id, None)
    if not resource.endswith(".fifo") and group_id is not None:
        raise invalid(where, "is for FIFO queues and topics, which end in .fifo.")
    if resource.endswith(".fifo") and group_id is None:
        raise invalid(where, "is missing.")
    return group_id


def _attributes(members: Mapping[str, object], path: str) -> tuple[tuple[str, str], ...]:
    if len(members) > ATTRIBUTES_MAX:
        raise invalid(path, f"must have at most {ATTRIBUTES_MAX} attributes.")
    attributes = texts_of(members, path)
    for name, value in attributes:
        where = joined_path(path, name)
        _check_name(name, where)
        message_text(value, where)
    if sum(len(name) + len(value.encode()) for name, value in attributes) > ATTRIBUTES_BYTES_MAX:
        raise TooLarge(f"The attributes are larger than {ATTRIBUTES_BYTES_MAX:,} bytes.", path)
    return tuple(attributes)


def _check_name(name: str, where: str) -> None:
    if len(name) > _ATTRIBUTE_LENGTH_MAX or not _ATTRIBUTE.fullmatch(name):
        raise invalid(where, "is no name that a message attribute can have.")
    if _RESERVED.search(name):
        raise invalid(where, "begins like those of AWS or of the delivery itself.")
