"""Create tasks without creating one twice."""

import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from duewheel._async.transport import AsyncTransport
from duewheel.batches import batch_bytes
from duewheel.calls import ALWAYS, IDEMPOTENCY_KEY, Call, by_key, changing, once_of
from duewheel.errors import (
    Problem,
    TooLarge,
    TooManyCreates,
    Unavailable,
    Unreachable,
    problem_from,
)
from duewheel.instants import rfc3339
from duewheel.requests import NewTask, json_bytes
from duewheel.values import Task

CLOCKS_APART_SECONDS = 30.0  # the largest difference expected between this machine and the service
PASSING = (TooManyCreates, Unavailable)


class AsyncCreating:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def one(self, task: NewTask, once: bool | str) -> Task:
        repeatable = once_of(once)
        if not once and task.key is not None:
            repeatable = {"repeatable_seconds": while_live_seconds(task)}
        call = changing("POST", "/v1/tasks", task.body(), **repeatable)
        return Task.read(await self._transport.send(call))

    async def put(self, task: NewTask, key: str, max_due_at: datetime | None) -> Task:
        call = changing(
            "PUT",
            by_key(task.biz_type, key),
            put_body(task, max_due_at),
            repeatable_seconds=while_live_seconds(task),
        )
        return Task.read(await self._transport.send(call))

    async def batch(self, texts: Iterable[bytes], idempotency_key: str) -> list[Task | Problem]:
        call = Call(
            method="POST",
            path="/v1/tasks/batch",
            content=batch_bytes(texts),
            headers={IDEMPOTENCY_KEY: idempotency_key},
            repeatable_seconds=ALWAYS,
        )
        answer = await self._transport.send(call)
        return [_result(result) for result in answer["results"]]

    async def patiently(self, tasks: Sequence[NewTask]) -> list[Task | Problem]:
        """Repeat tasks that a limit or a throttled table refused, under another idempotency key,
        because the results under the first key include the refusals. A failed repeat keeps the
        earlier results."""
        results = await self._or_too_large(tasks)
        deadline = time.monotonic() + self._transport.patience_seconds
        while True:
            passing = {
                place: result for place, result in enumerate(results) if isinstance(result, PASSING)
            }
            wait = max((wait_seconds(result) for result in passing.values()), default=0.0)
            if not passing or time.monotonic() + wait > deadline:
                return results
            await self._transport.pause(wait)
            try:
                again = await self._or_too_large([tasks[place] for place in passing])
            except (Problem, Unreachable):
                return results  # the repeat wrote no task
            for place, result in zip(passing, again, strict=True):
                results[place] = result

    async def _or_too_large(self, tasks: Sequence[NewTask]) -> list[Task | Problem]:
        try:
            return await self.batch(texts_of(tasks), str(uuid.uuid4()))
        except TooLarge as problem:
            if len(tasks) == 1:
                return [problem]
            raise


def texts_of(tasks: Iterable[NewTask]) -> list[bytes]:
    return [json_bytes(task.body()) for task in tasks]


def while_live_seconds(task: NewTask) -> float:
    """How long a key makes a repeat harmless: until its task is called. After that, the same
    request creates a second task."""
    if task.delay is not None:
        return task.due_in_seconds(0)
    return task.due_in_seconds(time.time()) - CLOCKS_APART_SECONDS


def put_body(task: NewTask, max_due_at: datetime | None) -> dict[str, Any]:
    """The body of a task whose business and key are in the path."""
    body = {name: value for name, value in task.body().items() if name not in ("biz_type", "key")}
    return body if max_due_at is None else {**body, "max_due_at": rfc3339(max_due_at)}


def wait_seconds(result: Task | Problem) -> float:
    members = result.members if isinstance(result, Problem) else {}
    return float(members.get("retry_after_seconds", 1))


def _result(result: dict[str, Any]) -> Task | Problem:
    if "task" in result:
        return Task.read(result["task"])
    return problem_from(result["status"], result["problem"])
