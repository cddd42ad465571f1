"""Signatures of callbacks as Standard Webhooks defines them: HMAC-SHA256 over id, time and body.

While a secret is being replaced two of them live, and a callback carries one signature of each, so
that receivers can change over when they like.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable

SECRET_BYTES_MIN = 24
SECRET_BYTES_MAX = 64
SECRETS_MAX = 2
SECRET_IS = (
    f"must be 'whsec_' and the base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes."
)

_PREFIX = "whsec_"
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SHOWN_CHARACTERS = 4


def secret_from(text: str) -> bytes:
    """Raises ValueError, which does not repeat what was given."""
    encoded = text.removeprefix(_PREFIX)
    if encoded == text or not _BASE64.fullmatch(encoded):
        raise ValueError(SECRET_IS)
    try:
        secret = base64.b64decode(encoded.rstrip("=") + "=" * (-len(encoded.rstrip("=")) % 4))
    except binascii.Error:
        raise ValueError(SECRET_IS) from None
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise ValueError(SECRET_IS)
    return secret


def hint_of(text: str) -> str:
    """What may be shown of a secret: enough to tell two apart, too little to guess by."""
    return f"{_PREFIX}…{text.rstrip('=')[-_SHOWN_CHARACTERS:]}"


def signatures(secrets: Iterable[bytes], webhook_id: str, seconds: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret, newest first."""
    signed = f"{webhook_id}.{seconds}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode("ascii")
        for secret in secrets
    )
