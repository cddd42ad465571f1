"""Random cron expressions of both dialects, with the fields for a second implementation.

They are drawn from a seed and not in parts by hypothesis, which would take most of the time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from duewheel.rules.timers.schedule import Dialect

WEEKDAYS = ("SUN", "mon", "Tue", "WED", "thu", "FRI", "sat")
MONTHS = ("JAN", "feb", "Mar", "APR", "may", "JUN", "jul", "AUG", "sep", "OCT", "nov", "DEC")


@dataclass(frozen=True)
class Expression:
    """`fields`: seconds, cron's five, the year. `either`: one of the two day fields is enough."""

    text: str
    dialect: Dialect
    fields: tuple[str, ...]
    either: bool


def cron_expression(chance: Random) -> Expression:
    day = one_of(chance, "*", "?", _list(chance, _cron_month_day))
    week = one_of(chance, "*", "?", _list(chance, _cron_weekday))
    five = [_minutes(chance), _hours(chance), day, _months(chance), week]
    seconds = [_list(chance, _second)] if chance.random() < 0.5 else []
    either = not seconds and day[0] not in "*?" and week[0] not in "*?"
    text = _spaced(chance, [*seconds, *five])
    weekdays = week.replace("FRI-SUN", "FRI-7")
    fields = (*(seconds or "0"), *five[:4], weekdays, "*")
    return Expression(text, Dialect.CRON, fields, either)


def cronexpr_expression(chance: Random) -> Expression:
    day = one_of(chance, "*", _list(chance, _cronexpr_month_day))
    week = one_of(chance, "*", _list(chance, _cronexpr_weekday))
    five = [_minutes(chance), _hours(chance), day, _months(chance), week]
    seconds = [_list(chance, _second)] if chance.random() < 0.4 else []
    year = _list(chance, _year) if chance.random() < 0.4 else "*"
    years = [year] if seconds or year != "*" else []
    either = not {"*", "?"} & {*day.split(","), *week.split(",")}
    # In this dialect a week ends with 6, which the second implementation gets as a range.
    weekdays = ",".join(_with_open_range(entry) for entry in week.split(","))
    text = _spaced(chance, [*seconds, *five, *years])
    fields = (*(seconds or "0"), *five[:4], weekdays, year)
    return Expression(text, Dialect.CRONEXPR, fields, either)


def text_known_to_cronsim(chance: Random) -> str:
    """An expression that cronsim reads in the same way. With two restricted day fields, cronsim
    accepts either one even if there are seconds."""
    day = one_of(chance, "*", _list(chance, _cronsim_month_day))
    week = one_of(chance, "*", _list(chance, _cronsim_weekday))
    is_restricted = day[0] != "*" and week[0] != "*"
    seconds = [] if is_restricted or chance.random() < 0.5 else [_list(chance, _second)]
    fields = [*seconds, _minutes(chance), _hours(chance), day, _months(chance), week]
    return " ".join(fields)


def one_of(chance: Random, *texts: str) -> str:
    return chance.choice(texts)


def _numbers(chance: Random, low: int, high: int) -> str:
    """One entry of a field: 7, 3-9, 3-9/2, 3/2, */2."""
    number = chance.randint(low, high)
    first, last = sorted(chance.sample(range(low, high + 1), 2))
    by = chance.randint(1, max(high // 2, 1))
    forms = (f"{number}", f"{first}-{last}", f"{first}-{last}/{by}", f"{number}/{by}", f"*/{by}")
    return chance.choice(forms)


def _list(chance: Random, entry: Callable[[Random], str]) -> str:
    return ",".join(entry(chance) for _ in range(chance.choice((1, 1, 2, 3))))


def _second(chance: Random) -> str:
    return _numbers(chance, 0, 59)


def _minutes(chance: Random) -> str:
    return one_of(chance, "*", _list(chance, _second))


def _hours(chance: Random) -> str:
    return one_of(chance, "*", _list(chance, lambda chance: _numbers(chance, 0, 23)))


def _months(chance: Random) -> str:
    return one_of(chance, "*", "*", _list(chance, _month))


def _month(chance: Random) -> str:
    return one_of(chance, _numbers(chance, 1, 12), chance.choice(MONTHS))


def _year(chance: Random) -> str:
    return one_of(chance, str(chance.randint(2020, 2030)), "2024-2040/2", "1980-2026")


def _weekday(chance: Random) -> str:
    return one_of(chance, str(chance.randint(0, 7)), chance.choice(WEEKDAYS))


def _cron_month_day(chance: Random) -> str:
    number = chance.randint(1, 31)
    return one_of(chance, _cronexpr_month_day(chance), f"L-{min(number, 30)}")


def _cronexpr_month_day(chance: Random) -> str:
    return one_of(chance, _cronsim_month_day(chance), f"{chance.randint(1, 31)}W")


def _cronsim_month_day(chance: Random) -> str:
    return one_of(chance, *(_numbers(chance, 1, 31) for _ in range(4)), "L", "LW")


def _special_weekday(chance: Random) -> str:
    return one_of(chance, f"{_weekday(chance)}#{chance.randint(1, 5)}", f"{chance.randint(0, 7)}L")


def _cron_weekday(chance: Random) -> str:
    return one_of(chance, _cronsim_weekday(chance), "FRI-SUN", "mon-FRI", "satL")


def _cronsim_weekday(chance: Random) -> str:
    return one_of(chance, _numbers(chance, 0, 7), _weekday(chance), _special_weekday(chance))


def _cronexpr_weekday(chance: Random) -> str:
    numbers = _numbers(chance, 0, 6)
    plain = "*" if numbers.startswith("*/") else numbers
    words = ("?", "friday", "mon-FRI", "wednesdayL", "sunday#2")
    return one_of(chance, plain, plain, _weekday(chance), _special_weekday(chance), *words)


def _with_open_range(entry: str) -> str:
    is_open = "/" in entry and "-" not in entry  # 3/2, which goes on to the end of the week
    return f"{entry[0]}-6{entry[1:]}" if is_open else entry


def _spaced(chance: Random, fields: list[str]) -> str:
    return chance.choice((" ", "  ", "\t")).join(["", *fields, ""])
