"""Settle deliveries in batches as they come in, without waiting for the slowest call of the page.

Writes run side by side, so that few calls are answered and not settled at any time. These few are
repeated if the process crashes. If DynamoDB throttles a write, retry until the invocation must end,
then pass the record to another notifier. A throttled write never repeats a callback.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct

from duewheel.log import logger, report_lost_race
from duewheel.metrics import DELIVERED, counts
from duewheel.rules.callbacks.types import OnOutcome, Told
from duewheel.rules.tasks.outcome_notice import asked_for
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import WRITES_PER_BATCH, Throttled
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.delivery.hold import Hold
from duewheel.workflows.gather_all import SideBySide, gather_all, in_thread, outcomes_of
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.tell_outcome import TellOutcome

# Long enough for calls that return together to share a write; short beside any call.
LINGER_SECONDS = 0.02
WRITES_AT_ONCE = 2  # more would take the processor from the calls

Written = Callable[[], object]  # to call when a task is settled, or could not be

T = TypeVar("T")
Called = Mapping[Address, Task]  # by home: as they are settled, if they are unchanged


class Left(Struct, frozen=True):
    """Tasks whose call could not begin, and delivered tasks that could not be settled; the number
    of those that were `settled`."""

    uncalled: list[Task]
    unsettled: list[Task]
    settled: int

    @property
    def entries(self) -> list[Address]:
        return [task.entry for task in (*self.uncalled, *self.unsettled)]


class NotWritten(Throttled):
    """DynamoDB throttled another write of a run to its end. Only this run knows which tasks are
    delivered and `unsettled`."""

    def __init__(self, unsettled: list[Task]) -> None:
        super().__init__(f"a write was throttled; {len(unsettled)} delivered tasks are not settled")
        self.unsettled = unsettled


class Settler:
    """Collects delivered tasks and writes them. While `hold` keeps other runs out they go 25 to a
    BatchWriteItem; else each is put if its home is unchanged. A notice goes with its task.
    `unsettled`: tasks that DynamoDB throttled until the deadline. `is_alone`: one task at most will
    come, which has no other to share its write with."""

    def __init__(
        self,
        tasks: TaskStore,
        keys: KeyStore,
        keep_order: KeepOrder,
        tell_outcome: TellOutcome,
        retry_throttled: RetryThrottled,
        known: BusinessCache,
        deadline_ms: int,
        called: Called,
    ) -> None:
        self._tasks = tasks
        self._keys = keys
        self._keep_order = keep_order
        self._tell_outcome = tell_outcome
        self._retry_throttled = retry_throttled
        self._known = known
        self._deadline_ms = deadline_ms
        self._called = called
        self._waiting: list[tuple[Task, Written]] = []
        self._asked: dict[Address, OnOutcome] = {}  # who is told of the delivery
        self._in_line: dict[Address, asyncio.Event] = {}  # set when the write was tried
        self._is_closed = False
        self._writing = 0
        self._is_throttled = False  # the write of a single one was
        self._writes = SideBySide[None]()
        self._changed = asyncio.Event()
        self.unsettled: list[Task] = []
        self.settled = 0
        self.is_alone = False
        self.hold: Hold | None = None

    def add(self, task: Task, written: Written = lambda: None) -> None:
        self._waiting.append((task, written))
        if task.flow_key is not None or task.occurrence is not None:
            self._in_line[task.home] = asyncio.Event()
        self._changed.set()

    async def until_tried(self, home: Address) -> None:
        """Wait until the task at this home, which has a flow key or is of a timer, is settled, or
        could not be."""
        if home in self._in_line:
            await self._in_line[home].wait()

    def takes_over(self, task: Task) -> bool:
        """True if another run called the task as it is now: then it is only settled."""
        record = self._called.get(task.home)
        if record is None or record.version != task.version + 1:
            return False
        self.add(record)
        return True

    async def until_end_of(self, calls: Coroutine[None, None, T]) -> T:
        """Await the calls. When they have ended no more will come; `run` returns when all is
        written."""
        try:
            return await calls
        finally:
            self._is_closed = True
            self._changed.set()

    async def run(self) -> None:
        """All writes are tried, even if one fails. The first failure is raised at the end."""
        while await self._has_batch():
            batch = self._waiting[:WRITES_PER_BATCH]
            del self._waiting[:WRITES_PER_BATCH]
            self._writing += 1
            self._writes.begin(self._write(batch))
        results = await self._writes.outcomes()
        if self.unsettled:
            task_ids = [task.task_id for task in self.unsettled]
            logger.warning("not settled in time", action="unsettled", task_ids=task_ids)
        for result in results:
            if result is not None:
                raise result

    async def _has_batch(self) -> bool:
        """Wait for a full batch, or for the calls that return together while no other write is
        running. So a page takes no more writes than if they ran in sequence."""
        has_lingered = False
        while True:
            if self._is_whole and self._writing < WRITES_AT_ONCE:
                return True
            if self._waiting and not self._writing:
                if has_lingered or self._is_closed or self.is_alone:
                    return True
                await asyncio.sleep(LINGER_SECONDS)
                has_lingered = True
            elif self._is_closed and not self._waiting:
                return False
            else:
                await self._change()

    @property
    def _is_whole(self) -> bool:
        return len(self._waiting) >= WRITES_PER_BATCH

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _write(self, batch: list[tuple[Task, Written]]) -> None:
        try:
            await self._settle([task for task, _ in batch])
        finally:
            self._writing -= 1
            self._changed.set()
            for task, written in batch:
                written()
                if task.home in self._in_line:
                    self._in_line[task.home].set()

    async def _settle(self, batch: list[Task]) -> None:
        try:
            await self._ask(batch)
        except Throttled:
            await self._tried(batch, batch)
            return
        told = [task for task in batch if task.home in self._asked]
        untold = [task for task in batch if task.home not in self._asked] if told else batch
        await gather_all(
            write(some) for write, some in ((self._put, untold), (self._put_each, told)) if some
        )

    @property
    def _keeps_others_out(self) -> bool:
        return self.hold is not None and self.hold.is_exclusive and self.hold.is_sure

    async def _ask(self, batch: list[Task]) -> None:
        """Who is told of these. Their businesses were read before their calls, but not if another
        run called them."""
        names = {task.biz_type for task in batch}
        businesses = {name: self._known.latest(name) for name in names}
        if unread := [name for name, business in businesses.items() if business is None]:
            read = partial(self._known.many, unread)
            businesses |= await self._retry_throttled(read, self._deadline_ms)
        for task in batch:
            business = businesses[task.biz_type]
            if business is None or not (task.on_outcome or business.own.on_outcome):
                continue
            if (asked := asked_for(task, Told.DELIVERED, business)) is not None:
                self._asked[task.home] = asked

    async def _put(self, batch: list[Task]) -> None:
        left = batch

        def put() -> None:
            nonlocal left
            if self._keeps_others_out:
                left = self._tasks.put_delivered(left)
                if left:
                    raise Throttled(f"{len(left)} delivered tasks could not be settled")

        try:
            await self._retry_throttled(put, self._deadline_ms)
        except Throttled:  # they are passed on
            await self._tried(batch, left)
            return
        if len(left) < len(batch):
            await self._tried([task for task in batch if task not in left], [])
        if left:
            await self._put_each(left)

    async def _put_each(self, tasks: list[Task]) -> None:
        """A task with a notice is a transaction with it. The notices are announced together.
        All are tried, even if one fails."""
        outcomes = await outcomes_of(
            self._retry_throttled(partial(self._put_one, task), self._deadline_ms) for task in tasks
        )
        if notices := [notice for notice in outcomes if isinstance(notice, Task)]:
            await in_thread(self._tell_outcome.announce, notices)
        tried, left, failures = [], [], []
        for task, outcome in zip(tasks, outcomes, strict=True):
            if isinstance(outcome, Throttled):
                left.append(task)
            elif isinstance(outcome, BaseException):
                failures.append(outcome)
            elif outcome:
                tried.append(task)
            else:
                report_lost_race(task.task_id, task.biz_type)
        await self._tried([*tried, *left], left)
        if failures:
            raise failures[0]

    def _put_one(self, task: Task) -> Task | bool | None:
        """The notice that was put with it, or whether it was put. A try waits for a thread behind
        others, which are slow while DynamoDB throttles them."""
        if self._is_throttled and not self._retry_throttled.has_time(self._deadline_ms):
            raise Throttled("no time is left for a try")
        try:
            if task.home in self._asked:
                return self._tell_outcome.delivered(task, self._asked[task.home])
            return self._tasks.put_delivered_if_unchanged(task)
        except Throttled:
            self._is_throttled = True
            raise

    async def _tried(self, batch: list[Task], left: list[Task]) -> None:
        self.unsettled += left
        self.settled += len(batch) - len(left)
        counts.add(DELIVERED, len(batch) - len(left))
        keyed = [task for task in batch if task.key is not None and task not in left]
        if keyed:
            await in_thread(self._keys.release, keyed)
        in_line = [task for task in batch if task.flow_key is not None and task not in left]
        if in_line:
            await in_thread(self._keep_order.ended, in_line)
