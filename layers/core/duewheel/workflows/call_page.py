"""Make the calls of one page, each at its millisecond and all side by side, and settle them."""

import asyncio
import math
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules import settlement
from duewheel.rules.addresses import Address
from duewheel.rules.answers import judged
from duewheel.rules.business import Business
from duewheel.rules.callback_defaults import callback_to_make
from duewheel.rules.entry_decision import Decision, decide, is_expired
from duewheel.rules.outcome import Outcome, Verdict
from duewheel.rules.task import Callback, HttpCallback, Promise, Task
from duewheel.stores.keys import KeyStore
from duewheel.stores.known_businesses import KnownBusinesses
from duewheel.stores.sealed_secrets import KeyUnavailable, SealedSecrets
from duewheel.stores.tasks import TaskStore
from duewheel.targets.by_type import Targets
from duewheel.workflows.limit_calls import LimitCalls
from duewheel.workflows.park import Park
from duewheel.workflows.put_off import PutOff
from duewheel.workflows.retry_or_end import RetryOrEnd
from duewheel.workflows.settle import Settler
from duewheel.workflows.spare_hosts import Probe, SpareHosts
from duewheel.workflows.watch_pace import WatchPace

# What an invocation needs after its last call returned: to settle and to pass on the rest.
SETTLE_RESERVE_MS = 5_000
CALLS_IN_FLIGHT_MAX = 100

