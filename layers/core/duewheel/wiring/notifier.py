"""The parts of the notifier.

They are built once per thread, since an event loop and its connections belong to one. In AWS a
process has one thread; on the local stack a thread stands for an execution environment.
"""

import asyncio
import secrets
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.callbacks.aws.target import AwsTarget
from duewheel.rules.delivery.circuit_breaker import MARK_BYTES
from duewheel.rules.delivery.permits import Permits
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import PARKED_SLOTS, Address
from duewheel.stores.aws_clients import TargetClients
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.secret_store import SecretsRead
from duewheel.stores.delivery.parked_items import ParkedStore
from duewheel.targets.aws.calls import CALLS_AT_ONCE, AwsCalls
from duewheel.targets.by_type import Targets
from duewheel.targets.http.target import HttpTarget
from duewheel.wiring.businesses import (
    businesses,
    businesses_with_health,
    health_store,
    parking_records,
    permits,
    secret_store,
    secret_table,
    seen_businesses,
)
from duewheel.wiring.process import (
    clock,
    completion_secret,
    generation,
    message_sender,
    once,
    queues,
    random_bytes,
    random_unit,
    settings,
    slices,
)
from duewheel.wiring.timers import (
    counters,
    disable_timer,
    running,
    timers,
    wake_waiting,
)
from duewheel.wiring.wheel import entry_writer, keep_order, keys, pages, tasks, tell_outcome, turns
from duewheel.workflows.delivery.attempt_call import AttemptCall
from duewheel.workflows.delivery.call_rate import LimitCallRate
from duewheel.workflows.delivery.call_secrets import CallSecrets
from duewheel.workflows.delivery.circuit_breaker import CircuitBreaker
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX, DeliverEntries
from duewheel.workflows.delivery.deliver_message import Deliver
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.delivery.gates import (
    ConcurrencyLimitGate,
    Gate,
    KeyPauseGate,
    OccurrenceGate,
    PauseGate,
    RateLimitGate,
)
from duewheel.workflows.delivery.hold import Beside, HideMessages, KeepHold
from duewheel.workflows.delivery.order_gate import OrderGate
from duewheel.workflows.delivery.park_tasks import WRITERS as PARKERS
from duewheel.workflows.delivery.park_tasks import Park, Release
from duewheel.workflows.delivery.permits import OWNER_BYTES, TakePermits
from duewheel.workflows.delivery.process_slots import ProcessSlots
from duewheel.workflows.delivery.settle_batch import Settler
from duewheel.workflows.delivery.slow_lane import DetectSlowCalls, SlowLane
from duewheel.workflows.gather_all import in_threads_of
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.change_task import CancelTask, ChangePendingTask
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.reschedule import WRITERS, Reschedule
from duewheel.workflows.timers.check_occurrences import WRITERS as ENDERS
from duewheel.workflows.timers.check_occurrences import CheckOccurrences
from duewheel.workflows.timers.keep_apart import KeepApart
from duewheel.workflows.timers.plan_occurrences import WRITERS as PLANNERS
from duewheel.workflows.timers.plan_occurrences import PlanTimers

T = TypeVar("T")

_threads = threading.local()


TOKEN_BYTES = 12
_HOLDS = 3  # of a run: two pages, and the messages


class Notifier:
    """One execution environment's event loop, connections and delivery."""

    def __init__(self) -> None:
        self.generation = generation()
        self.loop = asyncio.new_event_loop()
        keep_hold = KeepHold(clock(), in_threads_of(ThreadPoolExecutor(_HOLDS)))
        self.hide_messages = HideMessages(clock(), queues(), keep_hold)
        beside = in_threads_of(ThreadPoolExecutor(PARKED_SLOTS))
        self.deliver = deliver(keep_hold, beside, targets(), businesses_with_health())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)


def notifier() -> Notifier:
    wired: Notifier | None = getattr(_threads, "notifier", None)
    if wired is None or wired.generation != generation():
        wired = _threads.notifier = Notifier()
    return wired


def token_of_a_run() -> str:
    return secrets.token_bytes(TOKEN_BYTES).hex()


