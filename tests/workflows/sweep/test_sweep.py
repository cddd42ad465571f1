"""The sweep checks every second again: it finds lost tasks, and waits for slow pages."""

import asyncio
from collections import deque
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.open_places import Why
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.stores.wheel import pointers
from tests.support.bounds import quick_first
from tests.support.receiver import OK, Received
from tests.support.recorder import Call
from tests.support.world import World, second_of


def lose_all_messages(world: World) -> None:
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)


def sweep_pointer(world: World) -> int:
    return world.pointer(pointers.SWEEP).position


def let_minutes_pass(world: World, minutes: int, *, drain: bool) -> None:
    for _ in range(minutes):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        if drain:
            world.drain()
        world.sweep_once()


def test_a_second_is_not_swept_before_it_and_its_dispatch_are_older_than_the_lag(
    world: World,
) -> None:
    task = world.created(in_ms=60_000)
    lag_ms = world.settings.sweep_delay_seconds * 1000
    late_dispatch_ms = task.due_ms + 600_000
    world.clock.set_ms(late_dispatch_ms - 60_000)
    world.sweep_once()
    world.dispatch_until(late_dispatch_ms // 1000)
    lose_all_messages(world)
    world.sweep_once()

    world.clock.set_ms(late_dispatch_ms + lag_ms - 1)
    world.sweep_once()
    assert sweep_pointer(world) < task.due_ms // 1000
    assert world.messages_waiting() == 0

    world.clock.set_ms(late_dispatch_ms + lag_ms)
    world.sweep_once()
    assert world.messages_waiting() == 1, "now the page counts as never begun"


def test_a_lost_slice_message_is_sent_again_and_delivered(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.dispatch_until(task.due_ms // 1000)
    lose_all_messages(world)
    world.sweep_past(task.due_ms // 1000)

    assert world.receiver.task_ids == [task.task_id]
    assert world.read(task).status is Status.DELIVERED


def test_the_lost_message_of_a_writer_is_sent_again_and_its_task_delivered(world: World) -> None:
    """The second was dispatched when it was empty."""
    world.lead_once()
    task = world.created(in_ms=60_000)
    assert not task.home.direct
    assert world.pointer().position >= task.home.second
    assert world.messages_waiting() == 1
    lose_all_messages(world)
    world.sweep_past(task.due_ms // 1000)

    assert world.receiver.task_ids == [task.task_id]
    assert world.read(task).status is Status.DELIVERED


def test_a_task_with_a_lost_direct_message_gets_a_new_entry(world: World) -> None:
    task = world.created(in_ms=1_000)
    lose_all_messages(world)
    world.sweep_past(task.home.second)
    world.drain()

    assert world.receiver.task_ids == [task.task_id]
    assert world.read(task).status is Status.DELIVERED


def test_a_lost_message_of_a_later_page_is_found(world: World) -> None:
    world.wire(page_size=3)
    tasks = [world.created(in_ms=200_000 + n) for n in range(7)]
    first = world.dispatched(tasks[0])
    world.handle(first)
    lose_all_messages(world)
    world.sweep_past(tasks[0].due_ms // 1000)

    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_lost_message_of_a_rest_page_is_found(world: World) -> None:
    task = world.created(in_ms=200_000)
    message = world.dispatched(task)
    world.handle(message, lambda_ms=0)
    lose_all_messages(world)
    world.sweep_past(task.due_ms // 1000)

    assert world.receiver.task_ids == [task.task_id]


class OneNotifier:
    """It works off its messages one after the other, while the scheduler and the sweep run each
    minute."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.waiting: deque[dict[str, Any]] = deque()
        self.swept_ms = 0

    def receive(self) -> None:
        while messages := self.world.receive():
            self.waiting.extend(messages)

    def let_sweeps_run(self) -> None:
        now_ms = self.world.clock.now_ms()
        if now_ms >= self.swept_ms + 60_000:
            self.world.dispatch_until(now_ms // 1000)
            self.world.sweep_once()
            self.swept_ms = now_ms

    def work(self, *, is_down: bool) -> None:
        self.receive()
        if is_down or not self.waiting:
            self.world.clock.advance_ms(10_000)
        else:
            self.world.handle(self.waiting.popleft())
        self.let_sweeps_run()


@pytest.mark.parametrize("is_down", [False, True], ids=["slow calls", "backlog"])
def test_a_lost_message_is_found_in_four_minutes_whatever_another_business_does(
    world: World, is_down: bool
) -> None:
    """Limit 1 and calls of 20 s: each run of the page makes two calls, and passes the rest on. Or
    pages of many seconds wait for the notifier, which is down."""
    world.configured("busy", calls_in_flight=1)
    apart_ms = 1_000 if is_down else 0
    callback = HttpCallback("https://busy.example/")
    for number in range(40):
        world.created(60_000 + number * apart_ms, biz_type="busy", callback=callback)
    victim = world.created(102_000)
    notifier = OneNotifier(world)
    world.dispatch_until(victim.due_ms // 1000)
    notifier.receive()
    queue_url = world.queues[Lane.MAIN].url
    for lost in [one for one in notifier.waiting if second_of(one) == victim.home.second]:
        notifier.waiting.remove(lost)
        world.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=lost["ReceiptHandle"])

    def answer(received: Received) -> Any:
        world.clock.advance_ms(20_000 if "busy" in received.url else 0)
        return OK

    world.receiver.answer = answer
    while not (leases := world.pages.of_slice(victim.home.second, victim.home.shard)):
        notifier.work(is_down=is_down)
        assert world.clock.now_ms() < victim.due_ms + 900_000, "never sent again"
    assert leases[0].resent_ms - victim.due_ms <= 240_000


def test_the_sweep_waits_for_a_held_page_at_an_open_place_and_goes_on_behind_it(
    world: World,
) -> None:
    task, later = world.created(in_ms=60_000), world.created(in_ms=61_000)
    world.dispatch_until(later.due_ms // 1000)
    lose_all_messages(world)
    long_lease_ms = 3_600_000
    page = world.pages.take(page_of(task), "alive", world.clock.now_ms(), long_lease_ms)
    assert isinstance(page, PageLease)
    let_minutes_pass(world, 4, drain=True)

    assert world.receiver.task_ids == [later.task_id]
    assert world.swept_second == task.home.second - 1
    (place,) = world.pointer(pointers.SWEEP).open_places
    assert (place.second, place.shard, place.page) == (task.home.second, task.home.shard, "0")
    assert place.why is Why.HELD
    assert sweep_pointer(world) > later.home.second


def test_a_page_is_sent_again_at_most_once_a_minute(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.dispatch_until(task.due_ms // 1000)
    lose_all_messages(world)
    let_minutes_pass(world, 4, drain=False)
    waiting = world.messages_waiting()
    for _ in range(5):
        world.clock.advance_ms(5_000)
        world.sweep_once()

    assert world.messages_waiting() == waiting


def test_in_an_outage_the_pages_of_many_businesses_are_not_sent_again_and_again(
    world: World,
) -> None:
    pages, minutes = 10, 12
    tasks = [world.created(60_000 + n * 1_000, biz_type=f"b-{n}") for n in range(pages)]
    world.dispatch_until(tasks[-1].due_ms // 1000)
    let_minutes_pass(world, minutes, drain=False)
    leases = [world.pages.of_slice(task.home.second, task.home.shard) for task in tasks]
    resends = [lease.resends for (lease,) in leases]
    assert min(resends) >= 1
    assert sum(resends) <= pages + minutes


def test_two_concurrent_sweepers_send_a_page_again_once(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.dispatch_until(task.due_ms // 1000)
    lose_all_messages(world)
    world.clock.advance_ms(600_000)
    (part,) = world.read_second(task.home.second)
    verdict = world.sweep_second.judge(part, task.home.second, lambda _: True)
    ((lease, _),) = verdict.resend

    assert world.pages.note_resend(lease, world.clock.now_ms()) is True
    assert world.pages.note_resend(lease, world.clock.now_ms()) is False


def test_a_page_that_keeps_killing_its_notifier_is_taken_apart(world: World) -> None:
    """One task that kills its notifier does not hold up the other tasks of its page."""

    class Crash(BaseException):
        pass

    tasks = [world.created(in_ms=60_000 + n) for n in range(3)]
    poison = tasks[1].task_id

    def deadly(received: Received) -> Any:
        if received.task_id == poison:
            raise Crash
        return OK

    world.receiver.answer = deadly
    for _ in range(15):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        for message in world.receive():
            try:
                world.handle(message)
            except Crash:
                world.loop = asyncio.new_event_loop()
                world.deliver = world.notifier()
        world.sweep_once()

    innocent = [world.read(task).status for task in (tasks[0], tasks[2])]
    assert innocent == [Status.DELIVERED, Status.DELIVERED]
    assert world.read(tasks[1]).status is Status.PENDING
    assert world.read(tasks[1]).entry != tasks[1].home
    assert sweep_pointer(world) >= tasks[0].home.second


def test_entries_that_no_home_names_are_never_called_and_deleted(world: World) -> None:
    task = world.created(in_ms=3_600_000)
    forgotten = world.entry_writer.put(task, world.clock.now_ms() + 60_000)
    world.sweep_past(forgotten.second)

    assert world.entries_elsewhere() == []
    assert world.receiver.received == []
    assert world.read(task).status is Status.PENDING


def test_a_home_whose_named_entry_is_missing_gets_a_new_one(world: World) -> None:
    task = world.created(in_ms=600_000)
    (state,) = world.tasks.home_states([task.home])[0].values()
    earlier = world.entry_writer.put(task, world.clock.now_ms() + 60_000)
    assert world.tasks.name_entry(state, earlier)
    world.tasks.delete_entries([earlier])
    world.sweep_past(task.home.second)
    world.drain()

    assert world.receiver.task_ids == [task.task_id]


def test_a_task_changed_during_its_rescue_keeps_its_second_open(world: World) -> None:
    """A heartbeat raises the version and leaves the old entry named: if the sweep moved on, the
    task would be lost."""
    task = world.created(in_ms=0)
    lose_all_messages(world)
    world.clock.advance_ms(200_000)

    def beats() -> None:
        later_ms = task.next_ms + 1_000
        moved = replace(task, next_ms=later_ms, version=task.version + 1)
        assert world.tasks.change(task, moved)

    world.recorder.once("UpdateItem", beats)
    assert world.sweep_second_once(task.home.second) is False
    assert world.sweep_second_once(task.home.second) is True
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


@pytest.mark.parametrize(
    "operation", quick_first(["SendMessageBatch", "PutItem", "UpdateItem"], pytest.mark.exhaustive)
)
def test_the_next_sweeper_completes_the_work_of_one_that_dies_at_any_step(
    world: World, operation: str
) -> None:
    task = world.created(in_ms=0)
    lose_all_messages(world)
    let_minutes_pass(world, 2, drain=False)

    def is_step(call: Call) -> bool:
        return call.operation == operation and "record" not in call.request.get("Key", {})

    has_died = False
    for _ in range(3):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        if has_died:
            world.sweep_once()
        elif world.dies(world.sweep_once, moment="after", counted=is_step):
            has_died = True
            world.clock.advance_ms(60_000)
    lose_all_messages(world)
    world.sweep_past(world.clock.now_ms() // 1000)
    world.drain()

    assert has_died
    assert world.receiver.task_ids == [task.task_id]


def page_of(task: Task) -> PageLease:
    return PageLease(task.home.second, task.home.shard)
