"""How long a task waits on the wheel without an attempt, by the reason.

A task that the slow lane has not reached waits about as long as it is late already, so it falls due
a few times only, however long the lane is overloaded. A task whose call could not begin, because
its business has too many running look-ups of host names, falls due again soon.
"""

from collections.abc import Sequence

from duewheel.rules.tasks.lifecycle import postponed
from duewheel.rules.tasks.task import Task

WAIT_MS_MIN = 60_000
WAIT_MS_MAX = 900_000


def comes_up_again_ms(task: Task, now_ms: int) -> int:
    return now_ms + min(max(now_ms - task.due_ms, WAIT_MS_MIN), WAIT_MS_MAX)


def come_up_again(task: Task, now_ms: int) -> Task:
    """No attempt was made, and none is used up. It is yet to get its entry."""
    return postponed(task, comes_up_again_ms(task, now_ms), now_ms)


UNBEGUN_WAIT_MS = 5_000  # and as long again for the last of many


def spread_unbegun(tasks: Sequence[Task], now_ms: int) -> list[tuple[Task, Task]]:
    """Pairs of a task and what it becomes: spread, so that they do not meet the same look-ups
    again."""
    return [
        (
            task,
            postponed(
                task, now_ms + UNBEGUN_WAIT_MS + UNBEGUN_WAIT_MS * number // len(tasks), now_ms
            ),
        )
        for number, task in enumerate(tasks)
    ]