@once
def secrets_read() -> SecretsRead:
    return SecretsRead(secret_table())


@once
def retry_throttled() -> RetryThrottled:
    return RetryThrottled(clock(), random_unit())


@once
def order() -> KeepOrder:
    return keep_order(businesses_with_health())


@once
def fail_attempt() -> FailAttempt:
    return FailAttempt(
        clock=clock(),
        tasks=tasks(),
        keys=keys(),
        keep_order=order(),
        tell_outcome=tell_outcome(),
        entry_writer=entry_writer(),
        seen=seen_businesses(),
        random_unit=random_unit(),
    )


@once
def reschedule() -> Reschedule:
    return Reschedule(clock(), tasks(), entry_writer(), ThreadPoolExecutor(WRITERS))


@once
def parked() -> ParkedStore:
    return ParkedStore(tasks(), ThreadPoolExecutor(PARKED_SLOTS))


@once
def release() -> Release:
    """With separate writers, so that a release of many tasks does not slow down the pages."""
    return Release(
        clock=clock(),
        records=parking_records(),
        businesses=businesses(),
        parked=parked(),
        reschedule=Reschedule(clock(), tasks(), entry_writer(), ThreadPoolExecutor(WRITERS)),
        turns=turns(),
        message_sender=message_sender(),
        retry_throttled=retry_throttled(),
        lease_ms=settings().notifier_lives_ms,
    )


@once
def plan_timers() -> PlanTimers:
    return PlanTimers(
        clock=clock(),
        tasks=tasks(),
        timers=timers(),
        counters=counters(),
        known=businesses_with_health(),
        entry_writer=entry_writer(),
        reschedule=reschedule(),
        keep_order=order(),
        tell_outcome=tell_outcome(),
        disable_timer=disable_timer(businesses_with_health()),
        writers=ThreadPoolExecutor(PLANNERS),
    )


@once
def keep_apart() -> KeepApart:
    change_pending = ChangePendingTask(
        clock=clock(),
        tasks=tasks(),
        keys=keys(),
        keep_order=order(),
        entry_writer=entry_writer(),
        give_back=_give_back,
        run_left=lambda task: None,  # the one that takes its place waits for nothing
        lead_ms=settings().lead_ms,
        notifier_lives_ms=settings().notifier_lives_ms,
    )
    return KeepApart(
        clock=clock(),
        tasks=tasks(),
        running=running(),
        cancel_task=CancelTask(change_pending, businesses_with_health(), tell_outcome()),
        wake=wake_waiting(),
    )


@once
def check_occurrences() -> CheckOccurrences:
    return CheckOccurrences(
        clock=clock(),
        tasks=tasks(),
        timers=timers(),
        keep_apart=keep_apart(),
        counters=counters(),
        reschedule=reschedule(),
        keep_order=order(),
        tell_outcome=tell_outcome(),
        writers=ThreadPoolExecutor(ENDERS),
    )


def targets() -> Targets:
    """Belongs to one event loop, with its connections."""

    def calls_of(target: AwsTarget) -> AwsCalls:
        return AwsCalls(target, lambda: target_clients().of(target.client), clock())

    return Targets(
        http=HttpTarget(clock=clock(), allowed_private_cidrs=settings().allowed_private_cidrs),
        aws={target.name: calls_of(target) for target in AWS_TARGETS},
        secret=completion_secret,
    )


