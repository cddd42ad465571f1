"""A change of a pending task: its request body, and the changed task. An absent member changes
nothing.
"""

from collections.abc import Callable

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.payload_encoding import unsuitable
from duewheel.rules.callbacks.requests import CallbackBody, callback_from
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.fields import decode, given, invalid
from duewheel.rules.labels import Labels, LabelsField, labels_from
from duewheel.rules.priority import Priority, PriorityField
from duewheel.rules.refusals import MalformedBody
from duewheel.rules.tasks.flow_order import instant_of
from duewheel.rules.tasks.pause import moved
from duewheel.rules.tasks.requests import (
    DUE_FIELDS,
    DueBody,
    Payload,
    due_ms_from,
    payload_text,
)
from duewheel.rules.tasks.task import Task
from duewheel.rules.tolerance import ToleranceSeconds, Window
from duewheel.rules.wheel import timing

Place = Callable[[Window], int]  # the instant that a task with this window gets


class Change(Struct, frozen=True, kw_only=True):
    """`sets_payload` distinguishes a removed payload from an unchanged one."""

    due_ms: int | None = None
    callback: Callback | None = None
    sets_payload: bool = False
    payload: str | None = None
    tolerance_seconds: int | None = None
    priority: Priority | None = None
    labels: Labels | None = None  # all of them


def changed(task: Task, change: Change, now_ms: int, place: Place) -> Task:
    """The changed task, still without a new named entry (see `needs_new_entry`). Another tolerance
    alone gives it another second only while it waits for its first attempt, at the second that it
    was given."""
    callback = change.callback or task.callback
    payload = change.payload if change.sets_payload else task.payload
    reason = unsuitable(callback, payload)
    if reason is not None and (change.callback is not None or change.sets_payload):
        raise invalid("payload", reason)
    after = replace(
        task,
        callback=callback,
        payload=payload,
        priority=change.priority or task.priority,
        labels=task.labels if change.labels is None else change.labels,
        updated_ms=now_ms,
        version=task.version + 1,
    )
    if change.tolerance_seconds is not None:
        after = replace(after, tolerance_seconds=change.tolerance_seconds)
    if change.due_ms is not None:
        return due_at(after, change.due_ms, place)
    if change.tolerance_seconds is not None and task.call_ms == task.due_ms:
        return due_at(after, task.due_at_ms, place)
    return after


def due_at(task: Task, requested_ms: int, place: Place) -> Task:
    """The task with this due instant."""
    due_ms = place(Window(requested_ms, task.biz_type, task.tolerance_seconds))
    return replace(
        moved(task, due_ms),
        due_ms=due_ms,
        requested_ms=None if due_ms == requested_ms else requested_ms,
        ordered_ms=None,
    )


def brought_forward(task: Task, now_ms: int) -> Task:
    """Due now for its next attempt, and not paused any more; its due instant stays. In the order of
    its flow key it has the place of now, if that is an earlier one."""
    ordered_ms = task.ordered_ms
    if task.flow_key is not None and now_ms < instant_of(task):
        ordered_ms = now_ms
    return replace(
        task,
        paused=None,
        next_ms=now_ms,
        ordered_ms=ordered_ms,
        updated_ms=now_ms,
        version=task.version + 1,
    )


def needs_new_entry(task: Task, now_ms: int) -> bool:
    """An entry that is too early is kept: when it fires the notifier places the task again. An
    entry that is too late must be replaced first. So must an entry whose second is past: its
    message was lost, and further changes would always precede the rescue."""
    is_past = (task.entry.second + 1) * 1000 + timing.SKEW_MS <= now_ms
    return is_past or task.next_ms < task.entry.instant_ms


class TaskChangeBody(DueBody):
    payload: Payload | UnsetType = UNSET
    callback: CallbackBody | UnsetType = UNSET
    tolerance_seconds: ToleranceSeconds | UnsetType = UNSET
    priority: PriorityField | UnsetType = UNSET
    labels: LabelsField | UnsetType = UNSET


def change_request(body: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE) -> Change:
    read = decode(body, TaskChangeBody)
    named = [name for name in TaskChangeBody.__struct_fields__ if getattr(read, name) is not UNSET]
    if not named:
        fields = ", ".join(TaskChangeBody.__struct_fields__)
        raise MalformedBody(f"A change names at least one of {fields}.")
    return Change(
        due_ms=due_ms_from(read, now_ms) if not set(named).isdisjoint(DUE_FIELDS) else None,
        callback=None
        if isinstance(read.callback, UnsetType)
        else callback_from(read.callback, allowed),
        sets_payload="payload" in named,
        payload=payload_text(read.payload),
        tolerance_seconds=given(read.tolerance_seconds, None),
        priority=given(read.priority, None),
        labels=None if isinstance(read.labels, UnsetType) else labels_from(read.labels),
    )
