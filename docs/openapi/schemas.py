"""How a schema is written down: JSON Schema 2020-12, as OpenAPI 3.1 has it.

Patterns and bounds are handed in by those who know them from the rules; none stands here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]

ANY: Schema = {}
TRUTH: Schema = {"type": "boolean"}
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
INSTANT: Schema = {"type": "string", "format": "date-time"}
DATE: Schema = {"type": "string", "format": "date"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def text(smallest: int = 0, largest: int | None = None) -> Schema:
    bounds = {"minLength": smallest} if smallest else {}
    return {"type": "string", **bounds, **({} if largest is None else {"maxLength": largest})}


def matching(pattern: re.Pattern[str]) -> Schema:
    """The service matches whole texts."""
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$"}


def whole(smallest: int, largest: int, **more: Any) -> Schema:
    return {"type": "integer", "minimum": smallest, "maximum": largest, **more}


def number(smallest: float, largest: float, **more: Any) -> Schema:
    return {"type": "number", "minimum": smallest, "maximum": largest, **more}


def one_of(words: Iterable[str], **more: Any) -> Schema:
    return {"type": "string", "enum": [str(word) for word in words], **more}


def always(word: str | int) -> Schema:
    return {"const": word}


def some(of: Schema, smallest: int = 0, largest: int | None = None) -> Schema:
    least = {"minItems": smallest} if smallest else {}
    return {
        "type": "array",
        "items": of,
        **least,
        **({} if largest is None else {"maxItems": largest}),
    }


def names_to(of: Schema, **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": of, **more}


def nullable(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    said = {"description": schema["description"]} if "description" in schema else {}
    bare = {name: value for name, value in schema.items() if name != "description"}
    return {"oneOf": [bare, {"type": "null"}], **said}


def body(properties: Mapping[str, Schema], required: Iterable[str] = (), **more: Any) -> Schema:
    """Of a request, whose unknown members are refused."""
    return {
        "type": "object",
        "properties": dict(properties),
        **_required(required),
        "additionalProperties": False,
        **more,
    }


def shown(properties: Mapping[str, Schema], sometimes: Iterable[str] = ()) -> Schema:
    """Of an answer, to which later versions may add members. Those named are not always there."""
    absent = set(sometimes)
    always_there = [name for name in properties if name not in absent]
    return {"type": "object", "properties": dict(properties), **_required(always_there)}


def page(member: str, of: Schema) -> Schema:
    return shown({member: some(of), "cursor": nullable(CURSOR)})


def each_required(names: Iterable[str]) -> list[Schema]:
    """For `oneOf`, where exactly one of them is needed, or `anyOf`, where at least one is."""
    return [{"required": [name]} for name in names]


def at_most_one(names: Iterable[str]) -> list[Schema]:
    """For `oneOf`."""
    one = each_required(names)
    return [*one, {"not": {"anyOf": one}}]


CURSOR: Schema = described(TEXT, "Opaque; null where a list is at its end.")


def _required(names: Iterable[str]) -> Schema:
    required = list(names)
    return {"required": required} if required else {}
