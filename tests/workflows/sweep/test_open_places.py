"""The sweep goes on past a place that it cannot finish."""

import logging
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError

from duewheel.log import logger
from duewheel.rules.delivery.page_lease import LEASE_MS, TRIES_MAX, PageLease
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.sweep.minute_statistics import StatsRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel import open_places
from duewheel.rules.wheel.addresses import slow_page
from duewheel.rules.wheel.open_places import Why
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage, decode
from duewheel.stores.wheel import pointers
from duewheel.workflows.wheel.send_messages import MessageSender
from tests.support.recorder import Call, Death
from tests.support.world import LAMBDA_MS, World

FOUND_WITHIN_MS = 240_000
TWENTY_MINUTES_MS = 1_200_000
CLOSING = "#done = :done"  # the update that finishes or closes a page


def lose_all_messages(world: World) -> None:
    """Deletes all visible messages; AWS purges a queue once a minute at most."""
    url = world.settings.slice_queue_url
    while messages := world.receive():
        for message in messages:
            world.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def minutes(world: World, number: int) -> None:
    for _ in range(number):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        world.drain()
        world.sweep_once()
        world.drain()


def hold(world: World, task: Task, page: str = "0", for_ms: int = TWENTY_MINUTES_MS) -> PageLease:
    lease = PageLease(task.home.second, task.home.shard, page=page)
    held = world.pages.take(lease, "alive", world.clock.now_ms(), for_ms)
    assert isinstance(held, PageLease)
    return held


def called_after_ms(world: World, task: Task) -> int:
    (received,) = [one for one in world.receiver.received if one.task_id == task.task_id]
    return received.at_ms - task.due_ms


def findings(world: World, tasks: list[Task]) -> list[Any]:
    seconds = [task.home.second for task in tasks]
    return list(world.audit(AuditRequest(min(seconds), max(seconds))).findings)


def places(world: World) -> list[tuple[int, Why]]:
    return [(p.second, p.why) for p in world.pointer(pointers.SWEEP).open_places]


def others(world: World) -> None:
    """Creates a healthy task for every five seconds, from which the sweep sees that notifiers
    work."""
    for number in range(100):
        world.created(in_ms=60_000 + number * 5_000, biz_type="others")


def pass_minutes_losing(world: World, seconds: set[int], number: int, sweep: Any) -> None:
    """All messages for these seconds are lost, except those that the sweep sends."""
    for _ in range(number):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        deliver_all_but(world, seconds)
        sweep()
        world.drain()


def deliver_all_but(world: World, seconds: set[int]) -> None:
    while messages := world.receive():
        for message in messages:
            if decode(message["Body"]).second in seconds:
                url = world.settings.slice_queue_url
                world.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            else:
                world.handle(message)


def test_pages_that_wait_in_the_queue_are_not_all_sent_again(world: World) -> None:
    waiting = [world.created(in_ms=200_000 + number * 1_000) for number in range(20)]
    world.dispatch_until(waiting[-1].home.second)
    world.sweep_once()
    world.clock.advance_ms(125_000)
    before = len(world.emulator.messages_visible_at_ms(world.settings.slice_queue_url))
    world.sweep_once()
    after = len(world.emulator.messages_visible_at_ms(world.settings.slice_queue_url))
    assert (before, after) == (20, 21)  # the messages of one second are sent in any case


class Trouble:
    """Obstacles for the sweeper: a key that is beaten before each of its rescues, a partition that
    refuses reads, and a second whose slices each take long to read, while all other functions go
    on."""

    SHARDS = 16

    def __init__(self, world: World) -> None:
        self.world = world
        self.huge = (world.clock.now_ms() + 62_000) // 1000
        world.headers.raise_to(self.huge, self.SHARDS)
        world.reserve_shards.known.keep({self.huge: self.SHARDS})
        world.create([world.new(in_ms=62_000) for _ in range(4 * self.SHARDS)])
        self.throttled = world.created(in_ms=63_000)
        self.beaten = world.created_by_key(world.new(30_000, key="beaten", digest="same")).task
        self._beat()
        self._slots = {f"{self.huge % world.settings.buckets}.{n}" for n in range(self.SHARDS)}

    def sweep(self) -> None:
        self.world.recorder.before = self._in_the_way
        self.world.sweep_once()
        self.world.recorder.before = None

    def _in_the_way(self, call: Call) -> None:
        self.world.recorder.before = None
        if call.operation == "UpdateItem" and self._is_rescue(call):
            self._beat()
        if call.operation == "Query":
            slot = call.request["ExpressionAttributeValues"].get(":slot", {}).get("S")
            if slot == self.throttled.home.slot(self.world.settings.buckets):
                self.world.recorder.before = self._in_the_way
                raise ClientError({"Error": {"Code": "ThrottlingException"}}, "Query")
            if slot in self._slots:
                self.world.clock.advance_ms(20_000)
                self.world.lead_once()
                self.world.drain()
        self.world.recorder.before = self._in_the_way

    def _beat(self) -> None:
        self.world.keyed.upsert(self.world.new(1_000_000, key="beaten", digest="same"))

    def _is_rescue(self, call: Call) -> bool:
        return call.request["Key"].get("place") == {"S": self.beaten.home.place}


