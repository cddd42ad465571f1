"""Batched calls: several tasks of one callback in one request.

The document has each task with its payload as the caller wrote it. It is the body of an HTTP
callback and the event of a function. The answer may list the tasks that failed; a task that it does
not list is delivered. Messages to queues, topics and buses stay single ones: only the request to
AWS is shared (`aws/target.py`).
"""

import json
from codecs import BOM_UTF8
from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Literal, Protocol

from msgspec import UNSET, Meta, MsgspecError, Struct, UnsetType
from msgspec.json import Decoder
from msgspec.structs import replace

from duewheel.rules.callbacks.completion import TOKEN_BYTES
from duewheel.rules.callbacks.outcome import (
    ANSWER_BYTES_MAX,
    Outcome,
    StatusLists,
    Verdict,
    note_from,
    with_business_policy,
)
from duewheel.rules.callbacks.payload_encoding import BIZ_TYPE, TaskData, text_of
from duewheel.rules.callbacks.retry import RETRY_AFTER_SECONDS_MAX
from duewheel.rules.callbacks.signature import signatures
from duewheel.rules.callbacks.types import AwsCallback, Callback
from duewheel.rules.fields import RequestBody, given
from duewheel.rules.instants import rfc3339

TASKS_MIN = 2
TASKS_MAX = 100  # as many as a page has
BYTES_MIN = 1_000
BYTES_MAX = 1_000_000  # Lambda takes 1 MB of an asynchronous invocation
VERSION = 1
SIZE = "duewheel-batch"
HEAD_BYTES_MAX = 256  # of a document, without its tasks
_ANSWER_NOTE = "the answer to a batch is no list of failed tasks: "
_CLAIM = b'"failed"'


class Batch(Struct, frozen=True, omit_defaults=True):
    """A setting of a business. `bytes_max` None: as many as every target takes."""

    tasks_max: Annotated[int, Meta(ge=1)]
    bytes_max: Annotated[int, Meta(ge=1)] | None = None


class BatchBody(RequestBody):
    """Tasks that are due within the same second and have the same callback go in one request. The
    `callback` of the business has to take it."""

    tasks_max: Annotated[int, Meta(ge=TASKS_MIN, le=TASKS_MAX)]
    bytes_max: Annotated[int, Meta(ge=BYTES_MIN, le=BYTES_MAX)] | UnsetType = UNSET


def batch_from(body: BatchBody) -> Batch:
    return Batch(body.tasks_max, given(body.bytes_max, None))


def shown_batch(batch: Batch) -> BatchBody:
    """In the form of a request."""
    return BatchBody(batch.tasks_max, UNSET if batch.bytes_max is None else batch.bytes_max)


class BatchedTask(TaskData, Protocol):
    @property
    def key(self) -> str | None: ...


class BatchLimits(Struct, frozen=True):
    """Of one request of a target."""

    tasks_max: int = TASKS_MAX
    bytes_max: int = BYTES_MAX

    def within(self, batch: Batch) -> "BatchLimits":
        bytes_max = self.bytes_max if batch.bytes_max is None else batch.bytes_max
        return BatchLimits(min(self.tasks_max, batch.tasks_max), min(self.bytes_max, bytes_max))


class BatchOutcome(Struct, frozen=True):
    """Of the request as a whole, and of each of its tasks."""

    of_call: Outcome
    of_tasks: list[Outcome]

    def by(self, statuses: StatusLists) -> "BatchOutcome":
        """As the status lists of a business judge it."""
        of_tasks = [with_business_policy(outcome, statuses) for outcome in self.of_tasks]
        return BatchOutcome(with_business_policy(self.of_call, statuses), of_tasks)


def takes_document(callback: Callback) -> bool:
    """Whether an HTTP callback can carry the document. A raw body is the caller's own text."""
    if isinstance(callback, AwsCallback):
        return False
    return callback.method != "GET" and not callback.is_raw


def batch_id(tasks: Sequence[TaskData]) -> str:
    """The same when the same attempts at the same tasks are repeated."""
    named = sorted([task.task_id, task.redrives, task.attempts] for task in tasks)
    return f"batch_{blake2b(json.dumps(named).encode(), digest_size=12).hexdigest()}"


