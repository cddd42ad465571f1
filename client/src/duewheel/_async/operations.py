"""Operations: changes of many tasks of a business, which the service carries out by itself."""

import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from math import inf

from duewheel._async.transport import AsyncTransport
from duewheel.calls import ALWAYS, changing, once_of, part, reading
from duewheel.instants import Seconds, plain, seconds_of
from duewheel.requests import Action, OperationFilter, OperationState
from duewheel.values import Operation, RefusedTask

PAUSE_SECONDS = 0.5
PAUSE_SECONDS_MAX = 5.0


class AsyncOperations:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def start(
        self,
        biz_type: str,
        action: Action,
        *,
        ids: Sequence[str] | None = None,
        filter: OperationFilter | None = None,
        due_at: datetime | None = None,
        shift: Seconds | None = None,
        per_second: int | None = None,
        dry_run: bool = False,
        once: bool | str = False,
    ) -> Operation:
        """Exactly one of `ids` and `filter` is needed; an empty filter means all tasks that the
        action can change. A reschedule needs `due_at` or `shift`. `dry_run` only counts.

        A lost answer raises `OutcomeUnknown`, since a repeat would be a second operation, unless
        `once` is true, or an idempotency key.
        """
        if (ids is None) == (filter is None):
            raise ValueError("exactly one of ids and filter is needed")
        given = {
            "due_at": due_at,
            "shift_seconds": shift,
            "ids": ids,
            "filter": _without_none(filter),
            "per_second": per_second,
            "dry_run": dry_run or None,
        }
        body = {name: plain(value) for name, value in given.items() if value is not None}
        body = {"biz_type": biz_type, "action": action, **body}
        call = changing("POST", "/v1/operations", body, **once_of(once))
        return Operation.read(await self._transport.send(call))

    async def get(self, operation_id: str) -> Operation:
        return Operation.read(await self._transport.send(reading(_path(operation_id))))

    async def list(
        self,
        biz_type: str | None = None,
        *,
        state: OperationState | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Operation]:
        """The latest first; without a business those of all within reach."""
        query = {"biz_type": biz_type, "state": state, "limit": page_size}
        async for page in self._transport.pages("/v1/operations", query):
            for operation in page["operations"]:
                yield Operation.read(operation)

    async def stop(self, operation_id: str) -> Operation:
        """Leave the tasks that it has not reached as they are; those that it changed stay
        changed."""
        call = changing("POST", _path(operation_id, "/stop"), repeatable_seconds=ALWAYS)
        return Operation.read(await self._transport.send(call))

    async def refused(
        self, operation_id: str, *, page_size: int = 100
    ) -> AsyncIterator[RefusedTask]:
        """The tasks that could not be changed, in the order of the operation."""
        path = _path(operation_id, "/refused")
        async for page in self._transport.pages(path, {"limit": page_size}):
            for refused in page["refused"]:
                yield RefusedTask.read(refused)

    async def follow(self, operation_id: str) -> AsyncIterator[Operation]:
        """The operation, each time that it is read, until it has ended: after half a second first,
        and every five seconds later on."""
        pause = PAUSE_SECONDS
        while True:
            found = await self.get(operation_id)
            yield found
            if found.has_ended:
                return
            await self._transport.pause(pause)
            pause = min(pause * 1.5, PAUSE_SECONDS_MAX)

    async def wait(self, operation_id: str, *, timeout: Seconds | None = None) -> Operation:
        """The operation when it has ended (`done`, `stopped` or `failed`), or as it is after
        `timeout`."""
        deadline = time.monotonic() + (inf if timeout is None else seconds_of(timeout))
        async for found in self.follow(operation_id):
            if found.has_ended or time.monotonic() >= deadline:
                break
        return found


def _without_none(filter: OperationFilter | None) -> dict[str, object] | None:
    if filter is None:
        return None
    return {name: value for name, value in filter.items() if value is not None}


def _path(operation_id: str, below: str = "") -> str:
    return f"/v1/operations/{part(operation_id)}{below}"
