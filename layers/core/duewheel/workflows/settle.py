"""Settle deliveries as they come in, without waiting for the slowest call of the page.

What was called is not called again for want of throughput: it is tried to settle it until the
invocation has to end, and what is left then is settled by another.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from duewheel.log import logger
from duewheel.metrics import counts
from duewheel.rules.addresses import Address
from duewheel.rules.metric_lines import DELIVERED
from duewheel.rules.task import Task
from duewheel.stores.conditions import Throttled
from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.stores.unprocessed import WRITES_PER_BATCH
from duewheel.workflows.carry_through import in_thread
from duewheel.workflows.keep_trying import KeepTrying

# Long enough for the calls that return together to share a write, short beside any call.
LINGER_SECONDS = 0.02

T = TypeVar("T")
Called = Mapping[Address, Task]  # by home: as they are settled, if they still stand as read


class Settle(Struct, frozen=True):
    tasks: TaskStore
    keys: KeyStore
    keep_trying: KeepTrying

    def begin(self, deadline_ms: int, called: Called) -> "Settler":
        return Settler(self, deadline_ms, called)


class Left(Struct, frozen=True):
    """Tasks for which no call could be begun, and delivered ones that could not be settled."""

    uncalled: list[Task]
    unsettled: list[Task]

    @property
    def entries(self) -> list[Address]:
        return [task.entry for task in (*self.uncalled, *self.unsettled)]


class Settler:
    """Collects delivered tasks and writes them, 25 to a BatchWriteItem. `unsettled`: those that
    DynamoDB did not take to the last."""

    def __init__(self, by: Settle, deadline_ms: int, called: Called) -> None:
        self._by = by
        self._deadline_ms = deadline_ms
        self._called = called
        self._waiting: asyncio.Queue[Task | None] = asyncio.Queue()
        self.unsettled: list[Task] = []

    def add(self, task: Task) -> None:
        self._waiting.put_nowait(task)

    def takes_over(self, task: Task) -> bool:
        """Whether another has called it as it stands: then it is only to be settled."""
        record = self._called.get(task.home)
        if record is None or record.version != task.version + 1:
            return False
        self.add(record)
        return True

    async def until_end_of(self, calls: Coroutine[None, None, T]) -> T:
        """When these have ended no more will come; `run` returns when all is written."""
        try:
            return await calls
        finally:
            self._waiting.put_nowait(None)

    async def run(self) -> None:
        """A write that fails does not keep the later ones from being tried; the first
        failure is raised at the end."""
        failure: Exception | None = None
        closed = False
        while not closed:
            batch, closed = await self._next_batch()
            try:
                if batch:
                    await self._settle(batch)
            except Exception as error:  # noqa: BLE001 - kept, and raised at the end
                failure = failure or error
        if self.unsettled:
            task_ids = [task.task_id for task in self.unsettled]
            logger.warning("not settled in time", action="unsettled", task_ids=task_ids)
        if failure is not None:
            raise failure

    async def _next_batch(self) -> tuple[list[Task], bool]:
        batch = [await self._waiting.get()]
        if batch[0] is not None and self._waiting.qsize() < WRITES_PER_BATCH - 1:
            await asyncio.sleep(LINGER_SECONDS)
        while len(batch) < WRITES_PER_BATCH and not self._waiting.empty():
            batch.append(self._waiting.get_nowait())
        tasks = [task for task in batch if task is not None]
        return tasks, len(tasks) < len(batch)

    async def _settle(self, batch: list[Task]) -> None:
        left = batch

        def put() -> None:
            nonlocal left
            left = self._by.tasks.put_delivered(left)
            if left:
                raise Throttled(f"{len(left)} delivered tasks could not be settled")

        with suppress(Throttled):  # they are passed on
            await self._by.keep_trying(put, self._deadline_ms)
        self.unsettled += left
        counts.add(DELIVERED, len(batch) - len(left))
        keyed = [task for task in batch if task.key is not None and task not in left]
        if keyed:
            await in_thread(self._by.keys.release, keyed)