T = TypeVar("T")
Secrets = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class CallPage:
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    targets: Targets
    retry_or_end: RetryOrEnd
    lines: asyncio.Semaphore  # bounds the calls in flight of this process
    known: KnownBusinesses
    limit_calls: LimitCalls
    put_off: PutOff
    sealed_secrets: SealedSecrets
    park: Park
    spare_hosts: SpareHosts
    watch_pace: WatchPace

    async def __call__(
        self, owed: Sequence[tuple[Address, Task | None]], deadline_ms: int
    ) -> list[Address]:
        """Returns the entries for which no call could be begun in time."""
        settler = Settler(self.tasks, self.keys)
        settling = asyncio.create_task(settler.run())
        live = [(entry, task) for entry, task in owed if task is not None]
        live.sort(key=lambda pair: pair[1].next_ms)
        # Before anything is due: between its instant and a call there is no request.
        businesses = await asyncio.to_thread(self.known.many, {task.biz_type for _, task in live})
        due: dict[str, list[Task]] = {}
        work: list[Coroutine[None, None, list[Task] | None]] = []
        now_ms = self.clock.now_ms()
        for entry, task in live:
            match decide(entry, task, now_ms):
                case Decision.PLACE_LATER:
                    work.append(asyncio.to_thread(self.retry_or_end.place_later, task))
                case Decision.EXPIRE:
                    business = businesses[task.biz_type]
                    work.append(asyncio.to_thread(self.retry_or_end.expire, task, business))
                case Decision.DELIVER:
                    due.setdefault(task.biz_type, []).append(task)
        for biz_type, tasks in due.items():
            if businesses[biz_type].paused:
                work.append(asyncio.to_thread(self.park, tasks))
                continue
            work.append(self._call_all(tasks, businesses[biz_type], deadline_ms, settler))
        try:
            results = await _all_of(work)
        finally:
            settler.close()
            await settling
        return [task.entry for left in results if left for task in left]

    async def _call_all(
        self, tasks: list[Task], business: Business, deadline_ms: int, settler: Settler
    ) -> list[Task]:
        """Of one business, which alone waits for its limits and hosts. Returns those left
        uncalled."""
        secrets: Secrets | None = ()
        if business.own.signing_secrets:
            secrets = await asyncio.to_thread(self._secrets_of, business)
        own_lines = asyncio.Semaphore(business.own.calls_in_flight or CALLS_IN_FLIGHT_MAX)
        run = _Run(business, secrets, own_lines, deadline_ms, settler, overtaken=[])
        # Before the limit: who waits takes no turn.
        sorted_out = await self.spare_hosts.sorted_out(tasks, business)
        work = [self._call_by_turns(sorted_out.free, run), self._hold(sorted_out.held, run)]
        work += [self._probe(probe, run) for probe in sorted_out.probes]
        left = await _all_of(work)
        await self._hold(run.overtaken, run)
        return [task for some in left for task in some]

    async def _hold(self, tasks: list[Task], run: "_Run") -> list[Task]:
        if tasks:
            await asyncio.to_thread(self.spare_hosts.hold, tasks, run.business)
        return []

    async def _call_by_turns(self, tasks: list[Task], run: "_Run") -> list[Task]:
        soon = [(task, task.next_ms) for task in tasks]
        later: list[tuple[Task, Promise]] = []
        if tasks and run.business.call_rate is not None:
            soon, later = await asyncio.to_thread(self.limit_calls, tasks, run.business)
        work: list[Coroutine[None, None, Task | None]] = [
            self._call_in_time(task, from_ms, run) for task, from_ms in soon
        ]
        if later:
            work.append(asyncio.to_thread(self.put_off, later))
        return [task for task in await _all_of(work) if task is not None]

    async def _probe(self, probe: Probe, run: "_Run") -> list[Task]:
        """One call, beside any limit; what becomes of the others depends on it."""
        if await self._call_in_time(probe.task, probe.task.next_ms, run, probe) is not None:
            return [probe.task, *probe.rest]
        if await self.spare_hosts.ended(probe):
            return await self._call_by_turns(probe.rest, run)
        return await self._hold(probe.rest, run)

    async def _call_in_time(
        self, task: Task, from_ms: int, run: "_Run", probe: Probe | None = None
    ) -> Task | None:
        """Wait for its millisecond and for free lines, and call. Returns the task when it is too
        late to begin."""
        business = run.business
        timeout_ms = math.ceil(business.timeout_seconds * 1000)
        latest_ms = run.deadline_ms - timeout_ms - SETTLE_RESERVE_MS
        if max(from_ms, self.clock.now_ms()) > latest_ms:
            return task
        await self.clock.sleep_until_ms(from_ms)
        async with run.lines, self.lines:
            started_ms = self.clock.now_ms()
            if started_ms > latest_ms:
                return task
            callback = callback_to_make(task, business)
            if is_expired(task, started_ms):  # while it waited for a line
                outcome = None
            elif probe is None and self.spare_hosts.spared_host(business, callback):
                run.overtaken.append(task)
                return None
            else:
                outcome = await self._outcome(task, callback, run, started_ms, probe)
        if outcome is None:
            await asyncio.to_thread(self.retry_or_end.expire, task, business)
            return None
        ended_ms = self.clock.now_ms()
        attempt = settlement.attempt_made(task, outcome, started_ms, ended_ms)
        if outcome.verdict is Verdict.DELIVERED:
            kept_seconds = business.retention_seconds
            run.settler.add(settlement.delivered(task, attempt, ended_ms, kept_seconds))
        else:
            await asyncio.to_thread(self.retry_or_end.failed, task, outcome, attempt, business)
        await self.watch_pace(business, attempt, run.deadline_ms)
        return None

    async def _outcome(
        self,
        task: Task,
        callback: Callback | Outcome,
        run: "_Run",
        started_ms: int,
        probe: Probe | None,
    ) -> Outcome:
        if isinstance(callback, Outcome):
            return callback
        if run.secrets is None:
            return Outcome(Verdict.RETRY, "cannot be signed: the secrets do not open")
        business = run.business
        outcome = await self.targets.call(
            callback, task, started_ms, business.timeout_seconds, run.secrets
        )
        if isinstance(callback, HttpCallback):  # of other types a status says less
            outcome = judged(outcome, business.statuses)
        await self.spare_hosts.heard(business, callback, outcome, started_ms, probe)
        return outcome

    def _secrets_of(self, business: Business) -> Secrets | None:
        """None when they cannot be had: without its signature a call is not made."""
        try:
            return tuple(
                self.sealed_secrets.open(business.biz_type, secret.sealed)
                for secret in business.own.signing_secrets or ()
            )
        except KeyUnavailable as error:
            logger.error("secrets not opened", action="not-opened", error=str(error))
            return None


@dataclass(frozen=True, slots=True)
class _Run:
    """What the calls of one business in a page share. `overtaken`: those whose host has failed
    while they waited for a line."""

    business: Business
    secrets: Secrets | None
    lines: asyncio.Semaphore
    deadline_ms: int
    settler: Settler
    overtaken: list[Task]


async def _all_of(work: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Whatever fails, everything else is carried through before the first failure is raised."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
