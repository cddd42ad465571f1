"""Settle deliveries as they come in, without waiting for the slowest call of the page."""

import asyncio

from duewheel.rules.task import Task
from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.stores.unprocessed import WRITES_PER_BATCH

# Long enough for the calls that return together to share a write, short beside any call.
LINGER_SECONDS = 0.02


class Settler:
    """Collects delivered tasks and writes them, 25 to a BatchWriteItem."""

    def __init__(self, tasks: TaskStore, keys: KeyStore) -> None:
        self._tasks = tasks
        self._keys = keys
        self._waiting: asyncio.Queue[Task | None] = asyncio.Queue()

    def add(self, task: Task) -> None:
        self._waiting.put_nowait(task)

    def close(self) -> None:
        """No more will come; `run` returns when all is written."""
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
                    await asyncio.to_thread(self._settle, batch)
            except Exception as error:  # noqa: BLE001 - kept, and raised at the end
                failure = failure or error
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

    def _settle(self, batch: list[Task]) -> None:
        self._tasks.put_delivered(batch)
        self._keys.release(batch)
