"""Opaque cursors: the position at which a list continues, sealed together with its query.

A cursor opens only unchanged, for the query that it was made for, with the secret. It hides
nothing: it holds a position and no data.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import overload

from duewheel.rules.fields import invalid

_SEAL_BYTES = 16

Question = Sequence[str | int | None]


def secret_of(wheel_secret: bytes) -> bytes:
    """The secret of cursors. It opens nothing else that the wheel's secret seals."""
    return hmac.digest(wheel_secret, b"cursors", "sha256")


@overload
def sealed(position: str, question: Question, secret: bytes) -> str: ...


@overload
def sealed(position: str | None, question: Question, secret: bytes) -> str | None: ...


def sealed(position: str | None, question: Question, secret: bytes) -> str | None:
    """The cursor to go on behind this position; None where the listing has ended."""
    if position is None:
        return None
    raw = _seal(position, question, secret) + position.encode()
    return urlsafe_b64encode(raw).decode("ascii").rstrip("=")


@overload
def opened(cursor: str, question: Question, secret: bytes) -> str: ...


@overload
def opened(cursor: str | None, question: Question, secret: bytes) -> str | None: ...


def opened(cursor: str | None, question: Question, secret: bytes) -> str | None:
    """The position; None at the start of a list. Refuses any text that `sealed` does not write."""
    if cursor is None:
        return None
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"==")
        position = raw[_SEAL_BYTES:].decode()
    except ValueError as error:  # of base64, ASCII and UTF-8 alike
        raise _refused() from error
    if not hmac.compare_digest(cursor, sealed(position, question, secret)):
        raise _refused()
    return position


def _seal(position: str, question: Question, secret: bytes) -> bytes:
    message = json.dumps([*question, position]).encode()
    return hmac.digest(secret, message, "sha256")[:_SEAL_BYTES]


def _refused() -> Exception:
    return invalid(
        "cursor",
        "was not made by this service for this query; "
        "repeat the parameters with which the listing began, or begin again without a cursor.",
    )
