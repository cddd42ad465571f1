"""What every callback carries besides the caller's own headers."""

from duewheel.rules.instants import rfc3339
from duewheel.rules.task import Task


def callback_headers(task: Task, now_ms: int) -> dict[str, str]:
    """The same task id with every attempt: a receiver drops repeats by it."""
    return {
        "webhook-id": task.task_id,
        "webhook-timestamp": str(now_ms // 1000),
        "duewheel-due-at": rfc3339(task.due_ms),
        "duewheel-attempt": str(task.attempts + 1),
        "duewheel-biz-type": task.biz_type,
    }
