"""HTTP: a request as API Gateway sends it (HTTP API, payload format 2.0), the call that its method
and path select, with its line in the access log, and the answer.

The table of calls is our own: the resolver of aws-lambda-powertools keeps its event in a class
attribute, so two threads, as in the local stack, would answer each other's requests.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Self

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import replace

from duewheel.rules.access.grants import ALL, ANONYMOUS, Access, Permit, Right
from duewheel.rules.callbacks.payload_encoding import ATTEMPT, TOKEN_HEADER
from duewheel.rules.names import checked_biz_type
from duewheel.rules.preconditions import IF_MATCH, IF_NONE_MATCH, Precondition, precondition
from duewheel.rules.refusals import (
    CallbackRefused,
    MalformedBody,
    MethodNotAllowed,
    NotPermitted,
    Refusal,
    TooLarge,
    UnknownCall,
)
from duewheel.rules.tasks.idempotency import HEADER, IdempotentRequest, idempotent_request

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
    authorizer: Mapping[str, Any] = field(default_factory=dict)  # who calls, by API Gateway
    access: Access = ANONYMOUS
    permit: Permit = Permit(ANONYMOUS, Right.READ)  # the right that the call needs
    idempotency_key: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    completion_token: str | None = None
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
            completion_token=_header(event, TOKEN_HEADER),
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

    def once(self, body: str) -> IdempotentRequest | None:
        """Of a call that makes one thing: the parts by which repeats are recognised, if the request
        has an idempotency key."""
        if self.idempotency_key is None:
            return None
        return idempotent_request(
            self.caller, self.idempotency_key, self.path, body, is_single=True
        )

    def text(self, bytes_max: int) -> str:
        """The required body. It is parsed only for callers who may make the call on some business:
        parsing costs CPU."""
        self.permit.check_anywhere()
        if not self.body:
            raise MalformedBody("The body is missing; this call takes a JSON object.")
        return self._decoded(self.body, bytes_max)

    def optional_text(self, bytes_max: int) -> str | None:
        """None without a body."""
        return self.text(bytes_max) if self.body else None

    def text_by_token(self, bytes_max: int) -> str | None:
        """The body of a call whose token has been checked; None without one."""
        return self._decoded(self.body, bytes_max) if self.body else None

    def _decoded(self, body: str, bytes_max: int) -> str:
        try:
            raw = b64decode(body, validate=True) if self.is_base64 else body.encode()
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
    """A problem may repeat words of the caller. In ASCII a lone surrogate can always be encoded."""
    return json.dumps(members, separators=(",", ":"))


def encoded(view: Struct) -> str:
    return encode(view).decode()


def json_answer(view: Struct) -> Answer:
    return Answer(200, encoded(view))


Carry = Callable[..., Answer]  # takes the request, and the values of its path's placeholders

_BUSINESS = "biz_type"  # the placeholder
_LOGGED_CHARACTERS = 128  # the maximum of a key


class Call(Struct, frozen=True):
    """`right`: the right that the caller needs on the business. A business in the path is checked
    here; one that is named elsewhere is checked by the call, with the permit of its request."""

    right: Right
    carry: Carry
    # The rest is for the API document. Refusals: those that do not follow from the fields of the
    # call.
    answer: type[Struct] | None = None
    refusals: tuple[type[Refusal], ...] = ()
    statuses: tuple[int, ...] = (200,)
    query: type[Struct] | None = None
    body: type[Struct] | None = None
    needs_body: bool = True
    takes: tuple[str, ...] = ()  # headers
    gives: tuple[str, ...] = ()  # headers of the answer
    on_all: bool = False  # businesses, not on one
    on_none: bool = False  # it is about no business, and changes nothing: any right will do
    by_token: bool = False  # its completion token permits it, and no caller is identified


Shown = type[Struct] | None


def reads(carry: Carry, answer: Shown = None, *refusals: type[Refusal], **more: Any) -> Call:
    return Call(right=Right.READ, carry=carry, answer=answer, refusals=refusals, **more)


def writes(carry: Carry, answer: Shown = None, *refusals: type[Refusal], **more: Any) -> Call:
    return Call(right=Right.WRITE, carry=carry, answer=answer, refusals=refusals, **more)


def administers(carry: Carry, answer: Shown = None, *refusals: type[Refusal], **more: Any) -> Call:
    return Call(right=Right.ADMIN, carry=carry, answer=answer, refusals=refusals, **more)


def reads_all(carry: Carry, answer: Shown = None, **more: Any) -> Call:
    return reads(carry, answer, on_all=True, **more)


def by_token(carry: Carry, answer: Shown = None, *refusals: type[Refusal], **more: Any) -> Call:
    return Call(
        right=Right.WRITE, carry=carry, answer=answer, refusals=refusals, by_token=True, **more
    )


def for_all_callers(carry: Carry, answer: Shown = None, **more: Any) -> Call:
    return reads(carry, answer, on_none=True, **more)


class Matched(Struct, frozen=True):
    """A call, its path template, and the values of the placeholders."""

    call: Call
    path: str
    arguments: Mapping[str, str]

    def answer(self, request: Request) -> Answer:
        if request.is_callback and request.method != "GET":
            raise CallbackRefused(f"The request is a task's callback: it carries {ATTEMPT}.")
        if self.call.by_token:
            return self.call.carry(request, **self.arguments)
        permit = Permit(request.access, self.call.right)
        if not permit.access.grants:
            raise NotPermitted("The caller is not known, or nothing is granted to them.")
        if self.call.on_all:
            permit.check(ALL)
        if _BUSINESS in self.arguments:
            permit.check(checked_biz_type(self.arguments[_BUSINESS]))
        return self.call.carry(replace(request, permit=permit), **self.arguments)

    def access_log_line(self, request: Request, answer: Answer) -> dict[str, Any] | None:
        """One line for each call that may change something, also if it is refused. It holds
        nothing of a body, a header or a payload. None for a call that only reads, and for an
        unknown one.
        """
        if request.method == "GET" or self.call.on_none:
            return None
        arguments = {name: text[:_LOGGED_CHARACTERS] for name, text in self.arguments.items()}
        return {
            "action": "change",
            "by": "token" if self.call.by_token else request.caller,
            "call": f"{request.method} {self.path}",
            **arguments,
            **answer.log_fields,
            "status": answer.status,
        }


class Calls(Struct, frozen=True):
    """By path template (`/v1/tasks/{task_id}`) and method. The first path that matches counts."""

    by_path: Mapping[str, Mapping[str, Call]]

    def match_route(self, request: Request) -> Matched:
        """Always returns one: an unknown call is refused when it is made."""
        for path, by_method in self.by_path.items():
            arguments = _match(path, request.path)
            if arguments is None:
                continue
            if request.method not in by_method:
                return _refused(MethodNotAllowed(by_method))
            return Matched(by_method[request.method], path, arguments)
        return _refused(UnknownCall(f"{request.method} {request.path} is no call of this service."))


def _refused(refusal: Exception) -> Matched:
    def refuse(_: Request) -> NoReturn:
        raise refusal

    return Matched(for_all_callers(refuse), "", {})


def _match(pattern: str, path: str) -> dict[str, str] | None:
    expected, given = pattern.split("/"), path.split("/")
    if len(expected) != len(given):
        return None
    arguments = {}
    for part, text in zip(expected, given, strict=True):
        if part.startswith("{") and text:
            arguments[part.strip("{}")] = text
        elif part != text:
            return None
    return arguments
