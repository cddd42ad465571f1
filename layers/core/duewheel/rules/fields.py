"""Requests as Structs: JSON is decoded and checked by the types of their fields.

A bound is declared once, in a field's type, and holds for the request, its refusal and the API
document. `decode` reads one object; a member that is a value of its own (`Raw`) is decoded with its
path, so that every refusal names its field (`callback.url`, `tasks[3].due_ms`). Of a member that is
given twice the last one counts, for everything that reads the body.
"""

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType, ValidationError, convert
from msgspec.json import Decoder, encode

from duewheel.rules.instants import NoInstant, ms_from_rfc3339
from duewheel.rules.refusals import InvalidField, MalformedBody

SECONDS_MIN = 0.001  # of a time that may not be 0: instants are kept to the millisecond

_FIELD_CHARACTERS_MAX = 100
_AT = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_NAMED = re.compile(r"Object (missing required|contains unknown) field `(.*)`$", re.DOTALL)
_FLOAT_FOR_INT = re.compile(r"Expected `[^`]*\bint\b[^`]*`, got `float`")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def says(text: str = "", **schema: Any) -> Meta:
    """Only for the API document: constraints that msgspec does not check."""
    return Meta(description=text or None, extra_json_schema=schema or None)


Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
# Bounds of a period.
From = Annotated[Instant, Meta(description="Inclusive.")]
To = Annotated[Instant, Meta(description="Exclusive.")]
Date = Annotated[str, Meta(extra_json_schema={"format": "date"})]
Count = Annotated[int, Meta(ge=0)]
# Of answers.
Cursor = Annotated[str, Meta(description="Opaque; null where a list is at its end.")] | None

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
U = TypeVar("U")


# Unicode has more blank and invisible characters than a pattern of the API document can list.
PRINTABLE: dict[str, Any] = {
    "pattern": r"^[^\x00-\x1f\x7f-\xa0\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff]*$"
}


class RequestBody(Struct, forbid_unknown_fields=True):
    """The object that a call takes, or one inside it."""


def given(value: T | UnsetType, otherwise: U) -> T | U:
    """Of a member that a request may leave out."""
    return otherwise if isinstance(value, UnsetType) else value


def members(body: RequestBody, null_is_a_value: Collection[str] = ()) -> dict[str, Any]:
    """The members that the request has. A null becomes None, except where any JSON is allowed."""
    found = {name: getattr(body, name) for name in body.__struct_fields__}
    return {
        name: None if _is_null(value) and name not in null_is_a_value else value
        for name, value in found.items()
        if value is not UNSET
    }


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, Raw) and bytes(value) == b"null")


def invalid(path: str, reason: str) -> InvalidField:
    return InvalidField(f"{path}: {reason}", path)


def joined_path(path: str, name: str) -> str:
    if len(name) > _FIELD_CHARACTERS_MAX:
        name = name[:_FIELD_CHARACTERS_MAX] + "…"
    return f"{path}.{name}" if path and name else path or name


def instant_ms(text: str, where: str) -> int:
    try:
        return ms_from_rfc3339(text)
    except NoInstant as error:
        raise invalid(where, f"{error}.") from error


def instant_or_none(text: str | None, where: str) -> int | None:
    return None if text is None else instant_ms(text, where)


def period(
    begin: tuple[str, str | None], end: tuple[str, str | None]
) -> tuple[int | None, int | None]:
    """Milliseconds of two instants, each with its name; one that is missing is no bound."""
    (begin_name, begin_text), (end_name, end_text) = begin, end
    begin_ms, end_ms = instant_or_none(begin_text, begin_name), instant_or_none(end_text, end_name)
    if begin_ms is not None and end_ms is not None and end_ms <= begin_ms:
        raise invalid(end_name, f"must be later than {begin_name}.")
    return begin_ms, end_ms


def texts_of(members: Mapping[str, object], path: str) -> list[tuple[str, str]]:
    """The members of an object whose names are the caller's, each a string. msgspec would not name
    the wrong one."""
    for name, value in members.items():
        if not isinstance(value, str):
            raise invalid(joined_path(path, name), "must be a string.")
    return list(cast("Mapping[str, str]", members).items())


def whole_text(pattern: re.Pattern[str]) -> str:
    """For `Meta`, which searches. `$` alone would allow a line break at the end."""
    return rf"^(?:{pattern.pattern})$(?!\n)"


def decode(source: str | bytes | Raw, kind: type[T], path: str = "") -> T:
    """`path`: of the value in the body."""
    try:
        read: T = _decoder(cast("Hashable", kind)).decode(source)
        return read
    except ValidationError as error:
        whole = _with_whole_number(source, str(error))
        if whole is not None:
            return decode(whole, kind, path)
        raise _refusal(str(error), kind, path) from None
    except RecursionError:
        reason = "nested too deeply"
    except UnicodeError:
        reason = "it is not UTF-8 text"
    except DecodeError as error:
        reason = str(error)
        if reason == "Input data was truncated":
            reason = "it is cut off, or a string in it has half of a surrogate pair"
    raise MalformedBody(f"The body is not the JSON that this call takes: {reason}.", path or None)


def read_members(values: Mapping[str, str | list[str]], kind: type[S]) -> S:
    """Of an object whose values are all written as strings. None of them is a null."""
    try:
        read = convert(values, kind, strict=False)
    except ValidationError as error:
        raise _refusal(str(error), kind, "") from None
    for field, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        if name in values and getattr(read, field) is None:
            demand = _demand(_node_at(kind, f".{name}"), ", got `null`")
            raise invalid(name, f"must {demand}.")
    return read


