"""The service on moto, one step at a time, for tests of workflows."""

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from email.utils import formatdate
from functools import cached_property
from itertools import count
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from duewheel.clock import SystemClock
from duewheel.metrics import counts
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.delivery.page_lease import HIDDEN_MS, LeaseHeld, PageFinished
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Refusal
from duewheel.rules.sweep.resends import Unbegun
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.leader_election import Pointer
from duewheel.rules.wheel.open_places import first_open_second
from duewheel.rules.wheel.queue_messages import Lane, ReleaseMessage, decode, texts_of_event
from duewheel.settings import Settings, settings_from
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.tasks import codec
from duewheel.stores.wheel.page_queue import SliceQueue
from duewheel.stores.wheel.pointers import SWEEP, TIME
from duewheel.stores.wheel.sharding import HeaderCache
from duewheel.wiring import (
    api,
    bulk,
    changing,
    creating,
    notifier,
    open_operations,
    process,
    scheduler,
    sweeper,
    wheel,
)
from duewheel.wiring import businesses as wired_businesses
from duewheel.wiring import timers as wired_timers
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX
from duewheel.workflows.delivery.deliver_message import Deliver
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.delivery.hold import FAILED_COMES_AFTER_SECONDS, KeepHold
from duewheel.workflows.sweep.sweep_second import SweptSecond
from duewheel.workflows.tasks.write_entries import ReserveShards
from duewheel.workflows.timers.create_timer import CreateTimer
from local.aws.emulator import Emulator
from local.aws.invocations import RETRY_AFTER_MS, Invocation
from local.aws.resources import Resources
from tests.support import clients
from tests.support.clock import ManualClock
from tests.support.receiver import Receiver
from tests.support.recorder import Call, Death, Recorder

LAMBDA_MS = 60_000
FAR_MS = 200_000  # further than a scheduler dispatches: its writer announces no page
T = TypeVar("T")
CALLER = "arn:aws:iam::123456789012:user/owner"


class Part(Generic[T]):
    """A part of the production wiring, built when a test first uses it."""

    def __init__(self, part: Callable[[], T]) -> None:
        self._part = part

    def __get__(self, world: "World", owner: type["World"]) -> T:
        return self._part()


