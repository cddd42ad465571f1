"""A second implementation of cron, by brute force: each minute of a range of local time is compared
with the fields, and each local time with every offset that its zone may have had.

It has no code in common with the rules, only the data of the zones.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from duewheel.rules.timers.schedule import DstGap, DstOverlap

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
MONTHS = [name.lower() for name in calendar.month_name[1:]]
WEEKDAYS = ["sunday", *(name.lower() for name in calendar.day_name[:6])]


class BruteCron:
    """`fields`: seconds, cron's five fields, the year. `either`: by the dialect, one of the two day
    fields is enough."""

    def __init__(self, fields: list[str], either: bool) -> None:
        second, self.minute, self.hour, self.day, self.month, self.weekday, self.year = fields
        self.seconds = [number for number in range(60) if _fits(second, number, 0, 59)]
        self.either = either

    def minutes(self, first: datetime, last: datetime) -> Iterator[datetime]:
        hour = first.replace(minute=0, second=0)
        while hour <= last:
            if self._has_hour(hour):
                for minute in range(60):
                    if _fits(self.minute, minute, 0, 59):
                        yield hour.replace(minute=minute)
            hour += HOUR

    def _has_hour(self, hour: datetime) -> bool:
        return (
            _fits(self.hour, hour.hour, 0, 23)
            and _fits(_numbered(self.month, MONTHS, 1), hour.month, 1, 12)
            and _fits(self.year, hour.year, 1970, 2099)
            and self._has_date(hour)
        )

    def _has_date(self, hour: datetime) -> bool:
        of_month = any(_fits_day(entry, hour) for entry in self.day.lower().split(","))
        weekday = _numbered(self.weekday, WEEKDAYS, 0)
        of_week = any(_fits_weekday(entry, hour) for entry in weekday.split(","))
        return of_month or of_week if self.either else of_month and of_week


def seconds_by_brute_force(
    cron: BruteCron,
    zone: ZoneInfo,
    first: int,
    last: int,
    gap: DstGap = DstGap.SHIFT,
    overlap: DstOverlap = DstOverlap.FIRST,
) -> list[int]:
    """The seconds from `first` to `last`, both included. Clocks are changed at a whole minute."""
    found: set[int] = set()
    offsets = offsets_about(zone, first, last)
    local_times = cron.minutes(_utc(first) + min(offsets), _utc(last) + max(offsets))
    for local_time in local_times:
        instants = instants_of(zone, local_time, offsets)
        if not instants:
            found.update([_after_gap(zone, local_time, offsets)] if gap is DstGap.SHIFT else [])
            continue
        taken = {
            DstOverlap.FIRST: instants[:1],
            DstOverlap.LAST: instants[-1:],
            DstOverlap.BOTH: instants,
        }
        found.update(at + second for at in taken[overlap] for second in cron.seconds)
    return sorted(second for second in found if first <= second <= last)


def offsets_about(zone: ZoneInfo, first: int, last: int) -> set[timedelta]:
    """All offsets of the zone from a day before to a day after."""
    hours = range((last - first) // 3600 + 49)
    instants = (_utc(first).replace(tzinfo=UTC) - DAY + hour * HOUR for hour in hours)
    return {at.astimezone(zone).utcoffset() or timedelta() for at in instants}


def instants_of(zone: ZoneInfo, local_time: datetime, offsets: set[timedelta]) -> list[int]:
    """The instants that the zone's clocks show as that local time."""
    tried = [local_time.replace(tzinfo=UTC) - offset for offset in offsets]
    shown = [at for at in tried if at.astimezone(zone).replace(tzinfo=None) == local_time]
    return sorted(int(at.timestamp()) for at in shown)


def _after_gap(zone: ZoneInfo, local_time: datetime, offsets: set[timedelta]) -> int:
    """The first minute at which the clock shows a later local time."""
    at = local_time.replace(tzinfo=UTC) - max(offsets)
    for step in (HOUR, MINUTE):
        while (at + step).astimezone(zone).replace(tzinfo=None) <= local_time:
            at += step
    return int((at + MINUTE).timestamp())


def _utc(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC).replace(tzinfo=None)


def _numbered(text: str, names: list[str], first: int) -> str:
    text = text.lower()
    for long in (True, False):
        for number, name in enumerate(names, first):
            text = text.replace(name if long else name[:3], str(number))
    return text


def _fits(text: str, value: int, low: int, high: int) -> bool:
    for entry in text.split(","):
        base, _, step = entry.partition("/")
        if base in ("*", "?"):
            first, last = low, high
        elif "-" in base:
            first, last = (int(part) for part in base.split("-"))
        else:
            first = int(base)
            last = high if step else first
        if first <= value <= last and (value - first) % int(step or 1) == 0:
            return True
    return False


def _fits_day(entry: str, local_time: datetime) -> bool:
    if entry[0] != "l" and entry[-1] != "w":
        return _fits(entry, local_time.day, 1, 31)
    last = calendar.monthrange(local_time.year, local_time.month)[1]
    month = [local_time.replace(day=number) for number in range(1, last + 1)]
    working = [day.day for day in month if day.strftime("%a") not in ("Sat", "Sun")]
    if entry == "lw":
        return local_time.day == working[-1]
    if entry.endswith("w"):
        number = int(entry[:-1])
        return number <= last and local_time.day == min(working, key=lambda day: abs(day - number))
    return local_time.day == last - int(entry[2:] or 0)


def _fits_weekday(entry: str, local_time: datetime) -> bool:
    numbers = {int(local_time.strftime("%w")), local_time.isoweekday()}  # a Sunday is both 0 and 7
    if entry.endswith("l"):
        return int(entry[:-1]) in numbers and (local_time + 7 * DAY).month != local_time.month
    if "#" in entry:
        number, nth = (int(part) for part in entry.split("#"))
        same = [local_time - weeks * 7 * DAY for weeks in range(5)]
        return number in numbers and sum(day.month == local_time.month for day in same) == nth
    return any(_fits(entry, number, 0, 7) for number in numbers)
