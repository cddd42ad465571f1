"""Requests that create tasks, and queries by key prefix: their fields and limits.

A field that is not understood is refused with its path; no value is guessed or repaired.
"""

import math
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from hashlib import blake2b
from typing import Annotated

from msgspec import UNSET, Meta, Raw, UnsetType
from msgspec.structs import replace

from duewheel.rules.access.grants import Permit
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.payload_encoding import unsuitable
from duewheel.rules.callbacks.requests import (
    CallbackBody,
    OnOutcomeBody,
    callback_from,
    on_outcome_from,
)
from duewheel.rules.callbacks.retry import Retry, retry_policy
from duewheel.rules.callbacks.types import Callback, OnOutcome
from duewheel.rules.fields import (
    SECONDS_MIN,
    Instant,
    RequestBody,
    decode,
    given,
    instant_ms,
    invalid,
    joined_path,
    says,
)
from duewheel.rules.labels import NO_LABELS, Labels, LabelsField, labels_from
from duewheel.rules.names import (
    AHEAD_SECONDS_MAX,
    BizType,
    FlowKey,
    TaskKey,
    checked_biz_type,
    checked_key,
)
from duewheel.rules.priority import PriorityField
from duewheel.rules.query_string import PageQuery
from duewheel.rules.refusals import NotPermitted, Refusal, TargetNotEnabled, TooLarge
from duewheel.rules.tasks.task import NewTask
from duewheel.rules.tolerance import ToleranceSeconds, Window

SINGLE_BYTES_MAX = 256 * 1024
BATCH_BYTES_MAX = 4_000_000
BATCH_TASKS_MAX = 500
BATCH_MEMBER = "tasks"
PAYLOAD_BYTES_MAX = 64 * 1024
DUE_FIELDS = ("due_at", "due_ms", "delay_seconds")
DUE_MS_MIN = 10**11  # in 1973; as seconds it is in the year 5138
_BESIDE_THE_DIGEST = ("biz_type", "key", "max_due_at")

Payload = Annotated[
    Raw, says(f"Any JSON, of at most {PAYLOAD_BYTES_MAX:,} bytes as it is written.")
]
ExpiresAfter = Annotated[float, Meta(ge=SECONDS_MIN, le=AHEAD_SECONDS_MAX)]


class DueBody(RequestBody):
    """Exactly one member says when a task is due. An instant in the past is allowed: such a task is
    due now."""

    due_at: Annotated[Instant, says("Up to ten years ahead.")] | UnsetType = UNSET
    due_ms: (
        Annotated[
            int,
            says("Milliseconds since 1970, up to ten years ahead.", minimum=DUE_MS_MIN),
        ]
        | UnsetType
    ) = UNSET
    delay_seconds: Annotated[float, Meta(ge=0, le=AHEAD_SECONDS_MAX)] | UnsetType = UNSET


class TaskBody(DueBody):
    payload: Payload | UnsetType = UNSET
    callback: CallbackBody | UnsetType = UNSET
    retry: Retry | UnsetType = UNSET
    expires_after_seconds: ExpiresAfter | UnsetType = UNSET
    tolerance_seconds: ToleranceSeconds | UnsetType = UNSET
    priority: PriorityField | UnsetType = UNSET
    flow_key: FlowKey | UnsetType = UNSET
    labels: LabelsField | UnsetType = UNSET
    on_outcome: OnOutcomeBody | UnsetType = UNSET


class NewTaskBody(TaskBody, kw_only=True):
    biz_type: BizType
    key: TaskKey | UnsetType = UNSET


class TaskByKeyBody(TaskBody):
    """The key is in the path."""

    max_due_at: Annotated[Instant, says("How far it can be pushed out.")] | UnsetType = UNSET


