# Made of _async/tasks.py by make_sync.py; change that.
"""Tasks: one by one, in batches, by key."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from duewheel._sync.creating import Creating, texts_of
from duewheel._sync.transport import Transport
from duewheel._sync.watchdog import Watchdog
from duewheel.batches import batches
from duewheel.calls import ALWAYS, by_key, changing, keyed, part, reading
from duewheel.errors import Problem
from duewheel.instants import Seconds, plain
from duewheel.requests import (
    UNSET,
    NewTask,
    OnOutcome,
    Priority,
    Retry,
    Status,
    callback_body,
    due,
    label_texts,
)
from duewheel.values import LookedAt, PrefixCancelled, Task

Callback = str | Mapping[str, Any]


class Tasks:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._creating = Creating(transport)

    def create(
        self,
        biz_type: str,
        *,
        due_at: datetime | None = None,
        due_ms: int | None = None,
        delay: Seconds | None = None,
        payload: Any = UNSET,
        callback: Callback | None = None,
        key: str | None = None,
        retry: Retry | None = None,
        expires_after: Seconds | None = None,
        tolerance: Seconds | None = None,
        priority: Priority | None = None,
        flow_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        on_outcome: OnOutcome | None = None,
        once: bool | str = False,
    ) -> Task:
        """Exactly one of `due_at`, `due_ms` and `delay` is needed.

        A create whose answer is lost is sent again if it has a `key` and is not due too soon, or
        with `once`, which sends an idempotency key (your own, if it is a text) and costs the
        service a transaction. Otherwise it raises `OutcomeUnknown`.
        """
        task = NewTask(
            biz_type=biz_type,
            due_at=due_at,
            due_ms=due_ms,
            delay=delay,
            payload=payload,
            callback=callback,
            key=key,
            retry=retry,
            expires_after=expires_after,
            tolerance=tolerance,
            priority=priority,
            flow_key=flow_key,
            labels=labels,
            on_outcome=on_outcome,
        )
        return self._creating.one(task, once)

    def create_batch(
        self, tasks: Sequence[NewTask], *, idempotency_key: str | None = None
    ) -> Sequence[Task | Problem]:
        """Create up to 500 tasks in one request; returns the task or its problem for each, in
        order."""
        return self._creating.batch(texts_of(tasks), idempotency_key or str(uuid.uuid4()))

    def create_batch_of_json(
        self, texts: Sequence[bytes], *, idempotency_key: str
    ) -> Sequence[Task | Problem]:
        """Create tasks from JSON texts, each an object as in docs/api.md. They are sent unchanged,
        so payloads stay as they are written."""
        return self._creating.batch(texts, idempotency_key)

    def create_many(self, tasks: Iterable[NewTask]) -> Iterator[Task | Problem]:
        """Create any number of tasks, in as few requests as possible; yields the task or its
        problem for each, in order. Tasks that the service is too busy for are sent again. `tasks`
        is read as far as the results are. The `field` of a problem counts the tasks of its
        request."""
        for batch in batches(tasks):
            for result in self._creating.patiently(batch):
                yield result

    def get(self, task_id: str) -> Task:
        return Task.read(self._transport.send(reading(f"/v1/tasks/{part(task_id)}")))

    def change(
        self,
        task_id: str,
        *,
        due_at: datetime | None = None,
        due_ms: int | None = None,
        delay: Seconds | None = None,
        payload: Any = UNSET,
        callback: Callback | None = None,
        tolerance: Seconds | None = None,
        priority: Priority | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Task:
        """Omitted fields stay; a payload of None becomes null, and `labels` replace all."""
        body = {**due(due_at, due_ms, delay, needed=False)}
        if tolerance is not None:
            body["tolerance_seconds"] = plain(tolerance)
        if priority is not None:
            body["priority"] = priority
        if labels is not None:
            body["labels"] = labels
        if callback is not None:
            body["callback"] = plain(callback_body(callback))
        if payload is not UNSET:
            body["payload"] = payload
        return Task.read(
            self._transport.send(changing("PATCH", f"/v1/tasks/{part(task_id)}", body))
        )

    def cancel(self, task_id: str) -> Task:
        """When this returns, the call is not made."""
        path = f"/v1/tasks/{part(task_id)}"
        return Task.read(self._transport.send(changing("DELETE", path, repeatable_seconds=ALWAYS)))

    def run(self, task_id: str) -> Task:
        """Make its next attempt now."""
        path = f"/v1/tasks/{part(task_id)}/run"
        return Task.read(self._transport.send(changing("POST", path)))

    def pause(self, task_id: str, *, until: datetime | None = None) -> Task:
        """It is not called before it is resumed, or until then: by default for a year."""
        path = f"/v1/tasks/{part(task_id)}/pause"
        body = {} if until is None else {"until": plain(until)}
        return Task.read(
            self._transport.send(changing("POST", path, body, repeatable_seconds=ALWAYS))
        )

    def resume(self, task_id: str) -> Task:
        """It is called at its instant, or now if that has passed."""
        path = f"/v1/tasks/{part(task_id)}/resume"
        return Task.read(self._transport.send(changing("POST", path, repeatable_seconds=ALWAYS)))

    def redrive(self, task_id: str) -> Task:
        """Give a dead task new attempts, beginning now."""
        path = f"/v1/tasks/{part(task_id)}/redrive"
        return Task.read(self._transport.send(changing("POST", path)))

    def list(
        self,
        biz_type: str | None = None,
        *,
        status: Status | None = None,
        key_prefix: str | None = None,
        flow_key: str | None = None,
        timer_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        due_from: datetime | None = None,
        due_to: datetime | None = None,
        order: Literal["asc", "desc"] = "asc",
        page_size: int = 100,
        each_page: Callable[[LookedAt], None] | None = None,
    ) -> Iterator[Task]:
        """Tasks that match all that is given, by due instant, `due_to` excluded; without a business
        those of all within reach, by business. Pending ones: first those that are due from now on,
        then the overdue; under a key prefix by key; dead ones by the instant of death. `each_page`
        gets what a request has looked at. Most lists need the list index of the deployment."""
        query = {
            "biz_type": biz_type,
            "status": status,
            "key_prefix": key_prefix,
            "flow_key": flow_key,
            "timer_id": timer_id,
            "label": label_texts(labels),
            "due_from": due_from,
            "due_to": due_to,
            "order": order,
            "limit": page_size,
        }
        for page in self._transport.pages("/v1/tasks", query):
            if each_page is not None and "looked_at" in page:
                each_page(LookedAt.read(page["looked_at"]))
            for task in page["tasks"]:
                yield Task.read(task)

    def put(
        self,
        biz_type: str,
        key: str,
        *,
        due_at: datetime | None = None,
        due_ms: int | None = None,
        delay: Seconds | None = None,
        payload: Any = UNSET,
        callback: Callback | None = None,
        retry: Retry | None = None,
        expires_after: Seconds | None = None,
        tolerance: Seconds | None = None,
        priority: Priority | None = None,
        flow_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        on_outcome: OnOutcome | None = None,
        max_due_at: datetime | None = None,
    ) -> Task:
        """Create the key's task, or replace the live one by this."""
        task = NewTask(
            biz_type=biz_type,
            due_at=due_at,
            due_ms=due_ms,
            delay=delay,
            payload=payload,
            callback=callback,
            retry=retry,
            expires_after=expires_after,
            tolerance=tolerance,
            priority=priority,
            flow_key=flow_key,
            labels=labels,
            on_outcome=on_outcome,
        )
        return self._creating.put(task, key, max_due_at)

    def get_by_key(self, biz_type: str, key: str) -> Task:
        return Task.read(self._transport.send(reading(by_key(biz_type, key))))

    def cancel_by_key(self, biz_type: str, key: str) -> Task:
        path = by_key(biz_type, key)
        return Task.read(self._transport.send(changing("DELETE", path, repeatable_seconds=ALWAYS)))

    def list_by_prefix(self, biz_type: str, prefix: str, *, page_size: int = 100) -> Iterator[Task]:
        """The live tasks under a key prefix, in the order of their keys."""
        query = {"key_prefix": prefix, "limit": page_size}
        for page in self._transport.pages(keyed(biz_type), query):
            for task in page["tasks"]:
                yield Task.read(task)

    def cancel_by_prefix(self, biz_type: str, prefix: str) -> PrefixCancelled:
        """Cancel the live tasks under a key prefix, in as many requests as it takes. If an answer
        was lost, the tasks that its request cancelled are not counted."""
        cancelled, too_late, cursor = 0, [], None
        while True:
            query = {"key_prefix": prefix, "cursor": cursor}
            call = changing("DELETE", keyed(biz_type), query=query, repeatable_seconds=ALWAYS)
            page = self._transport.send(call)
            cancelled += page["cancelled"]
            too_late += page["too_late"]
            cursor = page["cursor"]
            if cursor is None:
                return PrefixCancelled(cancelled=cancelled, too_late=tuple(too_late))

    def watchdog(
        self,
        biz_type: str,
        key: str,
        timeout: Seconds,
        *,
        payload: Any = UNSET,
        callback: Callback | None = None,
        tolerance: Seconds | None = None,
        priority: Priority | None = None,
        flow_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        max_due_at: datetime | None = None,
    ) -> Watchdog:
        """A task that is called `timeout` after the last beat. The first beat creates it."""
        task = NewTask(
            biz_type=biz_type,
            delay=timeout,
            payload=payload,
            callback=callback,
            tolerance=tolerance,
            priority=priority,
            flow_key=flow_key,
            labels=labels,
        )
        return Watchdog(self._transport, task, key, max_due_at)
