"""Requests that create tasks, and queries by key prefix: their fields and limits.

A field that is not understood is refused with its path; no value is guessed or repaired.
"""

import math
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from decimal import Decimal
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.access.grants import Permit
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.payload_encoding import unsuitable
from duewheel.rules.callbacks.requests import callback_from
from duewheel.rules.callbacks.retry import retry_from
from duewheel.rules.fields import SECONDS_MIN, Fields, invalid
from duewheel.rules.instants import NoInstant, ms_from_rfc3339
from duewheel.rules.json_source import Source
from duewheel.rules.names import AHEAD_SECONDS_MAX, checked_biz_type, checked_key
from duewheel.rules.query_string import Parameters
from duewheel.rules.refusals import NotPermitted, Refusal, TooLarge
from duewheel.rules.tasks.task import NewTask

SINGLE_BYTES_MAX = 256 * 1024
BATCH_BYTES_MAX = 4_000_000
BATCH_TASKS_MAX = 500
BATCH_MEMBER = "tasks"
PAYLOAD_BYTES_MAX = 64 * 1024
DUE_FIELDS = ("due_at", "due_ms", "delay_seconds")
_TASK_FIELDS = (
    "biz_type",
    *DUE_FIELDS,
    "payload",
    "callback",
    "retry",
    "expires_after_seconds",
    "key",
)
_UPSERT_FIELDS = (*_TASK_FIELDS[1:-1], "max_due_at")
_BESIDE_THE_DIGEST = ("biz_type", "key", "max_due_at")


def single_request(body: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE) -> NewTask:
    return task_from(Fields.of(body), now_ms, allowed)


def batch_request(
    body: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE
) -> list[NewTask | Refusal]:
    return tasks_of_batch(sources_of_batch(Fields.of(body)), now_ms, allowed)


def sources_of_batch(fields: Fields) -> list[Source]:
    """Each task of a batch, as it was written."""
    fields.refuse_unknown((BATCH_MEMBER,))
    tasks = fields.elements(BATCH_MEMBER, BATCH_TASKS_MAX)
    if not tasks:
        raise fields.invalid(BATCH_MEMBER, "is empty.")
    if len(tasks) > BATCH_TASKS_MAX:
        raise TooLarge(f"A batch has at most {BATCH_TASKS_MAX} tasks.", BATCH_MEMBER)
    return tasks


def tasks_of_batch(
    tasks: Sequence[Source], now_ms: int, allowed: AllowedTargets
) -> list[NewTask | Refusal]:
    """One result for each, in order: what to create, or why not."""
    return [
        _new_task_or_refusal(task, f"{BATCH_MEMBER}[{index}]", now_ms, allowed)
        for index, task in enumerate(tasks)
    ]


def _new_task_or_refusal(
    task: Source, path: str, now_ms: int, allowed: AllowedTargets
) -> NewTask | Refusal:
    try:
        if not task.is_object:
            raise invalid(path, "must be an object.")
        return task_from(Fields.of(task.text, path), now_ms, allowed)
    except Refusal as refusal:
        return refusal


def permitted(tasks: Sequence[NewTask | Refusal], permit: Permit) -> list[NewTask | Refusal]:
    """Of a batch each task is checked by itself."""
    return [_permitted(task, permit, index) for index, task in enumerate(tasks)]


def _permitted(task: NewTask | Refusal, permit: Permit, index: int) -> NewTask | Refusal:
    try:
        if isinstance(task, NewTask):
            permit.check(task.biz_type, f"{BATCH_MEMBER}[{index}].biz_type")
    except NotPermitted as refusal:
        return refusal
    return task


def upsert_request(
    body: str, biz_type: str, key: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE
) -> NewTask:
    """The body of a PUT; the key is in the path."""
    fields = Fields.of(body)
    fields.refuse_unknown(_UPSERT_FIELDS)
    new = _task(fields, checked_biz_type(biz_type), checked_key(key), now_ms, allowed)
    if "max_due_at" not in fields:
        return new
    return replace(new, max_due_ms=_instant_ms(fields, "max_due_at", now_ms))