class World:
    """The production wiring on a manual clock. `recorder` records every AWS call, and `receiver`
    every HTTP callback; random values are fixed."""

    admission = Part(creating.admission)
    audit = Part(api.audit)
    business_cache = Part(wired_businesses.business_cache)
    businesses = Part(wired_businesses.businesses)
    callback_now = Part(api.callback_now)
    cancel = Part(creating.cancel_task)
    change = Part(changing.change_task)
    change_pending = Part(creating.change_pending)
    change_timer = Part(wired_timers.change_timer)
    configure_business = Part(api.configure_business)
    counters = Part(wired_timers.counters)
    create = Part(creating.create_tasks)
    create_idempotent = Part(creating.create_idempotent)
    create_operation = Part(api.create_operation)
    create_timer = Part(wired_timers.create_timer)
    delete_business = Part(api.delete_business)
    disable_timer = Part(lambda: wired_timers.disable_timer(wired_businesses.business_cache()))
    dispatch = Part(scheduler.dispatch)
    entry_writer = Part(wheel.entry_writer)
    headers = Part(wheel.headers)
    health_store = Part(wired_businesses.health_store)
    cache_with_health = Part(wired_businesses.businesses_with_health)
    keyed = Part(creating.keyed_tasks)
    keys = Part(wheel.keys)
    lead = Part(scheduler.lead)
    list_tasks = Part(api.list_tasks)
    keep_order = Part(notifier.order)
    loads = Part(wheel.loads)
    operations = Part(open_operations.operations)
    origin = Part(process.origin)
    pages = Part(wheel.pages)
    parking_records = Part(wired_businesses.parking_records)
    pause_task = Part(changing.pause_task)
    pausing = Part(wired_businesses.pausing)
    pointers = Part(process.pointers)
    probe_host = Part(api.probe_host)
    queues = Part(process.queues)
    read_businesses = Part(api.read_businesses)
    read_changes = Part(api.read_changes)
    read_operations = Part(api.read_operations)
    read_overview = Part(api.read_overview)
    read_second = Part(wheel.read_second)
    read_statistics = Part(api.read_statistics)
    read_wheel = Part(api.read_wheel)
    record_statistics = Part(sweeper.record_statistics)
    redrive = Part(changing.redrive_task)
    release = Part(notifier.release)
    reschedule = Part(notifier.reschedule)
    reserve_shards = Part(wheel.reserve_shards)
    run_operations = Part(bulk.run_operations)
    run_timer = Part(wired_timers.run_timer)
    runs = Part(wired_timers.run_list)
    secret_store = Part(wired_businesses.secret_store)
    send_releases = Part(sweeper.send_releases)
    slices = Part(process.slices)
    statistics = Part(wheel.statistics)
    stop_operation = Part(api.stop_operation)
    sweep = Part(sweeper.sweep)
    sweep_second = Part(sweeper.sweep_second)
    tasks = Part(wheel.tasks)
    timer_by_name = Part(wired_timers.timer_by_name)
    timers = Part(wired_timers.timers)
    turns = Part(wheel.turns)
    wake_workers = Part(open_operations.wake_workers)
    why_waiting = Part(api.why_waiting)

    def __init__(self, emulator: Emulator, resources: Resources, clock: ManualClock) -> None:
        self.emulator = emulator
        self.clock = clock
        self.settings: Settings = settings_from(resources.environment("api"))
        self.recorder = Recorder(known=self._answer_for_empty_slot)
        self.receiver = Receiver(clock)
        self.dynamodb = self._seen("dynamodb")
        self.sqs = self._seen("sqs")
        self.aws_time = clients.aws_time
        self.aws_time._latest_ms = 0
        self.invocations: list[Invocation] = []  # asynchronous ones, accepted and not yet begun
        emulator.accept_invocation = self._accept
        self._numbers = count(1)
        self.random_unit = 0.999  # decides whether a load estimate is written, and a header read
        self.chance = 0.5  # all other random values
        self.loop = asyncio.new_event_loop()
        self.wire()

    def close(self) -> None:
        self.loop.close()
        counts.take()
        process.replace_parts({})
        process.start_anew(SystemClock())

    def dies(
        self,
        step: Callable[[], object],
        number: int = 1,
        moment: str = "before",
        counted: Callable[[Call], bool] = lambda call: True,
    ) -> Call | None:
        """Take a step whose process dies at one of its AWS calls, and makes no call of any kind
        afterwards. Returns that call, or None if the step made fewer of those that count."""
        left, died, answer = number, [], self.receiver.answer

        def before(call: Call) -> None:
            nonlocal left
            must_live()
            left -= counted(call)
            if left == 0:
                died.append(call)
                if moment == "before":
                    raise Death

        def must_live(*_: object) -> None:
            if died:
                raise Death

        self.recorder.before, self.recorder.after = before, must_live
        self.receiver.answer = lambda received: must_live() or answer(received)
        with suppress(Death):
            step()
        self.recorder.before = self.recorder.after = None
        self.receiver.answer = answer
        return died[0] if died else None

    def _seen(self, service: str) -> Any:
        client = clients.observed(service)
        self.recorder.attach(client)
        return client

    @property
    def unrecorded(self) -> Any:
        return clients.plain("dynamodb")

    @cached_property
    def invoker(self) -> Any:
        return self._seen("lambda")

    def wire(self, **changed: Any) -> None:
        """Build all parts again with changed settings."""
        self.settings = replace(self.settings, **changed)
        parts: dict[Callable[[], Any], Callable[[], Any]] = {
            process.settings: lambda: self.settings,
            process.dynamodb: lambda: self.dynamodb,
            process.sqs: lambda: self.sqs,
            process.invoker: lambda: self.invoker,
            process.aws_time: lambda: self.aws_time,
            process.random_unit: lambda: lambda: self.chance,
            process.random_bytes: lambda: self._random_bytes,
            wheel.reserve_shards: self._reserve_shards,
            notifier.fail_attempt: self._fail_attempt,
            wired_timers.create_timer: self._create_timer,
            api.cursor_secret: lambda: b"cursors are sealed with this",
            process.completion_secret: lambda: b"tokens are sealed with this",
        }
        process.replace_parts(parts)
        process.start_anew(self.clock)
        self.__dict__.pop("deliver", None)
        process.origin()

    def _reserve_shards(self) -> ReserveShards:
        known = HeaderCache(self.clock)
        return ReserveShards(self.loads, self.headers, known, lambda: self.random_unit)

    def _create_timer(self) -> CreateTimer:
        chain = wired_timers.planning_chain()
        return CreateTimer(
            clock=self.clock,
            timers=self.timers,
            chain=chain,
            known=self.business_cache,
            made_once=wired_timers.made_once(),
            random_number=lambda: next(self._numbers),
            check_call=lambda biz_type: self.admission.check_call(biz_type),
        )

    def _fail_attempt(self) -> FailAttempt:
        """A failed task waits for its full delay, without jitter."""
        return FailAttempt(
            clock=self.clock,
            tasks=self.tasks,
            keys=self.keys,
            keep_order=notifier.order(),
            tell_outcome=wheel.tell_outcome(),
            entry_writer=self.entry_writer,
            seen=wired_businesses.seen_businesses(),
            random_unit=lambda: 1.0,
        )

    @property
    def queue(self) -> SliceQueue:
        return self.queues[Lane.MAIN]

    @property
    def slow_queue(self) -> SliceQueue:
        return self.queues[Lane.SLOW]

    @cached_property
    def deliver(self) -> Deliver:
        return self.notifier()

    def notifier(
        self, call_slots: int = CALLS_IN_FLIGHT_MAX, known: BusinessCache | None = None
    ) -> Deliver:
        """`known`: the cache of businesses of a separate process."""
        return notifier.deliver(
            KeepHold(self.clock, asyncio.to_thread),
            asyncio.to_thread,
            replace(notifier.targets(), http=self.receiver),  # type: ignore[arg-type]
            known or self.cache_with_health,
            call_slots,
        )

    # Steps of a test

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
        (task,) = self.created_many([self.new(in_ms, **fields)])
        if isinstance(task, Refusal):
            raise task
        return task

    def placed(self, new: NewTask) -> Task:
        (task,) = self.entry_writer.placed([new])
        return task

    def configured(self, biz_type: str, **change: Any) -> Business:
        return self.configure_business(biz_type, change, Precondition(), by=CALLER)

    def found_slow(self, biz_type: str, for_ms: int = 86_400_000) -> None:
        """As if calls of the business had been observed to be slow."""
        self.health_store.note_slow(biz_type, self.clock.now_ms() + for_ms)

    def created_many(self, news: Iterable[NewTask]) -> list[Task | Refusal]:
        results = self.create.store(self.entry_writer.placed(list(news)))
        return [made.task if isinstance(made, Made) else made for made in results]

    def created_by_key(self, new: NewTask) -> Made:
        """Create a task by its key, like a call of the interface."""
        (result,) = self.create([new])
        if isinstance(result, Refusal):
            raise result
        return result

    def home_of_key(self, biz_type: str, key: str | None) -> Address | None:
        named = self.keys.read(biz_type, str(key))
        return None if named is None else named.home

    def read(self, task: Task) -> Task:
        found = self.tasks.get(task.home)
        assert found is not None
        return found

    def dispatch_until(self, second: int) -> None:
        """Move the clock to this second and let a scheduler lead up to it."""
        self.clock.set_ms(max(self.clock.now_ms(), second * 1000))
        self.lead_once()
        if self.pointer().position < second and any(held.early for held in self.dispatch.latest):
            self.clock.set_ms(self.dispatch.next_tick_ms(second))
            self.lead_once()

    def come_up(self, task: Task) -> None:
        """Dispatch and deliver everything up to the second in which the task is due."""
        self.dispatch_until(task.due_ms // 1000)
        self.clock.set_ms(max(self.clock.now_ms(), task.due_ms - timing.WAKE_MS))
        self.drain()

    def fall_due(self, *tasks: Task) -> Task:
        """Dispatch and deliver everything up to the next instants of these tasks; returns the first
        one as it is then."""
        next_ms = max(task.next_ms for task in tasks)
        self.dispatch_until(next_ms // 1000)
        self.clock.set_ms(max(self.clock.now_ms(), next_ms))
        self.drain()
        return self.read(tasks[0])

    def settle(self, task: Task) -> Task:
        """Dispatch and deliver until the task has ended; returns it."""
        for _ in range(200):
            current = self.read(task)
            if not current.is_live:
                return current
            self.dispatch_until(-(-max(current.next_ms, self.clock.now_ms()) // 1000))
            self.drain()
        raise AssertionError("the task never ended")

    def let_pass(self, seconds: int, stride: int = 1) -> None:
        """Dispatch and deliver for so long, `stride` seconds at a time."""
        for _ in range(0, seconds, stride):
            self.dispatch_until(self.clock.now_ms() // 1000 + stride)
            self.drain()

    def dispatched(self, task: Task) -> dict[str, Any]:
        """Dispatch up to the task's second; returns the message of its page."""
        self.dispatch_until(task.due_ms // 1000)
        (message,) = self.receive()
        return message

    def lead_once(self, me: str | None = None, turns: int = 1) -> None:
        """Run a scheduler for as many ticks as it needs to catch up."""
        while True:
            before = self.pointer().position
            self.lead.run(me or f"scheduler-{next(self._numbers)}", time_for(turns))
            if self.pointer().position in (before, self.clock.now_ms() // 1000):
                return

    def pointer(self, name: str = TIME) -> Pointer:
        return self.pointers.read(name, self.origin)

    def receive(self, lane: Lane = Lane.MAIN) -> list[dict[str, Any]]:
        """Receive the messages that are visible now, which hides them, as a poller does."""
        answer = self.sqs.receive_message(
            QueueUrl=self.queues[lane].url, MaxNumberOfMessages=10, WaitTimeSeconds=0
        )
        return list(answer.get("Messages", []))

    def handle(
        self, message: dict[str, Any], deliver: Deliver | None = None, lambda_ms: int = LAMBDA_MS
    ) -> LeaseHeld | PageFinished:
        """Let one notifier process one message, which is deleted only if the notifier reports it as
        done."""
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
        if isinstance(result, PageFinished):
            self.sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])
        else:
            seconds = (result.until_ms - self.clock.now_ms()) // 1000 + 1
            queue.hide(message["ReceiptHandle"], seconds)
        return result

    def _hide(self, queue: SliceQueue, message: dict[str, Any], seconds: int) -> None:
        """Hide the message. If SQS refuses, the visibility timeout of the queue stays in force."""
        queue.hide_all([message["ReceiptHandle"]], seconds)

    def drain(self, *lanes: Lane) -> None:
        """Let notifiers process all messages that are visible now, in the order of their seconds,
        so that none waits for its second before an earlier one, and all asynchronous
        invocations."""
        while messages := [m for lane in self._occupied(lanes) for m in self.receive(lane)]:
            for message in sorted(messages, key=second_of):
                self.handle(message)
            self.drain_invocations()
        self.drain_invocations()

    def _occupied(self, lanes: tuple[Lane, ...]) -> list[Lane]:
        """The lanes to read: the main one, and those that have messages."""

        def is_read(lane: Lane) -> bool:
            queue = self.queues[lane]
            return lane is Lane.MAIN or bool(self.emulator.messages_visible_at_ms(queue.url))

        return list(filter(is_read, lanes or tuple(Lane)))

    def drain_invocations(self) -> None:
        while due := [one for one in self.invocations if one.due_ms <= self.clock.now_ms()]:
            self.invocations = [one for one in self.invocations if one not in due]
            for invocation in due:
                self.carry_out(invocation)

    def carry_out(self, invocation: Invocation, lambda_ms: int = LAMBDA_MS) -> bool:
        """Carry out one asynchronous invocation like Lambda: if messages are left, the whole event
        is tried again a minute and then two minutes later. Returns True if none is left."""
        deadline_ms = self.clock.now_ms() + lambda_ms
        if invocation.function == self.settings.bulk_function:
            self.run_operations.run(lambda: 900_000)
            return True
        texts = texts_of_event(invocation.event)
        assert texts is not None
        work = [
            self.deliver(decode(text), f"notifier-{next(self._numbers)}", deadline_ms)
            for number, text in enumerate(texts)
        ]
        results = self.loop.run_until_complete(_all_of(work))
        if all(isinstance(result, PageFinished) for result in results):
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
        self.wake_workers()

    def sweep_second_once(self, second: int) -> bool:
        """Sweep one second as if no other were open: send lost messages again, and record its
        statistics if it is finished."""
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
        """The last second up to which the sweep has finished all seconds."""
        sweep = self.pointer(SWEEP)
        return first_open_second(sweep.open_places, sweep.position) - 1

    def sweep_past(self, second: int) -> None:
        """Let minutes pass, with sweep and delivery in each, until the sweep has finished the
        second."""
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
        """All items of the wheel, read without the recorder."""
        scan = self.unrecorded.get_paginator("scan")
        pages = scan.paginate(TableName=self.settings.wheel_table)
        return [item for page in pages for item in page["Items"]]

    def entries_elsewhere(self) -> list[Address]:
        """All re-entries in the wheel."""
        return [codec.address_of(item) for item in self.items() if "home" in item]

    def _answer_for_empty_slot(self, call: Call) -> dict[str, Any] | None:
        """Answer a query of a slot that never had an item without moto, with the time that moto
        would return. Most seconds are empty, and most queries of the workflows are for them."""
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

    def _random_bytes(self, number: int) -> bytes:
        return next(self._numbers).to_bytes(number, "big")


def second_of(message: dict[str, Any]) -> int:
    """The second of a message; 0 for a release, which waits for none."""
    return int(json.loads(message["Body"]).get("second", 0))


async def _all_of(work: list[Any]) -> list[Any]:
    return await asyncio.gather(*work, return_exceptions=True)


def time_for(turns: int) -> Callable[[], int]:
    """The remaining time of an invocation that ends after this number of reads of it."""
    left = iter([1_000_000] * turns)
    return lambda: next(left, 0)
