"""Time zones: the instants of a local time, in the zones of the IANA database.

The database is the packaged one (tzdata), on every machine: two functions must never compute
different instants. Instants and local times are whole seconds.
"""

from bisect import bisect_left
from datetime import datetime, timedelta
from functools import cache
from io import BytesIO
from pkgutil import get_data
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_START = datetime(1970, 1, 1)


class UnknownZone(ValueError):
    """No zone of that name is in the database."""


class Moments(NamedTuple):
    """The instants of one local time: two different ones if clocks were set back over it.
    `gap_until`: the local time is in a gap, which ends there, and `first` is the first instant
    after it."""

    first: int
    last: int
    gap_until: int | None = None


@cache
def zone_named(name: str) -> "ZoneInfo":
    from zoneinfo import ZoneInfo  # slow to import, and most starts meet no timer

    if name not in _names():
        raise UnknownZone(name)
    data = get_data("tzdata", f"zoneinfo/{name}")
    if data is None:
        raise UnknownZone(name)
    return ZoneInfo.from_file(BytesIO(data), key=name)


def offset_at(zone: "ZoneInfo", second: int) -> int:
    """How far the clocks of the zone are ahead of UTC at that instant."""
    return _offset(_local(zone, second))


def moments_of(zone: "ZoneInfo", local_time: int) -> Moments:
    local = (_START + timedelta(seconds=local_time)).replace(tzinfo=zone)
    before, after = _offset(local), _offset(local.replace(fold=1))
    if before >= after:
        return Moments(local_time - before, local_time - after)
    # Clocks were set forward over this local time, at an instant between these two.
    instants = range(local_time - after, local_time - before + 1)
    at = instants[bisect_left(instants, True, key=lambda at: offset_at(zone, at) != before)]
    return Moments(at, at, gap_until=at + after)


def earliest_local_time(zone: "ZoneInfo", second: int) -> int:
    """No local time before it has an instant from `second` on."""
    return second + min(_offsets_about(zone, second))


def latest_local_time(zone: "ZoneInfo", second: int) -> int:
    """No local time after it has an instant up to `second`."""
    return second + max(_offsets_about(zone, second))


def _offsets_about(zone: "ZoneInfo", second: int) -> tuple[int, int, int]:
    """The possible offsets of an instant: its own, that of the other instant of its local time, and
    that just before it, if clocks change then."""
    local = _local(zone, second)
    other = local.replace(fold=1 - local.fold)
    return _offset(local), _offset(other), offset_at(zone, second - 1)


def _local(zone: "ZoneInfo", second: int) -> datetime:
    return zone.fromutc((_START + timedelta(seconds=second)).replace(tzinfo=zone))


def _offset(local: datetime) -> int:
    offset = local.utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


@cache
def _names() -> frozenset[str]:
    data = get_data("tzdata", "zones")
    if data is None:
        raise FileNotFoundError("tzdata has no list of its zones")
    return frozenset(data.decode().split())
