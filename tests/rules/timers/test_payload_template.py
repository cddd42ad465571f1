"""Placeholders are found in strings of the payload, and nowhere else."""

import json

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.timers.payload_template import (
    PLACEHOLDER,
    PLACEHOLDERS,
    PLACEHOLDERS_MAX,
    without_placeholders,
    wrong_placeholder,
)
from tests.support.cases import each_case


@each_case(
    "payload",
    [
        *(f'"{{{{{name}}}}}"' for name in PLACEHOLDERS),
        '{"a":{"b":{}}}',
        '{"a":"{{","b":{"c":{}}}',
        '{"a":"{{due_at","b":{"c":"d"}}',
        '"{{due_at}"',
        r'"\u007b{colour}}"',
        "null",
    ],
)
def test_known_placeholders_and_other_texts_are_accepted(payload: str) -> None:
    json.loads(payload)
    assert wrong_placeholder(payload) is None


@each_case("payload", ['"{{colour}}"', '"{{ due_at }}"', '["{{}}"]', '"{{{x}}}"'])
def test_an_unknown_placeholder_is_refused(payload: str) -> None:
    wrong = wrong_placeholder(payload)
    assert wrong is not None
    assert "{{due_at}}" in wrong


def test_the_number_of_placeholders_is_limited() -> None:
    assert wrong_placeholder(json.dumps("{{number}}" * PLACEHOLDERS_MAX)) is None
    assert wrong_placeholder(json.dumps("{{number}}" * (PLACEHOLDERS_MAX + 1))) is not None


@given(st.text(alphabet='{}\\"u0abdue_t') | st.text())
def test_an_escaped_text_has_the_same_meaning_and_no_placeholders(text: str) -> None:
    source = without_placeholders(json.dumps(text))
    assert json.loads(source) == text
    assert not PLACEHOLDER.search(source)
