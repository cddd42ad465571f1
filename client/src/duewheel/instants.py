"""Instants and spans of time, in Python's types and in the service's notation."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

Seconds = timedelta | int | float


def rfc3339(instant: datetime) -> str:
    """A naive datetime is refused: its instant depends on the machine."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} has no time zone: use an aware datetime")
    return instant.isoformat()


def instant_from(text: str) -> datetime:
    return datetime.fromisoformat(text)


def seconds_of(span: Seconds) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else span


def plain(value: Any) -> Any:
    """A field of a request in JSON's types, with the instants and spans in it. Not for payloads,
    which stay unchanged."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return int(seconds) if seconds.is_integer() else seconds  # some fields refuse 900.0
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(member) for member in value]
    return value