def document(tasks: Sequence[BatchedTask]) -> str:
    """`tasks`: one or more of one business."""
    head = json.dumps(
        {"version": VERSION, "batch_id": batch_id(tasks), "biz_type": tasks[0].biz_type}
    )
    return f'{head[:-1]}, "tasks": [{", ".join(map(_item, tasks))}]}}'


def document_bytes(task: BatchedTask) -> int:
    """What a task adds to a document, at most."""
    return len(_item(task).encode()) + TOKEN_BYTES


def _item(task: BatchedTask) -> str:
    members: dict[str, object] = {
        "task_id": task.task_id,
        "due_at": rfc3339(task.due_at_ms),
        "attempt": task.attempts + 1,
    }
    if task.key is not None:
        members["key"] = task.key
    if task.completion_token is not None:
        members["completion_token"] = task.completion_token
    return f'{json.dumps(members)[:-1]}, "payload": {text_of(task.payload, is_raw=False)}}}'


def batch_headers(
    tasks: Sequence[TaskData], now_ms: int, secrets: tuple[bytes, ...], body: bytes
) -> dict[str, str]:
    """Of the HTTP callback of a batch, beside the caller's own."""
    name, seconds = batch_id(tasks), now_ms // 1000
    headers = {"webhook-id": name, "webhook-timestamp": str(seconds)}
    if secrets:
        headers["webhook-signature"] = signatures(secrets, name, seconds, body)
    return headers | {SIZE: str(len(tasks)), BIZ_TYPE: tasks[0].biz_type}


# The answer


class _Failed(Struct):
    task_id: str
    outcome: Literal["retry", "stop"] = "retry"
    retry_after_seconds: Annotated[float, Meta(ge=0)] | None = None
    note: str = ""


class _Answer(Struct):
    failed: list[_Failed]


_ANSWER = Decoder(_Answer)


def outcomes_of_answer(
    tasks: Sequence[TaskData], answer: Outcome, body: bytes, *, is_whole: bool = True
) -> BatchOutcome:
    """`answer`: the outcome of the request. If it is a delivery, the body may list tasks that
    failed. A body with a member `failed` that is no such list fails all tasks: the receiver wanted
    to report some."""
    body = body.removeprefix(BOM_UTF8)
    if answer.verdict is Verdict.DELIVERED and _CLAIM in body and body.lstrip()[:1] == b"{":
        try:
            failed = _failed(body, answer.status_code, is_whole=is_whole)
        except ValueError as error:
            note = note_from(f"{_ANSWER_NOTE}{error}")
            answer = Outcome(Verdict.RETRY, note, status_code=answer.status_code)
        else:
            outcomes = [failed.get(task.task_id, answer) for task in tasks]
            return BatchOutcome(answer, noted(tasks, outcomes))
    return all_alike(tasks, answer)


def all_alike(tasks: Sequence[TaskData], outcome: Outcome) -> BatchOutcome:
    return BatchOutcome(outcome, noted(tasks, [outcome] * len(tasks)))


def _failed(body: bytes, status_code: int | None, *, is_whole: bool) -> dict[str, Outcome]:
    """By task id; of one that is listed twice the first counts."""
    if not is_whole or len(body) > ANSWER_BYTES_MAX:
        raise ValueError(f"it is longer than {ANSWER_BYTES_MAX:,} bytes")
    try:
        listed = _ANSWER.decode(body).failed
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except MsgspecError as error:
        if "missing required field `failed`" in str(error):  # it is inside another member
            return {}
        raise ValueError(str(error)) from None
    return {one.task_id: _outcome(one, status_code) for one in reversed(listed)}


def _outcome(failed: _Failed, status_code: int | None) -> Outcome:
    if failed.outcome == "stop":
        return Outcome(
            Verdict.STOP,
            note_from(f"the receiver said stop: {failed.note}"),
            status_code=status_code,
            stopped_by_receiver=True,
        )
    after = failed.retry_after_seconds
    return Outcome(
        Verdict.RETRY,
        note_from(failed.note or "the receiver said retry"),
        status_code=status_code,
        retry_after_seconds=None if after is None else min(after, RETRY_AFTER_SECONDS_MAX),
    )


def noted(tasks: Sequence[TaskData], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The attempt of each task says that it was made in this batch."""
    about = f"{batch_id(tasks)} of {len(tasks)}: "
    return [
        replace(outcome, note=note_from(about + outcome.note).rstrip(" :")) for outcome in outcomes
    ]
