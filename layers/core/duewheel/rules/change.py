"""What a caller may change of a pending task, and what the task becomes."""

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules import wheel
from duewheel.rules.message_text import unsuitable
from duewheel.rules.task import Callback, Task
from duewheel.rules.task_fields import invalid


class Change(Struct, frozen=True):
    """What is absent stays. `sets_payload` tells a payload taken away from one left alone."""

    due_ms: int | None = None
    callback: Callback | None = None
    sets_payload: bool = False
    payload: str | None = None


def changed(task: Task, change: Change, now_ms: int) -> Task:
    """The task as it will be; its named entry is another matter (`needs_new_entry`)."""
    due_ms = task.due_ms if change.due_ms is None else change.due_ms
    callback = change.callback or task.callback
    payload = change.payload if change.sets_payload else task.payload
    reason = unsuitable(callback, payload)
    if reason is not None and (change.callback is not None or change.sets_payload):
        raise invalid("payload", reason)
    return replace(
        task,
        due_ms=due_ms,
        next_ms=task.next_ms if change.due_ms is None else due_ms,
        callback=callback,
        payload=payload,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def brought_forward(task: Task, now_ms: int) -> Task:
    """Due now for its next attempt; the due instant it was made for stays."""
    return replace(task, next_ms=now_ms, updated_ms=now_ms, version=task.version + 1)


def needs_new_entry(task: Task, now_ms: int) -> bool:
    """An entry that comes up too early is placed anew by the notifier, and costs nothing
    until then; one that would come up too late must be replaced before it is named. So must one
    whose second is past: its message was lost, and each change would get ahead of its rescue."""
    is_past = (task.entry.second + 1) * 1000 + wheel.SKEW_MS <= now_ms
    return is_past or task.next_ms // 1000 < task.entry.second
