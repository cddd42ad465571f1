"""What a target gets from a task: the encoded payload, and the headers or attributes that identify
the task.

The payload is JSON text, and is passed on as it was written. A raw payload is a JSON string, and
its text is passed on. Functions, events and executions get it in an envelope.
"""

import hmac
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any, Literal, Protocol, Self

from msgspec import Struct

from duewheel.rules.callbacks.signature import signatures
from duewheel.rules.callbacks.types import Callback, FilledCallback, HttpCallback
from duewheel.rules.fields import says
from duewheel.rules.instants import rfc3339

# SQS and SNS accept the characters of XML. The pattern lists the others: it compiles in a tenth of
# the time, at every cold start.
NOT_IN_A_MESSAGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# `raw`: the payload is a string, and its text is the body.
BodyMode = Annotated[Literal["json", "raw"], says(default="json")]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
ATTEMPT = "duewheel-attempt"
BIZ_TYPE = "duewheel-biz-type"
TOKEN_HEADER = "duewheel-completion-token"
_SEAL_BYTES = 16


class TaskData(Protocol):
    """The data of a task that a target gets."""

    @property
    def task_id(self) -> str: ...
    @property
    def biz_type(self) -> str: ...
    @property
    def due_at_ms(self) -> int: ...
    @property
    def attempts(self) -> int: ...
    @property
    def redrives(self) -> int: ...
    @property
    def payload(self) -> str | None: ...
    @property
    def completion_token(self) -> str | None: ...


class AttemptName(Struct, frozen=True):
    """An attempt of a task: how often the task was redriven before, and its number since."""

    redrives: int
    number: int


class SentTask(Struct, frozen=True, kw_only=True):
    """What a target gets of a task, with the token of this attempt."""

    task_id: str
    biz_type: str
    due_at_ms: int
    attempts: int
    redrives: int
    payload: str | None
    completion_token: str | None

    @classmethod
    def of(cls, task: Any, secret: bytes) -> Self:
        return cls(
            task_id=task.task_id,
            biz_type=task.biz_type,
            due_at_ms=task.due_at_ms,
            attempts=task.attempts,
            redrives=task.redrives,
            payload=task.payload,
            completion_token=token_of(
                task.task_id, AttemptName(task.redrives, task.attempts + 1), secret
            ),
        )


def secrets_sent(callback: HttpCallback, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Headers of a call that may carry a secret, which its receiver may repeat in its answer, and
    each named secret by itself."""
    named = callback.secrets if isinstance(callback, FilledCallback) else ()
    token = headers.get(TOKEN_HEADER)
    also = [*named] if token is None else [*named, token]
    return (*callback.headers, *((TOKEN_HEADER, secret) for secret in also))


def token_of(task_id: str, name: AttemptName, secret: bytes) -> str:
    """Permits the receiver to report the end of this attempt."""
    numbers = f"{name.redrives}.{name.number}"
    seal = hmac.digest(secret, f"completion {task_id} {numbers}".encode(), "sha256")
    return f"{numbers}.{urlsafe_b64encode(seal[:_SEAL_BYTES]).decode().rstrip('=')}"


def unsuitable(callback: Callback | None, payload: str | None) -> str | None:
    """Why this callback cannot carry this payload, as text for the caller; None if it can. An
    envelope can carry any payload."""
    has_raw_body: bool | None = getattr(callback, "is_raw", None)
    if has_raw_body is None:
        return None
    is_http = isinstance(callback, HttpCallback)
    if is_http and not has_raw_body:
        return None
    if has_raw_body and (payload is None or not payload.startswith('"')):
        if is_http and payload is None:
            return None
        return "must be a string, since callback.body is raw."
    text = text_of(payload, is_raw=has_raw_body)
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


def callback_headers(
    task: TaskData, now_ms: int, secrets: tuple[bytes, ...] = (), body: bytes | None = None
) -> dict[str, str]:
    """Headers of every HTTP callback, beside the caller's own. The task id is the same in every
    attempt, so that a receiver can drop repeats."""
    task_id, seconds = task.task_id, now_ms // 1000
    headers = {"webhook-id": task_id, "webhook-timestamp": str(seconds)}
    if secrets:
        headers["webhook-signature"] = signatures(secrets, task_id, seconds, body or b"")
    return headers | _about(task)


def attributes_of(task: TaskData) -> dict[str, str]:
    """Attributes of every message, as the headers of an HTTP callback."""
    return {"duewheel-task-id": task.task_id, **_about(task)}


def _about(task: TaskData) -> dict[str, str]:
    about = {
        "duewheel-due-at": rfc3339(task.due_at_ms),
        ATTEMPT: str(task.attempts + 1),
        BIZ_TYPE: task.biz_type,
    }
    if task.completion_token is not None:
        about[TOKEN_HEADER] = task.completion_token
    return about


def envelope(task: TaskData) -> str:
    """The input of a function, an event or an execution: the same task id with every attempt."""
    members: dict[str, object] = {
        "task_id": task.task_id,
        "biz_type": task.biz_type,
        "due_at": rfc3339(task.due_at_ms),
        "attempt": task.attempts + 1,
    }
    if task.completion_token is not None:
        members["completion_token"] = task.completion_token
    head = json.dumps(members)
    return f'{head[:-1]}, "payload": {text_of(task.payload, is_raw=False)}}}'


def deduplication_id(task: TaskData, parts: Sequence[object], separator: str = ".") -> str:
    """The same with every attempt, so that AWS drops the repeat of an accepted delivery whose
    answer was lost; another one after a redrive or a change, which must be delivered. `said`: the
    callback's own addition to the payload."""
    digest = blake2b(json.dumps([*parts, task.payload]).encode(), digest_size=6).hexdigest()
    return f"{task.task_id}{separator}{task.redrives}{separator}{digest}"
