"""Which headers of a callback carry a secret, and what an answer shows of such a value.

Invariant: of a secret at most its first characters and 16 bits of a digest leave the service, so
that two values can be distinguished and no value can be found by trying. The shown form is no valid
value of a header.
"""

import re
from collections.abc import Iterable
from hashlib import sha256

from duewheel.rules.callbacks.named_secrets import is_reference

# A name with one of these in it, in any case, carries a secret. Too many are hidden, not too few.
SECRET_WORDS = (
    "auth",
    "cookie",
    "credential",
    "jwt",
    "key",
    "pass",
    "secret",
    "session",
    "signature",
    "token",
)
NOT_SECRET = frozenset({"idempotency-key"})
SCHEMES = ("ApiKey", "Basic", "Bearer", "Digest", "DPoP", "Hawk", "Negotiate", "Token")
SHOWN_CHARACTERS = 4
SHOWN_OF_LENGTH_MIN = 24  # of shorter ones the first characters would be too much
DIGEST_CHARACTERS = 4

_ECHOED = b"(secret)"
_SCHEME = re.compile(rf"((?:{'|'.join(SCHEMES)}) +)(.*)", re.IGNORECASE | re.DOTALL)
_SHOWN = re.compile(rf".*… \(sha256 [0-9a-f]{{{DIGEST_CHARACTERS}}}\)")


def carries_secret(name: str, value: str) -> bool:
    """By its name, or since its value begins with the name of a scheme of authentication."""
    lower = name.lower()
    by_name = lower not in NOT_SECRET and any(word in lower for word in SECRET_WORDS)
    return by_name or _SCHEME.fullmatch(value) is not None


def shown_value(name: str, value: str) -> str:
    """What an answer shows of a header: the value, or of a secret its shown form. A reference to a
    secret of the business is none itself."""
    if not value or is_reference(value) or not carries_secret(name, value):
        return value
    found = _SCHEME.fullmatch(value)
    scheme, secret = found.groups() if found else ("", value)
    shown = secret[:SHOWN_CHARACTERS] if len(secret) >= SHOWN_OF_LENGTH_MIN else ""
    digest = sha256(value.encode()).hexdigest()[:DIGEST_CHARACTERS]
    return f"{scheme}{shown}… (sha256 {digest})"


def without_secrets(body_start: bytes, headers: Iterable[tuple[str, str]]) -> bytes:
    """The beginning of a reply that may repeat a secret which it was called with, or begin to."""
    for secret in _secrets(headers):
        body_start = body_start.replace(secret, _ECHOED)
        for length in range(min(len(secret), len(body_start)), SHOWN_CHARACTERS, -1):
            if body_start.endswith(secret[:length]):
                body_start = body_start[:-length] + _ECHOED
                break
    return body_start


def _secrets(headers: Iterable[tuple[str, str]]) -> list[bytes]:
    """Without their schemes, the longest first, so that none is cut by another within it."""
    found = set()
    for name, value in headers:
        if carries_secret(name, value):
            scheme = _SCHEME.fullmatch(value)
            found.add((scheme[2] if scheme else value).encode())
    return sorted((one for one in found if len(one) > SHOWN_CHARACTERS), key=len, reverse=True)


def is_shown_form(value: str) -> bool:
    """Whether a caller sends back what an answer showed."""
    return _SHOWN.fullmatch(value) is not None
