"""A timer as a resource of a CloudFormation template: the request, the definition, the answer.

CloudFormation writes every scalar of a template as a string. A string becomes a number or a
boolean exactly where the schema of the definition has one; all others stay strings. A request is
authenticated by nothing but the right to invoke the function: docs/security.md says for which
invokers its stack is the one that it names.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, ValidationError, convert
from msgspec.json import encode

from duewheel.rules.access.stacks import Stack, stack_of
from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.registry import BY_TYPE
from duewheel.rules.callbacks.requests import HttpCallbackBody
from duewheel.rules.fields import decode, inspect, invalid
from duewheel.rules.instants import rfc3339
from duewheel.rules.names import BIZ_TYPE, KEY, TIMER_ID
from duewheel.rules.refusals import Refusal
from duewheel.rules.timers.requests import NamedTimer, TimerByNameBody, named_timer
from duewheel.rules.timers.timer import Timer

ANSWER_BYTES_MAX = 4_096  # CloudFormation takes no more
REASON_CHARACTERS_MAX = 1_000
NOT_MADE = "not-made"  # the physical id of a resource whose creation was refused

# No other host gets an answer, whatever a request says.
_RESPONSE_URL = re.compile(
    r"https://(?P<host>(?:[a-z0-9-]+\.)+amazonaws\.com(?:\.cn)?)(?::443)?(?P<target>/[!-~]*)"
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_READABLE_MAX = 40  # characters of the names in an owner, which may be longer

_Text = Annotated[str, Meta(min_length=1, max_length=255)]
_Properties = dict[str, Any]


class NoStackRequest(ValueError):
    """The event is not one of CloudFormation, or has no address that may get the answer."""


class StackRequest(
    Struct,
    frozen=True,
    kw_only=True,
    rename={
        "kind": "RequestType",
        "response_url": "ResponseURL",
        "stack_id": "StackId",
        "request_id": "RequestId",
        "resource": "LogicalResourceId",
        "physical_id": "PhysicalResourceId",
        "properties": "ResourceProperties",
    },
):
    """`physical_id`: the id of the timer that an earlier answer gave. Empty for a create."""

    kind: Literal["Create", "Update", "Delete"]
    response_url: Annotated[str, Meta(max_length=8_192)]
    stack_id: _Text
    request_id: _Text
    resource: _Text
    physical_id: Annotated[str, Meta(max_length=1_024)] = ""
    properties: _Properties

    @property
    def stack(self) -> Stack:
        return stack_of(self.stack_id)

    @property
    def timer_id(self) -> str | None:
        """None if no timer of the resource is known."""
        return self.physical_id if TIMER_ID.fullmatch(self.physical_id) else None

    @property
    def host_and_target(self) -> tuple[str, str]:
        found = _RESPONSE_URL.fullmatch(self.response_url)
        assert found is not None  # checked by `stack_request`
        return found["host"], found["target"]


def stack_request(event: object) -> StackRequest:
    try:
        request = convert(event, StackRequest)
    except ValidationError as error:
        raise NoStackRequest(str(error)) from None
    if not _RESPONSE_URL.fullmatch(request.response_url):
        raise NoStackRequest("ResponseURL is no https URL of amazonaws.com")
    try:
        stack_of(request.stack_id)
    except ValueError as error:
        raise NoStackRequest(str(error)) from None
    return request


# Who has a timer


def handed_over(request: StackRequest) -> str:
    """The `managed_by` by which a timer is handed over to the resource."""
    stack, resource = request.stack.name[:_READABLE_MAX], request.resource[:_READABLE_MAX]
    return f"cloudformation:{stack}/{resource}"


def owner_of(request: StackRequest) -> str:
    """The `managed_by` of the resource's timer. A stack that is deleted and made again, and
    another resource of the stack, are other owners."""
    digest = sha256(f"{request.stack_id} {request.resource}".encode()).hexdigest()
    return f"{handed_over(request)}#{digest[:16]}"


def is_its_timer(request: StackRequest, timer: Timer) -> bool:
    """A timer that CloudFormation knows by its id may have lost its owner: a release that does not
    know `managed_by` drops it."""
    owner = timer.rules.managed_by
    if owner is None:
        return timer.timer_id == request.timer_id
    return owner == owner_of(request)


def check_taken(request: StackRequest, timer: Timer) -> None:
    """Raises for the timer of another owner: a stack that is rolled back would delete it."""
    handed = handed_over(request)
    if is_its_timer(request, timer) or timer.rules.managed_by == handed:
        return
    owner = timer.rules.managed_by
    reason = "has no owner" if owner is None else f"is managed by {owner}"
    raise invalid(
        "name",
        f"timer {timer.timer_id} has it, and {reason}. Delete that timer, or hand it over: set its "
        f"managed_by to {handed}.",
    )


# The definition


def definition(request: StackRequest, allowed: AllowedTargets) -> NamedTimer:
    """The body of `PUT /v1/timers/by-name/{biz_type}/{name}`, with these two beside it, and
    `payload_json`: the payload as JSON text, in which numbers are numbers."""
    members = {**request.properties}
    for name in ("ServiceToken", "ServiceTimeout"):
        members.pop(name, None)
    biz_type, name = (_text(members, one) for one in ("biz_type", "name"))
    if "managed_by" in members:
        raise invalid("managed_by", "is set by the stack. Leave it out.")
    body = _typed(members, TimerByNameBody)
    if "payload_json" in body:
        if "payload" in body:
            raise invalid("payload_json", "cannot be combined with payload.")
        body["payload"] = decode(_text(body, "payload_json"), Raw, "payload_json")
    body["managed_by"] = owner_of(request)
    return named_timer(encode(body).decode(), biz_type, name, allowed)


def name_in(request: StackRequest) -> tuple[str, str] | None:
    """Business and name, if a timer can have them."""
    biz_type, name = (request.properties.get(one) for one in ("biz_type", "name"))
    if not isinstance(biz_type, str) or not isinstance(name, str):
        return None
    return (biz_type, name) if BIZ_TYPE.fullmatch(biz_type) and KEY.fullmatch(name) else None


def _text(members: _Properties, name: str) -> str:
    if name not in members:
        raise invalid(name, "is missing.")
    if not isinstance(text := members.pop(name), str):
        raise invalid(name, "must be a string.")
    return text


def _typed(value: Any, kind: Any) -> Any:
    """The value with numbers and booleans where this type has them. What does not fit is left to
    be refused by its field."""
    return _converted(value, inspect().type_info(kind))


def _converted(value: Any, node: Any) -> Any:
    types = inspect()
    if isinstance(node, types.Metadata):
        return _converted(value, node.type)
    if isinstance(node, types.UnionType):
        found = [one for one in node.types if not isinstance(one, types.NoneType)]
        return _converted(value, found[0]) if len(found) == 1 else value
    match value:
        case str() if isinstance(node, types.IntType | types.FloatType):
            return Raw(value.encode()) if _NUMBER.fullmatch(value) else value
        case str() if isinstance(node, types.BoolType):
            return _BOOLEANS.get(value, value)
        case list() if isinstance(node, types.VarTupleType):
            return [_converted(one, node.item_type) for one in value]
        case dict() if isinstance(node, types.StructType):
            fields = {one.encode_name: one.type for one in node.fields}
            return {
                name: _converted(one, _type_of(name, fields[name], one)) if name in fields else one
                for name, one in value.items()
            }
    return value


def _type_of(name: str, node: Any, value: Any) -> Any:
    """Of a member. A callback is decoded by its `type`, so its schema is not in the Struct."""
    if name != "callback" or not isinstance(value, Mapping):
        return node
    kind = value.get("type")
    target = BY_TYPE.get(kind) if isinstance(kind, str) else None
    return inspect().type_info(HttpCallbackBody if target is None else target.body)


# The answer


class _Answer(Struct, kw_only=True, omit_defaults=True, rename="pascal"):
    status: str
    reason: str = ""
    physical_resource_id: str
    stack_id: str
    request_id: str
    logical_resource_id: str
    data: dict[str, str] = {}


def made(request: StackRequest, timer: Timer, next_second: int | None) -> bytes:
    """`Ref` of the resource is the timer's id, the rest is there by `Fn::GetAtt`."""
    data = {
        "timer_id": timer.timer_id,
        "biz_type": timer.biz_type,
        "name": timer.rules.name,
        "next_at": "" if next_second is None else rfc3339(next_second * 1000),
    }
    return encode(_answer(request, "SUCCESS", timer.timer_id, data=data))


def gone(request: StackRequest) -> bytes:
    return encode(_answer(request, "SUCCESS", request.physical_id or NOT_MADE))


def refused(request: StackRequest, refusal: Refusal) -> bytes:
    is_named = refusal.field is None or refusal.detail.startswith(refusal.field)
    field = "" if is_named else f", field {refusal.field}"
    return failed(request, f"{refusal.detail} ({refusal.type}{field})")


def failed(request: StackRequest, reason: str) -> bytes:
    """A reason that would make the answer too large is cut."""
    reason = reason[:REASON_CHARACTERS_MAX]
    while True:
        physical_id = request.physical_id or NOT_MADE
        answer = encode(_answer(request, "FAILED", physical_id, reason=reason))
        if len(answer) <= ANSWER_BYTES_MAX or not reason:
            return answer
        reason = reason[:-50]


def _answer(request: StackRequest, status: str, physical_id: str, **more: Any) -> _Answer:
    return _Answer(
        status=status,
        physical_resource_id=physical_id,
        stack_id=request.stack_id,
        request_id=request.request_id,
        logical_resource_id=request.resource,
        **more,
    )
