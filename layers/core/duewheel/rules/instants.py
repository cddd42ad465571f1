"""Instants as text: RFC 3339 in and out, milliseconds since the epoch in between. Finer fractions
are rounded up, so no instant becomes earlier than it was written.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from msgspec import Meta

_RFC_3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]"
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_EARLIEST_MS = -62_135_596_800_000  # the first one of the year 1
_LATEST_MS = 253_402_300_799_999  # the last one of the year 9999

WrittenMs = Annotated[int, Meta(ge=_EARLIEST_MS, le=_LATEST_MS)]  # of any instant as text


class NoInstant(ValueError):
    """The text is no RFC 3339 instant; the message says why."""


def ms_from_rfc3339(text: str) -> int:
    """Milliseconds since the epoch (negative before 1970). The offset is required."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise NoInstant("is no RFC 3339 instant with an offset, such as 2030-01-31T08:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, _, sign, offset_hour, offset_minute = match.groups()[6:]
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        raise NoInstant("names a day that is in no calendar") from None
    if second == 60:
        raise NoInstant("is a leap second, which this service's clocks do not have")
    if hour > 23 or minute > 59 or second > 59:
        raise NoInstant("names a time that is on no clock")
    offset_minutes = _offset_minutes(sign, offset_hour, offset_minute)
    minutes = days * 1440 + hour * 60 + minute - offset_minutes
    instant_ms = (minutes * 60 + second) * 1000 + _ms_rounded_up(fraction or "")
    if not _EARLIEST_MS <= instant_ms <= _LATEST_MS:
        raise NoInstant("is in no year from 1 to 9999 of UTC")
    return instant_ms


def rfc3339(instant_ms: int) -> str:
    """UTC with milliseconds: `2030-01-31T08:00:00.000Z`."""
    instant = _EPOCH + timedelta(milliseconds=instant_ms)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rfc3339_or_none(instant_ms: int | None) -> str | None:
    return None if instant_ms is None else rfc3339(instant_ms)


def _offset_minutes(sign: str | None, hour: str | None, minute: str | None) -> int:
    if sign is None or hour is None or minute is None:
        return 0
    if int(hour) > 23 or int(minute) > 59:
        raise NoInstant("has an offset that is on no clock")
    minutes = int(hour) * 60 + int(minute)
    return -minutes if sign == "-" else minutes


def _ms_rounded_up(fraction: str) -> int:
    ms = int(fraction[:3].ljust(3, "0"))
    return ms + 1 if fraction[3:].strip("0") else ms
