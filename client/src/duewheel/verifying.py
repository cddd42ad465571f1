"""Verifies callbacks.

Signatures are those of Standard Webhooks (docs/delivery.md). Invariant: a delivery that `verify`
returns was signed with one of the secrets within five minutes of now, byte for byte, as this call
and no other: dots separate id, timestamp and body in the signed text, so an id or timestamp with a
dot is refused. Every other request raises `NotGenuine`, with any headers.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import iscoroutine
from typing import Any, Literal, cast, get_args

from duewheel.deliveries import Delivery
from duewheel.errors import DuewheelError
from duewheel.instants import instant_from

TOLERANCE_SECONDS = 300
SECRET_PREFIX = "whsec_"
VERSION = "v1"
AN_ID = re.compile(r"[A-Za-z0-9_-]+")
A_TIMESTAMP = re.compile(r"[0-9]{1,12}")
OF_AN_ENVIRON = frozenset({"REQUEST_METHOD", "wsgi.input"})

Claim = Literal["mine", "busy", "done"]
Headers = Mapping[str, Any] | Iterable[tuple[bytes | str, bytes | str]]


class NotGenuine(DuewheelError):
    """The callback is not genuine. Answer 401: the service retries the call, and a forger gets no
    information."""


class StillAtWork(DuewheelError):
    """An earlier attempt of this task is still being handled. Answer 503, so that the service tries
    again: a 2xx would end the task though that attempt may yet fail."""


class Verifier:
    """The half of a receiver that is the same in sync and async code."""

    def __init__(self, secrets: str | Iterable[str], now: Callable[[], float]) -> None:
        self._keys = [
            _key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)
        ]
        if not self._keys:
            raise ValueError("without a secret nothing can be verified")
        self._now = now

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._keys)} secrets)"

    def verify(self, headers: Headers, body: bytes) -> Delivery:
        """`headers` may be a mapping with names in any case, a WSGI environ, or the pairs of ASGI.
        `body` is the bytes of the request, not decoded."""
        if not isinstance(body, bytes):
            raise TypeError("the body is needed as the bytes that came")
        given = _by_name(headers)
        task_id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
        if not AN_ID.fullmatch(task_id) or not A_TIMESTAMP.fullmatch(timestamp):
            raise NotGenuine("Its id or its timestamp is none that the service writes")
        signed = f"{task_id}.{timestamp}.".encode() + body
        if not self._is_signed(signed, given.get("webhook-signature", "")):
            raise NotGenuine("No signature fits the request")
        sent_at_seconds = int(timestamp)
        if abs(self._now() - sent_at_seconds) > TOLERANCE_SECONDS:
            raise NotGenuine("It was signed more than five minutes ago, or ahead")
        return Delivery(
            task_id=task_id,
            sent_at_seconds=sent_at_seconds,
            biz_type=given.get("duewheel-biz-type"),
            due_at=_read(instant_from, given.get("duewheel-due-at")),
            attempt=_read(int, given.get("duewheel-attempt")),
            content_type=given.get("content-type", ""),
            body=body,
            completion_token=given.get("duewheel-completion-token"),
        )

    def _is_signed(self, signed: bytes, signatures: str) -> bool:
        """Compares in constant time."""
        brought = [
            text.encode(errors="replace")
            for version, _, text in (each.partition(",") for each in signatures.split(" "))
            if version == VERSION
        ]
        right = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in self._keys]
        return any(hmac.compare_digest(one, other) for one in brought for other in right)


def checked(claim: object) -> Claim:
    """Refuses the awaitable of an async `claim` that was not awaited: each repeat would be taken
    for a first delivery."""
    if claim not in get_args(Claim):
        if iscoroutine(claim):
            claim.close()
        raise TypeError(
            f"claim returned {claim!r}, not 'mine', 'busy' or 'done'. "
            "A Receiver needs a Seen with sync methods; async ones need an AsyncReceiver."
        )
    return cast(Claim, claim)


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a secret is whsec_ and base64, as it was set for the business")
    return key


def _by_name(headers: Headers) -> dict[str, str]:
    """The headers by name in lower case. Repeated ones are joined by a comma, as in WSGI; a joined
    id is invalid."""
    named: dict[str, str] = {}
    for key, value in _pairs(headers):
        if isinstance(value, str | bytes):
            name, text = _text(key).lower(), _text(value)
            named[name] = f"{named[name]},{text}" if name in named else text
    return named


def _pairs(headers: Headers) -> Iterator[tuple[bytes | str, bytes | str]]:
    """Underscores replace hyphens only in a WSGI environ. Elsewhere a name with an underscore is a
    header that the service does not send."""
    if not isinstance(headers, Mapping):
        yield from headers
    elif OF_AN_ENVIRON.isdisjoint(headers):
        yield from headers.items()
    else:
        yield "content-type", headers.get("CONTENT_TYPE", "")
        for name, text in headers.items():
            if name.startswith("HTTP_") and name != "HTTP_CONTENT_TYPE":
                yield name.removeprefix("HTTP_").replace("_", "-"), text


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _read(reader: Callable[[str], Any], text: str | None) -> Any:
    try:
        return None if text is None else reader(text)
    except ValueError:
        return None
