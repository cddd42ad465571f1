"""Calls that could not begin: their business has as many look-ups of names under way as it may
have. They are no attempts, and their tasks come up again soon."""

from collections.abc import Sequence

from duewheel.rules.settlement import held_off
from duewheel.rules.task import Task

WAIT_MS = 5_000  # and as long again for the last of many


def come_up_again(tasks: Sequence[Task], now_ms: int) -> list[tuple[Task, Task]]:
    """Each with what it becomes: spread, so that they do not find the same look-ups again."""
    return [
        (task, held_off(task, now_ms + WAIT_MS + WAIT_MS * number // len(tasks), now_ms))
        for number, task in enumerate(tasks)
    ]
