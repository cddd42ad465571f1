"""API keys: their text, how long they are valid, and the check of a secret.

A key reads `dw_<id>_<secret>_<checksum>`, each part of a fixed length in base 62, so that secret
scanners find one by a single pattern. The checksum refuses mistyped and invented keys without a
read; it proves nothing.

Invariant: of a secret only its hash is kept. A fast hash is enough: a secret of 256 random bits
cannot be guessed. A slow hash is for passwords that people choose, and would slow down every call.
"""

import hmac
import re
from enum import StrEnum
from hashlib import sha256
from typing import Annotated
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.access.grants import Grant
from duewheel.rules.fields import says, whole_text

ID_CHARACTERS = 12
SECRET_BYTES = 32
ID_RANGE = 62**ID_CHARACTERS
KEPT_DAYS = 90  # once it has ended
DAY_MS = 86_400_000

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_CHARACTERS = 43  # 62^43 is more than 2^256
_CHECKSUM_CHARACTERS = 6
PATTERN = "dw_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})_([0-9A-Za-z]{6})"
_BEARER = re.compile(f"[Bb][Ee][Aa][Rr][Ee][Rr] +{PATTERN} *")
_ID = re.compile("[0-9A-Za-z]{12}")
ApiKeyId = Annotated[str, says(pattern=whole_text(_ID))]
_UNKNOWN_HASH = bytes(SECRET_BYTES)  # a hash to which no secret is known


class Brought(Struct, frozen=True):
    """A key as its text says, with a correct checksum."""

    key_id: str
    secret: str


class State(StrEnum):
    LIVE = "live"
    EXPIRED = "expired"
    REVOKED = "revoked"


class ApiKey(Struct, frozen=True, kw_only=True):
    """`previous_digest` is that of the secret before the last rotation, which stays valid for a
    while."""

    key_id: str
    name: str
    grants: tuple[Grant, ...]
    digest: bytes
    created_ms: int
    created_by: str
    version: int = 1
    expires_ms: int | None = None
    previous_digest: bytes | None = None
    previous_until_ms: int = 0
    revoked_ms: int | None = None
    last_used_day: int | None = None  # since the epoch

    def state(self, now_ms: int) -> State:
        if self.revoked_ms is not None:
            return State.REVOKED
        if self.expires_ms is not None and now_ms >= self.expires_ms:
            return State.EXPIRED
        return State.LIVE

    @property
    def gone_ms(self) -> int | None:
        """When TTL deletes its record; never while the key is live."""
        ends = [ms for ms in (self.expires_ms, self.revoked_ms) if ms is not None]
        return min(ends) + KEPT_DAYS * DAY_MS if ends else None

    def is_gone(self, now_ms: int) -> bool:
        """TTL may delete the record days later."""
        return self.gone_ms is not None and now_ms >= self.gone_ms


def key_text(key_id: str, secret: str) -> str:
    body = f"dw_{key_id}_{secret}"
    return f"{body}_{_base62(crc32(body.encode()), _CHECKSUM_CHARACTERS)}"


def id_text(random_number: int) -> str:
    """`random_number`: from 0, below `ID_RANGE`."""
    return _base62(random_number, ID_CHARACTERS)


def secret_text(random_bytes: bytes) -> str:
    return _base62(int.from_bytes(random_bytes, "big"), _SECRET_CHARACTERS)


def is_key_id(text: str) -> bool:
    return bool(_ID.fullmatch(text))


def brought_by(authorization: str) -> Brought | None:
    """The key of the header; None unless it is a bearer token with the form of a key."""
    found = _BEARER.fullmatch(authorization)
    if found is None or key_text(found[1], found[2])[-_CHECKSUM_CHARACTERS:] != found[3]:
        return None
    return Brought(found[1], found[2])


def digest_of(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


def opens(secret: str, key: ApiKey | None, now_ms: int) -> bool:
    """Whether the secret opens this key now. For an unknown key, or one without an earlier secret,
    the same comparison is made, so that the time it takes reveals nothing."""
    digest = digest_of(secret)
    current = key.digest if key else _UNKNOWN_HASH
    previous = (key.previous_digest if key else None) or _UNKNOWN_HASH
    is_current = hmac.compare_digest(digest, current)
    is_previous = hmac.compare_digest(digest, previous)
    if key is None or key.state(now_ms) is not State.LIVE:
        return False
    return is_current or (is_previous and now_ms < key.previous_until_ms)


def rotated(key: ApiKey, digest: bytes, now_ms: int, overlap_seconds: int) -> ApiKey:
    """The current secret stays valid for so long; the one before it ends at once."""
    return replace(
        key,
        digest=digest,
        previous_digest=key.digest,
        previous_until_ms=now_ms + overlap_seconds * 1000,
        version=key.version + 1,
    )


def revoked(key: ApiKey, now_ms: int) -> ApiKey:
    return replace(key, revoked_ms=now_ms, version=key.version + 1)


def _base62(number: int, characters: int) -> str:
    text = ""
    for _ in range(characters):
        number, digit = divmod(number, 62)
        text = _DIGITS[digit] + text
    return text
