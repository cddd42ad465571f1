"""Which of a page's tasks may be called when, by the turns that were taken for them.

Invariant: a task is called at its turn or later, and waits for it in the notifier only as long as
that costs less than another entry.
"""

from collections.abc import Sequence

from duewheel.rules.task import Promise, Task
from duewheel.rules.turns import Turns

WAIT_MS_MAX = 2_000
GOOD_FOR_MS = 5_000  # a promise; whoever comes later than that takes another turn


def is_promised(task: Task, version: int, now_ms: int) -> bool:
    """Whether its turn was taken for it before, by the settings that hold now."""
    return task.promise == Promise(task.next_ms, version) and now_ms <= task.next_ms + GOOD_FOR_MS


def shared_out(
    tasks: Sequence[Task], turns: Turns, now_ms: int
) -> tuple[list[tuple[Task, int]], list[tuple[Task, Promise]]]:
    """The tasks, in the order of their instants, with when each may be called, and those of them
    that are put off."""
    soon: list[tuple[Task, int]] = []
    later: list[tuple[Task, Promise]] = []
    for task, turn_ms in zip(tasks, turns.instants_ms(), strict=True):
        instant_ms = max(turn_ms, task.next_ms)
        if instant_ms <= max(now_ms, task.next_ms) + WAIT_MS_MAX:
            soon.append((task, instant_ms))
        else:
            later.append((task, Promise(instant_ms, turns.version)))
    return soon, later
