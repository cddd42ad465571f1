"""Make the calls of one page, each at its millisecond and all side by side, and settle them."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from duewheel.clock import Clock
from duewheel.rules import settlement
from duewheel.rules.addresses import Address
from duewheel.rules.entry_decision import Decision, decide
from duewheel.rules.outcome import Verdict
from duewheel.rules.task import Task
from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.targets.by_type import Targets
from duewheel.workflows.retry_or_end import RetryOrEnd
from duewheel.workflows.settle import Settler

# What an invocation needs after its last call returned: to settle and to pass on the rest.
SETTLE_RESERVE_MS = 5_000
CALLS_IN_FLIGHT_MAX = 100


@dataclass(frozen=True, slots=True)
class CallPage:
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    targets: Targets
    retry_or_end: RetryOrEnd
    lines: asyncio.Semaphore  # bounds the calls in flight of this process
    callback_timeout_seconds: int
    retention_seconds: int

    async def __call__(
        self, owed: Sequence[tuple[Address, Task | None]], deadline_ms: int
    ) -> list[Address]:
        """Returns the entries for which no call could be begun in time."""
        settler = Settler(self.tasks, self.keys)
        settling = asyncio.create_task(settler.run())
        work: list[asyncio.Task[None]] = []
        left: list[Address] = []
        live = [(entry, task) for entry, task in owed if task is not None]
        for entry, task in sorted(live, key=lambda pair: pair[1].next_ms):
            decision = decide(entry, task, self.clock.now_ms())
            if decision is Decision.DROP:
                continue
            if decision is Decision.DELIVER and not await self._may_begin(task, deadline_ms):
                left.append(entry)
                continue
            work.append(asyncio.create_task(self._carry_out(decision, task, settler)))
        results = await asyncio.gather(*work, return_exceptions=True)
        settler.close()
        await settling
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return left

    def _carry_out(
        self, decision: Decision, task: Task, settler: Settler
    ) -> Coroutine[None, None, None]:
        match decision:
            case Decision.PLACE_LATER:
                return asyncio.to_thread(self.retry_or_end.place_later, task)
            case Decision.EXPIRE:
                return asyncio.to_thread(self.retry_or_end.expire, task)
            case _:
                return self._call(task, settler)

    async def _may_begin(self, task: Task, deadline_ms: int) -> bool:
        """Wait for the task's millisecond and for a free line; True holds that line."""
        latest_ms = deadline_ms - self.callback_timeout_seconds * 1000 - SETTLE_RESERVE_MS
        if max(task.next_ms, self.clock.now_ms()) > latest_ms:
            return False
        await self.clock.sleep_until_ms(task.next_ms)
        await self.lines.acquire()
        if self.clock.now_ms() > latest_ms:
            self.lines.release()
            return False
        return True

    async def _call(self, task: Task, settler: Settler) -> None:
        started_ms = self.clock.now_ms()
        try:
            outcome = await self.targets.call(
                task.callback, task, started_ms, self.callback_timeout_seconds
            )
        finally:
            self.lines.release()
        ended_ms = self.clock.now_ms()
        attempt = settlement.attempt_made(task, outcome, started_ms, ended_ms)
        if outcome.verdict is Verdict.DELIVERED:
            settler.add(settlement.delivered(task, attempt, ended_ms, self.retention_seconds))
        else:
            await asyncio.to_thread(self.retry_or_end.failed, task, outcome, attempt)
