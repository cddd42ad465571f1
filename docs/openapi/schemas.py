"""The schemas of requests and answers: what msgspec says of their Structs, and beside it what one
field alone cannot say."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from inspect import cleandoc
from typing import Any

from msgspec import Struct, json, to_builtins

from duewheel.interface.callbacks.callback_view import ShownHttpCallback
from duewheel.interface.http import Call
from duewheel.interface.tasks.task_view import BatchCreatedView, BatchRefusedView
from duewheel.rules.access.api_keys import ApiKeyId
from duewheel.rules.bulk.operation import Action
from duewheel.rules.bulk.requests import OF_DEATH
from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.callbacks.requests import HttpCallbackBody
from duewheel.rules.callbacks.retry import DEFAULT_RETRY, EXPONENTIAL, shown_retry
from duewheel.rules.names import BizType, TaskKey, TimerId
from duewheel.rules.tasks.outcome_notice import OutcomeNotice
from duewheel.rules.tasks.requests import DUE_FIELDS
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers.updates import BLANK

Schema = dict[str, Any]
Schemas = dict[str, Schema]

_RENAMED = {"Grant": "ShownGrant", "Status": "TaskStatus"}
_NAMED = {"BizType": BizType, "TaskKey": TaskKey, "TimerId": TimerId, "ApiKeyId": ApiKeyId}
_WITHIN = (
    ShownHttpCallback,
    BatchCreatedView,
    BatchRefusedView,
    OutcomeNotice,
)
_KEPT = ("TaskStatus",)  # of the enumerations, which stand where they are used


def ref(name: str, kind: str = "schemas") -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


def name_of(kind: type | str) -> str:
    name = (kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2]
    return _RENAMED.get(name, name.removesuffix("Body").removesuffix("View"))


def schemas_of(calls: Iterable[Call]) -> Schemas:
    """By the names that the document has for them."""
    taken = list(calls)
    targets: list[type] = [HttpCallbackBody, *(target.body for target in AWS_TARGETS)]
    found = {**_named(), **plain_schemas_of(taken, requests=targets, answers=_WITHIN)}
    found["ApiKey"]["properties"].pop("key")  # which IssuedApiKey has
    _add_callbacks(found, [name_of(kind) for kind in targets])
    _add_retry(found)
    _add_conditions(found)
    _add_operation(found)
    return found


def plain_schemas_of(
    calls: Iterable[Call], *, requests: Iterable[type] = (), answers: Iterable[type] = ()
) -> Schemas:
    """What msgspec says of bodies and answers, and of these beside them."""
    taken = list(calls)
    bodies = [call.body for call in taken if call.body is not None]
    views = [call.answer for call in taken if call.answer is not None]
    found = _components([*requests, *bodies])
    for name, schema in _components([*views, *answers]).items():
        found.setdefault(name, schema if "enum" in schema else _always_there(schema))
    return found


def parameters_of(query: type[Struct]) -> Iterator[tuple[str, Schema, bool]]:
    """Name, schema, and whether it is needed. None stands for one that is left out."""
    whole = _components([query])[name_of(query)]
    for name, schema in whole["properties"].items():
        given = _without_null(schema)
        if given.get("default", "") in (None, "", ()):
            given.pop("default", None)
        yield name, given, name in whole.get("required", ())


def with_defaults_said(schemas: Schemas) -> Schemas:
    """Moves defaults into descriptions: many generators demand a member that has a `default`."""
    for schema in schemas.values():
        for member in schema.get("properties", {}).values():
            default = member.pop("default", None)
            if default is not None:
                said = default if isinstance(default, str) else json.encode(default).decode()
                about = member.get("description", "")
                member["description"] = f"{about} By default `{said}`.".strip()
    return schemas


def _named() -> Schemas:
    return {name: _plain(json.schema(kind)) for name, kind in _NAMED.items()}


def _components(kinds: Iterable[type]) -> Schemas:
    _, known = json.schema_components([*kinds], ref_template=ref("{name}")["$ref"])
    reading = _Reading(known)
    return {
        name_of(name): reading.clean(schema)
        for name, schema in known.items()
        if "enum" not in schema or name_of(name) in _KEPT
    }


class _Reading:
    """Writes what msgspec says as the document has it: names of its own, enumerations in place and
    in the order of their declaration, null in the type where that is one word."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._enums = {name: schema for name, schema in known.items() if "enum" in schema}
        self._orders = {frozenset(kind): [*map(str, kind)] for kind in StrEnum.__subclasses__()}
        self._names = {repr(schema): ref(name) for name, schema in _named().items()}

    def clean(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.clean(one) for one in node]
        if not isinstance(node, dict):
            return node
        found = {name: self._member(name, one) for name, one in node.items() if name != "title"}
        return self._names.get(repr(found), self._nullable(self._enumerated(found)))

    def _member(self, name: str, value: Any) -> Any:
        if name == "properties":
            return {member: self.clean(schema) for member, schema in value.items()}
        return (
            value if name in ("default", "enum", "const") else _plain_word(name, self.clean(value))
        )

    def _enumerated(self, node: Schema) -> Schema:
        name = node.get("$ref", "").rpartition("/")[2]
        if name in self._enums and name_of(name) not in _KEPT:
            rest = {member: value for member, value in node.items() if member != "$ref"}
            return {**self._enumerated({"enum": self._enums[name]["enum"]}), **rest}
        if name:
            return {**node, **ref(name_of(name))}
        match node.get("enum"):
            case [only]:
                return {"const": only}
            case [str(), *_] as words:
                words = self._orders.get(frozenset(words), words)
                return {"type": "string", **node, "enum": words}
        return node

    def _nullable(self, node: Schema) -> Schema:
        match node:
            case {"anyOf": [dict() as one, {"type": "null"}], **rest}:
                if isinstance(one.get("type"), str) and "enum" not in one:
                    return {**one, "type": [one["type"], "null"], **rest}
                about = {"description": one.pop("description")} if "description" in one else {}
                return {"oneOf": [one, {"type": "null"}], **about, **rest}
            case {"required": []}:
                return {name: value for name, value in node.items() if name != "required"}
        return node