@pytest.mark.soak
def test_lost_tasks_are_found_within_four_minutes_beside_all_other_trouble(world: World) -> None:
    """A page is called for twenty minutes, a key is beaten without end, a second takes the sweep
    minutes, and a partition refuses all reads."""
    held = world.created(in_ms=60_000)
    trouble = Trouble(world)
    lost = [world.created(in_ms=64_500 + n * 20_000) for n in range(12)]
    others(world)
    lose_all_messages(world)
    world.dispatch_until(held.home.second)
    hold(world, held)
    world.sweep_once()
    pass_minutes_losing(world, {task.home.second for task in lost}, 9, trouble.sweep)
    assert max(called_after_ms(world, task) for task in lost) <= FOUND_WITHIN_MS
    assert {second for second, _ in places(world)} >= {
        held.home.second,
        trouble.throttled.home.second,
    }
    minutes(world, 25)
    assert places(world) == []
    assert world.read(trouble.throttled).status is Status.DELIVERED


@pytest.mark.exhaustive
def test_pages_dispatched_during_a_long_run_are_not_taken_for_lost(world: World) -> None:
    """The messages in the queue are counted when the run begins to send again, and again when it
    continues."""
    lost = [world.created(in_ms=60_000 + number * 1_000) for number in range(3)]
    waiting = [world.created(in_ms=200_000 + number * 1_000) for number in range(20)]
    world.dispatch_until(lost[-1].home.second)
    lose_all_messages(world)
    world.sweep_once()  # notes the time pointer
    world.clock.advance_ms(125_000)

    counts: list[int | None] = []

    def end_the_turn(call: Call) -> None:
        if call.operation == "Query" and len(counts) < 2:
            world.clock.advance_ms(20_000)

    def dispatch_after_counting(message_sender: MessageSender) -> int | None:
        counts.append(counted(message_sender))
        if len(counts) == 1:
            world.recorder.after = None
            world.dispatch_until(waiting[-1].home.second)
            world.recorder.after = end_the_turn
        if len(counts) == 2:
            world.clock.advance_ms(125_000)  # and then they are swept
        return counts[-1]

    counted = MessageSender.waiting
    world.recorder.after = end_the_turn
    with patch.object(MessageSender, "waiting", dispatch_after_counting):
        world.sweep_once()
    assert world.pointer(pointers.SWEEP).position >= waiting[-1].home.second
    queue = world.emulator.messages_visible_at_ms(world.settings.slice_queue_url)
    assert len(queue) <= len(lost) + len(waiting)


class SlowSecond:
    """A second of which the read of one slice's homes takes twenty seconds, while the other
    functions go on."""

    SHARDS = 8

    def __init__(self, world: World) -> None:
        self.world = world
        self.second = (world.clock.now_ms() + 62_000) // 1000
        world.headers.raise_to(self.second, self.SHARDS)
        world.reserve_shards.known.keep({self.second: self.SHARDS})
        self.tasks = world.created_many([world.new(in_ms=62_000) for _ in range(4 * self.SHARDS)])
        self.slots = {f"{self.second % world.settings.buckets}.{n}" for n in range(self.SHARDS)}
        self.strongly: list[str] = []

    def sweep(self, run_ms: int, lost: set[int]) -> None:
        """By a sweeper whose Lambda ends after `run_ms`."""
        until_ms = self.world.clock.now_ms() + run_ms

        def slowly(call: Call) -> None:
            values = call.request.get("ExpressionAttributeValues", {})
            slot = values.get(":slot", {}).get("S")
            if call.operation == "Query" and slot in self.slots:
                if "FilterExpression" in call.request:
                    return
                if call.request.get("ConsistentRead"):
                    self.strongly.append(slot)
                self.world.recorder.before = None
                self.world.clock.advance_ms(20_000)
                self.world.drain()
                self.world.lead_once()
                deliver_all_but(self.world, lost)
                self.world.recorder.before = slowly

        self.world.recorder.before = slowly
        me = f"sweeper-at-{self.world.clock.now_ms()}"
        self.world.sweep.run(me, lambda: until_ms - self.world.clock.now_ms())
        self.world.recorder.before = None


