"""The problem documents, a schema for each, and which of them a call may answer.

What a call has of its own stands in its table; what follows from its having a body, parameters or
placeholders is added here.
"""

import json
from collections.abc import Collection, Iterator, Mapping

from docs.openapi.schemas import Schema, ref
from duewheel.interface import problems
from duewheel.interface.http import Call
from duewheel.rules.refusals import (
    CallbackRefused,
    IdempotencyKeyInUse,
    InvalidField,
    MalformedBody,
    NotPermitted,
    NotRedrivable,
    Refusal,
    TooLarge,
    TooLate,
    TooManyCreates,
    Unavailable,
    UnreadableItem,
)

_CHECKED = ("{biz_type}", "{key}")  # placeholders whose text may be refused as a field
_TEXT: Schema = {"type": "string"}
_CUT_OFF: Schema = {"cut_off": {"type": "string", "format": "date-time"}}
_WAIT: Schema = {"retry_after_seconds": {"type": "integer", "minimum": 1}}
_REDRIVABLE: Schema = {"redrivable_at": {"type": "string", "format": "date-time"}}
_MORE: Mapping[type[Refusal], Schema] = {
    NotRedrivable: _REDRIVABLE,
    TooLate: _CUT_OFF,
    TooManyCreates: _WAIT,
}
_WITH_RETRY_AFTER = (IdempotencyKeyInUse, TooManyCreates, Unavailable)
# What is no refusal but a failure of the service, by the names of their schemas.
_FAILURES = {
    "Internal": json.loads(problems.internal("").text),
    "Misconfigured": json.loads(problems.misconfigured("").text),
}


def family(of: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    """A refusal that says no type of its own is a case of the one above it."""
    for refusal in of.__subclasses__():
        if "type" in vars(refusal):
            yield refusal
        yield from family(refusal)


def schemas() -> dict[str, Schema]:
    any_type = {"type": "string", "pattern": f"^{problems.URN}[a-z-]+$"}
    found = {
        "Problem": _schema(any_type, {"type": "integer"}, {**_CUT_OFF, **_REDRIVABLE, **_WAIT})
    }
    said = {name: (one["type"], one["title"], one["status"]) for name, one in _FAILURES.items()}
    for one in family():
        said[one.__name__] = problems.URN + one.type, one.title, one.status
    more = {one.__name__: members for one, members in _MORE.items()}
    for name, (kind, title, status) in said.items():
        # Its title is for people, and no part of what tells it from others.
        schema = _schema({"const": kind}, {"const": status}, more.get(name, {}))
        found[name] = {"title": title, **schema}
    return found


def responses(method: str, path: str, call: Call) -> dict[str, Schema]:
    """By status: whatever the call may answer that is no success."""
    return responses_to(_refusals(method, path, call))


def responses_to(may: Collection[type[Refusal]]) -> dict[str, Schema]:
    """To these refusals, and to failures of the service."""
    names: dict[int, list[str]] = {}
    for refusal in (refusal for refusal in family() if refusal in may):
        names.setdefault(refusal.status, []).append(refusal.__name__)
    names.setdefault(500, []).extend(_FAILURES)
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


def _response(names: list[str]) -> Schema:
    schemas = [ref(name) for name in names]
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    response: Schema = {
        "description": ", ".join(names),
        "content": {problems.PROBLEM_JSON: {"schema": schema}},
    }
    if any(refusal.__name__ in names for refusal in _WITH_RETRY_AFTER):
        response["headers"] = {"Retry-After": ref("Retry-After", "headers")}
    return response


def _schema(name: Schema, status: Schema, more: Schema) -> Schema:
    needed = {"type": name, "title": _TEXT, "status": status, "detail": _TEXT}
    properties = {**needed, "field": _TEXT, **more}
    return {"type": "object", "properties": properties, "required": [*needed]}
