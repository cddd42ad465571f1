import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duewheel.rules.json_source import NotJson, RepeatedMember, elements_of, members_of

PATIENTLY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SPACE = st.text(alphabet=" \t\r\n", max_size=3)
STRING = st.one_of(
    st.text(max_size=6).map(json.dumps),
    st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from([r'"é\/\ud800"', r'"{\"a\":1,"', '"]}"', r'"\\"']),
)
NUMBER = st.sampled_from(["0", "-0", "1.0", "1E+2", "1e400", "-1e-400", "7" * 40, "7" * 5000])
SCALAR = st.one_of(STRING, NUMBER, st.sampled_from(["true", "false", "null"]))


def _array(element: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    spaced = st.tuples(SPACE, element, SPACE).map("".join)
    return st.lists(spaced, max_size=3).map(lambda parts: f"[{','.join(parts)}]")


def _object(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(SPACE, STRING, SPACE, st.just(":"), SPACE, value, SPACE).map("".join)
    return st.lists(member, max_size=3).map(lambda parts: f"{{{','.join(parts)}}}")


JSON_TEXT = st.recursive(SCALAR, lambda inner: _array(inner) | _object(inner), max_leaves=6)


def _read(text: str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str)


@PATIENTLY
@given(
    st.lists(st.tuples(st.text(max_size=5), JSON_TEXT), max_size=4, unique_by=lambda m: m[0]),
    SPACE,
    SPACE,
)
def test_a_members_text_is_the_very_text_it_was_written_in(
    members: list[tuple[str, str]], before: str, after: str
) -> None:
    inside = ",".join(f"{before}{json.dumps(n)}{after}:{before}{v}{after}" for n, v in members)
    text = f"{before}{{{inside or before}}}{after}"
    found = members_of(text)
    assert [(name, source.text) for name, source in found.items()] == members
    assert {name: _read(source.text) for name, source in found.items()} == _read(text)


@PATIENTLY
@given(st.lists(JSON_TEXT, max_size=4), SPACE, SPACE)
def test_an_elements_text_is_the_very_text_it_was_written_in(
    elements: list[str], before: str, after: str
) -> None:
    inside = ",".join(f"{before}{element}{after}" for element in elements)
    text = f"{before}[{inside or before}]{after}"
    assert [source.text for source in elements_of(text)] == elements


@PATIENTLY
@given(st.text(alphabet='{}[]:,"\\0123456789.eE+-truefalsn \t\n\u00a0NI', max_size=20))
def test_what_python_refuses_is_refused_too(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=lambda _: pytest.fail("a constant got through"))
    except (ValueError, pytest.fail.Exception):
        expected = None
    if isinstance(expected, dict):
        assert {n: json.loads(s.text) for n, s in members_of(text).items()} == expected
    else:
        with pytest.raises(NotJson):
            members_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "null",
        "[]",
        "{",
        "{}}",
        "{} {}",
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        '{,"a":1}',
        '{"a":1 "b":2}',
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        '{"a":01}',
        '{"a":1.}',
        '{"a":.5}',
        '{"a":+1}',
        '{"a":0x1}',
        '{"a":"\n"}',
        '{"a":"\\x"}',
        '{"a":"\\u00g0"}',
        '{"a":1}\u00a0',
        '\ufeff{"a":1}',
        '{"a":1}\x00',
        '{"a":tru}',
        '{"a":[1,]}',
        '{"a":"',
    ],
)
def test_broken_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        members_of(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_json_lacks_are_refused_at_any_depth(constant: str) -> None:
    with pytest.raises(NotJson, match=constant) as caught:
        members_of(f'{{"a": 1, "payload": {{"deep": [{constant}]}}}}')
    assert caught.value.member == "payload"


def test_nesting_without_end_is_refused() -> None:
    for text in ('{"payload":' + "[" * 200_000, '{"payload":' + '{"a":' * 200_000):
        with pytest.raises(NotJson, match="nested too deeply"):
            members_of(text)


def test_integers_of_any_length_cost_little_and_lose_nothing() -> None:
    digits = "-" + "9" * 1_000_000
    assert members_of(f'{{"n":{digits}}}')["n"].text == digits


def test_a_repeated_member_is_refused_even_in_another_spelling() -> None:
    with pytest.raises(RepeatedMember) as caught:
        members_of(r'{"due_ms":1,"due\u005fms":2}')
    assert caught.value.member == "due_ms"


def test_members_may_repeat_inside_a_value_that_is_not_opened() -> None:
    assert members_of('{"payload":{"a":1,"a":2}}')["payload"].text == '{"a":1,"a":2}'