@once
def target_clients() -> TargetClients:
    # No attempt may take longer, even with a longer timeout of its own (see `settings.py`).
    return TargetClients(settings().notifier_timeout_seconds // 2, CALLS_AT_ONCE)


class _Gates(Struct, frozen=True):
    """In their order, and those that calls need besides."""

    all: tuple[Gate, ...]
    circuit_breaker: CircuitBreaker
    concurrency_limit: ConcurrencyLimitGate
    rate_limit: RateLimitGate


def _gates(known: BusinessCache) -> _Gates:
    retrying, rescheduling = retry_throttled(), reschedule()
    park = Park(clock(), tasks(), parked(), ThreadPoolExecutor(PARKERS))
    pause = PauseGate(
        clock=clock(), known=known, park=park, reschedule=rescheduling, retry_throttled=retrying
    )
    in_order = OrderGate(
        clock=clock(), keep_order=order(), reschedule=rescheduling, retry_throttled=retrying
    )
    circuit_breaker = CircuitBreaker(
        clock(),
        known,
        health_store(),
        rescheduling,
        retrying,
        random_unit=random_unit(),
        random_bytes=partial(random_bytes(), MARK_BYTES),
    )
    concurrency_limit = ConcurrencyLimitGate(
        clock=clock(),
        store=permits(),
        give_back_over=_give_back_over,
        reschedule=rescheduling,
        retry_throttled=retrying,
    )
    rate_limit = RateLimitGate(LimitCallRate(clock(), turns()), rescheduling, retrying)
    gates = (
        pause,
        OccurrenceGate(check_occurrences()),
        KeyPauseGate(pause),
        in_order,
        circuit_breaker,
        concurrency_limit,
        rate_limit,
    )
    return _Gates(gates, circuit_breaker, concurrency_limit, rate_limit)


def _deliver_entries(targets: Targets, known: BusinessCache, call_slots: int) -> DeliverEntries:
    """Belongs to one event loop, with its breakers and call slots."""
    gates = _gates(known)
    call_secrets = CallSecrets(secret_store(), businesses())
    attempt_call = AttemptCall(
        clock=clock(),
        gates=gates.all,
        call_slots=ProcessSlots(call_slots),
        targets=targets,
        secrets=call_secrets,
        circuit_breaker=gates.circuit_breaker,
        concurrency_limit=gates.concurrency_limit,
        rate_limit=gates.rate_limit,
        fail_attempt=fail_attempt(),
        reschedule=reschedule(),
        disable_timer=disable_timer(known),
        detect_slow_calls=DetectSlowCalls(
            clock=clock(), known=known, seen=seen_businesses(), health_store=health_store()
        ),
        hold_permits=_hold_permits,
        retry_throttled=retry_throttled(),
    )
    return DeliverEntries(
        clock=clock(),
        known=known,
        gates=gates.all,
        attempt_call=attempt_call,
        begin_settling=partial(
            Settler, tasks(), keys(), order(), tell_outcome(), retry_throttled(), known
        ),
        secrets=call_secrets,
        take_permits=TakePermits(
            clock=clock(),
            known=known,
            store=permits(),
            random_bytes=partial(random_bytes(), OWNER_BYTES),
        ),
        fail_attempt=fail_attempt(),
        plan_timers=plan_timers(),
        check=check_occurrences(),
        lapse=partial(_lapse, known),
        retry_throttled=retry_throttled(),
    )


def _hold_permits(task: Task) -> None:
    from duewheel.wiring.long_work import work_permits  # only where some work goes on

    work_permits().hold(task)


def _give_back(task: Task) -> None:
    from duewheel.wiring.long_work import work_permits

    work_permits().give_back(task)


def _give_back_over(scope: str, seen: Permits) -> Permits:
    from duewheel.wiring.long_work import work_permits

    return work_permits().give_back_over(scope, seen)


def _lapse(known: BusinessCache, entry: Address, task: Task) -> None:
    from duewheel.wiring.long_work import end_work

    end_work(fail_attempt(), known).lapse(entry, task)


def deliver(
    keep_hold: KeepHold,
    beside: Beside,
    targets: Targets,
    known: BusinessCache,
    call_slots: int = CALLS_IN_FLIGHT_MAX,
) -> Deliver:
    config = settings()
    return Deliver(
        clock=clock(),
        tasks=tasks(),
        slices=slices(),
        pages=pages(),
        message_sender=message_sender(),
        retry_throttled=retry_throttled(),
        keep_hold=keep_hold,
        deliver_entries=_deliver_entries(targets, known, call_slots),
        release=release(),
        beside=beside,
        slow_lane=SlowLane(
            clock=clock(),
            known=known,
            pages=pages(),
            message_sender=message_sender(),
            page_lease_ms=config.notifier_lives_ms,
        ),
        lead_ms=config.lead_ms,
        page_size=config.page_size,
        page_lease_ms=config.page_lease_ms,
    )
