"""Reading the members of a body, and the refusals, which name the field and the expected value."""

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given as any_of
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Raw, UnsetType

from duewheel.rules.fields import RequestBody, decode, members, period, texts_of
from duewheel.rules.names import BizType
from duewheel.rules.refusals import InvalidField, MalformedBody
from tests.support.cases import each_case


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(RequestBody):
    steps: Annotated[tuple[Annotated[float, Meta(ge=0, le=9)], ...], Meta(max_length=3)] = ()


class Outer(RequestBody, kw_only=True):
    name: BizType
    count: Annotated[int, Meta(ge=1, le=100)] | UnsetType | None = UNSET
    colour: Colour = Colour.RED
    mode: Literal["on", "off"] | UnsetType = UNSET
    inner: Inner | UnsetType = UNSET
    any: Raw | UnsetType = UNSET
    flag: bool = False


@each_case(
    ("more", "field", "reason"),
    [
        ({"name": ...}, "name", "is missing."),
        ({"name": 1}, "name", "must be a string."),
        ({"name": "-"}, "name", "must be 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning"),
        ({"name": "a\n"}, "name", "must be 1 to 63 of"),
        ({"count": 0}, "count", "must be from 1 to 100."),
        ({"count": 10**400}, "count", "must be from 1 to 100."),
        ({"count": 1.5}, "count", "must be a whole number."),
        ({"count": True}, "count", "must be a whole number."),
        ({"colour": "green"}, "colour", "must be one of red, blue."),
        ({"mode": 7}, "mode", "must be one of off, on."),
        ({"flag": None}, "flag", "must be true or false."),
        ({"inner": []}, "inner", "must be an object."),
        ({"inner": {"steps": {}}}, "inner.steps", "must be an array."),
        ({"inner": {"steps": [0] * 4}}, "inner.steps", "must have at most 3 elements."),
        ({"inner": {"steps": [1, "2"]}}, "inner.steps[1]", "must be a number."),
        ({"inner": {"steps": [10]}}, "inner.steps[0]", "must be from 0 to 9."),
        ({"inner": {"x": 1}}, "inner.x", "is unknown here; known are steps."),
        ({"x": 1}, "x", "is unknown here; known are name, count, colour, mode, inner, any, flag."),
    ],
)
@each_case("path", ["", "tasks[3]"])
def test_a_refusal_names_its_field_and_the_expected_value(
    more: dict[str, Any], field: str, reason: str, path: str
) -> None:
    body = {name: value for name, value in {"name": "a", **more}.items() if value is not ...}
    with pytest.raises(InvalidField) as caught:
        decode(json.dumps(body), Outer, path)
    named = f"{path}.{field}" if path else field
    assert caught.value.field == named
    assert caught.value.detail.startswith(f"{named}: {reason}")


@each_case(
    "text",
    ["", "[]", "null", "{", '{"name":"a"} x', '{"name":"a","any":NaN}', '\ufeff{"name":"a"}'],
)
def test_a_body_that_is_not_an_object_is_malformed(text: str) -> None:
    with pytest.raises(MalformedBody):
        decode(text, Outer)


def test_a_value_that_is_nested_too_deeply_is_malformed() -> None:
    with pytest.raises(MalformedBody, match="nested too deeply"):
        decode(f'{{"name":"a","any":{"[" * 5_000}{"]" * 5_000}}}', Outer)


@each_case(
    "member",
    [
        r'"name":"\ud800"',
        r'"any":"\ud800"',
        r'"any":"\udc00\ud800"',
        r'"any":{"\ud800":1}',
        r'"\ud800":1',
    ],
)
def test_half_of_a_surrogate_pair_is_malformed_in_any_member(member: str) -> None:
    with pytest.raises(MalformedBody, match="surrogate pair"):
        decode(f'{{"name":"a",{member}}}', Outer)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@any_of(value=JSON, indent=st.sampled_from([None, 0, 3]), is_ascii=st.booleans())
def test_a_raw_value_is_kept_byte_for_byte(value: Any, indent: int | None, is_ascii: bool) -> None:
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
        text.encode()
    except UnicodeEncodeError:
        return
    try:
        read = decode(f'{{ "any" :\n{text} , "name":"a"}}', Outer)
    except MalformedBody:
        assert "\\ud" in text  # half of a surrogate pair
        return
    assert isinstance(read.any, Raw)
    assert bytes(read.any).decode() == text


@any_of(
    number=st.integers(-9, 120).map(float)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
)
def test_whole_numbers_are_read_in_any_format_and_others_are_refused(number: float) -> None:
    text = f'{{"name":"a","count":{number!r},"any":[1.0, 2]}}'
    if number.is_integer() and 1 <= number <= 100:
        read = decode(text, Outer)
        assert (read.count, type(read.count)) == (int(number), int)
        assert isinstance(read.any, Raw)
        assert bytes(read.any) == b"[1.0, 2]"
    else:
        with pytest.raises(InvalidField):
            decode(text, Outer)


def test_the_last_one_of_two_equal_members_counts() -> None:
    assert decode('{"name":"a","name":"b"}', Outer).name == "b"
    with pytest.raises(InvalidField):
        decode('{"name":"a","name":1}', Outer)


def test_null_means_absent_unless_its_field_takes_null_as_a_value() -> None:
    read = decode('{"name":"a","count":null,"any":null}', Outer)
    assert members(read)["count"] is None
    assert members(read)["any"] is None
    assert members(read, null_is_a_value=("any",))["any"] == Raw(b"null")
    assert "mode" not in members(read)


def test_a_very_long_name_is_cut_in_a_refusal() -> None:
    with pytest.raises(InvalidField) as caught:
        decode(json.dumps({"name": "a", "x" * 10_000: 1}), Outer)
    assert len(caught.value.detail) < 400


def test_each_value_of_an_object_with_free_names_is_a_string() -> None:
    assert texts_of({"a": "1"}, "headers") == [("a", "1")]
    with pytest.raises(InvalidField, match=r"^headers\.b: must be a string\.$"):
        texts_of({"a": "1", "b": 2}, "headers")


def test_an_invalid_number_with_a_free_name_is_refused_like_a_field() -> None:
    assert decode('{"a":6}', dict[str, int]) == {"a": 6}
    with pytest.raises(InvalidField, match="must be a whole number"):
        decode('{"a":6.0}', dict[str, int])


def test_a_period_ends_after_it_begins() -> None:
    early, late = "2030-01-01T00:00:00Z", "2030-01-01T00:00:01Z"
    assert period(("a", early), ("b", late)) == (1_893_456_000_000, 1_893_456_001_000)
    assert period(("a", None), ("b", early)) == (None, 1_893_456_000_000)
    with pytest.raises(InvalidField, match=r"^b: must be later than a\.$"):
        period(("a", late), ("b", early))
