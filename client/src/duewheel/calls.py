"""One call of the interface, and how long it may be repeated after its answer was lost."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any
from urllib.parse import quote

from duewheel.instants import plain
from duewheel.requests import json_bytes

ALWAYS = inf
IDEMPOTENCY_KEY = "idempotency-key"
NEVER = 0.0


@dataclass(frozen=True, kw_only=True)
class Call:
    """`repeatable_seconds`: a repeat that arrives within them, counted from the first request, has
    no further effect."""

    method: str
    path: str
    content: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    repeatable_seconds: float
    is_read: bool = False


def reading(path: str, query: Mapping[str, Any] | None = None) -> Call:
    return Call(
        method="GET", path=path + query_text(query), repeatable_seconds=ALWAYS, is_read=True
    )


def asking(path: str, body: Mapping[str, Any]) -> Call:
    """A POST that only computes."""
    return Call(
        method="POST",
        path=path,
        content=json_bytes(body),
        repeatable_seconds=ALWAYS,
        is_read=True,
    )


def changing(
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    repeatable_seconds: float = NEVER,
) -> Call:
    return Call(
        method=method,
        path=path + query_text(query),
        content=b"" if body is None else json_bytes(body),
        headers=headers or {},
        repeatable_seconds=repeatable_seconds,
    )


def version_header(version: int | None) -> dict[str, str]:
    return {} if version is None else {"if-match": f'"{version}"'}


def once_of(once: bool | str) -> dict[str, Any]:
    """Header and repeats of a call that makes something once: under a key of its own, or the
    caller's."""
    if not once:
        return {}
    key = once if isinstance(once, str) else str(uuid.uuid4())
    return {"headers": {IDEMPOTENCY_KEY: key}, "repeatable_seconds": ALWAYS}


def part(text: str) -> str:
    """One part of a path. Proxies that normalise paths would turn `.` and `..` into another call,
    so they are refused."""
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is not allowed in a path")
    return quote(text, safe=":~")


def keyed(biz_type: str) -> str:
    return f"/v1/businesses/{part(biz_type)}/tasks"


def by_key(biz_type: str, key: str) -> str:
    return f"{keyed(biz_type)}/{part(key)}"


def query_text(query: Mapping[str, Any] | None) -> str:
    """The query as it is sent; a list repeats its name. Signatures cover this text, so only this
    function writes it."""
    named = {name: value for name, value in (query or {}).items() if value is not None}
    pairs = [
        f"{name}={quote(_text(one), safe='~')}"
        for name, value in named.items()
        for one in (value if isinstance(value, list | tuple) else [value])
    ]
    return "?" + "&".join(pairs) if pairs else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(plain(value))
