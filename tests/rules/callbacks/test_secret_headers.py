"""Headers that contain secrets, and their shown form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.requests import checked_headers
from duewheel.rules.callbacks.secret_headers import carries_secret, shown_value, without_secrets
from duewheel.rules.refusals import InvalidField
from tests.support.cases import each_case

LONG = "0123456789abcdefghijklmn"
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=60)


@each_case(
    "name",
    [
        *("Authorization", "x-forwarded-authorization", "Cookie", "X-API-Key", "apikey"),
        *("X-Auth-Token", "x-amz-security-token", "api_secret", "X-Password", "x-passwd"),
        *("x-signature", "X-Session-Id", "x-jwt", "x-credentials"),
    ],
)
def test_a_header_carries_a_secret_by_its_name(name: str) -> None:
    assert carries_secret(name, "a")


@each_case("value", ["Bearer a", "basic a", "Token  a", "DPOP a", "ApiKey a"])
def test_a_header_carries_a_secret_by_the_scheme_of_its_value(value: str) -> None:
    assert carries_secret("x-gateway", value)


@each_case(
    ("name", "value"),
    [
        *(("content-type", "application/json"), ("x-team", "billing"), ("accept", "*/*")),
        *(("x-note", "Bearer"), ("x-note", "Bearers of news"), ("Idempotency-Key", LONG)),
    ],
)
def test_other_headers_are_shown_unchanged(name: str, value: str) -> None:
    assert not carries_secret(name, value)
    assert shown_value(name, value) == value


@each_case(
    ("value", "shown"),
    [
        ("", ""),
        ("secret", "… (sha256 2bb8)"),
        (LONG[:-1], "… (sha256 575f)"),
        (LONG, "0123… (sha256 d5ea)"),
        ("Bearer " + LONG[:-1], "Bearer … (sha256 3ad9)"),
        ("Bearer " + LONG, "Bearer 0123… (sha256 7987)"),
        ("pass word and more of it", "pass… (sha256 7149)"),
    ],
)
def test_a_long_secret_is_shown_by_its_beginning_and_a_digest(value: str, shown: str) -> None:
    assert shown_value("authorization", value) == shown


@given(VALUES)
def test_a_shown_form_is_never_accepted_as_a_value(value: str) -> None:
    shown = shown_value("authorization", value)
    with pytest.raises(InvalidField, match="shows of a secret"):
        checked_headers([("authorization", shown)], "callback.headers")


@given(st.text(max_size=200), VALUES.filter(lambda value: len(value) > 8), st.integers(0, 300))
def test_a_recorded_reply_contains_no_secret_and_no_part_of_one(
    before: str, secret: str, kept: int
) -> None:
    reply = (before + secret + before).encode()[:kept]
    cleaned = without_secrets(reply, [("authorization", f"Bearer {secret}")])
    assert secret.encode() not in cleaned
    assert not any(cleaned.endswith(secret.encode()[:n]) for n in range(5, len(secret)))


@each_case("part", ["0123456789", "abcdefghijkl"])
def test_no_part_of_a_header_that_carries_a_secret_is_recorded(part: str) -> None:
    headers = [("cookie", "session=0123456789; user=abcdefghijkl")]
    assert without_secrets(f"unknown: {part}".encode(), headers) == b"unknown: (secret)"


def test_a_reply_without_a_secret_is_recorded_unchanged() -> None:
    headers = [("authorization", f"Bearer {LONG}"), ("x-team", "billing"), ("cookie", "a")]
    assert without_secrets(b"a billing error: Bearer", headers) == b"a billing error: Bearer"
