"""A changed timer, and whether it needs a new chain.

A chain continues while its plan stays the same: the seconds, their number, their jitter and
tolerance. Everything else is read when an occurrence is called, so a change of it needs no new
chain.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from duewheel.rules.businesses.settings import RETENTION_SECONDS_MIN
from duewheel.rules.callbacks.payload_encoding import unsuitable
from duewheel.rules.fields import invalid
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Plan, Task
from duewheel.rules.timers.schedule import DstGap, DstOverlap, Schedule, seconds_from
from duewheel.rules.timers.schedule_validation import refusal_of
from duewheel.rules.timers.timer import DisabledReason, Gap, Rules, Timer
from duewheel.rules.wheel.addresses import Address

BLANK = Rules(name="", schedule=Schedule())  # the rules of a new timer

GAPS_MAX = 5  # kept with the timer, whose record every page of its runs reads

_IN_THE_SCHEDULE = {
    "cron": "cron",
    "every_seconds": "every_seconds",
    "timezone": "timezone",
    "start_at": "start_second",
    "end_at": "end_second",
    "dst_gap": "dst_gap",
    "dst_overlap": "dst_overlap",
    "exclude": "exclude",
}
_MEMBERS = (*_IN_THE_SCHEDULE, *(name for name in Rules.__struct_fields__ if name != "schedule"))


def changed_rules(rules: Rules, values: Mapping[str, Any], now_second: int) -> Rules:
    """The rules with these values, by the names of requests, and all others as they were; checked
    as a whole. None resets a value to its default."""
    schedule = _changed_schedule(rules.schedule, values, now_second)
    given = {name: value for name, value in values.items() if name not in _IN_THE_SCHEDULE}
    after = replace(rules, schedule=schedule, **_with_defaults(BLANK, given))
    _check_together(after)
    if after.schedule != rules.schedule:
        refused = refusal_of(after.schedule, now_second + 1)
        if refused is not None:
            raise invalid(*refused)
    if "callback" in values or "payload" in values:
        reason = unsuitable(after.callback, after.payload)
        if reason is not None:
            raise invalid("payload", reason)
    return after


def replaced_rules(rules: Rules, values: Mapping[str, Any], now_second: int) -> Rules:
    """The rules with these values, and the defaults of all others. An interval that stays counts
    from the same instant."""
    usual = rules.schedule.dialect is BLANK.schedule.dialect
    before = rules if usual else replace(rules, schedule=BLANK.schedule)
    whole = {**dict.fromkeys(_MEMBERS), **values}
    whole = {name: value for name, value in whole.items() if not _has(before, name, value)}
    return changed_rules(before, whole, now_second)


def _has(rules: Rules, name: str, value: Any) -> bool:
    """Whether this value, or the default in place of None, would change nothing."""
    if name in _IN_THE_SCHEDULE:
        schedule = {_IN_THE_SCHEDULE[name]: value}
        return replace(rules.schedule, **_with_defaults(BLANK.schedule, schedule)) == rules.schedule
    return replace(rules, **_with_defaults(BLANK, {name: value})) == rules


def _changed_schedule(schedule: Schedule, values: Mapping[str, Any], now_second: int) -> Schedule:
    given = {field: values[name] for name, field in _IN_THE_SCHEDULE.items() if name in values}
    after = replace(schedule, **_with_defaults(BLANK.schedule, given))
    if after.every_seconds is None:
        return replace(after, anchor_second=0)
    if "every_seconds" in given or "start_second" in given:
        anchor = now_second if after.start_second is None else after.start_second
        return replace(after, anchor_second=anchor)
    return after


def _with_defaults(blank: Rules | Schedule, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: getattr(blank, name) if value is None else value for name, value in values.items()
    }


def _check_together(rules: Rules) -> None:
    schedule = rules.schedule
    if schedule.cron is None and schedule.every_seconds is None:
        raise invalid("cron", "is missing: a timer has cron or every_seconds.")
    if schedule.every_seconds is None:
        return
    if schedule.cron is not None:
        raise invalid("every_seconds", "cannot be combined with cron; one of them must be null.")
    for name, usual in (("dst_gap", DstGap.SHIFT), ("dst_overlap", DstOverlap.FIRST)):
        if getattr(schedule, name) is not usual:
            raise invalid(name, "means nothing beside every_seconds, which knows no wall clock.")
    if rules.jitter_seconds >= schedule.every_seconds:
        raise invalid("jitter_seconds", "must be less than every_seconds.")


def changed(
    timer: Timer,
    rules: Rules,
    *,
    enabled: bool,
    now_ms: int,
    reason: DisabledReason | None = None,
) -> Timer:
    """The same timer if no value changes. It still needs a chain. `reason`: why the service
    disables it."""
    if rules == timer.rules and enabled == timer.enabled:
        return timer
    is_disabled_now = timer.enabled and not enabled
    return replace(
        timer,
        rules=rules,
        enabled=enabled,
        disabled_reason=None if enabled else (reason if is_disabled_now else timer.disabled_reason),
        version=timer.version + 1,
        updated_ms=max(now_ms, timer.updated_ms),
    )


def keeps_plan(before: Timer, after: Timer) -> bool:
    return before.enabled == after.enabled and _planned(before) == _planned(after)


def _planned(timer: Timer) -> tuple[object, ...]:
    rules = timer.rules
    return rules.schedule, rules.max_runs, _delays(rules)


def _delays(rules: Rules) -> tuple[int, int]:
    return rules.jitter_seconds, rules.tolerance_seconds


def without_chain(before: Timer, after: Timer, chain: Task | None, now_second: int) -> Timer:
    """`after` without the chain of `before`, numbered as if that had planned nothing ahead.
    Occurrences that it has planned must not be put again in another shard."""
    plan = None if chain is None else chain.plan
    numbered = numbered_until(before, plan, now_second)
    sizes = (before if plan is None else plan).sizes.kept_from(now_second + 1)
    gaps = after.gaps
    if before.enabled and not after.enabled:
        gaps = (*gaps, Gap(now_second))[-GAPS_MAX:]
    return replace(after, chain=None, numbered=numbered, sizes=sizes, ended=False, gaps=gaps)


def planned_by(timer: Timer, chain: Address, now_second: int) -> Timer:
    """The timer with a chain that plans it behind that second. It was disabled up to there, if it
    was."""
    gaps = timer.gaps
    if gaps and gaps[-1].until is None:
        gaps = (*gaps[:-1], replace(gaps[-1], until=now_second))
    return replace(timer, chain=chain, gaps=gaps, last_second=_last_second(timer, now_second))


def _last_second(timer: Timer, now_second: int) -> int | None:
    """Occurrences that an earlier chain has planned keep their numbers, by which one may be called
    beyond `max_runs`, or one within it not."""
    if timer.rules.max_runs is None:
        return None
    left = max(0, timer.rules.max_runs - timer.numbered)
    until = timer.sizes.until_second - 1
    found = seconds_from(timer.rules.schedule, now_second + 1, left, until)
    if len(found) < left:
        return None
    return found[-1] if found else now_second


def numbered_until(timer: Timer, plan: Plan | None, now_second: int) -> int:
    """How many occurrences the timer has had, the second that has begun included. `plan` is its
    chain's, which does not know the last ones of a timer that has ended late."""
    if plan is None or timer.ended:
        return timer.numbered
    schedule, last = timer.rules.schedule, plan.planned_until_second - 1
    return plan.numbered - len(seconds_from(schedule, now_second + 1, plan.numbered, last))


def ended_chain(chain: Task, after: Timer | None, now_ms: int) -> Task:
    """The home of a chain that plans no more. `after` None: its timer is deleted."""
    if after is None:
        reason = "timer deleted"
    else:
        reason = "timer changed" if after.enabled else "timer disabled"
    return lifecycle.cancelled(chain, reason, now_ms, RETENTION_SECONDS_MIN)
