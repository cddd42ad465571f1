"""A timer's definition as JSON, and back. Defaults are left out. The payload has an attribute of
its own, as source text.
"""

import re
from collections.abc import Callable
from datetime import date
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from duewheel.rules.timers.schedule import Dialect, DstGap, DstOverlap, Schedule, cron_of
from duewheel.rules.timers.time_zones import zone_named
from duewheel.rules.timers.timer import Gap, Misfire, Overlap, Rules
from duewheel.rules.wheel.addresses import SECOND_MAX
from duewheel.stores.callbacks.codec import (
    DURATION_SECONDS_MAX,
    callback_of_row,
    callback_row,
    retry_of_row,
    retry_row,
)
from duewheel.stores.item_attributes import decimal, flag, integer, string

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RUNS_MAX = 10**15

_BESIDE = ("schedule", "payload")


def rules_row(rules: Rules) -> dict[str, Any]:
    row = _without_defaults(rules, _BESIDE) | {"schedule": _without_defaults(rules.schedule)}
    if rules.callback is not None:
        row["callback"] = callback_row(rules.callback)
    if rules.retry is not None:
        row["retry"] = retry_row(rules.retry)
    return row


def rules_of_row(row: dict[str, Any], payload: str | None) -> Rules:
    """Raises one of `NOT_UNDERSTOOD` for a row that is never written here."""
    read: dict[str, Callable[[Any], Any]] = {
        "name": string,
        "schedule": _schedule,
        "max_runs": lambda value: integer(value, _RUNS_MAX, smallest=1),
        "jitter_seconds": _seconds,
        "callback": callback_of_row,
        "retry": retry_of_row,
        "expires_after_seconds": lambda value: decimal(value, DURATION_SECONDS_MAX),
        "misfire": Misfire,
        "grace_seconds": _seconds,
        "overlap": Overlap,
        "disable_on_stop": flag,
    }
    return Rules(payload=payload, **{name: read[name](value) for name, value in row.items()})


def gaps_row(gaps: tuple[Gap, ...]) -> list[list[int]]:
    return [[gap.behind] if gap.until is None else [gap.behind, gap.until] for gap in gaps]


def gaps_from(rows: list[list[Any]]) -> tuple[Gap, ...]:
    return tuple(Gap(*(_seconds(second) for second in row)) for row in rows)


def _schedule(row: dict[str, Any]) -> Schedule:
    read: dict[str, Callable[[Any], Any]] = {
        "cron": string,
        "dialect": Dialect,
        "every_seconds": lambda value: integer(value, SECOND_MAX, smallest=1),
        "anchor_second": _seconds,
        "timezone": string,
        "start_second": _seconds,
        "end_second": _seconds,
        "dst_gap": DstGap,
        "dst_overlap": DstOverlap,
        "exclude": _dates,
    }
    schedule = Schedule(**{name: read[name](value) for name, value in row.items()})
    if (schedule.cron is None) is (schedule.every_seconds is None):
        raise ValueError("not one of both")
    zone_named(schedule.timezone)
    if schedule.cron is not None:
        cron_of(schedule)
    return schedule


def _without_defaults(value: Struct, beside: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    defaults = reversed(value.__struct_defaults__)  # fields without a default come first
    usual = dict(zip(reversed(value.__struct_fields__), defaults, strict=False))
    return {
        name: held
        for name, held in asdict(value).items()
        if name not in beside and (name not in usual or held != usual[name])
    }


def _seconds(value: Any) -> int:
    return integer(value, SECOND_MAX)


def _dates(values: list[Any]) -> tuple[str, ...]:
    if not all(_DATE.fullmatch(string(value)) and date.fromisoformat(value) for value in values):
        raise ValueError("no date")
    return tuple(values)
