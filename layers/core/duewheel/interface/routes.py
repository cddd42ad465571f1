"""Routes: the call of a method and a path, its line in the access log; the API document.

A table of its own, since the resolver of the library keeps its event in a class attribute: two
threads, as in the local stack, would answer each other's requests. The document (OpenAPI) is a
file, read on request.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from duewheel.interface.http import Answer, Request
from duewheel.rules.access.grants import ALL, Permit, Right
from duewheel.rules.callbacks.payload_encoding import ATTEMPT
from duewheel.rules.names import checked_biz_type
from duewheel.rules.refusals import (
    CallbackRefused,
    MethodNotAllowed,
    NotPermitted,
    Refusal,
    UnknownCall,
)

Carry = Callable[..., Answer]  # takes the request, and the values of its path's placeholders

_BUSINESS = "biz_type"  # the placeholder
_LOGGED_CHARACTERS = 128  # as many as a key may have: what is longer is none


class Call(Struct, frozen=True):
    """`right`: the right that the caller needs on the business. A business in the path is checked
    here; one that is named elsewhere is checked by the call, with the permit of its request."""

    right: Right
    carry: Carry
    # The rest is for the API document. Refusals: beside those that follow from what it takes.
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


Shown = type[Struct] | None


def reads(carry: Carry, answer: Shown = None, *refusals: type[Refusal], **more: Any) -> Call:
    return Call(right=Right.READ, carry=carry, answer=answer, refusals=refusals, **more)


def writes(carry: Carry, answer: Shown = None, *refusals: type[Refusal], **more: Any) -> Call:
    return Call(right=Right.WRITE, carry=carry, answer=answer, refusals=refusals, **more)


def administers(carry: Carry, answer: Shown = None, *refusals: type[Refusal], **more: Any) -> Call:
    return Call(right=Right.ADMIN, carry=carry, answer=answer, refusals=refusals, **more)


def reads_all(carry: Carry, answer: Shown = None, **more: Any) -> Call:
    return reads(carry, answer, on_all=True, **more)


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
        permit = Permit(request.access, self.call.right)
        if not permit.access.grants:
            raise NotPermitted("The caller is not known, or nothing is granted to them.")
        if self.call.on_all:
            permit.check(ALL)
        if _BUSINESS in self.arguments:
            permit.check(checked_biz_type(self.arguments[_BUSINESS]))
        return self.call.carry(replace(request, permit=permit), **self.arguments)

    def access_log_line(self, request: Request, answer: Answer) -> dict[str, Any] | None:
        """One line for each call that may change something, whatever its status. It holds nothing
        of a body, a header or a payload. None for a call that only reads, and for an unknown one.
        """
        if request.method == "GET" or self.call.on_none:
            return None
        arguments = {name: text[:_LOGGED_CHARACTERS] for name, text in self.arguments.items()}
        return {
            "action": "change",
            "by": request.caller,
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


FILE = Path(__file__).with_name("openapi.json")


def api_document() -> Answer:
    return Answer(200, FILE.read_text("utf-8"))
