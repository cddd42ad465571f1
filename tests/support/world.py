"""The whole service wired by hand on moto, one step at a time: what a workflow test drives."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from functools import cached_property
from itertools import count
from types import SimpleNamespace
from typing import Any

import boto3
from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.delivery.page_lease import HIDDEN_MS, Finished, Held
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Refusal
from duewheel.rules.sweep.resends import Unbegun
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.timers.withdrawal import Claims
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.lane import Lane
from duewheel.rules.wheel.leader_election import Pointer
from duewheel.rules.wheel.open_places import first_open_second
from duewheel.rules.wheel.queue_messages import ReleaseMessage, decode, texts_of_event
from duewheel.settings import Settings, settings_from
from duewheel.stores.aws_clients import AwsTime, TargetClients, retry_conflicts
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.health import HealthStore
from duewheel.stores.businesses.parking_state import ParkingRecords
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.businesses.signing_secrets import SealedSecrets
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.delivery.parked_items import ParkedStore
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.sweep.audit_reads import AuditStore
from duewheel.stores.sweep.minute_statistics import StatisticsStore
from duewheel.stores.sweep.slices import SliceStore
from duewheel.stores.tasks import codec
from duewheel.stores.tasks.by_business_index import ListIndex
from duewheel.stores.tasks.idempotency_records import RequestRecords
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.by_timer_index import RunIndex
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.last_started import RunningStore
from duewheel.stores.timers.planned_occurrences import PlannedRuns
from duewheel.stores.timers.timers import TimerStore
from duewheel.stores.wheel import pointers
from duewheel.stores.wheel.async_invoke import InvokeFallback
from duewheel.stores.wheel.headers import HeaderStore, ShardsCache
from duewheel.stores.wheel.load_estimates import LoadStore
from duewheel.stores.wheel.page_queue import SliceQueue
from duewheel.stores.wheel.pointers import PointerStore, TimePointerCache
from duewheel.targets.aws.calls import AwsCalls
from duewheel.targets.aws.eventbridge import EventBridgeTarget
from duewheel.targets.aws.lambda_function import LambdaTarget
from duewheel.targets.aws.sns import SnsTarget
from duewheel.targets.aws.sqs import SqsTarget
from duewheel.targets.by_type import Targets
from duewheel.workflows.businesses.configure import ConfigureBusiness, Pausing
from duewheel.workflows.businesses.limit_create_rate import LimitCreateRate
from duewheel.workflows.delivery.circuit_breaker import CircuitBreaker
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX, DeliverEntries
from duewheel.workflows.delivery.deliver_message import Deliver
from duewheel.workflows.delivery.detect_slow_calls import DetectSlowCalls
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.delivery.hold import FAILED_COMES_AFTER_SECONDS, KeepHold
from duewheel.workflows.delivery.limit_call_rate import LimitCallRate
from duewheel.workflows.delivery.park_tasks import Park
from duewheel.workflows.delivery.refresh_settings import RefreshSettings
from duewheel.workflows.delivery.release_parked import Release
from duewheel.workflows.delivery.route_slow_lane import SlowLane
from duewheel.workflows.delivery.send_releases import SendReleases
from duewheel.workflows.delivery.settle_batch import Settle
from duewheel.workflows.history.read_changes import ReadChanges
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.sweep.audit import Audit
from duewheel.workflows.sweep.delete_business import DeleteBusiness
from duewheel.workflows.sweep.read_second import ReadSecond
from duewheel.workflows.sweep.read_statistics import ReadStatistics
from duewheel.workflows.sweep.record_statistics import RecordStatistics
from duewheel.workflows.sweep.rescue import Rescue
from duewheel.workflows.sweep.run_sweep import Sweep
from duewheel.workflows.sweep.sweep_second import PostponePage, SweepSecond, SweptSecond
from duewheel.workflows.tasks.change_task import CancelTask, ChangePendingTask, ChangeTask
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.create_batch import CreateBatch
from duewheel.workflows.tasks.create_idempotent import CreateIdempotent
from duewheel.workflows.tasks.create_tasks import CreateTasks
from duewheel.workflows.tasks.dead_tasks import RedriveTask
from duewheel.workflows.tasks.keyed_tasks import KeyedTasks
from duewheel.workflows.tasks.list_tasks import ListTasks
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.timers.change_timer import ChangeTimer, RunTimer, StopTimer
from duewheel.workflows.timers.check_occurrences import CheckOccurrences
from duewheel.workflows.timers.create_timer import CreateTimer
from duewheel.workflows.timers.plan_occurrences import PlanTimers
from duewheel.workflows.timers.planning_chain import PlanningChain
from duewheel.workflows.timers.withdraw_occurrences import WithdrawOccurrences
from duewheel.workflows.wheel.dispatch import Dispatch
from duewheel.workflows.wheel.read_status import ReadWheel
from duewheel.workflows.wheel.reserve_shards import ReserveShards
from duewheel.workflows.wheel.run_leader import Lead
from duewheel.workflows.wheel.send_messages import MessageSender
from local.aws.emulator import Emulator
from local.aws.invocations import RETRY_AFTER_MS, Invocation
from local.aws.resources import Resources
from tests.support.clock import ManualClock
from tests.support.receiver import Receiver
from tests.support.recorder import Call, Recorder

LAMBDA_MS = 60_000
CALLER = "arn:aws:iam::123456789012:user/owner"


class World:
    """One of each workflow on shared stores. `recorder` sees every AWS call they make."""

    def __init__(self, emulator: Emulator, resources: Resources, clock: ManualClock) -> None:
        self.emulator = emulator
        self.clock = clock
        self.settings: Settings = settings_from(resources.environment("api"))
        self.recorder = Recorder(known=self._nothing_in_an_empty_slot)
        self.receiver = Receiver(clock)
        self.dynamodb = boto3.client("dynamodb")
        self.sqs = boto3.client("sqs")
        self.aws_time = AwsTime()
        self._seen(self.dynamodb)
        retry_conflicts(self.dynamodb)
        self._seen(self.sqs)
        self.invocations: list[Invocation] = []  # asynchronous ones, accepted and not begun
        emulator.accept_invocation = self._accept
        self._numbers = count(1)
        self._target_clients = TargetClients(seconds_max=30, calls_at_once=10)
        self.random_unit = 0.999  # what decides whether an entry is noted, and its header looked at
        self.chance = 0.5  # of all else that is left to it
        self.loop = asyncio.new_event_loop()
        self._pool = ThreadPoolExecutor(4)
        self.wire()

    def _seen(self, client: Any) -> Any:
        self.recorder.attach(client)
        self.aws_time.observe(client)
        return client

    @cached_property
    def unrecorded(self) -> Any:
        return boto3.client("dynamodb")

    @cached_property
    def invoker(self) -> Any:
        return self._seen(boto3.client("lambda"))

    def wire(self, **changed: Any) -> None:
        """Build all workflows anew, with settings changed."""
        self.settings = replace(self.settings, **changed)
        config, clock = self.settings, self.clock
        self.pointers = PointerStore(self.dynamodb, config.registry_table)
        self.origin = self.pointers.origin(config.buckets, clock.now_ms())
        self.tasks = TaskStore(
            self.dynamodb, clock, config.wheel_table, config.buckets, config.list_index
        )
        self.slices = SliceStore(self.dynamodb, config.wheel_table, config.buckets)
        self.pages = PageLeaseStore(self.dynamodb, clock, config.wheel_table, config.buckets)
        self.queue = SliceQueue(self.sqs, config.slice_queue_url)
        invoke_fallback = InvokeFallback(lambda: self.invoker, config.notifier_function)
        self.slow_queue = SliceQueue(self.sqs, config.slow_queue_url)
        self.queues = {Lane.MAIN: self.queue, Lane.SLOW: self.slow_queue}
        self.message_sender = MessageSender(self.queues, invoke_fallback)
        self.loads = LoadStore(self.dynamodb, config.registry_table)
        self.headers = HeaderStore(self.dynamodb, clock, config.wheel_table, config.buckets)
        self.reserve_shards = ReserveShards(
            self.loads, self.headers, ShardsCache(clock), lambda: self.random_unit
        )
        self.entry_writer = EntryWriter(
            clock,
            self.tasks,
            self.message_sender,
            self._random_bytes,
            TimePointerCache(self.pointers, clock, self.origin),
            lambda: self.aws_time.latest_ms,
            self.reserve_shards,
            config.lead_ms,
            config.profile.ahead_ms,
        )
        self.businesses = BusinessStore(
            self.dynamodb, clock, config.registry_table, config.business_defaults
        )
        self.business_cache = BusinessCache(self.businesses, clock)
        self.in_standing = BusinessCache(replace(self.businesses, reads_standing=True), clock)
        self.health_store = HealthStore(self.dynamodb, config.registry_table)
        self.sealed_secrets = SealedSecrets(lambda: boto3.client("kms"), config.signing_key)
        self.parking_records = ParkingRecords(self.dynamodb, clock, config.registry_table)
        self.pausing = Pausing(
            self.parking_records, self.message_sender, lambda: f"pause-{next(self._numbers)}"
        )
        self.configure_business = ConfigureBusiness(
            clock, self.businesses, self.business_cache, self.sealed_secrets, self.pausing
        )
        self.send_releases = SendReleases(
            self.parking_records, self.businesses, self.message_sender
        )
        self.turns = RateLimitStore(self.dynamodb, config.registry_table)
        self.admission = Admission(self.business_cache, LimitCreateRate(clock, self.turns))
        self.create = CreateTasks(self.tasks, self.entry_writer, self.admission)
        self.keys = KeyStore(self.tasks)
        self.change_pending = ChangePendingTask(
            clock,
            self.tasks,
            self.keys,
            self.entry_writer,
            config.lead_ms,
            config.notifier_lives_ms,
        )
        self.cancel = CancelTask(self.change_pending, self.business_cache)
        self.change = ChangeTask(self.change_pending, self.admission)
        self.keyed = KeyedTasks(self.keys, self.create, self.change_pending, self.cancel)
        self.create_batch = CreateBatch(self.create, self.keyed, ThreadPoolExecutor(4))
        self.create_idempotent = CreateIdempotent(
            RequestRecords(self.dynamodb, config.registry_table),
            self.tasks,
            self.create_batch,
            self.entry_writer,
            lambda: f"claim-{next(self._numbers)}",
        )
        self.redrive = RedriveTask(clock, self.tasks, self.keys, self.entry_writer)
        self.list_tasks = ListTasks(
            clock,
            ListIndex(self.dynamodb, config.wheel_table, config.buckets),
            self.tasks,
            ThreadPoolExecutor(4),
            b"cursors are sealed with this",
            config.list_index,
        )
        self.audit = Audit(
            clock,
            self.pointers,
            self.origin,
            AuditStore(self.tasks, self.parking_records),
            ThreadPoolExecutor(4),
            b"cursors are sealed with this",
        )
        self.read_wheel = ReadWheel(
            clock,
            self.pointers,
            self.loads,
            self.origin,
            config.buckets,
            config.profile,
        )
        self.dispatch = Dispatch(
            clock,
            self.slices,
            self.message_sender,
            lambda: self.aws_time.latest_ms,
            config.lead_ms,
            ThreadPoolExecutor(4),
        )
        self.lead = Lead(clock, self.pointers, self.dispatch, self.origin, config.profile)
        self.read_second = ReadSecond(self.slices, self.tasks)
        self.sweep_second = SweepSecond(
            clock,
            self.read_second,
            self.tasks,
            self.pages,
            self.message_sender,
            Rescue(clock, self.tasks, self.entry_writer, self._pool),
            PostponePage(
                clock,
                self.tasks,
                self.pages,
                Reschedule(clock, self.tasks, self.entry_writer, self._pool),
            ),
            config.page_size,
        )
        self.statistics = StatisticsStore(self.dynamodb, clock, config.registry_table)
        self.read_statistics = ReadStatistics(
            clock,
            self.pointers,
            self.origin,
            self.read_second,
            self.statistics,
            ThreadPoolExecutor(4),
        )
        self.record_statistics = RecordStatistics(
            clock, self.statistics, self.tasks, ThreadPoolExecutor(4)
        )
        self.sweep = Sweep(
            clock,
            self.pointers,
            self.sweep_second,
            self.record_statistics,
            self.headers,
            self.origin,
            config.sweep_delay_seconds * 1000,
            lambda: self.aws_time.latest_ms,
        )
        self._wire_timers()
        self.deliver = self.notifier()

    def _wire_timers(self) -> None:
        config = self.settings
        self.timers = TimerStore(self.dynamodb, self.clock, config.registry_table)
        self.counters = CounterStore(self.dynamodb, config.registry_table)
        self.runs = RunIndex(self.dynamodb, config.wheel_table)
        chain = PlanningChain(self.clock, self.tasks, self.entry_writer)
        self.create_timer = CreateTimer(
            self.clock, self.timers, chain, self.business_cache, lambda: next(self._numbers)
        )
        self.change_timer = ChangeTimer(self.clock, self.timers, chain, self.business_cache)
        self.delete_business = DeleteBusiness(
            self.businesses,
            self.business_cache,
            self.list_tasks,
            self.cancel,
            b"cursors are sealed with this",
            self.pausing,
            self.timers,
            self.change_timer,
        )
        records = ChangeRecords(self.dynamodb, config.registry_table)
        self.read_changes = ReadChanges(self.clock, records, self.businesses, self.timers)
        self.run_timer = RunTimer(self.timers, self.tasks, self.entry_writer)
        chain = PlanningChain(self.clock, self.tasks, self.entry_writer)
        self.create_timer = CreateTimer(
            self.clock, self.timers, chain, self.business_cache, lambda: next(self._numbers)
        )
        self.change_timer = ChangeTimer(self.clock, self.timers, chain, self.business_cache)

    def notifier(
        self, call_slots: int = CALLS_IN_FLIGHT_MAX, known: BusinessCache | None = None
    ) -> Deliver:
        """`known`: what a process of its own knows."""
        config = self.settings
        fail_attempt = FailAttempt(
            self.clock, self.tasks, self.keys, self.entry_writer, lambda: 1.0
        )
        reschedule = Reschedule(self.clock, self.tasks, self.entry_writer, self._pool)
        parked = ParkedStore(self.tasks, self._pool)
        retry_throttled = RetryThrottled(self.clock, lambda: self.chance)
        park = Park(self.clock, self.tasks, parked, self._pool)
        take_back = WithdrawOccurrences(
            self.clock,
            PlannedRuns(self.tasks),
            self.pages,
            self.timers,
            self.counters,
            RunIndex(self.dynamodb, config.wheel_table),
            self.entry_writer,
            Claims(),
        )
        deliver_entries = DeliverEntries(
            self.clock,
            Targets(
                http=self.receiver,  # type: ignore[arg-type]
                lambda_function=LambdaTarget(self._calls_of("lambda")),
                sqs=SqsTarget(self._calls_of("sqs")),
                sns=SnsTarget(self._calls_of("sns")),
                eventbridge=EventBridgeTarget(self._calls_of("events")),
            ),
            Settle(self.tasks, self.keys, retry_throttled),
            fail_attempt,
            retry_throttled,
            asyncio.Semaphore(call_slots),
            known or self.in_standing,
            LimitCallRate(self.clock, self.turns),
            reschedule,
            self.sealed_secrets,
            park,
            RefreshSettings(
                self.clock, known or self.in_standing, park, reschedule, retry_throttled
            ),
            CircuitBreaker(
                self.clock,
                known or self.in_standing,
                self.health_store,
                reschedule,
                lambda: self.chance,
                self._random_bytes,
            ),
            DetectSlowCalls(self.clock, known or self.in_standing, self.health_store),
            PlanTimers(
                self.clock,
                self.tasks,
                self.timers,
                self.counters,
                known or self.in_standing,
                self.entry_writer,
                reschedule,
                take_back,
                self._pool,
            ),
            CheckOccurrences(
                self.clock,
                self.tasks,
                self.timers,
                RunningStore(self.dynamodb, self.clock, config.registry_table),
                self.counters,
                reschedule,
                take_back,
                self._pool,
            ),
            StopTimer(self.change_timer),
        )
        self.release = Release(
            self.clock,
            self.parking_records,
            self.businesses,
            parked,
            reschedule,
            self.turns,
            self.message_sender,
            retry_throttled,
            config.notifier_lives_ms,
        )
        return Deliver(
            self.clock,
            self.tasks,
            self.slices,
            self.pages,
            self.message_sender,
            retry_throttled,
            KeepHold(self.clock, asyncio.to_thread),
            deliver_entries,
            self.release,
            asyncio.to_thread,
            SlowLane(
                self.clock,
                self.in_standing,
                self.pages,
                self.message_sender,
                config.notifier_lives_ms,
            ),
            config.lead_ms,
            config.page_size,
            config.page_lease_ms,
        )

    def _calls_of(self, service: str) -> AwsCalls:
        return AwsCalls(lambda: self._target_clients.of(service), self.clock)

    # Steps of a story

    def new(self, in_ms: int = 60_000, **fields: Any) -> NewTask:
        values: dict[str, Any] = {
            "biz_type": "orders",
            "due_ms": self.clock.now_ms() + in_ms,
            "callback": HttpCallback("https://receiver.example/paid", method=""),
            "payload": '{"order": 17}',
            **fields,
        }
        return NewTask(**values)

    def created(self, in_ms: int = 60_000, **fields: Any) -> Task:
        task = self.create.placed(self.new(in_ms, **fields))
        self.create.one(task)
        return task

    def configured(self, biz_type: str, **change: Any) -> Business:
        return self.configure_business(biz_type, change, Precondition(), by=CALLER)

    def created_many(self, news: Iterable[NewTask]) -> list[Task | Refusal]:
        return self.create.many(self.create.all_placed(list(news)))

    def created_by_key(self, new: NewTask) -> Made:
        return self.keyed.create(self.create.placed(new))

    def read(self, task: Task) -> Task:
        found = self.tasks.get(task.home)
        assert found is not None
        return found

    def dispatch_until(self, second: int) -> None:
        """Move the clock to this second and let a scheduler lead up to it."""
        self.clock.set_ms(max(self.clock.now_ms(), second * 1000))
        self.lead_once()

    def lead_once(self, me: str | None = None, turns: int = 1) -> None:
        """A scheduler that finds time for as many ticks as it needs to catch up, then stops."""
        while True:
            before = self.pointer().position
            self.lead.run(me or f"scheduler-{next(self._numbers)}", time_for(turns))
            if self.pointer().position in (before, self.clock.now_ms() // 1000):
                return

    def pointer(self, name: str = pointers.TIME) -> Pointer:
        return self.pointers.read(name, self.origin)

    def receive(self, lane: Lane = Lane.MAIN) -> list[dict[str, Any]]:
        """Messages that are visible now, hidden from others as a poller would."""
        answer = self.sqs.receive_message(
            QueueUrl=self.queues[lane].url, MaxNumberOfMessages=10, WaitTimeSeconds=0
        )
        return list(answer.get("Messages", []))

    def handle(
        self, message: dict[str, Any], deliver: Deliver | None = None, lambda_ms: int = LAMBDA_MS
    ) -> Held | Finished:
        """What one notifier does with one message; deleted only if it says it is done."""
        decoded = decode(message["Body"])
        queue = self.queues[decoded.lane]
        if not isinstance(decoded, ReleaseMessage):
            self._hide(queue, message, HIDDEN_MS // 1000)
        run = (deliver or self.deliver)(
            decoded,
            f"notifier-{next(self._numbers)}",
            self.clock.now_ms() + lambda_ms,
        )
        try:
            result = self.loop.run_until_complete(run)
        except Exception:
            self._hide(queue, message, FAILED_COMES_AFTER_SECONDS)
            raise
        if isinstance(result, Finished):
            self.sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])
        else:
            seconds = (result.until_ms - self.clock.now_ms()) // 1000 + 1
            queue.hide(message["ReceiptHandle"], seconds)
        return result

    def _hide(self, queue: SliceQueue, message: dict[str, Any], seconds: int) -> None:
        """Where SQS refuses, it stays hidden for as long as its queue says."""
        queue.hide_all([message["ReceiptHandle"]], seconds)

    def drain(self, *lanes: Lane) -> None:
        """Let notifiers work off all messages that are visible now, and what came past SQS."""
        while messages := [m for lane in self._occupied(lanes) for m in self.receive(lane)]:
            for message in messages:
                self.handle(message)
            self.drain_invocations()
        self.drain_invocations()

    def _occupied(self, lanes: tuple[Lane, ...]) -> list[Lane]:
        """The slow one is only looked at when something is in it."""
        is_slow_one_empty = not self.emulator.messages_visible_at_ms(self.slow_queue.url)
        lanes = lanes or tuple(Lane)
        return [lane for lane in lanes if lane is Lane.MAIN or not is_slow_one_empty]

    def drain_invocations(self) -> None:
        while due := [one for one in self.invocations if one.due_ms <= self.clock.now_ms()]:
            self.invocations = [one for one in self.invocations if one not in due]
            for invocation in due:
                self.carry_out(invocation)

    def carry_out(self, invocation: Invocation, lambda_ms: int = LAMBDA_MS) -> bool:
        """What Lambda does with one asynchronous invocation; what is left of it is tried again
        as a whole, a minute and then two later. True when nothing is left."""
        deadline_ms = self.clock.now_ms() + lambda_ms
        texts = texts_of_event(invocation.event)
        assert texts is not None
        work = [
            self.deliver(decode(text), f"notifier-{next(self._numbers)}", deadline_ms)
            for number, text in enumerate(texts)
        ]
        results = self.loop.run_until_complete(_all_of(work))
        if all(isinstance(result, Finished) for result in results):
            return True
        if invocation.tries < len(RETRY_AFTER_MS):
            due_ms = self.clock.now_ms() + RETRY_AFTER_MS[invocation.tries]
            again = dataclasses.replace(invocation, due_ms=due_ms, tries=invocation.tries + 1)
            self.invocations.append(again)
        return False

    def _accept(self, invocation: Invocation) -> None:
        self.invocations.append(dataclasses.replace(invocation, due_ms=self.clock.now_ms()))

    def sweep_once(self) -> None:
        self.sweep.run(f"sweeper-{next(self._numbers)}", lambda: 1_000_000)
        self.send_releases()

    def sweep_second_once(self, second: int) -> bool:
        """Look at this one second as if nothing else were open, send again what was lost in it, and
        book it if it is finished."""
        swept, is_finished = SweptSecond(second), True
        asked: list[Unbegun] = []
        for part in self.read_second(second):
            swept.add(part)
            reached = part.shard

            def is_open(entry: Address) -> bool:
                return entry.second == second and entry.shard >= reached  # noqa: B023

            is_finished &= self.sweep_second.finish(part, second, is_open, asked) is None
        for page in asked:
            self.sweep_second.send_again(page)
        if is_finished:
            self.record_statistics([swept], second)
        return is_finished

    @property
    def swept_second(self) -> int:
        """Up to which the sweep has finished everything."""
        sweep = self.pointer(pointers.SWEEP)
        return first_open_second(sweep.open_places, sweep.position) - 1

    def sweep_past(self, second: int) -> None:
        """Let a minute pass at a time, sweeping and delivering, until the sweep has finished."""
        for _ in range(100):
            if self.swept_second >= second:
                return
            self.dispatch_until(self.clock.now_ms() // 1000 + 60)
            self.drain()
            self.sweep_once()
            self.drain()
        raise AssertionError(f"the sweep never finished {second}")

    def messages_waiting(self) -> int:
        return len(self.emulator.messages_visible_at_ms(self.settings.slice_queue_url))

    def items(self) -> list[dict[str, Any]]:
        """All that stands in the wheel, read past the recorder."""
        scan = self.unrecorded.get_paginator("scan")
        pages = scan.paginate(TableName=self.settings.wheel_table)
        return [item for page in pages for item in page["Items"]]

    def entries_elsewhere(self) -> list[Address]:
        """All re-entries that still stand in the wheel."""
        return [codec.address_of(item) for item in self.items() if "home" in item]

    def _nothing_in_an_empty_slot(self, call: Call) -> dict[str, Any] | None:
        """Most seconds are empty, and passing them one by one is most of what the workflows do:
        a query of a slot in which nothing has ever stood is answered without asking moto, and
        with the time as moto would answer it."""
        table = self.settings.wheel_table
        is_of_wheel = call.request.get("TableName") == table
        if call.operation != "Query" or not is_of_wheel or "IndexName" in call.request:
            return None
        slot = call.request["ExpressionAttributeValues"][":slot"]["S"]
        if self.emulator.has_partition(table, slot):
            return None
        date = formatdate(self.clock.now_ms() // 1000, usegmt=True)
        self.aws_time._take_date(SimpleNamespace(headers={"date": date}))
        return {"Items": []}

    def _random_bytes(self) -> bytes:
        return next(self._numbers).to_bytes(8, "big")


async def _all_of(work: list[Any]) -> list[Any]:
    return await asyncio.gather(*work, return_exceptions=True)


def time_for(turns: int) -> Callable[[], int]:
    """The remaining time of an invocation that ends after so many looks at it."""
    left = iter([1_000_000] * turns)
    return lambda: next(left, 0)
