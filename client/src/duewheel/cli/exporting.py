"""A task that is there, as the request that would make it."""

from typing import Any

from duewheel.cli.shown import members
from duewheel.values import Task

KEPT = ("biz_type", "due_at", "key", "payload", "callback", "retry", "expires_after_seconds")


def as_new(task: Task) -> dict[str, Any]:
    """Null fields were not given, except perhaps the payload: a task does not show whether it was,
    and none and null differ in the body of the callback alone."""
    body = {name: value for name, value in members(task).items() if name in KEPT}
    if task.callback is not None:
        body["callback"] = {
            name: value for name, value in task.callback.items() if value is not None
        }
    return {name: value for name, value in body.items() if value is not None}
