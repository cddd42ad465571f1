"""Times as people write them: `in 2h`, `tomorrow 9:00 Asia/Shanghai`, `2026-12-01T09:00Z`.

Pure: the current time and the caller's zone are arguments. Invariant: an ambiguous text is refused,
and the message shows how to write it unambiguously.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SPAN_EXAMPLES = "90s, 2h, 1h30m, 3 days"
EXAMPLES = (
    "in 2h, today 18:00, tomorrow 9:00 Asia/Shanghai, friday 18:00, 2026-12-01T09:00Z, "
    "2026-12-01 09:00, now"
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNITS = {
    "w": (r"w|weeks?", timedelta(weeks=1)),
    "d": (r"d|days?", timedelta(days=1)),
    "h": (r"h|hours?", timedelta(hours=1)),
    "m": (r"m|min|minutes?", timedelta(minutes=1)),
    "s": (r"s|sec|seconds?", timedelta(seconds=1)),
    "ms": (r"ms|milliseconds?", timedelta(milliseconds=1)),
}
SPAN = re.compile(
    r"\s*".join(
        rf"(?:(?P<{name}>\d+(?:\.\d+)?)\s*(?:{words})(?![a-z]))?"
        for name, (words, _) in UNITS.items()
    ),
    re.ASCII,
)
CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?", re.ASCII)
TWELVE = re.compile(r"(\d{1,2})(?::(\d\d))?\s*(am|pm)", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
OFFSET = re.compile(r"z|utc|gmt|[+-]\d\d:\d\d", re.ASCII)

Zone = tzinfo | None  # None is this machine's


class NotATime(ValueError):
    """The text is not a time, or is ambiguous; the message is for the user."""


def span(text: str) -> timedelta:
    """Units from the largest to the smallest, each once; a day has 24 hours."""
    given = text.strip().lower()
    found = SPAN.fullmatch(given)
    if not given or found is None:
        raise NotATime(_why_no_span(text, given))
    try:
        return sum(
            (
                float(number) * UNITS[name][1]
                for name, number in found.groupdict().items()
                if number
            ),
            timedelta(),
        )
    except OverflowError:
        raise NotATime(f"{text!r} is longer than calendars are") from None


def _why_no_span(text: str, given: str) -> str:
    if re.fullmatch(r"\d+(\.\d+)?", given, re.ASCII):
        return f"{text!r}: of what? Say {given}s, {given}m or {given}h"
    if re.search(r"month|year|\dy|\dmo\b", given):
        return f"{text!r}: months and years differ in length. Say days, or a date"
    return f"{text!r} is no span of time, such as {SPAN_EXAMPLES}"


def instant(text: str, now: datetime, zone: Zone = None) -> datetime:
    """A point in time; a span is counted from `now`, `2h ago` back from it."""
    read = due(text, now, zone)
    if isinstance(read, datetime):
        return read
    return _within_calendar(text, lambda: now + read)


def due(text: str, now: datetime, zone: Zone = None) -> datetime | timedelta:
    """An instant, or a span, which the service counts from its own clock."""
    given = " ".join(text.split()).lower()
    if given == "now":
        return timedelta()
    if given.endswith(" ago"):
        return -span(given.removesuffix(" ago"))
    if given.startswith("in "):
        return span(given.removeprefix("in "))
    if given.isdecimal() or (given and SPAN.fullmatch(given)):
        return span(given)
    return _within_calendar(text, lambda: _on_a_calendar(" ".join(text.split()), now, zone))


def _within_calendar(text: str, made: Callable[[], datetime]) -> datetime:
    try:
        instant = made()
        instant.astimezone(UTC)
        return instant
    except OverflowError:
        raise NotATime(f"{text!r} is further than calendars go") from None


def _on_a_calendar(text: str, now: datetime, zone: Zone) -> datetime:
    """`DAY CLOCK [ZONE]`; a T may join a date and its clock."""
    day_text, rest = _cut(text)
    clock_text, zone_text = _clock_and_zone(text, day_text, rest)
    if zone_text:
        zone = _zone(text, zone_text)
    today = now.astimezone(zone).date()
    day = _day(text, day_text, today)
    hour, minute, second, microsecond = _clock(text, clock_text, day_text)
    try:
        local_time = datetime(day.year, day.month, day.day, hour, minute, second, microsecond)
    except ValueError:
        raise NotATime(f"{text!r}: there is no such time of day") from None
    return _aware(text, local_time, zone)


def _cut(text: str) -> tuple[str, str]:
    dated = re.match(r"(\d{4}-\d\d-\d\d)(?:[tT ]|$)\s*", text, re.ASCII)
    if dated:
        return dated[1], text[dated.end() :]
    first, _, rest = text.partition(" ")
    return first.lower(), rest.removeprefix("at ")


def _clock_and_zone(text: str, day_text: str, rest: str) -> tuple[str, str]:
    if re.fullmatch(CLOCK.pattern + "|" + TWELVE.pattern, day_text, re.ASCII):
        raise NotATime(f"{text!r}: on which day? Say today {day_text} or tomorrow {day_text}")
    clock = TWELVE.match(rest.lower()) or CLOCK.match(rest)
    if clock is None:
        return rest, ""
    return rest[: clock.end()].lower(), rest[clock.end() :].strip()


def _day(text: str, given: str, today: date) -> date:
    if DATE.fullmatch(given):
        try:
            return date.fromisoformat(given)
        except ValueError:
            raise NotATime(f"{text!r}: there is no such day") from None
    if given in ("today", "tomorrow", "yesterday"):
        return today + timedelta(days=("yesterday", "today", "tomorrow").index(given) - 1)
    if given in WEEKDAYS:
        ahead = (WEEKDAYS.index(given) - today.weekday()) % 7
        if not ahead:
            after = today + timedelta(days=7)
            raise NotATime(f"{text!r}: today is {given}. Say today, or {after} for the next")
        return today + timedelta(days=ahead)
    if given in ("next", "this", "last"):
        raise NotATime(f"{text!r}: {given} is read in two ways. Say the weekday alone, or a date")
    if re.fullmatch(r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}", given, re.ASCII):
        raise NotATime(f"{text!r}: which is the month? Write the date as 2026-12-01")
    raise NotATime(f"{text!r} is no time. Times are written so: {EXAMPLES}")


def _clock(text: str, given: str, day_text: str) -> tuple[int, int, int, int]:
    if not given:
        raise NotATime(f"{text!r}: at what time? Say {day_text} 9:00")
    if found := CLOCK.fullmatch(given):
        hour, minute, second, fraction = found.groups()
        return int(hour), int(minute), int(second or 0), int((fraction or "0").ljust(6, "0"))
    if found := TWELVE.fullmatch(given):
        hour, minute = int(found[1]), int(found[2] or 0)
        if hour == 12:
            raise NotATime(f"{text!r}: 12 {found[3]} is read in two ways. Say 0:00 or 12:00")
        if not 1 <= hour <= 11:
            raise NotATime(f"{text!r}: there is no such time of day")
        return hour + 12 * (found[3] == "pm"), minute, 0, 0
    if given.isdecimal() and given.isascii():
        raise NotATime(f"{text!r}: morning or evening? Say {day_text} {given}:00")
    raise NotATime(f"{text!r}: {given!r} is no time of day, such as 9:00, 18:30:15 or 6pm")


def _zone(text: str, given: str) -> tzinfo:
    """A zone by its name. UTC is the only unambiguous short name: CST is used in Chicago, Havana
    and Shanghai."""
    if OFFSET.fullmatch(given.lower()):
        try:
            sign = given if given[0] in "+-" else "+00:00"
            offset = datetime.fromisoformat(f"2000-01-01T00:00{sign}").tzinfo
        except ValueError:
            raise NotATime(f"{text!r}: {given} is no offset") from None
        assert offset is not None
        return offset
    if "/" in given:
        try:
            return ZoneInfo(given)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise NotATime(f"{text!r}: {given!r} is no zone. Say UTC, +08:00, or a name: Asia/Shanghai")


def _aware(text: str, local_time: datetime, zone: Zone) -> datetime:
    """Refuses a local time that the zone's clocks skip, or show twice, on the day when they are
    changed."""
    first, second = (_in_zone(local_time.replace(fold=fold), zone) for fold in (0, 1))
    if _in_zone_again(first, zone) != local_time:
        raise NotATime(f"{text!r}: clocks are put forward then, there is no such time")
    if first.astimezone(UTC) != second.astimezone(UTC):
        both = " or ".join(each.isoformat(timespec="minutes") for each in (first, second))
        raise NotATime(f"{text!r}: clocks are put back then, it comes twice. Say {both}")
    return first


def _in_zone(local_time: datetime, zone: Zone) -> datetime:
    return local_time.astimezone() if zone is None else local_time.replace(tzinfo=zone)


def _in_zone_again(instant: datetime, zone: Zone) -> datetime:
    return instant.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0)
