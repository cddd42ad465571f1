"""Puts the document together: the table of calls, what each takes and answers, examples."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from docs.examples.page import examples_in
from docs.openapi import callbacks, page, problems
from docs.openapi.businesses import BUSINESSES
from docs.openapi.keys import KEYS
from docs.openapi.operation import Kind, Operation, Parameter
from docs.openapi.schemas import TEXT, Schema, ref, shown
from docs.openapi.tasks import TASKS
from docs.openapi.timers import TIMERS
from docs.openapi.wheel import WHEEL
from docs.openapi.xtimer import XTIMER
from duewheel import __version__
from duewheel.interface.http import JSON
from duewheel.interface.routes import Call, Calls
from functions.api.app import CALLS

VERSION = "3.1.0"
KINDS = (TASKS, BUSINESSES, TIMERS, KEYS, WHEEL, XTIMER)
OPERATIONS: dict[tuple[str, str], tuple[Kind, Operation]] = {
    call: (kind, operation) for kind in KINDS for call, operation in kind.operations.items()
}

_PLACEHOLDERS = {
    "task_id": TEXT,
    "biz_type": ref("BizType"),
    "key": ref("TaskKey"),
    "timer_id": TEXT,
    "key_id": TEXT,
}
_SECURITY: dict[str, Schema] = {
    "sigv4": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "AWS Signature Version 4 for `execute-api`, where `AuthMode` is `iam`.",
        "x-amazon-apigateway-authtype": "awsSigv4",
    },
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`dw_…`), where `AuthMode` is `keys`.",
    },
}
_HEADERS: dict[str, Schema] = {
    "Location": {"description": "The path of what was made.", "schema": TEXT},
    "ETag": {"description": "The version, in double quotes.", "schema": TEXT},
    "Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}},
}
_ABOUT = (
    "A timer service: hand it a task, and it calls back on time. Unknown members and parameters "
    "of a request are refused; to answers later versions may add members. Errors are told apart "
    "by `type`. On one machine a call needs no credentials."
)

Examples = Mapping[tuple[str, str], list[page.Shown]]


class DocumentError(Exception):
    """The table of calls, the operations and the page do not belong together."""


def document(page_text: str, calls: Calls = CALLS) -> dict[str, Any]:
    """`page_text`: of docs/api.md."""
    table = {(m, path): c for path, taken in calls.by_path.items() for m, c in taken.items()}
    said = page.lines(page_text)
    for name, other in (("operations", OPERATIONS), ("page", said)):
        if strays := sorted(set(table) ^ set(other)):
            raise DocumentError(f"the table and the {name} differ in {strays}")
    examples = _by_call(page_text, calls)
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), call in table.items():
        item = _operation(method, path, call, said[method, path], examples)
        paths.setdefault(path, {})[method.lower()] = item
    return {
        "openapi": VERSION,
        "info": {
            "title": "Duewheel",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "{url}",
                "description": "The stack's output `ApiUrl`, or the local stack.",
                "variables": {"url": {"default": "http://127.0.0.1:8080"}},
            }
        ],
        "security": [{name: []} for name in _SECURITY],
        "tags": [{"name": kind.tag, "description": kind.description} for kind in KINDS],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "headers": _HEADERS,
            "securitySchemes": _SECURITY,
        },
    }


def _schemas() -> dict[str, Schema]:
    gateway = shown({"message": TEXT})
    found: dict[str, Schema] = {**callbacks.SCHEMAS}
    for part in (*(kind.schemas for kind in KINDS), problems.schemas(), {"Gateway": gateway}):
        if twice := sorted(set(found) & set(part)):
            raise DocumentError(f"there are two schemas with the names {twice}")
        found.update(part)
    return found


def _by_call(page_text: str, calls: Calls) -> Examples:
    found: dict[tuple[str, str], list[page.Shown]] = {}
    for shown_one in page.exchanges(examples_in(page_text)):
        for path in calls.by_path:
            if re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), shown_one.path):
                found.setdefault((shown_one.method, path), []).append(shown_one)
                break
    return found


def _operation(method: str, path: str, call: Call, said: str, examples: Examples) -> dict[str, Any]:
    kind, operation = OPERATIONS[method, path]
    shown_ones = examples.get((method, path), [])
    item: dict[str, Any] = {
        "operationId": operation.name,
        "summary": said,
        "description": _right(call),
        "tags": [kind.tag],
    }
    if parameters := [*_in_path(path), *map(_parameter, operation.parameters)]:
        item["parameters"] = parameters
    if operation.body is not None:
        good = {one.name: {"value": one.body} for one in shown_ones if one.status < 300}
        item["requestBody"] = {
            "required": operation.body_required,
            "content": {JSON: {"schema": operation.body, "examples": good}},
        }
    item["responses"] = _responses(method, path, operation, shown_ones)
    return item


def _right(call: Call) -> str:
    if call.on_none:
        return "Takes any grant."
    where = "all businesses" if call.on_all else "the business concerned"
    return f"Needs the right `{call.right}` on {where}."


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _PLACEHOLDERS[name]}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    about = {"description": parameter.description} if parameter.description else {}
    needed = {"required": True} if parameter.required else {}
    return {
        "name": parameter.name,
        "in": parameter.place,
        **about,
        **needed,
        "schema": parameter.schema,
    }


def _responses(
    method: str, path: str, operation: Operation, shown_ones: list[page.Shown]
) -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in operation.headers}
    found: dict[str, Any] = {
        str(status): {
            "description": HTTPStatus(status).phrase,
            **({"headers": headers} if headers else {}),
            "content": {JSON: {"schema": schema}},
        }
        for status, schema in operation.answers.items()
    }
    found.update(problems.responses(method, path, operation))
    found["default"] = {
        "description": "What API Gateway itself answers: 401, 403, 404, 413, 429, 500, 503, 504.",
        "content": {JSON: {"schema": ref("Gateway")}},
    }
    for one in shown_ones:
        (content,) = found[str(one.status)]["content"].values()
        content.setdefault("examples", {})[one.name] = {"value": one.answer}
    return found