def _plain_word(name: str, value: Any) -> Any:
    if name == "pattern":  # ECMA 262 lets no line break follow `$`
        return value.replace(r"$(?!\n)", "$")
    return " ".join(cleandoc(value).split()) if name == "description" else value


def _plain(schema: Schema) -> Schema:
    return {name: _plain_word(name, value) for name, value in schema.items()}


def _without_null(schema: Schema) -> Schema:
    match schema:
        case {"type": [kind, "null"]}:
            return {**schema, "type": kind}
        case {"oneOf": [one, {"type": "null"}], **rest}:
            return {**one, **rest}
    return dict(schema)


def _always_there(schema: Schema) -> Schema:
    """Of an answer, which has all its members but those that are not set."""
    needed = schema.get("required", ())
    properties = schema["properties"]
    there = [
        name
        for name, one in properties.items()
        if name in needed or one.keys() & {"default", "const"}
    ]
    for one in properties.values():
        if "enum" not in one:
            one.pop("default", None)
    return {**schema, "required": there}


def _add_callbacks(found: Schemas, names: list[str]) -> None:
    for name in names[1:]:
        found[f"Shown{name}"] = _shown(found[name])
        found[name]["required"] = ["type", *found[name]["required"]]
    whole = {**found["HttpCallback"], "required": ["url"]}
    del found["HttpCallback"]["description"], whole["description"]
    found["WholeHttpCallback"] = whole
    usual, *aws = names
    for name, about, first in (
        (
            "Callback",
            "`http` where it does not say. What that leaves out is the business's.",
            usual,
        ),
        ("WholeCallback", "Nothing fills in what it leaves out.", f"Whole{usual}"),
    ):
        found[name] = {"description": about, "oneOf": [*map(ref, (first, *aws))]}
    found["ShownCallback"] = {
        "description": "As a request would say it. What is null is left to the business.",
        "oneOf": [ref(f"Shown{name}") for name in names],
    }


def _shown(request: Schema) -> Schema:
    """Of a callback to AWS in an answer: its request without bounds, which may have been others."""
    members = {
        name: {word: one[word] for word in ("const", "type", "enum") if word in one}
        | ({"additionalProperties": {"type": "string"}} if one.get("type") == "object" else {})
        for name, one in request["properties"].items()
    }
    sometimes = {"group_id", "body", "complete_within_seconds", "timeout_seconds"}
    needed = [name for name in members if name not in sometimes]
    return {"type": "object", "properties": members, "required": needed}


