"""Create and upsert by key: the state of the key, and what follows from it."""

from enum import Enum

from msgspec.structs import replace

from duewheel.rules.tasks.task import NewTask, Task
from duewheel.rules.tasks.updates import Place, due_at


class KeyState(Enum):
    FREE = "free"  # no task, or an ended one: the key is free
    SAME = "same"  # live, and made by the same body
    OTHER = "other"  # live, and made by another body


def key_state(found: Task | None, task: Task) -> KeyState:
    if found is None or not found.is_live:
        return KeyState.FREE
    return KeyState.SAME if found.digest == task.digest else KeyState.OTHER


def bounded(new: NewTask) -> NewTask:
    """A watchdog is due no later than its own bound, from the first beat on. The bound is for its
    due instant: its tolerance may give it a second behind the bound."""
    if new.max_due_ms is None:
        return new
    return replace(new, due_ms=min(new.due_ms, new.max_due_ms))


def rescheduled(task: Task, new: NewTask, now_ms: int, place: Place) -> Task:
    """The live task after an upsert. The bound of its creation stays: a later heartbeat cannot move
    the bound with the instant."""
    bound_ms = task.max_due_ms if task.max_due_ms is not None else new.max_due_ms
    due_ms = new.due_ms if bound_ms is None else min(new.due_ms, bound_ms)
    after = replace(
        task,
        callback=new.callback,
        payload=new.payload,
        retry=new.retry,
        expires_after_seconds=new.expires_after_seconds,
        tolerance_seconds=new.tolerance_seconds,
        priority=new.priority,
        flow_key=new.flow_key,
        labels=new.labels,
        on_outcome=new.on_outcome,
        digest=new.digest,
        max_due_ms=bound_ms,
        updated_ms=now_ms,
        version=task.version + 1,
    )
    return due_at(after, due_ms, place)
