"""The record of a change of a timer."""

from typing import Any

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
    schedule = rules.schedule
    shown = {
        "name": rules.name,
        "cron": schedule.cron,
        "dialect": None if schedule.cron is None else schedule.dialect,
        "every_seconds": schedule.every_seconds,
        "timezone": schedule.timezone,
        "start_at": _instant(schedule.start_second),
        "end_at": _instant(schedule.end_second),
        "max_runs": rules.max_runs,
        "jitter_seconds": rules.jitter_seconds,
        "retry": rules.retry,
        "expires_after_seconds": rules.expires_after_seconds,
        "dst_gap": schedule.dst_gap,
        "dst_overlap": schedule.dst_overlap,
        "misfire": rules.misfire,
        "grace_seconds": rules.grace_seconds,
        "overlap": rules.overlap,
        "exclude": schedule.exclude,
        "disable_on_stop": rules.disable_on_stop,
        "pause_on_failures": rules.pause_on_failures,
        "tolerance_seconds": rules.tolerance_seconds,
        "priority": rules.priority,
        "flow_key": rules.flow_key,
        "labels": dict(rules.labels),
        "managed_by": rules.managed_by,
    }
    return {
        **{name: plain(value) for name, value in shown.items()},
        "payload": None if rules.payload is None else Hidden(rules.payload),
        "callback": None if rules.callback is None else Hidden(rules.callback),
        "on_outcome": None if rules.on_outcome is None else Hidden(rules.on_outcome),
    }


def _instant(second: int | None) -> str | None:
    return None if second is None else rfc3339(second * 1000)
