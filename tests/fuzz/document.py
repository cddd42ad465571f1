"""Whether the API document allows a request, judged from the sent bytes.

The mode in which a request was made does not decide: a change that should be invalid is sometimes
valid, and `limit=7` is a number although a query has only text.
"""

import json
from functools import cache
from typing import Any

import jsonschema_rs
from msgspec import Struct

from tests.fuzz.refusals import is_of_xtimer
from tests.fuzz.requests import Name, Sent
from tests.support.api_document import BOTH, OPERATIONS, body_of, closed, resolved, undocumented

BATCH = "tasks"  # the member whose elements are judged separately


class Judged(Struct, frozen=True):
    """`forbidden`: the reason, or empty. `tasks`: the reason for each task of a batch."""

    forbidden: str = ""
    tasks: tuple[str, ...] | None = None


class _NotJson(ValueError):
    pass


def judged(sent: Sent) -> Judged:
    known, given = _known(sent.name), _given(sent)
    needed = {place for place, one in known.items() if one.get("required")}
    reasons = [f"{name} is missing" for _, name in sorted(needed - set(given))]
    for place, texts in given.items():
        if place in known:
            reasons.append(_wrong_parameter(place[1], texts, known[place]["schema"]))
    # xTimer's calls ignore unknown parameters, and calls without parameters check none.
    if not is_of_xtimer(sent.name) and any(where == "query" for where, _ in known):
        unknown = sorted(name for where, name in set(given) - set(known) if where == "query")
        reasons += [f"{name} is unknown" for name in unknown]
    wrong, tasks = _wrong_body(sent)
    return Judged("; ".join(filter(None, [*reasons, wrong])), tasks)


def _known(name: Name) -> dict[tuple[str, str], Any]:
    return {
        (one["in"], one["name"].lower() if one["in"] == "header" else one["name"]): one
        for one in OPERATIONS[name].get("parameters", ())
    }


def _given(sent: Sent) -> dict[tuple[str, str], list[str]]:
    given = {("path", name): [text] for name, text in sent.arguments.items()}
    given |= {("header", name): [text] for name, text in sent.headers.items()}
    for name, text in sent.query:
        given.setdefault(("query", name), []).append(text)
    if is_of_xtimer(sent.name):
        firsts = {place: texts[:1] for place, texts in given.items()}
        given = {place: texts for place, texts in firsts.items() if place[0] != "query" or texts[0]}
    return given


def _wrong_parameter(name: str, texts: list[str], schema: dict[str, Any]) -> str:
    is_list = resolved(schema).get("type") == "array"
    if len(texts) > 1 and not is_list:
        return f"{name} is repeated"
    wrong = wrong_with(texts, schema) if is_list else _wrong_text(texts[0], schema)
    return f"{name}: {wrong}" if wrong else ""


def _wrong_body(sent: Sent) -> tuple[str, tuple[str, ...] | None]:
    """Also returns the reason for each task of a batch. A call without a body checks none."""
    schema = body_of(sent.name)
    if schema is None:
        return "", None
    if not sent.body:
        is_required = OPERATIONS[sent.name]["requestBody"].get("required")
        return ("the body is missing" if is_required else ""), None
    try:
        value = json_of(sent.body)
    except ValueError as error:
        return f"no JSON: {error}", None
    wrong = wrong_with(value, schema)
    own = resolved(schema)
    if not sent.name[1].endswith("/batch"):
        return wrong, None
    each = resolved(own["properties"][BATCH])["items"]
    if wrong_with(value, {**own, "properties": {BATCH: {**own["properties"][BATCH], "items": {}}}}):
        return wrong, None
    return "", tuple(wrong_with(task, each) for task in value[BATCH])


def json_of(text: bytes) -> Any:
    def refuse(word: str) -> None:
        raise _NotJson(word)

    return json.loads(text.decode(), parse_constant=refuse)


def _wrong_text(text: str, schema: dict[str, Any]) -> str:
    """For a parameter, whose numbers and booleans are written as text."""
    value: Any = text
    match resolved(schema).get("type"):
        case "integer" | "number" | "boolean":
            try:
                value = json_of(text.encode())
            except ValueError:
                value = text
    return wrong_with(value, schema)


def wrong_with(value: Any, schema: dict[str, Any]) -> str:
    try:
        error = next(_validator(json.dumps(schema)).iter_errors(value), None)
    except ValueError as problem:  # half of a surrogate pair
        return str(problem)
    return "" if error is None else f"{_place(error)}{error.message}"[:300]


def wrong_with_answer(value: Any, name: Name, status: int, content_type: str) -> str:
    """Members that the document does not have are wrong, too."""
    response = OPERATIONS[name]["responses"].get(str(status))
    if response is None:
        return f"{status} is no status of this call"
    if content_type not in response["content"]:
        return f"{content_type} is not what {status} has"
    schema = closed(response["content"][content_type]["schema"])
    error = next(_closed_validator(json.dumps(schema)).iter_errors(value), None)
    if error is None:
        return "".join(undocumented(value, response))
    return f"{_place(error)}{error.message}"[:300]


def _place(error: Any) -> str:
    at = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.instance_path)
    return f"{at.removeprefix('.')}: " if at else ""


@cache
def _validator(schema: str) -> Any:
    return _made({**json.loads(schema), "components": BOTH["components"]})


@cache
def _closed_validator(schema: str) -> Any:
    components = {"schemas": closed(BOTH["components"]["schemas"])}
    return _made({**json.loads(schema), "components": components})


def _made(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
