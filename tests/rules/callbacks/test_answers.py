"""What is kept of an answer, and which headers may be named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.requests import business_change
from duewheel.rules.businesses.settings import Defaults
from duewheel.rules.callbacks.outcome import Outcome, Verdict, kept_answer, received
from duewheel.rules.callbacks.types import KEPT_BYTES_MAX, KeepAnswers
from duewheel.rules.refusals import Refusal
from tests.support.cases import each_case

DEFAULTS = Defaults(30, 10.0, 30.0)
HEADERS = {"x-request": "17", "x-auth": "abcdef", "x-note": "Bearer abcdef"}
ANSWER = received(HEADERS, b"hello", is_whole=True)
OUTCOME = Outcome(Verdict.DELIVERED, "hello", status_code=200, answer=ANSWER)


@each_case(
    ("keep", "body", "is_whole", "headers"),
    [
        (KeepAnswers(), "hello", True, {}),
        (KeepAnswers(5), "hello", True, {}),
        (KeepAnswers(4), "hell", False, {}),
        (KeepAnswers(0), "", False, {}),
        (KeepAnswers(0, ("x-request", "x-other")), "", False, {"x-request": "17"}),
        # The value shows what it is.
        (KeepAnswers(0, ("x-auth", "x-note")), "", False, {}),
    ],
)
def test_the_beginning_of_the_body_and_the_named_headers_are_kept(
    keep: KeepAnswers, body: str, is_whole: bool, headers: dict[str, str]
) -> None:
    kept = kept_answer(OUTCOME, keep, 7)
    assert kept is not None
    assert (kept.body, kept.is_whole, kept.headers) == (body, is_whole, headers)
    assert (kept.at_ms, kept.status_code) == (7, 200)


@each_case(
    ("outcome", "keep"),
    [
        (OUTCOME, None),
        (replace(OUTCOME, answer=None), KeepAnswers()),
        (Outcome(Verdict.RETRY, "no whole reply within 10 s"), KeepAnswers()),
    ],
)
def test_nothing_is_kept_without_the_setting_or_without_an_answer(
    outcome: Outcome, keep: KeepAnswers | None
) -> None:
    assert kept_answer(outcome, keep, 7) is None


def test_a_secret_of_the_call_that_the_receiver_repeats_in_a_header_is_not_kept() -> None:
    sent = [("authorization", "Bearer 0123456789")]
    answer = received({"x-echo": "got 0123456789"}, b"", is_whole=True, sent=sent)
    kept = kept_answer(replace(OUTCOME, answer=answer), KeepAnswers(0, ("x-echo",)), 7)
    assert kept is not None
    assert kept.headers == {"x-echo": "got (secret)"}


@given(st.binary(max_size=200), st.integers(0, 60), st.booleans())
def test_what_is_kept_never_exceeds_its_bytes(body: bytes, count: int, is_whole: bool) -> None:
    answer = received({}, body, is_whole=is_whole)
    kept = kept_answer(replace(OUTCOME, answer=answer), KeepAnswers(count), 7)
    assert kept is not None
    assert len(kept.body.encode()) <= count
    assert kept.is_whole == (is_whole and kept.body == body.decode("utf-8", "replace"))


def change(keep: Any) -> Any:
    return business_change(json.dumps({"keep_answers": keep}), DEFAULTS)["keep_answers"]


def test_a_setting_names_headers_in_any_case_once() -> None:
    assert change({}) == KeepAnswers(KEPT_BYTES_MAX, ())
    both = {"body_bytes": 0, "headers": ["X-Request", "x-request", "Date"]}
    assert change(both) == KeepAnswers(0, ("x-request", "date"))
    assert change(None) is None


@each_case(
    ("keep", "field"),
    [
        ({"body_bytes": KEPT_BYTES_MAX + 1}, "keep_answers.body_bytes"),
        ({"body_bytes": -1}, "keep_answers.body_bytes"),
        ({"headers": ["a"] * 9}, "keep_answers.headers"),
        ({"headers": ["Set-Cookie"]}, "keep_answers.headers[0]"),
        ({"headers": ["date", "Authorization"]}, "keep_answers.headers[1]"),
        ({"headers": ["WWW-Authenticate"]}, "keep_answers.headers[0]"),
        ({"headers": ["x-api-key"]}, "keep_answers.headers[0]"),
        ({"headers": ["two words"]}, "keep_answers.headers[0]"),
        ({"other": 1}, "keep_answers.other"),
        (True, "keep_answers"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_field(keep: Any, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        change(keep)
    assert refused.value.field == field
