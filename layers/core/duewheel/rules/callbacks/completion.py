"""Work that goes on after the call: how a receiver says so, and the token by which it reports the
end.

A token (`payload_encoding.py`) is good for one attempt at one task. Whoever has the secret can
check it without a look at the task, and the same attempt has the same token, even if its call is
repeated after a crash.
"""

import hmac
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from duewheel.rules.callbacks.payload_encoding import AttemptName, token_of
from duewheel.rules.fields import says

WITHIN_HEADER = "duewheel-complete-within"
WITHIN_SECONDS_MAX = 86_400
TOKEN_CHARACTERS_MAX = 64

WithinSeconds = Annotated[
    int,
    Meta(ge=1, le=WITHIN_SECONDS_MAX),
    says("How long the receiver may work, after it got the task, until it reports the end."),
]


def name_in(token: str | None, task_id: str, secret: bytes) -> AttemptName | None:
    """None for any text that is no token of this task."""
    if token is None or len(token) > TOKEN_CHARACTERS_MAX or not token.isascii():
        return None
    numbers = token.split(".")[:2]
    if len(numbers) < 2 or not all(map(str.isdecimal, numbers)):
        return None
    name = AttemptName(*map(int, numbers))
    is_right = hmac.compare_digest(token_of(task_id, name, secret).encode(), token.encode())
    return name if is_right else None


def within_from_header(headers: Mapping[str, str]) -> int | None:
    """None if the receiver says nothing; raises ValueError if it says nothing that is allowed."""
    text = headers.get(WITHIN_HEADER)
    if text is None:
        return None
    text = text.strip()
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    return _allowed(int(text) if is_number else None)


def within_from_answer(answer: Mapping[str, Any]) -> int | None:
    """Of a function's answer, likewise."""
    return _allowed(answer[WITHIN_HEADER]) if WITHIN_HEADER in answer else None


def _allowed(seconds: Any) -> int:
    if type(seconds) is not int or not 1 <= seconds <= WITHIN_SECONDS_MAX:
        raise ValueError(f"{WITHIN_HEADER} is no whole number from 1 to {WITHIN_SECONDS_MAX}")
    return seconds


def completes_within(callback: Any) -> int | None:
    """Of a callback whose receiver reports the end of its work."""
    seconds: int | None = getattr(callback, "complete_within_seconds", None)
    return seconds
