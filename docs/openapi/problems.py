"""The problem documents, a schema for each, and which of them a call may answer.

What a call has of its own stands beside it; what follows from its having a body, parameters or
placeholders is added here.
"""

import json
from collections.abc import Iterator, Mapping

from docs.openapi.operation import Operation
from docs.openapi.schemas import INSTANT, TEXT, Schema, always, ref, shown
from duewheel.interface import problems
from duewheel.interface.http import JSON
from duewheel.rules.refusals import (
    CallbackRefused,
    IdempotencyKeyInUse,
    InvalidField,
    MalformedBody,
    NotPermitted,
    Refusal,
    TooLarge,
    TooLate,
    TooManyCreates,
    Unavailable,
    UnreadableItem,
)

_CHECKED = ("{biz_type}", "{key}")  # placeholders whose text may be refused as a field
_MORE: dict[type[Refusal], dict[str, Schema]] = {
    TooLate: {"cut_off": INSTANT},
    TooManyCreates: {"retry_after_seconds": {"type": "integer", "minimum": 1}},
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
    more = {name: schema for members in _MORE.values() for name, schema in members.items()}
    members: dict[str, Schema] = {
        "type": {"type": "string", "pattern": f"^{problems.URN}[a-z-]+$"},
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": TEXT,
        "field": TEXT,
        **more,
    }
    known = {refusal.__name__: _of_refusal(refusal) for refusal in family()}
    failures = {name: _schema(said) for name, said in _FAILURES.items()}
    return {"Problem": shown(members, ("field", *more)), **known, **failures}


def responses(method: str, path: str, operation: Operation) -> dict[str, Schema]:
    """By status: whatever the call may answer that is no success."""
    may = _refusals(method, path, operation)
    names: dict[int, list[str]] = {}
    for refusal in (refusal for refusal in family() if refusal in may):
        names.setdefault(refusal.status, []).append(refusal.__name__)
    names.setdefault(500, []).extend(_FAILURES)
    found = {str(status): _response(names[status]) for status in sorted(names)}
    if operation.in_codes:
        refused = {"schema": ref("XTimerRefusal")}
        found["400"] = {"description": "Not to be read", "content": {JSON: refused}}
    return found


def _refusals(method: str, path: str, operation: Operation) -> set[type[Refusal]]:
    """In codes, only what is refused before the call is looked at."""
    may: set[type[Refusal]] = {NotPermitted}
    if method != "GET":
        may.add(CallbackRefused)
    if operation.in_codes:
        return may
    may.update((UnreadableItem, Unavailable, *operation.refusals))
    if operation.body is not None:
        may.update((MalformedBody, TooLarge, InvalidField))
    if operation.parameters or any(name in path for name in _CHECKED):
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
        response["headers"] = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}
    return response


def _of_refusal(refusal: type[Refusal]) -> Schema:
    said: dict[str, str | int] = {
        "type": problems.URN + refusal.type,
        "title": refusal.title,
        "status": refusal.status,
    }
    return _schema(said, _MORE.get(refusal, {}))


def _schema(said: Mapping[str, str | int], more: Mapping[str, Schema] | None = None) -> Schema:
    """Its title is for people, and no part of what tells it from others."""
    members: dict[str, Schema] = {
        "type": always(said["type"]),
        "title": TEXT,
        "status": always(said["status"]),
        "detail": TEXT,
        "field": TEXT,
        **(more or {}),
    }
    return {"title": str(said["title"]), **shown(members, ("field", *(more or {})))}