@pytest.mark.soak
def test_a_second_that_takes_several_runs_is_counted_once_and_delays_no_other_task(
    world: World,
) -> None:
    """Two runs read the second, and two more read it again; each continues where the one before
    ended."""
    slow = SlowSecond(world)
    lost = [world.created(in_ms=64_500 + n * 20_000) for n in range(20)]
    seconds = {task.home.second for task in lost}
    others(world)
    world.dispatch_until(slow.second)
    world.drain()
    world.sweep_once()
    run_ms = 120_000
    pass_minutes_losing(world, seconds, 8, lambda: slow.sweep(run_ms, seconds))
    two_runs_ms = 2 * (run_ms + 60_000)
    delay_ms = world.settings.sweep_delay_seconds * 1000
    assert max(called_after_ms(world, task) for task in lost) <= delay_ms + two_runs_ms
    assert slow.second not in {second for second, _ in places(world)}
    of_its_minute = [task for task in lost if task.home.second // 60 == slow.second // 60]
    all_of_it = len(slow.tasks) + len(of_its_minute)
    assert created_and_delivered(world, slow) == (all_of_it, all_of_it)


def created_and_delivered(world: World, slow: SlowSecond) -> tuple[int, int]:
    minute = slow.second // 60
    total = world.read_statistics("orders", StatsRequest(minute, minute)).total
    return total.created, total.delivered


def test_a_second_that_is_read_again_reads_no_slice_twice_consistently_and_is_counted_once(
    world: World,
) -> None:
    slow = SlowSecond(world)
    world.dispatch_until(slow.second)
    world.drain()
    world.sweep_once()
    world.dispatch_until(slow.second + 180)
    slow.sweep(100_000, set())
    assert places(world) == [(slow.second, Why.NOT_REACHED)]
    assert slow.strongly == []
    position = world.pointer(pointers.SWEEP).position
    slow.sweep(400_000, set())
    assert places(world) == []
    assert slow.strongly
    assert len(slow.strongly) == len(set(slow.strongly)) < slow.SHARDS
    assert world.pointer(pointers.SWEEP).position > position + 180, "the pointer moved meanwhile"
    minute = slow.second // 60
    total = world.read_statistics("orders", StatsRequest(minute, minute)).total
    assert (total.created, total.delivered) == (len(slow.tasks), len(slow.tasks))


@pytest.mark.exhaustive
def test_a_lost_page_is_found_while_another_page_of_its_slice_is_called(world: World) -> None:
    world.wire(page_size=2)
    tasks = [world.created(in_ms=60_000 + n) for n in range(4)]
    world.dispatch_until(tasks[0].home.second)
    held = hold(world, tasks[0])
    assert world.pages.record_end(held, tasks[1].home.place) is not None
    lose_all_messages(world)
    minutes(world, 5)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks[2:])


def unbegun(world: World) -> list[Task]:
    """Two tasks of a page that was sent again five times and not begun."""
    tasks = [world.created(in_ms=60_000 + n) for n in range(2)]
    world.dispatch_until(tasks[0].home.second)
    lose_all_messages(world)
    lease = PageLease(tasks[0].home.second, tasks[0].home.shard)
    for resends in range(TRIES_MAX):
        now_ms = world.clock.now_ms()
        seen = PageLease(lease.second, lease.shard, resends=resends)
        assert world.pages.note_resend(seen, now_ms)
        world.clock.advance_ms(600_000)
    return tasks


def test_a_page_that_begins_as_the_sweep_takes_it_apart_is_left_alone(world: World) -> None:
    tasks = unbegun(world)
    world.recorder.once("UpdateItem", lambda: hold(world, tasks[0]), of=CLOSING)
    assert world.sweep_second_once(tasks[0].home.second) is False
    assert world.recorder.before is None
    assert [world.read(task) for task in tasks] == tasks, "left to the run that has begun the page"


