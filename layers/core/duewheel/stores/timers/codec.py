"""A timer's definition as JSON, and back. Defaults are left out. The payload, as source text, has
an attribute of its own.
"""

from datetime import date
from typing import Annotated, Any

from msgspec import Meta, Struct, convert
from msgspec.structs import asdict

from duewheel.rules.labels import NO_LABELS
from duewheel.rules.names import FlowKey
from duewheel.rules.priority import Priority
from duewheel.rules.timers.schedule import Schedule, cron_of
from duewheel.rules.timers.time_zones import zone_named
from duewheel.rules.timers.timer import Gap, Misfire, Overlap, Rules
from duewheel.rules.timers.updates import BLANK
from duewheel.rules.wheel.addresses import Second
from duewheel.stores.callbacks.codec import (
    Duration,
    callback_of_row,
    callback_row,
    on_outcome_of_row,
    on_outcome_row,
    retry_of_row,
    retry_row,
)
from duewheel.stores.item_attributes import StoredLabels, Text

_RUNS_MAX = 10**15
_Runs = Annotated[int, Meta(ge=1, le=_RUNS_MAX)]
_BESIDE = ("schedule", "payload")


class _Row(Struct, forbid_unknown_fields=True):
    """The fields of `Rules` but the payload. Those that have their defaults are left out."""

    name: str
    schedule: Schedule
    max_runs: _Runs | None = None
    jitter_seconds: Second = BLANK.jitter_seconds
    callback: dict[str, Any] | None = None
    retry: dict[str, Any] | None = None
    expires_after_seconds: Duration | None = None
    misfire: Misfire = BLANK.misfire
    grace_seconds: Second = BLANK.grace_seconds
    overlap: Overlap = BLANK.overlap
    disable_on_stop: bool = BLANK.disable_on_stop
    pause_on_failures: _Runs | None = None
    tolerance_seconds: Second = BLANK.tolerance_seconds
    priority: Priority | None = None
    flow_key: FlowKey | None = None
    labels: StoredLabels | None = None
    managed_by: Text | None = None
    on_outcome: dict[str, Any] | None = None


def rules_row(rules: Rules) -> dict[str, Any]:
    row = _without_defaults(rules, _BESIDE) | {"schedule": _without_defaults(rules.schedule)}
    if rules.callback is not None:
        row["callback"] = callback_row(rules.callback)
    if rules.retry is not None:
        row["retry"] = retry_row(rules.retry)
    if rules.labels:
        row["labels"] = dict(rules.labels)
    if rules.on_outcome is not None:
        row["on_outcome"] = on_outcome_row(rules.on_outcome)
    return row


def rules_of_row(row: dict[str, Any], payload: str | None) -> Rules:
    """Raises one of `NOT_UNDERSTOOD` for a row that is never written here."""
    if None in row.values():
        raise ValueError("left out if it has no value")
    values = asdict(convert(row, _Row))
    if "callback" in row:
        values["callback"] = callback_of_row(row["callback"])
    if "retry" in row:
        values["retry"] = retry_of_row(row["retry"])
    if "on_outcome" in row:
        values["on_outcome"] = on_outcome_of_row(row["on_outcome"])
    values["labels"] = tuple(sorted(values["labels"].items())) if "labels" in row else NO_LABELS
    _check(values["schedule"])
    return Rules(payload=payload, **values)


def _check(schedule: Schedule) -> None:
    if (schedule.cron is None) is (schedule.every_seconds is None):
        raise ValueError("not one of both")
    zone_named(schedule.timezone)
    if schedule.cron is not None:
        cron_of(schedule)
    if any(date.fromisoformat(day).isoformat() != day for day in schedule.exclude):
        raise ValueError("no date")


def gaps_row(gaps: tuple[Gap, ...]) -> list[list[int]]:
    return [[gap.behind] if gap.until is None else [gap.behind, gap.until] for gap in gaps]


def _without_defaults(value: Struct, beside: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    defaults = reversed(value.__struct_defaults__)  # fields without a default come first
    usual = dict(zip(reversed(value.__struct_fields__), defaults, strict=False))
    return {
        name: held
        for name, held in asdict(value).items()
        if name not in beside and (name not in usual or held != usual[name])
    }
