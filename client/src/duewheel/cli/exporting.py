"""An existing task, as the request that would create it."""

from collections.abc import Mapping
from typing import Any

from duewheel.cli.shown import members
from duewheel.values import Task

KEPT = (
    "biz_type",
    "due_at",
    "key",
    "payload",
    "callback",
    "retry",
    "expires_after_seconds",
    "tolerance_seconds",
    "priority",
    "flow_key",
    "labels",
    "on_outcome",
)


def as_new(task: Task) -> dict[str, Any]:
    """Null fields are left out, the payload too: a task does not show whether its payload was null
    or absent, which differ only in the body of the callback."""
    body = {name: value for name, value in members(task).items() if name in KEPT}
    if task.callback is not None:
        body["callback"] = _without_nulls(task.callback)
    if task.on_outcome is not None:
        callback = _without_nulls(task.on_outcome["callback"])
        body["on_outcome"] = {**task.on_outcome, "callback": callback}
    return {name: value for name, value in body.items() if value not in (None, {})}


def _without_nulls(callback: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in callback.items() if value is not None}
