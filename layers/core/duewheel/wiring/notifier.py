"""What the notifier runs on.

It is wired once per thread, since an event loop and its connections belong to one: in AWS a
process has one thread, on one machine a thread plays the environment.
"""

import asyncio
import random
import secrets
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msgspec.structs import replace

from duewheel.rules.timers.withdrawal import Claims
from duewheel.rules.wheel.addresses import PARKED_SLOTS
from duewheel.settings import Settings
from duewheel.stores.aws_clients import TargetClients
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.health import HealthStore
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.delivery.parked_items import ParkedStore
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.last_started import RunningStore
from duewheel.stores.timers.planned_occurrences import PlannedRuns
from duewheel.targets.aws.calls import CALLS_AT_ONCE, AwsCalls
from duewheel.targets.aws.eventbridge import EventBridgeTarget
from duewheel.targets.aws.lambda_function import LambdaTarget
from duewheel.targets.aws.sns import SnsTarget
from duewheel.targets.aws.sqs import SqsTarget
from duewheel.targets.by_type import Targets
from duewheel.targets.http.target import HttpTarget
from duewheel.wiring.businesses import businesses, parking_records, sealed_secrets
from duewheel.wiring.process import (
    clock,
    dynamodb,
    generation,
    message_sender,
    once,
    queues,
    settings,
    slices,
)
from duewheel.wiring.timers import run_index, timers
from duewheel.wiring.wheel import entry_writer, keys, pages, tasks
from duewheel.workflows.delivery.circuit_breaker import MARK_BYTES, CircuitBreaker
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX, DeliverEntries
from duewheel.workflows.delivery.deliver_message import Deliver
from duewheel.workflows.delivery.detect_slow_calls import DetectSlowCalls
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.delivery.hold import HideMessages, KeepHold
from duewheel.workflows.delivery.limit_call_rate import LimitCallRate
from duewheel.workflows.delivery.park_tasks import WRITERS as PARKERS
from duewheel.workflows.delivery.park_tasks import Park
from duewheel.workflows.delivery.refresh_settings import RefreshSettings
from duewheel.workflows.delivery.release_parked import Release
from duewheel.workflows.delivery.route_slow_lane import SlowLane
from duewheel.workflows.delivery.settle_batch import Settle
from duewheel.workflows.gather_all import in_threads_of
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import WRITERS, Reschedule
from duewheel.workflows.timers.change_timer import ChangeTimer, StopTimer
from duewheel.workflows.timers.check_occurrences import WRITERS as ENDERS
from duewheel.workflows.timers.check_occurrences import CheckOccurrences
from duewheel.workflows.timers.plan_occurrences import WRITERS as PLANNERS
from duewheel.workflows.timers.plan_occurrences import PlanTimers
from duewheel.workflows.timers.planning_chain import PlanningChain
from duewheel.workflows.timers.withdraw_occurrences import WithdrawOccurrences

T = TypeVar("T")

_threads = threading.local()


TOKEN_BYTES = 12
_HOLDS = 3  # of a run: two pages, and the messages


class Notifier:
    """One execution environment's event loop, connections and delivery."""

    def __init__(self) -> None:
        self.generation = generation()
        self._loop = asyncio.new_event_loop()
        keep_hold = KeepHold(clock(), in_threads_of(ThreadPoolExecutor(_HOLDS)))
        self.hide_messages = HideMessages(clock(), queues(), keep_hold)
        self.deliver = _deliver(keep_hold)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


def notifier() -> Notifier:
    wired: Notifier | None = getattr(_threads, "notifier", None)
    if wired is None or wired.generation != generation():
        wired = _threads.notifier = Notifier()
    return wired


def token_of_a_run() -> str:
    return secrets.token_bytes(TOKEN_BYTES).hex()


