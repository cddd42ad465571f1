"""The API documents, and helpers that compare requests and answers with them."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from duewheel.api.wheel_calls import API_DOCUMENT
from duewheel.interface.problems import PROBLEM_JSON, URN
from duewheel.xtimer import calls as xtimer

Operations = dict[tuple[str, str], dict[str, Any]]

DOCUMENT: dict[str, Any] = json.loads(API_DOCUMENT.read_text("utf-8"))
XTIMER_DOCUMENT: dict[str, Any] = json.loads(xtimer.API_DOCUMENT.read_text("utf-8"))
_SCHEMAS = {
    **XTIMER_DOCUMENT["components"]["schemas"],
    **DOCUMENT["components"]["schemas"],
}
BOTH: dict[str, Any] = {
    **DOCUMENT,
    "paths": {**DOCUMENT["paths"], **XTIMER_DOCUMENT["paths"]},
    "components": {**DOCUMENT["components"], "schemas": _SCHEMAS},
}


def operations_of(document: dict[str, Any]) -> Operations:
    return {
        (method.upper(), path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


OPERATIONS = operations_of(BOTH)


def closed(schema: Any) -> Any:
    """The schema with additional members forbidden."""
    match schema:
        case {"properties": properties, **rest}:
            inner = {name: closed(one) for name, one in properties.items()}
            return {"additionalProperties": False, **closed(rest), "properties": inner}
        case dict():
            return {name: closed(one) for name, one in schema.items()}
        case list():
            return [closed(one) for one in schema]
        case _:
            return schema


_CLOSED = closed(_SCHEMAS)


def wrong_with(value: Any, schema: dict[str, Any]) -> list[str]:
    """The differences between a request's body and this schema."""
    return _errors(value, schema, _SCHEMAS)


def wrong_with_answer(value: Any, name: tuple[str, str], status: int) -> list[str]:
    """The differences between an answer and the document, unnamed members included."""
    response = OPERATIONS[name]["responses"].get(str(status))
    if response is None:
        return [f"{name} answers {status}"]
    (content,) = response["content"].values()
    return _errors(value, closed(content["schema"]), _CLOSED) + undocumented(value, response)


def undocumented(value: Any, response: dict[str, Any]) -> list[str]:
    """The type of a problem that the description of its status does not name."""
    if PROBLEM_JSON not in response["content"]:
        return []
    name = value["type"].removeprefix(URN)
    return [] if f"`{name}`" in response["description"] else [f"{name} is not of this call"]


def body_of(name: tuple[str, str]) -> dict[str, Any] | None:
    """The schema of the call's body."""
    if "requestBody" not in OPERATIONS[name]:
        return None
    (content,) = OPERATIONS[name]["requestBody"]["content"].values()
    schema: dict[str, Any] = content["schema"]
    return schema


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = _SCHEMAS[schema["$ref"].rpartition("/")[2]]
    return schema


def _errors(value: Any, schema: dict[str, Any], schemas: Any) -> list[str]:
    whole = {**schema, "components": {"schemas": schemas}}
    validator = Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
