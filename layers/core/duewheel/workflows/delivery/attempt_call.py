"""One attempt at one task: wait for its instant and a call slot, confirm, call, record.

No attempt begins unless it can end and be settled before the invocation ends, and before another
notifier may take the page over. The slot is free again when the outcome is written. This bounds the
calls that are answered and not settled.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.callbacks.batch import BatchOutcome
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.secret_headers import names_in
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.delivery.batches import form_of
from duewheel.rules.delivery.circuit_breaker import may_be_postponed
from duewheel.rules.delivery.priority import order_ms
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.effective_callback import callback_to_make, timeout_ms
from duewheel.rules.tasks.lifecycle import is_expired
from duewheel.rules.tasks.task import Attempt, Status, Task
from duewheel.targets.by_type import Targets
from duewheel.workflows.delivery.batch_calls import after_all, confirmed_together, without
from duewheel.workflows.delivery.call_secrets import CallSecrets
from duewheel.workflows.delivery.circuit_breaker import CircuitBreaker
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.delivery.gates import (
    BusinessRun,
    Call,
    ConcurrencyLimitGate,
    Gate,
    RateLimitGate,
)
from duewheel.workflows.delivery.permits import Slot, SlotState
from duewheel.workflows.delivery.priority_semaphore import PrioritySemaphore
from duewheel.workflows.delivery.slow_lane import DetectSlowCalls
from duewheel.workflows.gather_all import gather_all, in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.timers.disable_timer import DisableTimer

# The time that an invocation needs after its last call, to settle and to pass on the rest.
SETTLE_RESERVE_MS = 5_000
Made = tuple[Task, Outcome, Attempt]


class AttemptCall(Struct, frozen=True, kw_only=True):
    clock: Clock
    gates: Sequence[Gate]
    call_slots: PrioritySemaphore  # bounds calls of this process until they are recorded
    targets: Targets
    secrets: CallSecrets
    circuit_breaker: CircuitBreaker
    concurrency_limit: ConcurrencyLimitGate
    rate_limit: RateLimitGate
    fail_attempt: FailAttempt
    reschedule: Reschedule
    disable_timer: DisableTimer
    detect_slow_calls: DetectSlowCalls
    hold_permits: Callable[[Task], None]  # of work that goes on after its call
    retry_throttled: RetryThrottled

    async def __call__(self, call: Call, run: BusinessRun) -> bool:
        """False if it is too late to begin."""
        latest_ms = _latest_ms(call, run)
        if max(call.from_ms, self.clock.now_ms()) > latest_ms:
            return False
        confirmed = await self._confirm(call, call.from_ms, run)
        if confirmed is None:
            return True
        # A batch is served as the first of its tasks.
        order = min(order_ms(task, run.business) for task in confirmed.in_request)
        latest_ms = _latest_ms(confirmed, run)
        async with run.call_slots.slot(confirmed.task, order, call.from_ms, latest_ms) as permit:
            if permit.state is SlotState.TOO_LATE:
                return False
            timed = await self._with_turn(confirmed, permit, run)
            if timed is None:
                return True
            await self.clock.sleep_until_ms(min(timed.from_ms, latest_ms + 1))
            permit.begins()
            with ExitStack() as slot:
                await self.call_slots.acquire(order)
                slot.callback(self.call_slots.release)
                if not await run.page.is_sure_before(latest_ms):
                    return False
                confirmed = await self._confirm(timed, self.clock.now_ms(), run)
                if confirmed is None:
                    return True
                started_ms = self.clock.now_ms()
                if not _may_begin(confirmed, started_ms, permit, run):
                    return False
                attempt = await self._attempt(confirmed, started_ms, run, slot, permit)
        if attempt is not None:
            await self.detect_slow_calls(run.business, attempt, run.page.deadline_ms)
        return True

    async def _with_turn(self, call: Call, permit: Slot, run: BusinessRun) -> Call | None:
        if permit.state is SlotState.NO_PERMIT:
            run.put_aside((call, permit.scope), self.concurrency_limit.line_up)
            return None
        return await self.rate_limit.with_permits(call, run) if permit.grants else call

    async def _confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        """Each task of a batch is confirmed by itself. One that is not drops out."""
        if not call.others:
            return await self._confirm_one(call, instant_ms, run)
        singles = [Call(task, call.from_ms) for task in call.in_request]
        confirmed = await gather_all(self._confirm_one(one, instant_ms, run) for one in singles)
        batch, excess = confirmed_together(confirmed, call.from_ms, run.business)
        for task in excess:
            run.put_aside(task, self._postpone_unbegun)
        return batch

    async def _confirm_one(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        confirmed: Call | None = call
        for gate in self.gates:
            if confirmed is not None:
                confirmed = await gate.confirm(confirmed, instant_ms, run)
        return confirmed

    async def _attempt(
        self, call: Call, started_ms: int, run: BusinessRun, slot: ExitStack, permit: Slot
    ) -> Attempt | None:
        """None if no call was made."""
        # They may have waited for a slot.
        expired = [task for task in call.in_request if is_expired(task, started_ms)]
        live = without(call, expired) if expired else call
        if live is not None and not expired:
            return await self._call(live, started_ms, run, slot, permit)
        # Side by side: the write of an end may be throttled for longer than a call may wait.
        work = [] if live is None else [self._call(live, started_ms, run, slot, permit)]
        attempts = await gather_all([*work, *(self._expire(task, run) for task in expired)])
        return attempts[0]

    async def _call(
        self, live: Call, started_ms: int, run: BusinessRun, slot: ExitStack, permit: Slot
    ) -> Attempt | None:
        """The slow-call detection and the breaker see one call."""
        outcomes = await self._outcomes(live, run, started_ms)
        ended_ms = self.clock.now_ms()
        made: list[Made] = []
        for task, outcome in zip(live.in_request, outcomes, strict=True):
            if not outcome.was_begun and may_be_postponed(task, started_ms):
                run.put_aside(task, self._postpone_unbegun)
                continue
            keep = run.business.own.keep_answers
            attempt = lifecycle.attempt_made(task, outcome, started_ms, ended_ms, keep)
            made.append((task, outcome, attempt))
        await self._record(made, run, slot, permit)
        return made[-1][2] if made else None

    async def _expire(self, task: Task, run: BusinessRun) -> None:
        expire = partial(self.fail_attempt.expire, task, run.business)
        status = await self.retry_throttled(expire, run.page.deadline_ms)
        run.page.firing.count(task, status, was_called=False)
        await self._disable_timer(task, None, status, run)

    async def _outcomes(self, call: Call, run: BusinessRun, started_ms: int) -> list[Outcome]:
        """Of the tasks of the request, in their order."""
        business, tasks = run.business, call.in_request
        callback: Callback | Outcome = callback_to_make(call.task, business)
        if not isinstance(callback, Outcome) and run.secrets is None:
            callback = Outcome(Verdict.RETRY, "cannot be signed: the secrets do not open")
        if isinstance(callback, HttpCallback) and names_in(callback):
            callback = await in_thread(self.secrets.filled, callback, business)
        if isinstance(callback, Outcome):
            return [callback] * len(tasks)
        answered = await self._answered(call, callback, run, started_ms)
        # A status of other types says less.
        if isinstance(callback, HttpCallback):
            answered = answered.by(business.statuses)
        if answered.of_call.was_begun:
            await self.circuit_breaker.record_outcome(
                business, callback, answered.of_call, started_ms, call.probe
            )
        return answered.of_tasks

    async def _answered(
        self, call: Call, callback: Callback, run: BusinessRun, started_ms: int
    ) -> BatchOutcome:
        timeout_seconds = timeout_ms(call.task, run.business) / 1000
        secrets = run.secrets or ()
        form = form_of(call.task, run.business)
        if call.others or (form is not None and form.has_document):
            return await self.targets.call_batch(
                callback, call.in_request, started_ms, timeout_seconds, secrets
            )
        outcome = await self.targets.call(
            callback,
            call.task,
            started_ms,
            timeout_seconds,
            secrets,
            wants_answer=run.business.own.keep_answers is not None,
        )
        return BatchOutcome(outcome, [outcome])

    async def _record(
        self, made: Sequence[Made], run: BusinessRun, slot: ExitStack, permit: Slot
    ) -> None:
        """The slot is free again when all deliveries are written."""
        running = [one for one in made if one[1].complete_within_seconds is not None]
        delivered = [
            one for one in made if one[1].verdict is Verdict.DELIVERED and one not in running
        ]
        if running:
            permit.goes_on = True
            await self._record_running(running, run)
        if delivered:
            written = after_all(len(delivered), slot.pop_all().close)
            kept_seconds = run.business.retention_seconds
            for task, _, attempt in delivered:
                record = lifecycle.delivered(task, attempt, self.clock.now_ms(), kept_seconds)
                run.page.settler.add(record, written)
                run.page.firing.count(task, Status.DELIVERED)
        failed = [one for one in made if one[1].verdict is not Verdict.DELIVERED]
        await gather_all(self._record_failure(*one, run) for one in failed)

    async def _record_running(self, made: Sequence[Made], run: BusinessRun) -> None:
        """The permits of the calls are kept until the work has some of its own."""
        now_ms = self.clock.now_ms()
        changes = [
            (task, lifecycle.begun(task, attempt, within, self._scopes(task, run), now_ms))
            for task, outcome, attempt in made
            if (within := outcome.complete_within_seconds) is not None
        ]
        begin = self.reschedule.tries(changes)
        begun = await self.retry_throttled(begin, run.page.deadline_ms)
        for (task, after), is_begun in zip(changes, begun, strict=True):
            run.page.firing.count(task, Status.PENDING if is_begun else None)
            if is_begun and after.running is not None and after.running.scopes:
                hold = partial(self.hold_permits, after)
                await self.retry_throttled(hold, run.page.deadline_ms)

    def _scopes(self, task: Task, run: BusinessRun) -> tuple[str, ...]:
        return tuple(run.business.in_flight_limits(task.flow_key))

    async def _record_failure(
        self, task: Task, outcome: Outcome, attempt: Attempt, run: BusinessRun
    ) -> None:
        failed = partial(self.fail_attempt.failed, task, outcome, attempt, run.business)
        status = await self.retry_throttled(failed, run.page.deadline_ms)
        run.page.firing.count(task, status)
        await self._disable_timer(task, outcome, status, run)

    async def _disable_timer(
        self, task: Task, outcome: Outcome | None, status: Status | None, run: BusinessRun
    ) -> None:
        timer = run.page.firing.timer_of(task)
        if timer is None or status not in (Status.DEAD, Status.EXPIRED):
            return
        if timer.rules.may_be_disabled:
            await in_thread(self.disable_timer.after, timer, task, outcome)

    async def _postpone_unbegun(self, tasks: list[Task], run: BusinessRun) -> None:
        changes = lifecycle.postponed_unbegun(tasks, self.clock.now_ms())
        await self.retry_throttled(self.reschedule.tries(changes), run.page.deadline_ms)
        logger.info(
            "calls not begun",
            action="not-begun",
            biz_type=run.business.biz_type,
            count=len(changes),
        )


def _may_begin(call: Call, now_ms: int, permit: Slot, run: BusinessRun) -> bool:
    if now_ms > _latest_ms(call, run) or not run.page.is_sure:
        return False
    if not permit.is_sure(timeout_ms(call.task, run.business)):
        return False
    return not run.call_slots.lacks_new_limit(call.task.flow_key)


def _latest_ms(call: Call, run: BusinessRun) -> int:
    """When it has to begin, to end and be settled in this invocation. A timer may get a callback
    with another time-out while its occurrence waits."""
    return run.page.deadline_ms - timeout_ms(call.task, run.business) - SETTLE_RESERVE_MS