def _deliver(keep_hold: KeepHold) -> Deliver:
    config = settings()
    fail_attempt = FailAttempt(clock(), tasks(), keys(), entry_writer(), random.random)
    turns = RateLimitStore(dynamodb(), config.registry_table)
    reschedule = Reschedule(clock(), tasks(), entry_writer(), ThreadPoolExecutor(WRITERS))
    parked = ParkedStore(tasks(), ThreadPoolExecutor(PARKED_SLOTS))
    retry_throttled = RetryThrottled(clock(), random.random)
    park = Park(clock(), tasks(), parked, ThreadPoolExecutor(PARKERS))
    deliver_entries = DeliverEntries(
        clock(),
        _targets(config),
        Settle(tasks(), keys(), retry_throttled),
        fail_attempt,
        retry_throttled,
        asyncio.Semaphore(CALLS_IN_FLIGHT_MAX),
        businesses_with_health(),
        LimitCallRate(clock(), turns),
        reschedule,
        sealed_secrets(),
        park,
        RefreshSettings(clock(), businesses_with_health(), park, reschedule, retry_throttled),
        _circuit_breaker(config, reschedule),
        DetectSlowCalls(
            clock(), businesses_with_health(), HealthStore(dynamodb(), config.registry_table)
        ),
        *_of_timers(config, reschedule),
    )
    release = Release(
        clock(),
        parking_records(),
        businesses(),
        parked,
        Reschedule(clock(), tasks(), entry_writer(), ThreadPoolExecutor(WRITERS)),
        turns,
        message_sender(),
        retry_throttled,
        config.notifier_lives_ms,
    )
    return Deliver(
        clock(),
        tasks(),
        slices(),
        pages(),
        message_sender(),
        retry_throttled,
        keep_hold,
        deliver_entries,
        release,
        in_threads_of(ThreadPoolExecutor(PARKED_SLOTS)),
        SlowLane(
            clock(), businesses_with_health(), pages(), message_sender(), config.notifier_lives_ms
        ),
        config.lead_ms,
        config.page_size,
        config.page_lease_ms,
    )


def _of_timers(
    config: Settings, reschedule: Reschedule
) -> tuple[PlanTimers, CheckOccurrences, StopTimer]:
    counters = CounterStore(dynamodb(), config.registry_table)
    take_back = WithdrawOccurrences(
        clock(),
        PlannedRuns(tasks()),
        pages(),
        timers(),
        counters,
        run_index(),
        entry_writer(),
        Claims(),
    )
    plan_timers = PlanTimers(
        clock(),
        tasks(),
        timers(),
        counters,
        businesses_with_health(),
        entry_writer(),
        reschedule,
        take_back,
        ThreadPoolExecutor(PLANNERS),
    )
    check_occurrences = CheckOccurrences(
        clock(),
        tasks(),
        timers(),
        RunningStore(dynamodb(), clock(), config.registry_table),
        counters,
        reschedule,
        take_back,
        ThreadPoolExecutor(ENDERS),
    )
    chain_timer = PlanningChain(clock(), tasks(), entry_writer())
    change_timer = ChangeTimer(clock(), timers(), chain_timer, businesses_with_health())
    return plan_timers, check_occurrences, StopTimer(change_timer)


def _circuit_breaker(config: Settings, reschedule: Reschedule) -> CircuitBreaker:
    return CircuitBreaker(
        clock(),
        businesses_with_health(),
        HealthStore(dynamodb(), config.registry_table),
        reschedule,
        random_unit=random.random,
        random_bytes=lambda: secrets.token_bytes(MARK_BYTES),
    )


def _targets(config: Settings) -> Targets:
    def calls_of(service: str) -> AwsCalls:
        return AwsCalls(lambda: target_clients().of(service), clock())

    return Targets(
        http=HttpTarget(clock=clock(), allowed_private_cidrs=config.allowed_private_cidrs),
        lambda_function=LambdaTarget(calls_of("lambda")),
        sqs=SqsTarget(calls_of("sqs")),
        sns=SnsTarget(calls_of("sns")),
        eventbridge=EventBridgeTarget(calls_of("events")),
    )


@once
def businesses_with_health() -> BusinessCache:
    """Those who call know, beside its settings, how a business stands."""
    return BusinessCache(replace(businesses(), reads_standing=True), clock())


@once
def target_clients() -> TargetClients:
    # No attempt may take longer, whatever its own timeout is (see `settings.py`).
    return TargetClients(settings().notifier_timeout_seconds // 2, CALLS_AT_ONCE)
