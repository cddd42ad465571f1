"""Make the calls of one page, each at its millisecond and all side by side, and settle them."""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from duewheel.clock import Clock
from duewheel.rules import settlement
from duewheel.rules.addresses import Address
from duewheel.rules.answers import judged
from duewheel.rules.business import Business
from duewheel.rules.callback_defaults import callback_to_make
from duewheel.rules.entry_decision import Decision, decide, is_expired
from duewheel.rules.outcome import Outcome, Verdict
from duewheel.rules.task import HttpCallback, Task
from duewheel.stores.keys import KeyStore
from duewheel.stores.known_businesses import KnownBusinesses
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
    known: KnownBusinesses

    async def __call__(
        self, owed: Sequence[tuple[Address, Task | None]], deadline_ms: int
    ) -> list[Address]:
        """Returns the entries for which no call could be begun in time."""
        settler = Settler(self.tasks, self.keys)
        settling = asyncio.create_task(settler.run())
        work: list[asyncio.Task[None]] = []
        left: list[Address] = []
        live = [(entry, task) for entry, task in owed if task is not None]
        # Before anything is due: between its instant and a call there is no request.
        businesses = await asyncio.to_thread(self.known.many, {task.biz_type for _, task in live})
        for entry, task in sorted(live, key=lambda pair: pair[1].next_ms):
            business = businesses[task.biz_type]
            decision = decide(entry, task, self.clock.now_ms())
            if decision is Decision.DROP:
                continue
            is_owed = decision is Decision.DELIVER
            if is_owed and not await self._may_begin(task, business, deadline_ms):
                left.append(entry)
                continue
            work.append(asyncio.create_task(self._carry_out(decision, task, business, settler)))
        results = await asyncio.gather(*work, return_exceptions=True)
        settler.close()
        await settling
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return left

    def _carry_out(
        self, decision: Decision, task: Task, business: Business, settler: Settler
    ) -> Coroutine[None, None, None]:
        match decision:
            case Decision.PLACE_LATER:
                return asyncio.to_thread(self.retry_or_end.place_later, task)
            case Decision.EXPIRE:
                return asyncio.to_thread(self.retry_or_end.expire, task, business)
            case _:
                return self._call(task, business, settler)

    async def _may_begin(self, task: Task, business: Business, deadline_ms: int) -> bool:
        """Wait for the task's millisecond and for a free line; True holds that line."""
        timeout_ms = math.ceil(business.timeout_seconds * 1000)
        latest_ms = deadline_ms - timeout_ms - SETTLE_RESERVE_MS
        if max(task.next_ms, self.clock.now_ms()) > latest_ms:
            return False
        await self.clock.sleep_until_ms(task.next_ms)
        await self.lines.acquire()
        if self.clock.now_ms() > latest_ms:
            self.lines.release()
            return False
        return True

    async def _call(self, task: Task, business: Business, settler: Settler) -> None:
        started_ms = self.clock.now_ms()
        try:
            if is_expired(task, started_ms):  # while it waited for a line
                await asyncio.to_thread(self.retry_or_end.expire, task, business)
                return
            outcome = await self._outcome(task, business, started_ms)
        finally:
            self.lines.release()
        ended_ms = self.clock.now_ms()
        attempt = settlement.attempt_made(task, outcome, started_ms, ended_ms)
        if outcome.verdict is Verdict.DELIVERED:
            settler.add(settlement.delivered(task, attempt, ended_ms, business.retention_seconds))
        else:
            await asyncio.to_thread(self.retry_or_end.failed, task, outcome, attempt, business)

    async def _outcome(self, task: Task, business: Business, started_ms: int) -> Outcome:
        callback = callback_to_make(task, business)
        if isinstance(callback, Outcome):
            return callback
        outcome = await self.targets.call(callback, task, started_ms, business.timeout_seconds)
        is_http = isinstance(callback, HttpCallback)  # of other types a status says less
        return judged(outcome, business.statuses) if is_http else outcome
