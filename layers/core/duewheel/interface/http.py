"""A request as API Gateway hands it over (HTTP API, payload format 2.0), and the answer to it."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct, field
from msgspec.json import encode

from duewheel.rules.access.grants import ANONYMOUS, Access, Permit, Right
from duewheel.rules.callbacks.payload_encoding import ATTEMPT
from duewheel.rules.preconditions import IF_MATCH, IF_NONE_MATCH, Precondition, precondition
from duewheel.rules.refusals import MalformedBody, TooLarge
from duewheel.rules.tasks.idempotency import HEADER

CONSOLE_PATH = "/console"
JSON = "application/json"

# What Lambda returns has at most 6 MB and carries the body as a JSON string, in which one byte
# may become six. Above this size it travels as base64, whose size depends on nothing else.
_TEXT_BYTES_MAX = 1_000_000


class Request(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    request_id: str
    body: str | None = None
    is_base64: bool = False
    query: str = ""  # as it was sent, still encoded
    authorizer: Mapping[str, Any] = field(default_factory=dict)  # what API Gateway says of them
    access: Access = ANONYMOUS
    permit: Permit = Permit(ANONYMOUS, Right.READ)  # what the call that is meant needs
    idempotency_key: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    is_callback: bool = False  # made by a deployment of this service, for a task

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        context = event["requestContext"]
        return cls(
            method=context["http"]["method"],
            path=event["rawPath"],
            request_id=context["requestId"],
            body=event.get("body"),
            is_base64=event.get("isBase64Encoded", False),
            query=event.get("rawQueryString", ""),
            authorizer=context.get("authorizer") or {},
            idempotency_key=_header(event, HEADER),
            if_match=_header(event, IF_MATCH),
            if_none_match=_header(event, IF_NONE_MATCH),
            is_callback=_header(event, ATTEMPT) is not None,
        )

    @property
    def caller(self) -> str:
        return self.access.caller

    @property
    def is_for_console(self) -> bool:
        is_below = self.path == CONSOLE_PATH or self.path.startswith(f"{CONSOLE_PATH}/")
        return self.method == "GET" and is_below

    @property
    def precondition(self) -> Precondition:
        return precondition(self.if_match, self.if_none_match)

    def text(self, bytes_max: int) -> str:
        """The body, which this call needs. It is parsed only for callers who may make the call on
        some business: parsing costs CPU."""
        self.permit.check_anywhere()
        if not self.body:
            raise MalformedBody("The body is missing; this call takes a JSON object.")
        try:
            raw = b64decode(self.body, validate=True) if self.is_base64 else self.body.encode()
            text = raw.decode()
        except ValueError as error:  # of base64 and of UTF-8 alike
            raise MalformedBody("The body is not UTF-8 text.") from error
        if len(raw) > bytes_max:
            raise TooLarge(f"The body has {len(raw)} bytes; this call takes at most {bytes_max}.")
        return text


def _header(event: Mapping[str, Any], name: str) -> str | None:
    """API Gateway writes names in lower case; a direct invocation may not."""
    for given, value in (event.get("headers") or {}).items():
        if given.lower() == name:
            return str(value)
    return None


class Answer(Struct, frozen=True):
    status: int
    text: str
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    log_fields: Mapping[str, object] = field(default_factory=dict)  # ids, no more

    def event(self) -> dict[str, Any]:
        raw = self.text.encode()
        is_base64 = len(raw) > _TEXT_BYTES_MAX
        return {
            "statusCode": self.status,
            "headers": {"content-type": self.content_type, **self.headers},
            "body": b64encode(raw).decode() if is_base64 else self.text,
            "isBase64Encoded": is_base64,
        }


def compact(members: Mapping[str, object]) -> str:
    """Of a problem, which repeats words of the caller: in ASCII no lone surrogate can stop it."""
    return json.dumps(members, separators=(",", ":"))


def encoded(view: Struct) -> str:
    return encode(view).decode()


def json_answer(view: Struct) -> Answer:
    return Answer(200, encoded(view))
