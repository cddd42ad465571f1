"""Deliver the entries of one page: call each task at its millisecond, side by side, and settle.

A task passes these gates in order: its entry is the named one, its business is not paused, its
occurrence is still wanted, the breaker of its host is closed, the rate limit has a turn, a call
slot is free. A task that fails a gate is parked, postponed, rescheduled or ended. Chains of timers
that fall due are planned meanwhile.
"""

import asyncio
import math
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.http_outcome import judged
from duewheel.rules.callbacks.named_secrets import names_in
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.delivery.circuit_breaker import may_be_postponed
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.effective_callback import callback_to_make
from duewheel.rules.tasks.entry_decision import Decision, decide, is_expired
from duewheel.rules.tasks.task import Attempt, Plan, Reservation, Status, Task
from duewheel.rules.timers.occurrence_policy import should_disable_timer
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.signing_secrets import SealedSecrets
from duewheel.targets.by_type import Targets
from duewheel.workflows.delivery.circuit_breaker import CircuitBreaker, Probe
from duewheel.workflows.delivery.detect_slow_calls import DetectSlowCalls
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.delivery.hold import Hold
from duewheel.workflows.delivery.limit_call_rate import LimitCallRate
from duewheel.workflows.delivery.page_calls import (
    Delivery,
    Run,
    Secrets,
    secrets_of,
    with_named_secrets,
)
from duewheel.workflows.delivery.park_tasks import Park
from duewheel.workflows.delivery.refresh_settings import RefreshSettings
from duewheel.workflows.delivery.settle_batch import Called, Left, Settle
from duewheel.workflows.gather_all import gather_all, in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.timers.change_timer import StopTimer
from duewheel.workflows.timers.check_occurrences import Checked, CheckOccurrences, Firing
from duewheel.workflows.timers.plan_occurrences import PlanTimers

# What an invocation needs after its last call returned: to settle and to pass on the rest.
SETTLE_RESERVE_MS = 5_000
CALLS_IN_FLIGHT_MAX = 100


