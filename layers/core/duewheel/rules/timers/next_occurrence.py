"""The next occurrences of a timer."""

from collections.abc import Sequence

from duewheel.rules.tasks.task import Plan
from duewheel.rules.timers.requests import State
from duewheel.rules.timers.schedule import seconds_from
from duewheel.rules.timers.timer import Rules, Timer
from duewheel.rules.timers.updates import numbered_until


def next_second(timer: Timer, plan: Plan | None, now_second: int) -> int | None:
    """By its schedule; jitter may postpone it. `plan` is that of its chain, and is needed only if
    the timer has `max_runs`."""
    if not timer.enabled:
        return None
    is_counted = timer.rules.max_runs is not None
    numbered = numbered_until(timer, plan, now_second) if is_counted else 0
    coming = upcoming(timer.rules, numbered, now_second + 1, 1)
    return coming[0] if coming else None


def upcoming(rules: Rules, numbered: int, first_second: int, count: int) -> Sequence[int]:
    """`numbered`: the number of earlier occurrences."""
    if rules.max_runs is not None:
        count = min(count, rules.max_runs - numbered)
    return seconds_from(rules.schedule, first_second, count) if count > 0 else ()


def state_of(timer: Timer, next_one: int | None) -> State:
    if not timer.enabled:
        return State.DISABLED
    return State.ENDED if next_one is None else State.ENABLED


def first_second(from_ms: int | None, now_second: int) -> int:
    """Where a forecast begins: by default after the current second."""
    return now_second + 1 if from_ms is None else -(-from_ms // 1000)