def _add_retry(found: Schemas) -> None:
    """In two, as its members belong together."""
    whole, usual = found["Retry"], to_builtins(shown_retry(DEFAULT_RETRY))
    for name, default in usual.items():
        whole["properties"][name]["default"] = default
    exponential, ladder = _without(whole, ("delays_seconds",)), _without(whole, EXPONENTIAL)
    about = "`max_delay_seconds` is at least `first_delay_seconds`."
    found["ExponentialRetry"] = {"description": about, **exponential}
    attempts = ladder["properties"]["attempts"] = {**ladder["properties"]["attempts"]}
    attempts["description"] = "By default one more than there are delays."
    del attempts["default"]
    found["RetryLadder"] = {**ladder, "required": ["delays_seconds"]}
    found["Retry"] = {"oneOf": [ref("ExponentialRetry"), ref("RetryLadder")]}


def _without(schema: Schema, names: Iterable[str]) -> Schema:
    properties = {name: one for name, one in schema["properties"].items() if name not in names}
    said = {word: value for word, value in schema.items() if word != "description"}
    return {**said, "properties": properties}


_OF_ACTION = "For redrive one that has ended, all but dead with both instants; else pending."


def _add_conditions(found: Schemas) -> None:
    due = [{"required": [name]} for name in DUE_FIELDS]
    found["NewTask"]["oneOf"] = found["TaskByKey"]["oneOf"] = due
    found["TaskChange"] |= {"minProperties": 1, "oneOf": [*due, {"not": {"anyOf": due}}]}
    nulls = {"cron": {"type": "null"}, "every_seconds": {"type": "null"}}
    said = [
        {"required": [name], "not": {"properties": {name: null}}} for name, null in nulls.items()
    ]
    schedule = BLANK.schedule
    usual = {name: getattr(schedule, name).value for name in ("dst_gap", "dst_overlap")}
    no_wall_clock = {
        "if": said[1],
        "then": {"properties": {name: {"enum": [one, None]} for name, one in usual.items()}},
    }
    for name in ("NewTimer", "Preview"):
        found[name] |= {"oneOf": said, **no_wall_clock}
        for member, schema in found[name]["properties"].items():
            default = getattr(schedule, member, getattr(BLANK, member, None))
            if default or (default in (0, False) and default is not None):
                schema["default"] = getattr(default, "value", default)
    found["NewTimer"]["properties"]["enabled"]["default"] = True
    found["TimerChange"] |= {
        "minProperties": 1,
        "oneOf": [*said, {"not": {"anyOf": said}}],
        "not": {"required": [*nulls], "properties": nulls},
        **no_wall_clock,
    }


def _add_operation(found: Schemas) -> None:
    """Which members belong to which action."""

    def needed(*names: str) -> list[Schema]:
        return [{"required": [name]} for name in names]

    instants = needed("due_at", "shift_seconds")
    status = found["Filter"]["properties"]["status"]
    no_death = {"not": {"anyOf": needed(*OF_DEATH)}}
    pending = {"properties": {"status": {"const": Status.PENDING}}, **no_death}
    in_a_range = {"required": ["due_from", "due_to"], **no_death}
    ended = {
        "required": ["status"],
        "properties": {"status": {"not": {"const": Status.PENDING}}},
        "if": {"properties": {"status": {"const": Status.DEAD}}},
        "else": in_a_range,
    }
    found["Filter"]["properties"]["status"] = {"allOf": [status], "description": _OF_ACTION}
    found["NewOperation"] |= {
        "oneOf": needed("ids", "filter"),
        "allOf": [
            {
                "if": {"properties": {"action": {"const": Action.RESCHEDULE}}},
                "then": {"oneOf": instants},
                "else": {"not": {"anyOf": instants}},
            },
            {
                "if": {"properties": {"action": {"const": Action.REDRIVE}}},
                "then": {"properties": {"filter": ended}},
                "else": {"properties": {"filter": pending}},
            },
        ],
    }
    found["NewOperation"]["properties"]["shift_seconds"]["not"] = {"const": 0}
    found["NewOperation"]["properties"]["ids"]["uniqueItems"] = True
