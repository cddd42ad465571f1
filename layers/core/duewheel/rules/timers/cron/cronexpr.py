"""Cron expressions as github.com/gorhill/cronexpr reads them, for the clients of xTimer.

Five fields; a sixth is the year; seven have seconds first, and what follows them is ignored. Here
every entry of a list may be `*` or `?`, and the day fields are alternatives unless one of them has
such an entry.
"""

import re
from collections.abc import Sequence

from duewheel.rules.timers.cron.days import month_days_of, week_days_of
from duewheel.rules.timers.cron.expression import Cron
from duewheel.rules.timers.cron.fields import (
    HOUR,
    MINUTE,
    MONTH_DAY,
    MONTHS,
    SECOND,
    WEEKDAYS,
    Field,
    NotUnderstood,
)

_FIELD = re.compile(r"\S+", re.ASCII)
# Replaced anywhere in the text, in this order and in lower case only, as cronexpr does.
_FORMS = {
    "@yearly": "0 0 0 1 1 * *",
    "@annually": "0 0 0 1 1 * *",
    "@monthly": "0 0 0 1 * * *",
    "@weekly": "0 0 0 * * 0 *",
    "@daily": "0 0 0 * * * *",
    "@hourly": "0 0 * * * * *",
}
_LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_LONG_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTH_WORDS = {
    name: number for names in (MONTHS, _LONG_MONTHS) for number, name in enumerate(names, 1)
}
_WEEKDAY_WORDS = {
    name: number for names in (WEEKDAYS, _LONG_WEEKDAYS) for number, name in enumerate(names)
}
_MONTH = Field("month", 1, 12, _MONTH_WORDS)
# Cronexpr reads 7 as 0 at once, so 5-7 runs backwards and names no day.
_WEEKDAY = Field("day of week", 0, 6, {**_WEEKDAY_WORDS, "7": 0, "07": 0})
_YEAR = Field("year", 1970, 2099)


def read_cronexpr(text: str) -> Cron:
    for form, meaning in _FORMS.items():
        text = text.replace(form, meaning)
    fields = _FIELD.findall(text.lower())[:7]
    if len(fields) < 5:
        raise NotUnderstood(f"takes 5, 6 or 7 fields; this has {len(fields)}.")
    second = fields.pop(0) if len(fields) == 7 else "0"
    minute, hour, month_day, month, week_day, *year = fields
    days = _entries(MONTH_DAY, month_day)
    week = _entries(_WEEKDAY, week_day)
    return Cron(
        seconds=tuple(sorted(_numbers(SECOND, second))),
        minutes=tuple(sorted(_numbers(MINUTE, minute))),
        hours=tuple(sorted(_numbers(HOUR, hour))),
        month_days=month_days_of(days),
        months=_numbers(_MONTH, month),
        week_days=week_days_of(_WEEKDAY, week),
        either="*" not in days and "*" not in week,
        years=_years(year),
    )


def _years(field: Sequence[str]) -> frozenset[int] | None:
    if not field or "*" in _entries(_YEAR, field[0]):
        return None
    return _numbers(_YEAR, field[0])


def _numbers(field: Field, text: str) -> frozenset[int]:
    return frozenset().union(*(field.numbers_of(entry) for entry in _entries(field, text)))


def _entries(field: Field, text: str) -> list[str]:
    """Cronexpr ignores empty entries. With an asterisk the other entries have no effect."""
    entries = ["*" if entry == "?" else entry for entry in text.split(",") if entry]
    if not entries:
        raise field.refusal(text)
    if field is MONTH_DAY and any(entry.startswith("l-") for entry in entries):
        raise field.refusal(text)
    return entries