def renewed(world: World, lease: PageLease) -> None:
    """By its run, which was frozen."""
    assert world.pages.renew(lease, world.clock.now_ms(), LEASE_MS) is not None


def begun_again(world: World, lease: PageLease) -> None:
    """By another run, which is frozen in turn, or has died."""
    held = world.pages.take(lease, "other", world.clock.now_ms(), LEASE_MS)
    assert isinstance(held, PageLease)
    world.clock.advance_ms(LEASE_MS + 1)


@pytest.mark.parametrize("goes_on", [renewed, begun_again])
def test_a_page_that_continues_as_the_sweep_takes_it_apart_is_left_alone(
    world: World, goes_on: Callable[[World, PageLease], None]
) -> None:
    tasks = unbegun(world)
    lease = hold(world, tasks[0])
    world.clock.advance_ms(TWENTY_MINUTES_MS + 1)

    world.recorder.once("Query", lambda: goes_on(world, lease), "after")
    assert world.sweep_second_once(tasks[0].home.second) is False
    assert world.recorder.after is None
    assert [world.read(task) for task in tasks] == tasks, "left to the run that calls them"


def test_a_page_that_is_passed_on_as_the_sweep_takes_it_apart_is_left_to_the_slow_lane(
    world: World,
) -> None:
    """Its message arrived late; the page was passed to the slow lane, which makes the calls."""
    world.found_slow("orders")
    tasks = unbegun(world)
    first = tasks[0].home

    def pass_on() -> None:
        deadline_ms = world.clock.now_ms() + LAMBDA_MS
        message = PageMessage(first.second, first.shard, page="0")
        world.loop.run_until_complete(world.deliver(message, "late", deadline_ms))
        hold(world, tasks[0], slow_page("0"))

    world.recorder.once("UpdateItem", pass_on, of=CLOSING)
    assert world.sweep_second_once(first.second) is False
    assert world.recorder.before is None
    assert [world.read(task) for task in tasks] == tasks, (
        "they still name the entries that are called"
    )


def test_a_sweeper_that_dies_after_closing_a_page_loses_none_of_its_tasks(world: World) -> None:
    tasks = unbegun(world)
    world.recorder.die("UpdateItem", "after", of=CLOSING)
    with pytest.raises(Death):
        world.sweep_second_once(tasks[0].home.second)
    minutes(world, 4)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


@pytest.mark.soak
def test_rescued_tasks_are_announced_before_their_messages_are_too_late(world: World) -> None:
    """This holds for any number of lost messages, and however long each write takes."""
    tasks = [world.created(in_ms=1_000) for _ in range(300)]
    lose_all_messages(world)
    world.clock.advance_ms(200_000)
    late_ms: list[int] = []

    def slowly(call: Call) -> None:
        if call.operation in ("PutItem", "UpdateItem"):
            world.clock.advance_ms(100)
        if call.operation == "SendMessageBatch":
            for entry in call.request["Entries"]:
                message = decode(entry["MessageBody"])
                assert isinstance(message, DirectMessage)
                late_ms.append(world.clock.now_ms() - message.second * 1000)
            world.recorder.after = None
            world.drain()
            world.recorder.after = slowly

    world.recorder.after = slowly
    world.sweep_second_once(tasks[0].home.second)
    world.recorder.after = None
    assert max(late_ms) < 30_000
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_the_sweep_pointer_waits_while_the_list_of_open_places_is_full(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger.name)
    tasks = [world.created(in_ms=60_000 + n * 1_000) for n in range(6)]
    world.dispatch_until(tasks[-1].home.second)
    lose_all_messages(world)
    for task in tasks:
        hold(world, task, for_ms=420_000)
    with (
        patch.object(open_places, "OPEN_PLACES_MAX", 4),
        patch.object(open_places, "OF_ONE_SECOND_MAX", 1),
    ):
        minutes(world, 4)
        assert len(places(world)) == 3
        assert "sweep waits" in caplog.text
        assert world.pointer(pointers.SWEEP).position == tasks[2].home.second
        assert findings(world, tasks) == []
    minutes(world, 9)
    assert places(world) == []
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


