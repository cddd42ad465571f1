"""The API document against the running handlers: accepted members, and answers."""

import re
from typing import Any

import pytest

from duewheel.api.wheel_calls import API_DOCUMENT
from tests.support.api_document import (
    OPERATIONS,
    body_of,
    resolved,
    wrong_with,
    wrong_with_answer,
)
from tests.support.clock import ManualClock
from tests.support.two_businesses import MINE, OPERATOR, REQUESTS, Owned, asked, owned

V1 = [name for name in REQUESTS if name[1].startswith("/v1/")]
WITH_BODY = [name for name in V1 if body_of(name) is not None]
WITH_QUERY = [
    name
    for name in V1
    if any(one["in"] == "query" for one in OPERATIONS[name].get("parameters", ()))
]
KNOWN = re.compile(r"is unknown here; known are (.*)\.$")


def known_by(answer: Any) -> set[str]:
    """The known names, which the refusal of an unknown name lists."""
    found = KNOWN.search(answer.body["detail"])
    assert found, answer
    return set(found[1].split(", "))


@pytest.mark.parametrize("name", [name for name in REQUESTS if name[0] != "GET"], ids=" ".join)
def test_a_changing_call_answers_by_the_document(wired: ManualClock, name: tuple[str, str]) -> None:
    assert_answers(name, owned(wired, MINE))


def test_reading_calls_answer_by_the_document(wired: ManualClock) -> None:
    mine = owned(wired, MINE)
    for name in REQUESTS:
        if name[0] == "GET":
            assert_answers(name, mine)


def assert_answers(name: tuple[str, str], mine: Owned) -> None:
    target, body = REQUESTS[name](mine)
    answer = asked(OPERATOR, name[0], target, body)
    assert wrong_with_answer(answer.body, name, answer.status) == [], name
    if body is not None:
        schema = body_of(name)
        assert schema is not None
        assert wrong_with(body, schema) == []


def test_a_body_accepts_exactly_the_members_of_the_document(wired: ManualClock) -> None:
    mine = owned(wired, MINE)
    for name in WITH_BODY:
        target, _ = REQUESTS[name](mine)
        schema = body_of(name)
        assert schema is not None
        answer = asked(OPERATOR, name[0], target, {"nonsense": 1})
        assert known_by(answer) == set(resolved(schema)["properties"]), name


def test_a_query_accepts_exactly_the_parameters_of_the_document(wired: ManualClock) -> None:
    mine = owned(wired, MINE)
    for name in WITH_QUERY:
        target, body = REQUESTS[name](mine)
        answer = asked(OPERATOR, name[0], f"{target.partition('?')[0]}?nonsense=1", body)
        parameters = OPERATIONS[name]["parameters"]
        declared = {one["name"] for one in parameters if one["in"] == "query"}
        assert known_by(answer) == declared, name


def test_calls_without_parameters_in_the_document_ignore_the_query(wired: ManualClock) -> None:
    mine = owned(wired, MINE)
    for name in sorted(set(V1) - set(WITH_QUERY)):
        target, body = REQUESTS[name](mine)
        answer = asked(OPERATOR, name[0], f"{target}?nonsense=1", body)
        assert "unknown here" not in answer.text, name


def test_the_document_is_served_unchanged(wired: ManualClock) -> None:
    answer = asked("duewheel-read-nothing", "GET", "/v1/openapi.json")
    assert (answer.status, answer.text) == (200, API_DOCUMENT.read_text("utf-8"))