class NewTasksBody(RequestBody):
    tasks: Annotated[
        list[Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/NewTask"})]],
        says(minItems=1, maxItems=BATCH_TASKS_MAX),
    ]


def single_request(
    body: str | Raw, now_ms: int, allowed: AllowedTargets = HTTP_ALONE, path: str = ""
) -> NewTask:
    read = decode(body, NewTaskBody, path)
    key = given(read.key, None)
    digest = None if key is None else _digest(body)
    return _task(read, (read.biz_type, key, digest), now_ms, allowed, path)


def batch_request(
    body: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE
) -> list[NewTask | Refusal]:
    return tasks_of_batch(bodies_of_batch(body), now_ms, allowed)


def bodies_of_batch(body: str | Raw) -> list[Raw]:
    """Each task of a batch, as it was written."""
    tasks = decode(body, NewTasksBody).tasks
    if not tasks:
        raise invalid(BATCH_MEMBER, "is empty.")
    if len(tasks) > BATCH_TASKS_MAX:
        raise TooLarge(f"A batch has at most {BATCH_TASKS_MAX} tasks.", BATCH_MEMBER)
    return tasks


def tasks_of_batch(
    tasks: Sequence[Raw], now_ms: int, allowed: AllowedTargets
) -> list[NewTask | Refusal]:
    """One result for each, in order: what to create, or why not."""
    return [
        _new_task_or_refusal(task, f"{BATCH_MEMBER}[{index}]", now_ms, allowed)
        for index, task in enumerate(tasks)
    ]


def _new_task_or_refusal(
    task: Raw, path: str, now_ms: int, allowed: AllowedTargets
) -> NewTask | Refusal:
    try:
        return single_request(task, now_ms, allowed, path)
    except Refusal as refusal:
        return refusal


def permitted(tasks: Sequence[NewTask | Refusal], permit: Permit) -> list[NewTask | Refusal]:
    """Of a batch each task is checked by itself."""
    return [_permitted(task, permit, index) for index, task in enumerate(tasks)]


def _permitted(task: NewTask | Refusal, permit: Permit, index: int) -> NewTask | Refusal:
    if isinstance(task, Refusal):
        return task
    try:
        permit.check(task.biz_type, f"{BATCH_MEMBER}[{index}].biz_type")
    except NotPermitted as refusal:
        refusal.window = task.window
        return refusal
    return task


def upsert_request(
    body: str, biz_type: str, key: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE
) -> NewTask:
    read = decode(body, TaskByKeyBody)
    named = checked_biz_type(biz_type), checked_key(key), _digest(body)
    new = _task(read, named, now_ms, allowed)
    if isinstance(read.max_due_at, UnsetType):
        return new
    return replace(new, max_due_ms=due_instant_ms(read.max_due_at, "max_due_at", now_ms))


def _task(
    body: TaskBody,
    named: tuple[str, str | None, str | None],
    now_ms: int,
    allowed: AllowedTargets,
    path: str = "",
) -> NewTask:
    """`named`: business, key and digest."""
    biz_type, key, digest = named
    tolerance_seconds = given(body.tolerance_seconds, None)
    window = Window(due_ms_from(body, now_ms, path), biz_type, tolerance_seconds)
    new = NewTask(
        biz_type=biz_type,
        key=key,
        digest=digest,
        due_ms=window.due_ms,
        callback=_callback(body, window, allowed, path),
        payload=payload_text(body.payload, joined_path(path, "payload")),
        retry=None
        if isinstance(body.retry, UnsetType)
        else retry_policy(body.retry, joined_path(path, "retry")),
        expires_after_seconds=given(body.expires_after_seconds, None),
        tolerance_seconds=tolerance_seconds,
        priority=given(body.priority, None),
        flow_key=given(body.flow_key, None),
        labels=_labels(body, path),
        on_outcome=_on_outcome(body, window, allowed, path),
    )
    if (reason := unsuitable(new.callback, new.payload)) is not None:
        raise invalid(joined_path(path, "payload"), reason)
    return new


def _callback(
    body: TaskBody, window: Window, allowed: AllowedTargets, path: str
) -> Callback | None:
    if isinstance(body.callback, UnsetType):
        return None
    with _noting(window):
        return callback_from(body.callback, allowed, joined_path(path, "callback"))


def _on_outcome(
    body: TaskBody, window: Window, allowed: AllowedTargets, path: str
) -> OnOutcome | None:
    if isinstance(body.on_outcome, UnsetType):
        return None
    with _noting(window):
        return on_outcome_from(body.on_outcome, allowed, joined_path(path, "on_outcome"))


@contextmanager
def _noting(window: Window) -> Iterator[None]:
    """Of a task to a target that is not enabled, when it was to be due."""
    try:
        yield
    except TargetNotEnabled as refusal:
        refusal.window = window
        raise


def _labels(body: TaskBody, path: str) -> Labels:
    if isinstance(body.labels, UnsetType):
        return NO_LABELS
    return labels_from(body.labels, joined_path(path, "labels"))


def _digest(body: str | Raw) -> str:
    """Equal for bodies with the same members and the same source texts, in any order."""
    said = [
        name.encode() + b":" + bytes(value)
        for name, value in sorted(decode(body, dict[str, Raw]).items())
        if name not in _BESIDE_THE_DIGEST
    ]
    digest = blake2b(b"\n".join(said), digest_size=16).digest()
    return urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def due_ms_from(body: DueBody, now_ms: int, path: str = "") -> int:
    said = [name for name in DUE_FIELDS if getattr(body, name) is not UNSET]
    if len(said) != 1:
        raise invalid(
            joined_path(path, said[1] if said else DUE_FIELDS[0]),
            f"exactly one of {', '.join(DUE_FIELDS)} is needed; {len(said)} are given.",
        )
    if not isinstance(body.due_at, UnsetType):
        return due_instant_ms(body.due_at, joined_path(path, "due_at"), now_ms)
    if not isinstance(body.delay_seconds, UnsetType):
        return now_ms + _ms_rounded_up(body.delay_seconds)
    due_ms, latest_ms = given(body.due_ms, 0), now_ms + AHEAD_SECONDS_MAX * 1000
    if due_ms < DUE_MS_MIN:
        reason = "is before 1973 in milliseconds: it was given in seconds."
        raise invalid(joined_path(path, "due_ms"), reason)
    if due_ms > latest_ms:
        raise invalid(joined_path(path, "due_ms"), f"must be from {DUE_MS_MIN} to {latest_ms}.")
    return due_ms


def due_instant_ms(text: str, where: str, now_ms: int) -> int:
    due_ms = instant_ms(text, where)
    if not 0 <= due_ms <= now_ms + AHEAD_SECONDS_MAX * 1000:
        raise invalid(where, "must be from 1970 to ten years ahead.")
    return due_ms


def _ms_rounded_up(seconds: float) -> int:
    # In decimal as the caller wrote it: in binary 0.07 s would come out as 71 ms.
    return math.ceil(Decimal(str(seconds)) * 1000)


def payload_text(payload: Raw | UnsetType, where: str = "payload") -> str | None:
    if isinstance(payload, UnsetType):
        return None
    text = bytes(payload)
    if len(text) > PAYLOAD_BYTES_MAX:
        raise TooLarge(f"The payload is larger than {PAYLOAD_BYTES_MAX:,} bytes.", where)
    return text.decode()


class PrefixQuery(PageQuery):
    """A prefix is never empty, so that a missing value does not cancel a whole business."""

    key_prefix: TaskKey
