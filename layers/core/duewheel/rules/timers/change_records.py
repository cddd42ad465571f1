"""The record of a change of a timer."""

from typing import Any

from msgspec.structs import asdict

from duewheel.rules.history.changes import (
    Change,
    ChangeAction,
    Difference,
    Hidden,
    Subject,
    differences,
    plain,
)
from duewheel.rules.instants import rfc3339
from duewheel.rules.timers.timer import Rules, Timer
from duewheel.rules.timers.updates import BLANK

TIMER = "timer"

_HIDDEN = {"payload", "callback", "on_outcome"}  # they may contain secrets


def timer_named(timer: Timer) -> Subject:
    return Subject(TIMER, timer.timer_id, owner=timer.biz_type)


def timer_created(timer: Timer, by: str) -> Change:
    """With the owner's settings that are not the default."""
    usual, made = _settings(BLANK), _settings(timer.rules)
    given = {name: value for name, value in made.items() if value != usual[name]}
    found = differences({}, {**given, "enabled": timer.enabled})
    return Change(
        version=timer.version,
        at_ms=timer.created_ms,
        by=by,
        did=ChangeAction.CREATED,
        differences=found,
    )


def timer_changed(before: Timer, after: Timer, by: str) -> Change:
    found = differences(_shown(before), _shown(after))
    if not found:  # only the instant from which its interval counts has moved
        every = after.rules.schedule.every_seconds
        found = (Difference("every_seconds", (every, every)),)
    return Change(
        version=after.version,
        at_ms=after.updated_ms,
        by=by,
        did=_action(after, found),
        differences=found,
    )


def _action(after: Timer, found: tuple[Difference, ...]) -> ChangeAction:
    if {one.setting for one in found} <= {"enabled", "disabled_reason"}:
        return ChangeAction.ENABLED if after.enabled else ChangeAction.DISABLED
    return ChangeAction.CHANGED


def _shown(timer: Timer) -> dict[str, Any]:
    state = {"enabled": timer.enabled, "disabled_reason": plain(timer.disabled_reason)}
    return {**_settings(timer.rules), **state}


def _settings(rules: Rules) -> dict[str, Any]:
    """By the names of requests."""
    schedule = asdict(rules.schedule)
    del schedule["anchor_second"]
    for end in ("start", "end"):
        schedule[f"{end}_at"] = _instant(schedule.pop(f"{end}_second"))
    if rules.schedule.cron is None:
        schedule["dialect"] = None
    values = {"name": rules.name, **schedule, **asdict(rules), "labels": dict(rules.labels)}
    del values["schedule"]
    return {
        name: Hidden(value) if name in _HIDDEN and value is not None else plain(value)
        for name, value in values.items()
    }


def _instant(second: int | None) -> str | None:
    return None if second is None else rfc3339(second * 1000)
