"""The pause of one task: a caller puts it aside, and resumes it.

It is a postponement far ahead, so its entry and its cut-off are those of any task that was moved.
At the end of that time it is called.
"""

from typing import Annotated

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from duewheel.rules.fields import Instant, RequestBody, decode, instant_ms, invalid, says
from duewheel.rules.tasks.task import Paused, Task

PAUSE_DAYS_MAX = 365
PAUSE_MS_MAX = PAUSE_DAYS_MAX * 86_400_000
PAUSE_BYTES_MAX = 1_024  # of a body

_Until = Annotated[Instant, says(f"Ahead, by up to {PAUSE_DAYS_MAX} days. Then it is called.")]


class PauseBody(RequestBody):
    until: _Until | UnsetType = UNSET


def until_from(body: str | None, now_ms: int) -> int | None:
    until = decode(body, PauseBody).until if body else UNSET
    if isinstance(until, UnsetType):
        return None
    until_ms = instant_ms(until, "until")
    if not now_ms < until_ms <= now_ms + PAUSE_MS_MAX:
        raise invalid("until", f"must be ahead, by up to {PAUSE_DAYS_MAX} days.")
    return until_ms


def is_paused(task: Task, until_ms: int | None) -> bool:
    """Whether it is paused already, and until then, if that is said."""
    return task.paused is not None and until_ms in (None, task.paused.until_ms)


def paused(task: Task, until_ms: int | None, by: str, now_ms: int) -> Task:
    """It has used up no attempt, and keeps its entry: when that fires the notifier places the task
    again. Without `until_ms` for as long as a pause may last, behind the instant of its call. One
    that is paused keeps who did it."""
    from_ms = _call_ms(task)
    if until_ms is None:
        until_ms = max(now_ms, from_ms) + PAUSE_MS_MAX
    until_ms = max(until_ms, from_ms)
    before = task.paused
    since_ms, by = (now_ms, by) if before is None else (before.since_ms, before.by)
    return replace(
        task,
        paused=Paused(since_ms=since_ms, by=by, until_ms=until_ms, from_ms=from_ms),
        next_ms=until_ms,
        parked=False,
        parked_key=None,
        reservation=None,
        postponement=None,
        in_line=None,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def resumed(task: Task, now_ms: int) -> Task:
    return replace(
        task,
        paused=None,
        next_ms=max(now_ms, task.call_ms),
        updated_ms=now_ms,
        version=task.version + 1,
    )


def moved(task: Task, due_ms: int) -> Task:
    """With another instant of its call; it stays paused."""
    if task.paused is None:
        return replace(task, next_ms=due_ms)
    until_ms = max(task.paused.until_ms, due_ms)
    after = replace(task.paused, from_ms=due_ms, until_ms=until_ms)
    return replace(task, paused=after, next_ms=until_ms)


def _call_ms(task: Task) -> int:
    """An earlier instant than its next one, if it waits for others of its flow key."""
    if task.in_line is not None and task.in_line.until_ms == task.next_ms:
        return task.in_line.from_ms
    return task.call_ms
