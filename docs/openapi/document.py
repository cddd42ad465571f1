"""Puts the document together: the table of calls, what each takes and answers, examples."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from docs.examples.page import examples_in
from docs.openapi import page, problems
from docs.openapi.schemas import (
    Schema,
    Schemas,
    name_of,
    parameters_of,
    ref,
    schemas_of,
    with_defaults_said,
)
from duewheel import __version__
from duewheel.interface.http import JSON, Call, Calls
from duewheel.rules import preconditions
from duewheel.rules.callbacks.completion import TOKEN_CHARACTERS_MAX
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER
from duewheel.rules.preconditions import IF_MATCH, IF_NONE_MATCH
from duewheel.rules.tasks import idempotency
from duewheel.rules.tasks.idempotency import HEADER
from functions.api.app import CALLS

VERSION = "3.1.0"
_TAGS = {  # by the modules of their calls
    "task_calls": ("tasks", "Calls owed at an instant."),
    "business_calls": ("businesses", "What holds for all tasks of one name."),
    "timer_calls": ("timers", "Definitions that produce tasks, by cron or at an interval."),
    "bulk_calls": ("operations", "One action on many tasks, page by page."),
    "work_calls": ("tasks", "Calls owed at an instant."),
    "key_calls": ("keys", "API keys, and what is granted to their bearers."),
    "wheel_calls": ("wheel", "Where it stands, what is wrong with it, whether it is well."),
}
_TEXT: Schema = {"type": "string"}
_PLACEHOLDERS = {"biz_type": ref("BizType"), "key": ref("TaskKey")}
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
    "Location": {"description": "The path of what was made.", "schema": _TEXT},
    "ETag": {"description": "The version, in double quotes.", "schema": _TEXT},
    "Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}},
}
_TAKEN: dict[str, Schema] = {
    HEADER: {
        "description": "A repeat with the same key and body gets the result of the first request.",
        "schema": {**_TEXT, "pattern": f"^(?:{idempotency._VISIBLE_ASCII.pattern})$"},
    },
    IF_MATCH: {
        "description": "A version in double quotes, as in `ETag` of an answer, or `*`.",
        "schema": {**_TEXT, "pattern": rf"^(?:{preconditions._TAG.pattern}|\*)$"},
    },
    TOKEN_HEADER: {
        "description": "As the callback had it.",
        "required": True,
        "schema": {**_TEXT, "maxLength": TOKEN_CHARACTERS_MAX},
    },
    IF_NONE_MATCH: {
        "description": "Only if it is not there yet; not beside `If-Match`.",
        "schema": {"const": "*"},
    },
}
_ABOUT = (
    "A timer service: hand it a task, and it calls back on time. Unknown members of a body and "
    "unknown or repeated parameters are refused; a call that takes no body or no query looks at "
    "none. To answers later versions may add members. The `type` identifies an error. On one "
    "machine a call needs no credentials."
)

Examples = Mapping[tuple[str, str], list[page.Shown]]


class DocumentError(Exception):
    """The table of calls and the page do not belong together."""


class Interface(Struct, frozen=True, kw_only=True):
    """What a document is about. `tags`: by the modules of the calls. `answer` and `responses`: to a
    request that succeeds, and to one that does not."""

    title: str = "Duewheel"
    about: str = _ABOUT
    calls: Calls = CALLS
    tags: Mapping[str, tuple[str, str]] = MappingProxyType(_TAGS)
    schemas: Callable[[Iterable[Call]], Schemas] = lambda calls: {
        **schemas_of(calls),
        **problems.SCHEMAS,
    }
    answer: Callable[[type[Struct]], Schema] = lambda answer: ref(name_of(answer))
    responses: Callable[[str, str, Call], dict[str, Schema]] = problems.responses


def document(page_text: str, interface: Interface) -> dict[str, Any]:
    """`page_text`: of the page that describes it."""
    calls = interface.calls
    table = {(m, path): c for path, taken in calls.by_path.items() for m, c in taken.items()}
    said = page.lines(page_text)
    if strays := sorted(set(table) ^ set(said)):
        raise DocumentError(f"the table and the page differ in {strays}")
    examples = _by_call(page_text, calls)
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), call in table.items():
        item = _operation(call, said[method, path], interface.tags)
        shown_ones = examples.get((method, path), [])
        if parameters := [*_parameters(path, call)]:
            item["parameters"] = parameters
        if call.body is not None:
            item["requestBody"] = _body(call, call.body, shown_ones)
        item["responses"] = _responses(method, path, call, shown_ones, interface)
        paths.setdefault(path, {})[method.lower()] = item
    gateway = {"type": "object", "properties": {"message": _TEXT}, "required": ["message"]}
    return {
        "openapi": VERSION,
        "info": {
            "title": interface.title,
            "version": __version__,
            "description": interface.about,
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
        "tags": [
            {"name": name, "description": about}
            for name, about in dict(interface.tags.values()).items()
        ],
        "paths": paths,
        "components": {
            "schemas": with_defaults_said(
                {**interface.schemas(table.values()), "Gateway": gateway}
            ),
            "headers": _HEADERS,
            "securitySchemes": _SECURITY,
        },
    }


def _by_call(page_text: str, calls: Calls) -> Examples:
    found: dict[tuple[str, str], list[page.Shown]] = {}
    for shown_one in page.exchanges(examples_in(page_text)):
        for path in calls.by_path:
            if re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), shown_one.path):
                found.setdefault((shown_one.method, path), []).append(shown_one)
                break
    return found


def _operation(call: Call, said: str, tags: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    item: dict[str, Any] = {
        "operationId": call.carry.__name__,
        "summary": said,
        "description": _right(call),
        "tags": [tags[call.carry.__module__.rpartition(".")[2]][0]],
    }
    if call.by_token:
        item["security"] = []
    return item


def _body(call: Call, body: type[Struct], shown_ones: list[page.Shown]) -> dict[str, Any]:
    good = {one.name: {"value": one.body} for one in shown_ones if one.status < 300}
    content = {JSON: {"schema": ref(name_of(body)), "examples": good}}
    return {"required": call.needs_body, "content": content}


def _right(call: Call) -> str:
    if call.by_token:
        return "Needs the completion token of the callback, and no other credentials."
    if call.on_none:
        return "Takes any grant."
    where = "all businesses" if call.on_all else "the business concerned"
    return f"Needs the right `{call.right}` on {where}."


def _parameters(path: str, call: Call) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", path):
        schema = _PLACEHOLDERS.get(name, _TEXT)
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    for name, schema, is_needed in () if call.query is None else parameters_of(call.query):
        usual = "What the page before answered." if name == "cursor" else ""
        about = schema.pop("description", usual)
        said = {"description": about} if about else {}
        needed = {"required": True} if is_needed else {}
        yield {"name": name, "in": "query", **said, **needed, "schema": schema}
    for name in call.takes:
        yield {"name": name.title(), "in": "header", **_TAKEN[name]}


def _responses(
    method: str, path: str, call: Call, shown_ones: list[page.Shown], interface: Interface
) -> dict[str, Any]:
    schema = {"type": "object"} if call.answer is None else interface.answer(call.answer)
    headers = {name: ref(name, "headers") for name in call.gives}
    found: dict[str, Any] = {
        str(status): {
            "description": HTTPStatus(status).phrase,
            **({"headers": headers} if headers else {}),
            "content": {JSON: {"schema": schema}},
        }
        for status in call.statuses
    }
    found.update(interface.responses(method, path, call))
    found["default"] = {
        "description": "What API Gateway itself answers: 401, 403, 404, 413, 429, 500, 503, 504.",
        "content": {JSON: {"schema": ref("Gateway")}},
    }
    for one in shown_ones:
        (content,) = found[str(one.status)]["content"].values()
        content.setdefault("examples", {})[one.name] = {"value": one.answer}
    return found
