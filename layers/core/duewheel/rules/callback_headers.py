"""What every callback carries besides the caller's own headers, and which names are not theirs."""

import re

from duewheel.rules.instants import rfc3339
from duewheel.rules.signature import signatures
from duewheel.rules.task import Task

ATTEMPT = "duewheel-attempt"
BIZ_TYPE = "duewheel-biz-type"

_FORBIDDEN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_FORBIDDEN_PREFIXES = ("duewheel-", "proxy-", "webhook-")
_NO_LETTER_OR_DIGIT = re.compile(r"[^0-9a-z]")


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
        BIZ_TYPE: task.biz_type,
    }


def is_of_the_delivery(name: str) -> bool:
    """Also in the spellings that a receiver may take for its own."""
    read_as = _NO_LETTER_OR_DIGIT.sub("-", name.lower())
    return read_as in _FORBIDDEN_HEADERS or read_as.startswith(_FORBIDDEN_PREFIXES)
