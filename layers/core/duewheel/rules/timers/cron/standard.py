"""The cron expressions of timers: five fields as cron writes them, or six with seconds first as
Spring and Quartz do. Days of the week are cron's and Spring's: 0 and 7 are Sunday.
"""

import re

from duewheel.rules.timers.cron.days import month_days_of, week_days_of
from duewheel.rules.timers.cron.expression import Cron
from duewheel.rules.timers.cron.fields import (
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    Field,
    NotUnderstood,
)

_FIELD = re.compile(r"\S+", re.ASCII)
_FORMS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def read_cron(text: str) -> Cron:
    lower = text.strip().lower()
    if lower.startswith("@") and lower not in _FORMS:
        raise NotUnderstood(f"is none of {', '.join(_FORMS)}.")
    fields = _FIELD.findall(_FORMS.get(lower, lower))
    if len(fields) not in (5, 6):
        raise NotUnderstood(f"takes 5 fields, or 6 with seconds first; this has {len(fields)}.")
    second = fields.pop(0) if len(fields) == 6 else None
    minute, hour, month_day, month, week_day = fields
    return Cron(
        seconds=(0,) if second is None else _sorted(SECOND, second),
        minutes=_sorted(MINUTE, minute),
        hours=_sorted(HOUR, hour),
        month_days=month_days_of(_entries(month_day)),
        months=frozenset(_sorted(MONTH, month)),
        week_days=week_days_of(WEEKDAY, _entries(week_day)),
        # As crontab(5) has it; with seconds, as Spring has it.
        either=second is None and not any(day[0] in "*?" for day in (month_day, week_day)),
    )


def _sorted(field: Field, text: str) -> tuple[int, ...]:
    numbers = (number for entry in text.split(",") for number in field.numbers_of(entry))
    return tuple(sorted(set(numbers)))


def _entries(text: str) -> list[str]:
    """Of a day field, which may have a question mark instead of an asterisk."""
    return ["*"] if text == "?" else text.split(",")