class DeliverEntries(Struct, frozen=True):
    clock: Clock
    targets: Targets
    settle: Settle
    fail_attempt: FailAttempt
    retry_throttled: RetryThrottled
    call_slots: asyncio.Semaphore  # bounds calls of this process until they are recorded
    known: BusinessCache
    limit_call_rate: LimitCallRate
    reschedule: Reschedule
    sealed_secrets: SealedSecrets
    park: Park
    refresh_settings: RefreshSettings
    circuit_breaker: CircuitBreaker
    detect_slow_calls: DetectSlowCalls
    plan_timers: PlanTimers
    check: CheckOccurrences
    stop_timer: StopTimer

    async def __call__(
        self,
        owed: Sequence[tuple[Address, Task | None]],
        deadline_ms: int,
        called: Called,
        hold: Hold | None,
    ) -> Left:
        """`called`: by home, what another run has called. `hold`: None if no other run can have
        these entries. Returns what could not be done in time."""
        settler = self.settle.begin(deadline_ms, called)
        delivery = Delivery(deadline_ms, settler, hold)
        calls = self._make_calls(owed, delivery)
        uncalled, _ = await gather_all([settler.until_end_of(calls), settler.run()])
        return Left(uncalled or [], settler.unsettled)

    async def _make_calls(
        self, owed: Sequence[tuple[Address, Task | None]], delivery: Delivery
    ) -> list[Task]:
        """Returns those left uncalled."""
        live = [(entry, task) for entry, task in owed if task is not None]
        live.sort(key=lambda pair: pair[1].next_ms)
        # Read before the first instant: no request delays a call.
        businesses = await in_thread(self.known.many, {task.biz_type for _, task in live})
        due: dict[str, list[Task]] = {}
        chains: list[tuple[Task, Plan]] = []
        work: list[Coroutine[None, None, object]] = []
        now_ms = self.clock.now_ms()
        for entry, task in live:
            if delivery.settler.takes_over(task):
                continue
            match decide(entry, task, now_ms):
                case Decision.PLACE_LATER:
                    place_later = partial(self.fail_attempt.place_later, task)
                    work.append(self.retry_throttled(place_later, delivery.deadline_ms))
                case Decision.EXPIRE:
                    expire = partial(self.fail_attempt.expire, task, businesses[task.biz_type])
                    work.append(self.retry_throttled(expire, delivery.deadline_ms))
                case Decision.DELIVER if task.plan is not None:
                    chains.append((task, task.plan))
                case Decision.DELIVER:
                    due.setdefault(task.biz_type, []).append(task)
        work += self._by_business(due, businesses, delivery)
        if chains:
            work.append(in_thread(self.plan_timers, chains, delivery.deadline_ms))
        return [task for some in await gather_all(work) if isinstance(some, list) for task in some]

    def _by_business(
        self,
        due: Mapping[str, list[Task]],
        businesses: Mapping[str, Business],
        delivery: Delivery,
    ) -> Iterator[Coroutine[None, None, object]]:
        timed: dict[str, list[Task]] = {}
        for biz_type, tasks in due.items():
            if businesses[biz_type].paused:
                yield self._park(tasks, delivery)
            elif any(task.occurrence is not None for task in tasks):
                timed[biz_type] = tasks
            else:
                yield self._call_all(tasks, businesses[biz_type], delivery)
        if timed:
            yield self._call_timed(timed, businesses, delivery)

    async def _park(self, tasks: list[Task], delivery: Delivery) -> None:
        await self.retry_throttled(self.park(tasks), delivery.deadline_ms)

    async def _call_timed(
        self,
        due: Mapping[str, list[Task]],
        businesses: Mapping[str, Business],
        delivery: Delivery,
    ) -> list[Task]:
        """For businesses with occurrences of timers: check these together, then call those still
        wanted with the other tasks. If timers cannot be read, the other tasks are called."""
        page, checked, failure = Firing(), Checked(), None
        everything = [task for tasks in due.values() for task in tasks]
        mine = [task for task in everything if task.occurrence is not None]
        earliest_ms = min(task.next_ms for task in everything)  # the check ends before that
        try:
            checked = await self.check.of_page(mine, page, earliest_ms)
        except Exception as error:  # noqa: BLE001 - kept, and raised at the end
            failure = error
        work: list[Coroutine[None, None, list[Task] | None]] = [
            self.check.set_aside(checked, businesses, page)
        ]
        for biz_type, tasks in due.items():
            own = [task for task in tasks if task.occurrence is None]
            own += [task for task in checked.fire if task.biz_type == biz_type]
            own.sort(key=lambda task: task.next_ms)
            work.append(self._call_all(own, businesses[biz_type], delivery, page))
        try:
            left = await gather_all(work)
        finally:
            await in_thread(self.check.write_counts, page)
        if failure is not None:
            raise failure
        return [task for some in left if some for task in some]

    async def _call_all(
        self,
        tasks: list[Task],
        business: Business,
        delivery: Delivery,
        page: Firing | None = None,
    ) -> list[Task]:
        """Tasks of one business: its limits and hosts delay no other. Returns those uncalled."""
        secrets: Secrets | None = ()
        if business.own.signing_secrets:
            secrets = await in_thread(secrets_of, business, self.sealed_secrets)
        own_slots = asyncio.Semaphore(business.own.calls_in_flight or CALLS_IN_FLIGHT_MAX)
        run = Run(
            business,
            secrets,
            own_slots,
            delivery,
            page or Firing(),
            self.clock.now_ms(),
            asyncio.Lock(),
        )
        # Before the rate limit: a blocked task takes no turn.
        partition = await self.circuit_breaker.partition(tasks, business)
        work = [self._call_by_turns(partition.allowed, run), self._hold(partition.blocked, run)]
        work += [self._probe(probe, run) for probe in partition.probes]
        left = await gather_all(work)
        await self._hold(run.overtaken, run)
        await self.refresh_settings.set_aside(run)
        return [task for some in left for task in some]

    async def _hold(self, tasks: list[Task], run: Run) -> list[Task]:
        if tasks:
            hold = self.circuit_breaker.postpone(tasks, run.business)
            await self.retry_throttled(hold, run.delivery.deadline_ms)
        return []

    async def _call_by_turns(self, tasks: list[Task], run: Run) -> list[Task]:
        soon = [(task, task.next_ms) for task in tasks]
        later: list[tuple[Task, Reservation]] = []
        if tasks and run.business.call_rate is not None:
            limit = partial(self.limit_call_rate, tasks, run.business)
            soon, later = await self.retry_throttled(limit, run.delivery.deadline_ms)
        work: list[Coroutine[None, None, object]] = [
            self._attempt(task, from_ms, run) for task, from_ms in soon
        ]
        if later:
            reschedule = self.reschedule.reserved(later)
            work.append(self.retry_throttled(reschedule, run.delivery.deadline_ms))
        return [task for task in await gather_all(work) if isinstance(task, Task)]

    async def _probe(self, probe: Probe, run: Run) -> list[Task]:
        """One call, without a rate limit; its outcome decides on the other tasks of the host."""
        if await self._attempt(probe.task, probe.task.next_ms, run, probe) is not None:
            return [probe.task, *probe.rest]
        if await self.circuit_breaker.conclude_probe(probe):
            return await self._call_by_turns(probe.rest, run)
        return await self._hold(probe.rest, run)

    async def _attempt(
        self, task: Task, from_ms: int, run: Run, probe: Probe | None = None
    ) -> Task | None:
        """Wait for the instant and for a free call slot, then call. Returns the task if it is too
        late to begin. The slot is free again when the outcome is written."""
        business = run.business
        latest_ms = (
            run.delivery.deadline_ms
            - math.ceil(business.timeout_seconds * 1000)
            - SETTLE_RESERVE_MS
        )
        if max(from_ms, self.clock.now_ms()) > latest_ms:
            return task
        if not await self._is_still_due(task, from_ms, run):
            return None
        await self.clock.sleep_until_ms(from_ms)
        with ExitStack() as slot:
            async with run.call_slots:
                await self.call_slots.acquire()
                slot.callback(self.call_slots.release)
                if not await run.delivery.is_sure_before(latest_ms):
                    return task
                if not await self._is_still_due(task, self.clock.now_ms(), run):
                    return None
                task = run.page.filled(task)
                started_ms = self.clock.now_ms()
                if started_ms > latest_ms or not run.delivery.is_sure:
                    return task
                callback = callback_to_make(task, business)
                if is_expired(task, started_ms):  # while it waited for a slot
                    outcome = None
                elif probe is None and self.circuit_breaker.open_host(task, business, callback):
                    run.overtaken.append(task)
                    return None
                else:
                    outcome = await self._outcome(task, callback, run, started_ms, probe)
            if outcome is None:
                expire = partial(self.fail_attempt.expire, task, business)
                status = await self.retry_throttled(expire, run.delivery.deadline_ms)
                run.page.count(task, status, was_called=False)
                return None
            if not outcome.was_begun and may_be_postponed(task, started_ms):
                run.unbegun.append(task)
                return None
            attempt = lifecycle.attempt_made(task, outcome, started_ms, self.clock.now_ms())
            await self._record(task, outcome, attempt, run, slot)
        await self.detect_slow_calls(business, attempt, run.delivery.deadline_ms)
        return None

    async def _record(
        self, task: Task, outcome: Outcome, attempt: Attempt, run: Run, slot: ExitStack
    ) -> None:
        status: Status | None = Status.DELIVERED
        if outcome.verdict is Verdict.DELIVERED:
            kept_seconds = run.business.retention_seconds
            record = lifecycle.delivered(task, attempt, self.clock.now_ms(), kept_seconds)
            run.delivery.settler.add(record, slot.pop_all().close)
        else:
            failed = partial(self.fail_attempt.failed, task, outcome, attempt, run.business)
            status = await self.retry_throttled(failed, run.delivery.deadline_ms)
        run.page.count(task, status)
        timer = run.page.timer_of(task)
        if timer is not None and status is Status.DEAD and should_disable_timer(timer, outcome):
            await in_thread(self.stop_timer, timer)

    async def _is_still_due(self, task: Task, instant_ms: int, run: Run) -> bool:
        if not await self.refresh_settings(task, instant_ms, run):
            return False
        is_known = task.occurrence is None or run.page.is_fresh(task, instant_ms)
        return is_known or await self.check.again(task, instant_ms, run.page, run.business)

    async def _outcome(
        self,
        task: Task,
        callback: Callback | Outcome,
        run: Run,
        started_ms: int,
        probe: Probe | None,
    ) -> Outcome:
        if isinstance(callback, Outcome):
            return callback
        if run.secrets is None:
            return Outcome(Verdict.RETRY, "cannot be signed: the secrets do not open")
        business = run.business
        if isinstance(callback, HttpCallback) and names_in(callback):
            callback = await in_thread(with_named_secrets, callback, business, self.sealed_secrets)
            if isinstance(callback, Outcome):
                return callback
        outcome = await self.targets.call(
            callback, task, started_ms, business.timeout_seconds, run.secrets
        )
        if isinstance(callback, HttpCallback):  # a status of other types says less
            outcome = judged(outcome, business.statuses)
        if outcome.was_begun:
            await self.circuit_breaker.record_outcome(
                business, callback, outcome, started_ms, probe
            )
        return outcome
