"""Follows one task until it has ended, without reading it more often than it can change."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from duewheel.values import Task

PAUSE_SECONDS = 1.0
PAUSE_SECONDS_MAX = 10.0  # another caller may cancel it, or move it


def watch(
    look: Callable[[], Task],
    now: Callable[[], datetime],
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Task]:
    """Yields the task, and again after each change."""
    last = None
    while True:
        found = look()
        if found != last:
            yield found
        if found.status != "pending":
            return
        last = found
        pause(pause_seconds(found, now()))


def pause_seconds(found: Task, now: datetime) -> float:
    ahead = (found.next_at or now) - now
    return min(max(ahead / timedelta(seconds=2), PAUSE_SECONDS), PAUSE_SECONDS_MAX)
