"""Requests about API keys."""

import json
from typing import Any

import pytest

from duewheel.rules.access.grants import Grant, Right
from duewheel.rules.access.requests import (
    GRANTS_MAX,
    OVERLAP_SECONDS_DEFAULT,
    OVERLAP_SECONDS_MAX,
    NewApiKey,
    checked_key_id,
    new_api_key,
    overlap_seconds,
)
from duewheel.rules.refusals import InvalidField, MalformedBody, Refusal, UnknownApiKey
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000  # 2027-01-15T08:00:00Z
GRANT = {"right": "write", "businesses": "orders-*"}
BODY = {"name": "orders service", "grants": [GRANT]}


def read(**members: Any) -> NewApiKey:
    return new_api_key(json.dumps({**BODY, **members}), NOW_MS)


def field_of(**members: Any) -> str | None:
    with pytest.raises(InvalidField) as refused:
        read(**members)
    return refused.value.field


def test_a_request_for_a_key_has_a_name_and_grants() -> None:
    assert read() == NewApiKey("orders service", (Grant(Right.WRITE, "orders-*"),))
    assert read(expires_at="2027-01-15T08:00:00.001Z").expires_ms == NOW_MS + 1


def test_a_repeated_grant_is_kept_once() -> None:
    assert len(read(grants=[GRANT, {"right": "read", "businesses": "*"}, GRANT]).grants) == 2


@each_case("name", ["", " a", "a ", "a\nb", "x" * 101, 7, None, "\u2028"])
def test_a_name_is_printable_and_short(name: Any) -> None:
    assert field_of(name=name) == "name"


@each_case(
    ("grants", "field"),
    [
        ([], "grants"),
        ([GRANT] * (GRANTS_MAX + 1), "grants"),
        ("write", "grants"),
        (["write"], "grants[0]"),
        ([GRANT, {**GRANT, "right": "own"}], "grants[1].right"),
        ([{**GRANT, "businesses": "Orders"}], "grants[0].businesses"),
        ([{**GRANT, "businesses": "a,read:*"}], "grants[0].businesses"),
        ([{**GRANT, "businesses": ""}], "grants[0].businesses"),
        ([{"right": "read"}], "grants[0].businesses"),
        ([{**GRANT, "until": 7}], "grants[0].until"),
    ],
)
def test_a_grant_needs_a_right_and_businesses(grants: Any, field: str) -> None:
    assert field_of(grants=grants) == field


@each_case(
    "expires_at", ["2027-01-15T08:00:00Z", "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "soon"]
)
def test_a_key_expires_in_the_future_or_never(expires_at: str) -> None:
    assert field_of(expires_at=expires_at) == "expires_at"


@each_case("body", ["", "[]", "{", '{"name": "a", "name": "b", "grants": []}'])
def test_an_invalid_body_is_refused(body: str) -> None:
    with pytest.raises(Refusal):
        new_api_key(body, NOW_MS)


def test_the_default_overlap_is_a_day() -> None:
    assert overlap_seconds(None) == overlap_seconds("{}") == OVERLAP_SECONDS_DEFAULT == 86_400
    for seconds in (0, OVERLAP_SECONDS_MAX):
        assert overlap_seconds(json.dumps({"overlap_seconds": seconds})) == seconds
    for wrong in (-1, OVERLAP_SECONDS_MAX + 1, 1.5, "7", True):
        with pytest.raises(InvalidField):
            overlap_seconds(json.dumps({"overlap_seconds": wrong}))
    with pytest.raises(MalformedBody):
        overlap_seconds("[]")


@each_case("text", ["", "0" * 11, "0" * 13, "dw_123456789", "0123456789a/", "é" * 12])
def test_an_invalid_id_belongs_to_no_key(text: str) -> None:
    with pytest.raises(UnknownApiKey):
        checked_key_id(text)
