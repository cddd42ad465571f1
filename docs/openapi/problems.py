"""The schema of all problem documents, and which of them a call may answer.

What a call has of its own stands in its table; what follows from its having a body, parameters or
placeholders is added here.
"""

import json
from collections.abc import Collection, Iterator

from docs.openapi.schemas import Schema, ref
from duewheel.interface import problems
from duewheel.interface.http import Call
from duewheel.rules.refusals import (
    CallbackRefused,
    IdempotencyKeyInUse,
    InvalidField,
    MalformedBody,
    NotPermitted,
    Refusal,
    TooLarge,
    TooManyCreates,
    Unavailable,
    UnreadableItem,
)

_CHECKED = ("{biz_type}", "{key}")  # placeholders whose text may be refused as a field
_TEXT: Schema = {"type": "string"}
_INSTANT: Schema = {"type": "string", "format": "date-time"}
# One for all, so that a generated program has one kind of error.
SCHEMAS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "properties": {
            "type": {**_TEXT, "pattern": f"^{problems.URN}[a-z-]+$"},
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": _TEXT,
            "field": _TEXT,
            "cut_off": {**_INSTANT, "description": "Of `too-late`."},
            "redrivable_at": {**_INSTANT, "description": "Of `not-redrivable`."},
            "retry_after_seconds": {
                "type": "integer",
                "minimum": 1,
                "description": "Of `too-many-creates`.",
            },
        },
        "required": ["type", "title", "status", "detail"],
    }
}
_WITH_RETRY_AFTER = (IdempotencyKeyInUse, TooManyCreates, Unavailable)
# What is no refusal but a failure of the service.
_FAILURES = [json.loads(one("").text) for one in (problems.internal, problems.misconfigured)]


def family(of: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    """A refusal that says no type of its own is a case of the one above it."""
    for refusal in of.__subclasses__():
        if "type" in vars(refusal):
            yield refusal
        yield from family(refusal)


def responses(method: str, path: str, call: Call) -> dict[str, Schema]:
    """By status: whatever the call may answer that is no success."""
    return responses_to(_refusals(method, path, call))


def responses_to(may: Collection[type[Refusal]]) -> dict[str, Schema]:
    """To these refusals, and to failures of the service."""
    names: dict[int, list[str]] = {}
    for refusal in (refusal for refusal in family() if refusal in may):
        names.setdefault(refusal.status, []).append(refusal.type)
    for failure in _FAILURES:
        names.setdefault(failure["status"], []).append(failure["type"].removeprefix(problems.URN))
    return {str(status): _response(names[status]) for status in sorted(names)}


def _refusals(method: str, path: str, call: Call) -> set[type[Refusal]]:
    may: set[type[Refusal]] = {NotPermitted}
    if method != "GET":
        may.add(CallbackRefused)
    may.update((UnreadableItem, Unavailable, *call.refusals))
    if call.body is not None:
        may.update((MalformedBody, TooLarge, InvalidField))
    if call.query or call.takes or any(name in path for name in _CHECKED):
        may.add(InvalidField)
    return may


def _response(types: list[str]) -> Schema:
    response: Schema = {
        "description": ", ".join(f"`{one}`" for one in types),
        "content": {problems.PROBLEM_JSON: {"schema": ref("Problem")}},
    }
    if any(refusal.type in types for refusal in _WITH_RETRY_AFTER):
        response["headers"] = {"Retry-After": ref("Retry-After", "headers")}
    return response
