"""API keys: their text, their hashes, their lives."""

import hmac
import re
from hashlib import sha256
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.access.api_keys import (
    DAY_MS,
    ID_RANGE,
    KEPT_DAYS,
    PATTERN,
    SECRET_BYTES,
    ApiKey,
    Brought,
    State,
    brought_by,
    digest_of,
    id_text,
    is_key_id,
    key_text,
    opens,
    revoked,
    rotated,
    secret_text,
)
from duewheel.rules.access.grants import Grant, Right
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000
SECRET, OTHER = secret_text(bytes(range(32))), secret_text(bytes(32))
KEY = ApiKey(
    key_id="0123456789ab",
    name="orders",
    grants=(Grant(Right.READ, "*"),),
    digest=digest_of(SECRET),
    created_ms=NOW_MS,
    created_by="somebody",
)
TEXT = key_text(KEY.key_id, SECRET)
SCANNED = re.compile(rf"\b{PATTERN}\b")  # docs/security.md shows it to scanners

ids = st.integers(0, ID_RANGE - 1).map(id_text)
secrets = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES).map(secret_text)


@given(ids, secrets)
def test_a_key_comes_back_as_what_it_was_made_of(key_id: str, secret: str) -> None:
    text = key_text(key_id, secret)
    assert brought_by(f"Bearer {text}") == Brought(key_id, secret)
    assert SCANNED.fullmatch(text)
    assert is_key_id(key_id)


@each_case("text", ["'{}'", "KEY={}\n", "bearer {};", '{{"key":"{}"}}', "https://a.example/?{}&a"])
def test_a_scanner_finds_a_key_wherever_it_lies(text: str) -> None:
    keys = [key_text(id_text(number), secret_text(bytes([number] * 32))) for number in range(256)]
    found = SCANNED.finditer("".join(text.format(key) for key in keys))
    assert [one[0] for one in found] == keys


@given(st.lists(st.binary(min_size=32, max_size=32), unique=True, min_size=2, max_size=2))
def test_no_two_secrets_have_one_text(both: list[bytes]) -> None:
    assert secret_text(both[0]) != secret_text(both[1])


def test_the_checksum_is_the_crc_of_what_stands_before_it() -> None:
    body, _, checksum = TEXT.rpartition("_")
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    value = 0
    for digit in checksum:
        value = value * 62 + digits.index(digit)
    assert value == crc32(body.encode())


@given(st.integers(3, len(TEXT) - 1), st.characters(codec="ascii"))
def test_one_wrong_character_makes_no_key(place: int, character: str) -> None:
    mistyped = TEXT[:place] + character + TEXT[place + 1 :]
    if mistyped != TEXT:
        assert brought_by(f"Bearer {mistyped}") is None


@each_case("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    assert brought_by(f"{scheme} {TEXT}") == Brought(KEY.key_id, SECRET)


@each_case(
    "header",
    [
        "",
        TEXT,
        f"Basic {TEXT}",
        f"Bearer{TEXT}",
        f"Bearer {TEXT}, Bearer {TEXT}",
        f"Bearer {TEXT}\n",
        f" Bearer {TEXT}",
        f"Bearer {TEXT.replace('dw_', 'dx_')}",
        f"Bearer {TEXT[:-1]}",
        "Bearer " + "x" * 100_000,
        "Bearer dw_é",
    ],
)
def test_what_is_no_key_is_none(header: str) -> None:
    assert brought_by(header) is None


def test_the_secret_opens_its_key_and_no_other_does() -> None:
    assert KEY.digest == sha256(SECRET.encode()).digest()
    assert opens(SECRET, KEY, NOW_MS)
    assert not opens(OTHER, KEY, NOW_MS)
    assert not opens(SECRET, None, NOW_MS)


def test_nobody_has_the_secret_of_the_hash_that_stands_for_none() -> None:
    """A key without an earlier secret is compared with it, too."""
    assert not opens("", KEY, NOW_MS)
    assert not opens("\0" * 32, replace(KEY, previous_until_ms=NOW_MS + 1), NOW_MS)


@pytest.mark.parametrize("key", [None, KEY, revoked(KEY, NOW_MS), replace(KEY, expires_ms=1)])
def test_the_same_is_compared_whatever_the_key(
    key: ApiKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In constant time, and as often, so that its time does not tell a wrong secret of a key that
    there is from one of a key that there is not."""
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def noted(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    opens(OTHER, key, NOW_MS)
    opens(SECRET, key, NOW_MS)
    assert compared == [(32, 32)] * 4


def test_after_a_rotation_the_old_secret_is_good_for_the_overlap() -> None:
    after = rotated(KEY, digest_of(OTHER), NOW_MS, overlap_seconds=60)
    assert opens(OTHER, after, NOW_MS)
    assert opens(SECRET, after, NOW_MS + 59_999)
    assert not opens(SECRET, after, NOW_MS + 60_000)
    assert opens(OTHER, after, NOW_MS + 60_000)
    assert after.version == KEY.version + 1


def test_a_second_rotation_ends_the_first_secret_at_once() -> None:
    third = secret_text(b"\x01" * 32)
    twice = rotated(rotated(KEY, digest_of(OTHER), NOW_MS, 60), digest_of(third), NOW_MS, 60)
    assert [opens(secret, twice, NOW_MS) for secret in (SECRET, OTHER, third)] == [
        False,
        True,
        True,
    ]


def test_a_key_that_is_revoked_or_has_expired_is_opened_by_nothing() -> None:
    expiring = replace(KEY, expires_ms=NOW_MS + 1)
    assert expiring.state(NOW_MS) is State.LIVE
    assert opens(SECRET, expiring, NOW_MS)
    assert expiring.state(NOW_MS + 1) is State.EXPIRED
    assert not opens(SECRET, expiring, NOW_MS + 1)
    overlapping = rotated(KEY, digest_of(OTHER), NOW_MS, 60)
    ended = revoked(overlapping, NOW_MS)
    assert ended.state(NOW_MS) is State.REVOKED
    assert not opens(OTHER, ended, NOW_MS)
    assert not opens(SECRET, ended, NOW_MS)


def test_a_key_goes_ninety_days_after_its_end_and_never_while_it_lives() -> None:
    assert KEY.gone_ms is None
    expiring = replace(KEY, expires_ms=NOW_MS + 10 * DAY_MS)
    assert expiring.gone_ms == NOW_MS + (10 + KEPT_DAYS) * DAY_MS
    ended = revoked(expiring, NOW_MS)
    assert not ended.is_gone(NOW_MS + KEPT_DAYS * DAY_MS - 1)
    assert ended.is_gone(NOW_MS + KEPT_DAYS * DAY_MS)