def task_from(fields: Fields, now_ms: int, allowed: AllowedTargets) -> NewTask:
    fields.refuse_unknown(_TASK_FIELDS)
    key = checked_key(fields.text("key"), fields.where("key")) if "key" in fields else None
    return _task(fields, _biz_type(fields), key, now_ms, allowed)


def _task(
    fields: Fields, biz_type: str, key: str | None, now_ms: int, allowed: AllowedTargets
) -> NewTask:
    new = NewTask(
        biz_type=biz_type,
        key=key,
        digest=None if key is None else _digest(fields),
        due_ms=due_ms_from(fields, now_ms),
        callback=callback_from(fields.nested("callback"), allowed)
        if "callback" in fields
        else None,
        payload=payload_from(fields),
        retry=retry_from(fields.nested("retry")) if "retry" in fields else None,
        expires_after_seconds=_expires_after_seconds(fields),
    )
    if (reason := unsuitable(new.callback, new.payload)) is not None:
        raise fields.invalid("payload", reason)
    return new


def _biz_type(fields: Fields) -> str:
    return checked_biz_type(fields.text("biz_type"), fields.where("biz_type"))


def _digest(fields: Fields) -> str:
    """Equal for bodies with the same source texts, whatever the order of members."""
    parts = [
        f"{name}:{source.text}"
        for name, source in sorted(fields.members.items())
        if name not in _BESIDE_THE_DIGEST
    ]
    digest = blake2b("\n".join(parts).encode(), digest_size=16).digest()
    return urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def due_ms_from(fields: Fields, now_ms: int) -> int:
    """A due instant in the past is allowed: such a task is due now."""
    given = [name for name in DUE_FIELDS if name in fields]
    if len(given) != 1:
        raise fields.invalid(
            given[1] if given else DUE_FIELDS[0],
            f"exactly one of {', '.join(DUE_FIELDS)} is needed; {len(given)} are given.",
        )
    name = given[0]
    if name == "delay_seconds":
        return now_ms + _ms_rounded_up(fields.number(name, 0, AHEAD_SECONDS_MAX))
    latest_ms = now_ms + AHEAD_SECONDS_MAX * 1000
    if name == "due_ms":
        return fields.whole_number(name, 0, latest_ms)
    return _instant_ms(fields, name, now_ms)


def _instant_ms(fields: Fields, name: str, now_ms: int) -> int:
    try:
        instant_ms = ms_from_rfc3339(fields.text(name))
    except NoInstant as error:
        raise fields.invalid(name, f"{error}.") from error
    if not 0 <= instant_ms <= now_ms + AHEAD_SECONDS_MAX * 1000:
        raise fields.invalid(name, "must be from 1970 to ten years ahead.")
    return instant_ms


def _ms_rounded_up(seconds: float) -> int:
    # In decimal as the caller wrote it: in binary 0.07 s would come out as 71 ms.
    return math.ceil(Decimal(str(seconds)) * 1000)


def payload_from(fields: Fields) -> str | None:
    if "payload" not in fields:
        return None
    text = fields.source("payload").text
    if len(text.encode()) > PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"The payload is larger than {PAYLOAD_BYTES_MAX:,} bytes.", fields.where("payload")
        )
    return text


def _expires_after_seconds(fields: Fields) -> float | None:
    if "expires_after_seconds" not in fields:
        return None
    return fields.number("expires_after_seconds", SECONDS_MIN, AHEAD_SECONDS_MAX)


LIMIT_DEFAULT = 50
LIMIT_MAX = 100


class PrefixRequest(Struct, frozen=True):
    prefix: str
    cursor: str | None
    limit: int


def prefix_request(query_string: str) -> PrefixRequest:
    """A prefix is never empty, so that a missing value does not cancel a whole business."""
    parameters = Parameters.of(query_string, ("key_prefix", "cursor", "limit"))
    return PrefixRequest(
        checked_key(parameters.required_text("key_prefix"), "key_prefix"),
        parameters.text("cursor"),
        parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT,
    )
