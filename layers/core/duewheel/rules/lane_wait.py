"""What becomes of a task that the slow lane has not got to: it waits on the wheel.

Invariant: it waits about as long again as it is late already, so however long the lane has more
than it can take, a task comes up a few times only.
"""

from duewheel.rules.settlement import held_off
from duewheel.rules.task import Task

WAIT_MS_MIN = 60_000
WAIT_MS_MAX = 900_000


def comes_up_again_ms(task: Task, now_ms: int) -> int:
    return now_ms + min(max(now_ms - task.due_ms, WAIT_MS_MIN), WAIT_MS_MAX)


def come_up_again(task: Task, now_ms: int) -> Task:
    """No attempt was made, and none is used up. It is yet to get its entry."""
    return held_off(task, comes_up_again_ms(task, now_ms), now_ms)
