"""One attempt at one task: wait for its instant and a call slot, confirm, call, record.

No attempt begins unless it can end and be settled before the invocation ends, and before another
notifier may take the page over. The slot is free again when the outcome is written. This bounds the
calls that are answered and not settled.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.metrics import LATENESS, counts
from duewheel.rules.callbacks.outcome import Outcome, Verdict, with_business_policy
from duewheel.rules.callbacks.secret_headers import names_in
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.callbacks.url import called_at
from duewheel.rules.delivery.priority import order_ms, place_ms
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.effective_callback import callback_to_make, timeout_ms
from duewheel.rules.tasks.lifecycle import is_expired
from duewheel.rules.tasks.task import Attempt, Status, Task
from duewheel.targets.by_type import Targets
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
from duewheel.workflows.delivery.process_slots import Place, ProcessSlots
from duewheel.workflows.delivery.slow_lane import DetectSlowCalls
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.timers.disable_timer import DisableTimer

# The time that an invocation needs after its last call, to settle and to pass on the rest.
SETTLE_RESERVE_MS = 5_000


class AttemptCall(Struct, frozen=True, kw_only=True):
    clock: Clock
    gates: Sequence[Gate]
    call_slots: ProcessSlots  # bounds calls of this process until they are recorded
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
        order = order_ms(confirmed.task, run.business)
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
                await self.call_slots.acquire(*_stands(timed, run), order)
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
            counts.measured(LATENESS, attempt.lateness_ms)
            await self.detect_slow_calls.publish(run.business.biz_type, run.page.deadline_ms)
        return True

    async def _with_turn(self, call: Call, permit: Slot, run: BusinessRun) -> Call | None:
        if permit.state is SlotState.NO_PERMIT:
            run.put_aside((call, permit.scope), self.concurrency_limit.line_up)
            return None
        return await self.rate_limit.with_permits(call, run) if permit.grants else call

    async def _confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        for gate in self.gates:
            confirmed = await gate.confirm(call, instant_ms, run)
            if confirmed is None:
                return None
            call = confirmed
        return call

    async def _attempt(
        self, call: Call, started_ms: int, run: BusinessRun, slot: ExitStack, permit: Slot
    ) -> Attempt | None:
        """None if no call was made."""
        task = call.task
        if is_expired(task, started_ms):  # it may have waited for a slot
            await self._expire(task, run)
            return None
        outcome = await self._outcome(call, run, started_ms)
        keep = run.business.own.keep_answers
        ended_ms = self.clock.now_ms()
        attempt = lifecycle.attempt_made(task, outcome, started_ms, ended_ms, keep)
        if outcome.complete_within_seconds is not None:
            permit.goes_on = True
            await self._record_running(task, attempt, outcome.complete_within_seconds, run)
        elif outcome.verdict is Verdict.DELIVERED:
            self._record_delivered(task, attempt, run, slot)
        else:
            await self._record_failure(task, outcome, attempt, run)
        return attempt

    async def _expire(self, task: Task, run: BusinessRun) -> None:
        expire = partial(self.fail_attempt.expire, task, run.business)
        status = await self.retry_throttled(expire, run.page.deadline_ms)
        run.page.firing.count(task, status, was_called=False)
        await self._disable_timer(task, None, status, run)

    async def _outcome(self, call: Call, run: BusinessRun, started_ms: int) -> Outcome:
        business = run.business
        callback: Callback | Outcome = callback_to_make(call.task, business)
        if not isinstance(callback, Outcome) and run.secrets is None:
            callback = Outcome(Verdict.RETRY, "cannot be signed: the secrets do not open")
        if isinstance(callback, HttpCallback) and names_in(callback):
            callback = await in_thread(self.secrets.filled, callback, business)
        if isinstance(callback, Outcome):
            return callback
        answering = self.targets.call(
            callback,
            call.task,
            started_ms,
            timeout_ms(call.task, business) / 1000,
            run.secrets or (),
            wants_answer=business.own.keep_answers is not None,
        )
        outcome = await self.detect_slow_calls.timed(business.biz_type, answering)
        # A status of other types says less.
        if isinstance(callback, HttpCallback):
            outcome = with_business_policy(outcome, business.statuses)
        await self.circuit_breaker.record_outcome(
            business, callback, outcome, started_ms, call.probe
        )
        return replace(outcome, host=called_at(callback))

    def _record_delivered(
        self, task: Task, attempt: Attempt, run: BusinessRun, slot: ExitStack
    ) -> None:
        """The slot is free again when the delivery is written."""
        kept_seconds = run.business.retention_seconds
        record = lifecycle.delivered(task, attempt, self.clock.now_ms(), kept_seconds)
        run.page.settler.add(record, slot.pop_all().close)
        run.page.firing.count(task, Status.DELIVERED)

    async def _record_running(
        self, task: Task, attempt: Attempt, within_seconds: int, run: BusinessRun
    ) -> None:
        """The permits of the call are kept until the work has some of its own."""
        scopes = tuple(run.business.in_flight_limits(task.flow_key))
        after = lifecycle.begun(task, attempt, within_seconds, scopes, self.clock.now_ms())
        begin = self.reschedule.tries([(task, after)])
        (is_begun,) = await self.retry_throttled(begin, run.page.deadline_ms)
        run.page.firing.count(task, Status.PENDING if is_begun else None)
        if is_begun and after.running is not None and after.running.scopes:
            hold = partial(self.hold_permits, after)
            await self.retry_throttled(hold, run.page.deadline_ms)

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


def _stands(call: Call, run: BusinessRun) -> tuple[str, Place]:
    """Its business, and its place among the calls of all businesses: of those of a late page, in
    the order of their instants."""
    came_ms = max(call.from_ms, run.page.begun_ms)
    return run.business.biz_type, (place_ms(call.task, run.business, came_ms), call.from_ms)
