"""API keys: text, hashes, rotation and expiry."""

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
def test_the_text_of_a_key_is_read_as_its_id_and_secret(key_id: str, secret: str) -> None:
    text = key_text(key_id, secret)
    assert brought_by(f"Bearer {text}") == Brought(key_id, secret)
    assert SCANNED.fullmatch(text)
    assert is_key_id(key_id)


@each_case("text", ["'{}'", "KEY={}\n", "bearer {};", '{{"key":"{}"}}', "https://a.example/?{}&a"])
def test_a_scanner_finds_a_key_within_other_text(text: str) -> None:
    keys = [key_text(id_text(number), secret_text(bytes([number] * 32))) for number in range(256)]
    found = SCANNED.finditer("".join(text.format(key) for key in keys))
    assert [one[0] for one in found] == keys


@given(st.lists(st.binary(min_size=32, max_size=32), unique=True, min_size=2, max_size=2))
def test_different_secrets_have_different_texts(both: list[bytes]) -> None:
    assert secret_text(both[0]) != secret_text(both[1])


def test_the_checksum_is_the_crc_of_the_text_before_it() -> None:
    body, _, checksum = TEXT.rpartition("_")
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    value = 0
    for digit in checksum:
        value = value * 62 + digits.index(digit)
    assert value == crc32(body.encode())


@given(st.integers(3, len(TEXT) - 1), st.characters(codec="ascii"))
def test_a_key_with_one_wrong_character_is_not_read(place: int, character: str) -> None:
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
def test_a_header_without_a_valid_key_is_not_read(header: str) -> None:
    assert brought_by(header) is None


def test_only_its_own_secret_opens_a_key() -> None:
    assert KEY.digest == sha256(SECRET.encode()).digest()
    assert opens(SECRET, KEY, NOW_MS)
    assert not opens(OTHER, KEY, NOW_MS)
    assert not opens(SECRET, None, NOW_MS)


def test_no_secret_matches_the_hash_that_is_compared_for_a_missing_secret() -> None:
    """A key without an earlier secret is compared with it, too."""
    assert not opens("", KEY, NOW_MS)
    assert not opens("\0" * 32, replace(KEY, previous_until_ms=NOW_MS + 1), NOW_MS)


@pytest.mark.parametrize("key", [None, KEY, revoked(KEY, NOW_MS), replace(KEY, expires_ms=1)])
def test_each_check_makes_the_same_number_of_comparisons(
    key: ApiKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cases take the same time, so that an answer's time does not show whether a key exists."""
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def noted(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    opens(OTHER, key, NOW_MS)
    opens(SECRET, key, NOW_MS)
    assert compared == [(32, 32)] * 4


def test_after_a_rotation_the_old_secret_is_valid_for_the_overlap() -> None:
    after = rotated(KEY, digest_of(OTHER), NOW_MS, overlap_seconds=60)
    assert opens(OTHER, after, NOW_MS)
    assert opens(SECRET, after, NOW_MS + 59_999)
    assert not opens(SECRET, after, NOW_MS + 60_000)
    assert opens(OTHER, after, NOW_MS + 60_000)
    assert after.version == KEY.version + 1


def test_a_second_rotation_ends_the_first_secret_immediately() -> None:
    third = secret_text(b"\x01" * 32)
    twice = rotated(rotated(KEY, digest_of(OTHER), NOW_MS, 60), digest_of(third), NOW_MS, 60)
    assert [opens(secret, twice, NOW_MS) for secret in (SECRET, OTHER, third)] == [
        False,
        True,
        True,
    ]


def test_no_secret_opens_a_revoked_or_expired_key() -> None:
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


def test_a_key_is_deleted_ninety_days_after_its_end_and_never_while_it_lives() -> None:
    assert KEY.gone_ms is None
    expiring = replace(KEY, expires_ms=NOW_MS + 10 * DAY_MS)
    assert expiring.gone_ms == NOW_MS + (10 + KEPT_DAYS) * DAY_MS
    ended = revoked(expiring, NOW_MS)
    assert not ended.is_gone(NOW_MS + KEPT_DAYS * DAY_MS - 1)
    assert ended.is_gone(NOW_MS + KEPT_DAYS * DAY_MS)
