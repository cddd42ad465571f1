"""The special values of the day fields of a cron expression: L, L-3, LW, 15W, 5L and 5#2."""

import re
from collections.abc import Iterable

from duewheel.rules.timers.cron.expression import MonthDays, WeekDays
from duewheel.rules.timers.cron.fields import MONTH_DAY, Field

_BEFORE_LAST = re.compile("l(?:-([0-9]{1,2}))?")
_BEFORE_LAST_MAX = 30
_NEAREST = re.compile("([0-9]{1,2})w")
_LAST_OF_WEEKDAY = re.compile(r"(\w+)l", re.ASCII)
_NTH = re.compile(r"(\w+)#(\w+)", re.ASCII)


def month_days_of(entries: Iterable[str]) -> MonthDays:
    numbers: set[int] = set()
    before_last: set[int] = set()
    nearest: set[int] = set()
    last_working = False
    for entry in entries:
        if entry == "lw":
            last_working = True
        elif match := _NEAREST.fullmatch(entry):
            nearest.add(MONTH_DAY.number(match[1], entry))
        elif match := _BEFORE_LAST.fullmatch(entry):
            before_last.add(_before_last(entry, match[1]))
        else:
            numbers |= MONTH_DAY.numbers_of(entry)
    return MonthDays(frozenset(numbers), frozenset(before_last), frozenset(nearest), last_working)


def week_days_of(field: Field, entries: Iterable[str]) -> WeekDays:
    """`field`: the dialects number the days of a week differently."""
    numbers: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    for entry in entries:
        if match := _NTH.fullmatch(entry):
            nth.add((field.number(match[1], entry) % 7, _nth(field, entry, match[2])))
        elif match := _LAST_OF_WEEKDAY.fullmatch(entry):
            last.add(field.number(match[1], entry) % 7)
        else:
            numbers.update(number % 7 for number in field.numbers_of(entry))
    return WeekDays(frozenset(numbers), frozenset(nth), frozenset(last))


def _before_last(entry: str, days: str | None) -> int:
    if days is None:
        return 0
    if not 1 <= int(days) <= _BEFORE_LAST_MAX:
        raise MONTH_DAY.refusal(entry, f"has no 1 to {_BEFORE_LAST_MAX} after the L")
    return int(days)


def _nth(field: Field, entry: str, text: str) -> int:
    if text not in ("1", "2", "3", "4", "5"):
        raise field.refusal(entry, "has no 1 to 5 after the #")
    return int(text)
