"""Headers that every callback carries besides the caller's own."""

from duewheel.rules.callbacks.signature import signatures
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Task

ATTEMPT = "duewheel-attempt"
BIZ_TYPE = "duewheel-biz-type"


def callback_headers(
    task: Task, now_ms: int, secrets: tuple[bytes, ...] = (), body: bytes | None = None
) -> dict[str, str]:
    """The task id is the same with every attempt: a receiver drops repeats by it."""
    seconds = now_ms // 1000
    signed = {"webhook-signature": signatures(secrets, task.task_id, seconds, body or b"")}
    return {
        "webhook-id": task.task_id,
        "webhook-timestamp": str(seconds),
        **(signed if secrets else {}),
        "duewheel-due-at": rfc3339(task.due_ms),
        ATTEMPT: str(task.attempts + 1),
        BIZ_TYPE: task.biz_type,
    }