@pytest.mark.exhaustive
def test_a_task_that_names_an_entry_of_a_swept_slice_is_rescued(world: World) -> None:
    """A writer leaves the task so if it was frozen and the sweep has deleted its entry."""
    task, later = world.created(in_ms=60_000), world.created(in_ms=61_000)
    world.dispatch_until(later.home.second)
    lose_all_messages(world)
    entry = world.entry_writer.put(task, later.due_ms)
    hold(world, task)
    minutes(world, 5)
    assert world.swept_second == task.home.second - 1
    (state,) = world.tasks.home_states([task.home])[0].values()
    assert world.tasks.name_entry(state, entry)
    minutes(world, 3)
    assert world.receiver.task_ids.count(task.task_id) == 1


def totals(world: World, task: Task) -> Any:
    minute = task.home.second // 60
    return world.read_statistics("orders", StatsRequest(minute, minute))


@pytest.mark.exhaustive
def test_a_second_that_stays_open_is_counted_once_and_closes_its_minute_late(world: World) -> None:
    tasks = [world.created(in_ms=60_000 + n * 1_000) for n in range(4)]
    world.dispatch_until(tasks[-1].home.second)
    hold(world, tasks[1])
    minutes(world, 6)
    while_open = totals(world, tasks[0])
    assert while_open.closed_until_second == tasks[1].home.second
    assert (while_open.total.created, while_open.total.delivered) == (4, 3)
    minutes(world, 25)
    closed = totals(world, tasks[0])
    assert closed.closed_until_second > tasks[-1].home.second
    assert (closed.total.created, closed.total.delivered) == (4, 4)


@pytest.mark.exhaustive
def test_a_task_brought_forward_into_a_second_that_stays_open_is_counted_once(world: World) -> None:
    """The second of its home is counted before the one in which it falls due."""
    held, task = world.created(in_ms=60_000), world.created(in_ms=65_000)
    world.change(task.task_id, Change(due_ms=held.due_ms))
    world.dispatch_until(task.home.second)
    hold(world, held)
    minutes(world, 8)
    assert places(world) == [(held.home.second, Why.HELD)]
    assert world.pointer(pointers.SWEEP).position > task.home.second
    assert (totals(world, task).total.created, totals(world, task).total.delivered) == (2, 0)
    minutes(world, 25)
    closed = totals(world, task)
    assert closed.closed_until_second > task.home.second
    assert (closed.total.created, closed.total.delivered) == (2, 2)


def lost_and_held_pages(world: World) -> list[Task]:
    """A held page, lost pages before and after it, and a lost direct message."""
    tasks = [world.created(in_ms=1_000), *(world.created(in_ms=60_000 + n * 500) for n in range(5))]
    world.dispatch_until(tasks[-1].home.second)
    lose_all_messages(world)
    hold(world, tasks[2], for_ms=400_000)
    world.sweep_once()
    world.dispatch_until(world.clock.now_ms() // 1000 + 200)
    return tasks


def is_write(call: Call) -> bool:
    """Reads do not count: what a crash after a read leaves is what the write before it left."""
    return not call.operation.startswith(("Get", "BatchGet", "Query", "Scan"))


@pytest.mark.exhaustive
def test_a_sweeper_that_dies_after_any_write_loses_nothing_and_counts_nothing_twice(
    world: World,
) -> None:
    """Each sweeper dies one write later than the one before. Each task is always ahead of the sweep
    pointer or in an open place."""
    tasks = lost_and_held_pages(world)
    for number in range(1, 400):
        died = world.dies(world.sweep_once, number, "after", is_write)
        assert findings(world, tasks) == []
        world.dispatch_until(world.clock.now_ms() // 1000 + 30)
        world.drain()
        if not died and not places(world) and world.swept_second >= tasks[-1].home.second:
            break
    minutes(world, 6)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
    assert places(world) == []
    minutes_of = {task.home.second // 60 for task in tasks}
    counted = world.read_statistics("orders", StatsRequest(min(minutes_of), max(minutes_of))).total
    assert (counted.created, counted.delivered) == (len(tasks), len(tasks))


@pytest.mark.exhaustive
def test_two_concurrent_sweepers_leave_one_list_of_open_places(world: World) -> None:
    """One loses its lease during its run; the list of the other is kept."""
    tasks = lost_and_held_pages(world)

    def overtake() -> None:
        world.clock.advance_ms(60_000)
        world.sweep_once()

    world.recorder.once("Query", overtake)
    world.sweep_once()
    assert findings(world, tasks) == []
    assert (tasks[2].home.second, Why.HELD) in places(world)
    minutes(world, 9)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
