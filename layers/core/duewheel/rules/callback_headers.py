"""What every callback carries besides the caller's own headers."""

from duewheel.rules.instants import rfc3339
from duewheel.rules.signature import signatures
from duewheel.rules.task import Task

ATTEMPT = "duewheel-attempt"


def callback_headers(
    task: Task, now_ms: int, secrets: tuple[bytes, ...] = (), body: bytes | None = None
) -> dict[str, str]:
    """The same task id with every attempt: a receiver drops repeats by it."""
    seconds = now_ms // 1000
    signed = {"webhook-signature": signatures(secrets, task.task_id, seconds, body or b"")}
    return {
        "webhook-id": task.task_id,
        "webhook-timestamp": str(seconds),
        **(signed if secrets else {}),
        "duewheel-due-at": rfc3339(task.due_ms),
        ATTEMPT: str(task.attempts + 1),
        "duewheel-biz-type": task.biz_type,
    }
