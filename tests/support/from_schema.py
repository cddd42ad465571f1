"""Values that a schema of the API document allows, for Hypothesis.

It knows the words that the document uses, and stops at one that it does not know.
"""

from datetime import UTC, datetime
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from tests.support.api_document import resolved, wrong_with

Schema = dict[str, Any]
Values = st.SearchStrategy[Any]

_TELLS_NOTHING = {"description", "default", "title"}
_JUDGED_AS_A_WHOLE = {"not", "if", "oneOf"}
_SMALL = 5  # elements or members at once, where more are allowed
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def values_of(schema: Schema) -> Values:
    said = {name: word for name, word in resolved(schema).items() if name not in _TELLS_NOTHING}
    match said:
        case {"properties": _}:
            return _objects(said)
        case {"oneOf": [*schemas]} | {"anyOf": [*schemas]}:
            return st.one_of(*map(values_of, schemas))
        case {"enum": [*words]}:
            return st.sampled_from(words)
        case {"const": word}:
            return st.just(word)
        case {"type": [kind, "null"]}:
            return st.none() | values_of({**said, "type": kind})
        case {"type": "object", "additionalProperties": inner}:
            names = values_of({"type": "string", **said["propertyNames"]})
            return st.dictionaries(names, values_of(inner), max_size=_SMALL)
        case {"type": "array", "items": inner}:
            most = min(said.get("maxItems", _SMALL), _SMALL)
            return st.lists(values_of(inner), min_size=said.get("minItems", 0), max_size=most)
        case {"type": kind}:
            return _scalars(kind, said)
    assert not said, said
    return _JSON


def _scalars(kind: str, said: Schema) -> Values:
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(said.get("minimum"), said.get("maximum"))
        case "number":
            whole = st.integers(int(said["minimum"]) + 1, int(said["maximum"]))
            return whole | st.floats(said["minimum"], said["maximum"])
        case "string":
            return _texts(said)
    raise AssertionError(said)


def _texts(said: Schema) -> Values:
    match said:
        case {"format": "date-time"}:
            instants = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1))
            return instants.map(lambda one: one.replace(tzinfo=UTC).isoformat())
        case {"format": "date"}:
            return st.dates().map(str)
        case {"pattern": pattern}:
            texts = st.from_regex(pattern, alphabet=st.characters(codec="utf-8"))
            return texts.filter(lambda one: not one.endswith("\n") and not wrong_with(one, said))
    most = min(said.get("maxLength", 50), 50)
    texts = st.text(st.characters(codec="utf-8"), min_size=said.get("minLength", 0), max_size=most)
    return texts.filter(lambda one: not wrong_with(one, said)) if "not" in said else texts


@st.composite
def _objects(draw: st.DrawFn, said: Schema) -> dict[str, Any]:
    properties = said["properties"]
    exclusive = [name for one in said.get("oneOf", ()) for name in one["required"]]
    needed = {*said.get("required", ()), *([draw(st.sampled_from(exclusive))] if exclusive else ())}
    free = sorted(set(properties) - set(exclusive) - needed)
    more = draw(st.lists(st.sampled_from(free), unique=True)) if free else []
    found = {name: draw(values_of(properties[name])) for name in sorted({*needed, *more})}
    if said.keys() & _JUDGED_AS_A_WHOLE:
        assume(not wrong_with(found, said))
    return found
