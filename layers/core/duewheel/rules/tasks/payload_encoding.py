"""Payload encoding: what a payload becomes for each target, and which payloads suit it.

The payload is JSON text, and is passed on as it was written. A raw payload is a JSON string, and
its text is passed on. Functions and events get it in an envelope.
"""

import json
import re
from hashlib import blake2b

from duewheel.rules.callbacks.aws import NOT_IN_A_MESSAGE
from duewheel.rules.callbacks.types import Callback, HttpCallback, SnsCallback, SqsCallback
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Task

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def unsuitable(callback: Callback | None, payload: str | None) -> str | None:
    """Why this callback cannot carry this payload, as text for the caller; None if it can."""
    if not isinstance(callback, HttpCallback | SqsCallback | SnsCallback):
        return None
    is_http = isinstance(callback, HttpCallback)
    if is_http and not callback.is_raw:
        return None
    if callback.is_raw and (payload is None or not payload.startswith('"')):
        if is_http and payload is None:
            return None
        return "must be a string, since callback.body is raw."
    text = text_of(payload, is_raw=callback.is_raw)
    if _LONE_SURROGATE.search(text):
        return "has half of a surrogate pair, which no raw body may hold."
    if not is_http and (not text or NOT_IN_A_MESSAGE.search(text)):
        return "is empty, or has a character that no message may hold."
    return None


def text_of(payload: str | None, *, is_raw: bool) -> str:
    """A missing payload is `null`, as in answers."""
    if payload is None:
        return "null"
    return str(json.loads(payload)) if is_raw else payload


def attributes_of(task: Task) -> dict[str, str]:
    """Attributes that identify the task of a message, as the headers of an HTTP callback do."""
    return {
        "duewheel-task-id": task.task_id,
        "duewheel-due-at": rfc3339(task.due_ms),
        "duewheel-attempt": str(task.attempts + 1),
        "duewheel-biz-type": task.biz_type,
    }


def envelope(task: Task) -> str:
    """A function's event, an event's detail: the same task id with every attempt."""
    head = json.dumps(
        {
            "task_id": task.task_id,
            "biz_type": task.biz_type,
            "due_at": rfc3339(task.due_ms),
            "attempt": task.attempts + 1,
        }
    )
    return f'{head[:-1]}, "payload": {text_of(task.payload, is_raw=False)}}}'


def deduplication_id(callback: SqsCallback | SnsCallback, task: Task) -> str:
    """The same with every attempt, so that AWS drops the repeat of a message whose acceptance was
    lost; another after a redrive or a change, which are to be delivered."""
    said = json.dumps([callback.group_id, callback.attributes, callback.is_raw, task.payload])
    digest = blake2b(said.encode(), digest_size=6).hexdigest()
    return f"{task.task_id}.{task.redrives}.{digest}"
