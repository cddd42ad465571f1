"""Signatures of callbacks as Standard Webhooks defines them: HMAC-SHA256 over id, time and body.

While a secret is being replaced, both are valid: a callback has a signature by each, so that
receivers can change at any time in between.

The signed text joins the parts by dots, and many receivers accept an id that contains dots. So a
body that such a receiver could read as a future timestamp and another body is not signed: its
signature would be valid for a second call, later.
"""

import base64
import hmac
import json
import re
from collections.abc import Iterable, Iterator

SECRET_BYTES_MIN = 24
SECRET_BYTES_MAX = 64
SECRETS_MAX = 2
SECRET_IS = (
    f"must be 'whsec_' and the base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes."
)

TOLERANCE_SECONDS = 300  # the difference from their clock that receivers accept in a timestamp

_PREFIX = "whsec_"
# Base64 of 24 to 64 bytes, with or without padding.
SECRET = re.compile(
    rf"{_PREFIX}(?:(?:[A-Za-z0-9+/]{{4}}){{8,20}}(?:[A-Za-z0-9+/]{{2,3}})?"
    r"|(?:[A-Za-z0-9+/]{4}){21}(?:[A-Za-z0-9+/]{2})?)={0,2}"
)
_SHOWN_CHARACTERS = 4
# As lenient receivers read a timestamp that begins behind a dot, or with the body: blanks, a plus,
# then a hexadecimal number, or digits with or without a fraction and an exponent, then anything.
# Possessive, so that a body of digits is read once.
_BEGINS_AS_NUMBER = re.compile(
    r"(?:^|(?<=\.))"
    r"(?=\s*+\+?+(?:0[xX]([0-9A-Fa-f_]++)|([0-9_]++)((?:\.[0-9_]++)?[eE][+-]?[0-9]++)?))"
)
_SECRET_SECONDS_MAX = 100 * 366 * 86_400  # longer than a secret is kept


def secret_from(text: str) -> bytes:
    """Raises ValueError, which does not repeat the text."""
    if not SECRET.fullmatch(text):
        raise ValueError(SECRET_IS)
    encoded = text.removeprefix(_PREFIX).rstrip("=")
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4))


def hint_of(text: str) -> str:
    """The shown part of a secret: enough to distinguish two, too little to guess one."""
    return f"{_PREFIX}…{text.rstrip('=')[-_SHOWN_CHARACTERS:]}"


def signatures(secrets: Iterable[bytes], webhook_id: str, seconds: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret, newest first."""
    signed = f"{webhook_id}.{seconds}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode("ascii")
        for secret in secrets
    )


def has_second_reading(body: bytes, seconds: int) -> bool:
    """Whether a part of the body can be read as the timestamp of another call, for which a
    signature made at `seconds` would be valid as well. The text behind a dot in a JSON document is
    not a JSON document, so only a bare number has such a second reading."""
    text = body.decode()
    before_a_dot = text[: max(text.rfind("."), 0)]
    is_to_come = any(
        -TOLERANCE_SECONDS <= number - seconds <= _SECRET_SECONDS_MAX
        for found in _BEGINS_AS_NUMBER.finditer(before_a_dot)
        for number in _numbers(found)
    )
    return is_to_come and not _is_document(text)


def _numbers(found: re.Match[str]) -> Iterator[float]:
    """Those that different receivers read at this place."""
    hexadecimal, digits, rest = (text and text.replace("_", "") for text in found.groups())
    if hexadecimal:
        yield int(hexadecimal, 16)
    if digits:
        yield float(digits)
        if rest:
            yield float(digits + rest)


def _is_document(text: str) -> bool:
    try:
        json.loads(text, parse_int=str)  # int() takes no more than 4,300 digits
    except (ValueError, RecursionError):
        return False
    return text.lstrip().startswith(("{", "[", '"'))