@cache
def _decoder(kind: Any) -> Decoder[Any]:
    return Decoder(kind)


def _with_whole_number(source: str | bytes | Raw, error: str) -> bytes | None:
    """The body with `60` where it says `60.0` or `6e1`, which are the same number in JSON. All
    elements of an array are changed at once, so a body is decoded again at most once for each
    field."""
    at = _AT.search(error)
    if at is None or not _FLOAT_FOR_INT.match(error):
        return None
    steps = [name or index for name, index in _STEP.findall(at[1])]
    if "..." in steps:  # a value of an object with free names: which one is not said
        return None
    return _replaced(source.encode() if isinstance(source, str) else bytes(source), steps)


def _replaced(text: bytes, steps: Sequence[str]) -> bytes | None:
    """None where the number is not whole."""
    if not steps:
        return _whole(text)
    if text.startswith(b"["):
        elements, index = Decoder(list[Raw]).decode(text), int(steps[0])
        inner = _replaced(bytes(elements[index]), steps[1:])
        if inner is None:
            return None
        if steps[1:]:
            elements[index] = Raw(inner)
            return encode(elements)
        return encode([Raw(_whole(bytes(one)) or bytes(one)) for one in elements])
    values = Decoder(dict[str, Raw]).decode(text)
    inner = _replaced(bytes(values[steps[0]]), steps[1:])
    return None if inner is None else encode({**values, steps[0]: Raw(inner)})


def _whole(number: bytes) -> bytes | None:
    if number[:1] not in b"-0123456789" or not float(number).is_integer():
        return None
    return str(int(float(number))).encode()


def _refusal(error: str, kind: Any, path: str) -> InvalidField | MalformedBody:
    at = _AT.search(error)
    node = _node_at(kind, at[1] if at else "")
    if at and (node is None or (_NAMED.fullmatch(error[: at.start()]) and not _is_object(node))):
        at, node = None, _node_at(kind, "")  # a caller's name that ends as a path does
    said = error[: at.start()] if at else error
    where = at[1].removeprefix(".") if at else ""
    full = f"{path}{where}" if where.startswith("[") else joined_path(path, where)
    if named := _NAMED.fullmatch(said):
        problem, name = named.groups()
        if problem == "missing required":
            return invalid(joined_path(full, name), "is missing.")
        known = ", ".join(_described(node)[0].cls.__struct_encode_fields__)
        return invalid(joined_path(full, name), f"is unknown here; known are {known}.")
    if not full:
        return MalformedBody(
            "The body is not the JSON that this call takes: an object is expected.", None
        )
    return invalid(full, f"must {_demand(node, said)}.")


def _node_at(kind: Any, path: str) -> Any:
    """The type at a path as msgspec describes it, for refusals only. None if there is none."""
    node = inspect().type_info(kind)
    for name, _ in _STEP.findall(path):
        node = _described(node)[0]
        if isinstance(node, inspect().StructType):
            types = (one.type for one in node.fields if one.encode_name == name)
            node = next(types, None)
        else:
            node = getattr(node, "value_type", None) or getattr(node, "item_type", None)
        if node is None:
            return None
    return node


def _is_object(node: Any) -> bool:
    return isinstance(_described(node)[0], inspect().StructType)


def _described(node: Any) -> tuple[Any, str | None]:
    """The type without the null that a field may allow, and its metadata."""
    text = None
    while isinstance(node, inspect().Metadata | inspect().UnionType):
        if isinstance(node, inspect().Metadata):
            text = (node.extra_json_schema or {}).get("description", text)
            node = node.type
            continue
        values = [one for one in node.types if not isinstance(one, inspect().NoneType)]
        if len(values) > 1:
            return node, text
        (node,) = values
    return node, text


def _demand(node: Any, said: str) -> str:
    node, text = _described(node)
    kind = type(node).__name__.removesuffix("Type")
    is_other_type = ", got `" in said
    match kind:
        case "Enum" | "Literal":
            values = list(node.cls) if kind == "Enum" else node.values
            return f"be one of {', '.join(map(str, values))}"
        case "Int" | "Float" if not is_other_type:
            return f"be from {node.ge}" + ("" if node.le is None else f" to {node.le}")
        case "Str" if not is_other_type:
            is_said = text and node.pattern
            return f"be {text}" if is_said else f"have {_length(node)} characters"
        case "List" | "VarTuple" | "Dict" if not is_other_type:
            return f"have {_length(node)} {'members' if kind == 'Dict' else 'elements'}"
        case "Union":
            return f"be {text or 'of another type'}"
    return f"be {_NAMES.get(kind, 'of another type')}"


def _length(node: Any) -> str:
    if node.min_length and node.max_length:
        return f"from {node.min_length} to {node.max_length}"
    return f"at most {node.max_length}" if node.max_length else f"at least {node.min_length}"


_NAMES = {
    "Int": "a whole number",
    "Float": "a number",
    "Str": "a string",
    "Bool": "true or false",
    "List": "an array",
    "VarTuple": "an array",
    "Dict": "an object",
    "Struct": "an object",
}


@cache
def inspect() -> Any:
    """Imported here, since no valid request needs it."""
    from msgspec import inspect as module

    return module
