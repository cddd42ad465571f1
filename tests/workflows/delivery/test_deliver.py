"""A queue message leads to callbacks that are made and settled, also after interruptions."""

from itertools import count, islice

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.delivery.page_lease import LeaseHeld, PageFinished, PageLease
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import SHARDS_MAX
from duewheel.rules.wheel.queue_messages import (
    DirectMessage,
    MalformedMessage,
    PageMessage,
    decode,
    encode,
)
from tests.support.receiver import OK, Received
from tests.support.recorder import Call, Death
from tests.support.world import FAR_MS, LAMBDA_MS, World


def tasks_of_one_second(world: World, number: int) -> list[Task]:
    return [world.created(in_ms=FAR_MS + n) for n in range(number)]


def only_message(world: World) -> dict[str, str]:
    (message,) = world.receive()
    return message


def test_tasks_whose_payloads_are_numbers_that_cannot_be_read_are_called(world: World) -> None:
    tasks = [world.created(FAR_MS, payload=text) for text in ("1e400", "-1e400", "7" * 5000)]
    world.come_up(tasks[0])
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


@pytest.mark.moto_only(reason="ministack refuses to delete a message twice, SQS does not")
def test_the_same_slice_message_twice_delivers_once(world: World) -> None:
    (task,) = tasks_of_one_second(world, 1)
    message = world.dispatched(task)
    assert isinstance(world.handle(message), PageFinished)
    # Nothing says that the run has ended: its tasks do, when the lease is over.
    assert isinstance(world.handle(message), LeaseHeld)
    world.clock.advance_ms(world.settings.page_lease_ms + 1)
    assert isinstance(world.handle(message), PageFinished)

    assert world.receiver.task_ids == [task.task_id]


def test_a_message_whose_page_another_holds_is_hidden_until_that_lease_ends(world: World) -> None:
    (task,) = tasks_of_one_second(world, 1)
    message = world.dispatched(task)
    duplicates: list[LeaseHeld | PageFinished] = []

    def duplicate_arrives(received: Received) -> Outcome:
        page = PageLease(task.home.second, task.home.shard)
        lease_ms = world.settings.page_lease_ms
        taken = world.pages.take(page, "duplicate", world.clock.now_ms(), lease_ms)
        assert not isinstance(taken, PageLease)
        duplicates.append(taken)
        return OK

    world.receiver.answer = duplicate_arrives
    began_ms = world.clock.now_ms()
    world.handle(message)

    assert duplicates == [LeaseHeld(began_ms + world.settings.page_lease_ms)]
    assert world.receiver.task_ids == [task.task_id]


def test_a_page_longer_than_the_limit_fans_out_and_delivers_everything_once(world: World) -> None:
    world.wire(page_size=10)
    tasks = tasks_of_one_second(world, 35)
    world.dispatch_until(tasks[0].due_ms // 1000)

    first = only_message(world)
    world.handle(first)
    assert len(world.receiver.received) == 10
    assert world.messages_waiting() == 1, "the message of the next page was sent"
    world.drain()

    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_slice_of_exactly_one_page_sends_no_second_message(world: World) -> None:
    world.wire(page_size=10)
    tasks = tasks_of_one_second(world, 10)
    world.handle(world.dispatched(tasks[0]))

    assert world.messages_waiting() == 0


def test_the_next_page_is_announced_before_this_one_is_delivered(world: World) -> None:
    world.wire(page_size=2)
    tasks = tasks_of_one_second(world, 4)
    world.dispatch_until(tasks[0].due_ms // 1000)
    waiting: list[int] = []

    def look(received: Received) -> Outcome:
        waiting.append(world.messages_waiting())
        return OK

    world.receiver.answer = look
    world.handle(only_message(world))

    assert waiting == [2, 2], "this page's message, in flight, and that of the next page"


def crowded(world: World, *, shards: int) -> list[Task]:
    """A task in each shard of a second."""
    second = (world.clock.now_ms() + FAR_MS) // 1000
    world.headers.raise_to(second, shards)
    world.reserve_shards.known.keep({second: shards})
    placed = (world.placed(world.new(in_ms=FAR_MS + n)) for n in count())
    tasks = {task.home.shard: task for task in islice(placed, 20 * shards)}
    assert len(tasks) == shards
    world.create.store(list(tasks.values()))
    return [tasks[shard] for shard in range(shards)]


@pytest.mark.parametrize(("shards_sent", "sends"), [(None, [1, 2]), (2, [2]), (SHARDS_MAX, [])])
def test_the_first_page_of_a_second_sends_the_messages_of_the_shards_that_are_missing(
    world: World, shards_sent: int | None, sends: list[int]
) -> None:
    """Its sender may have read the header before the second got its shards."""
    tasks = crowded(world, shards=3)
    world.clock.set_ms(tasks[0].due_ms)
    world.queue.send([PageMessage(tasks[0].home.second, 0, shards=shards_sent)])
    world.handle(only_message(world))
    messages = world.receive()
    assert [decode(one["Body"]) for one in messages] == [
        PageMessage(tasks[0].home.second, shard) for shard in sends
    ]
    for message in messages:
        world.handle(message)
    assert sorted(world.receiver.task_ids) == sorted(tasks[n].task_id for n in (0, *sends))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_missing_shards_are_called_although_the_first_page_dies_while_it_sends_their_messages(
    world: World, moment: str
) -> None:
    tasks = crowded(world, shards=3)
    world.clock.set_ms(tasks[0].due_ms)
    world.queue.send([PageMessage(tasks[0].home.second, 0)])
    message = only_message(world)
    world.recorder.die("SendMessageBatch", moment)
    with pytest.raises(Death):
        world.handle(message)
    world.clock.advance_ms(world.settings.page_lease_ms + 16_000)
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_later_page_and_another_shard_send_no_messages_of_shards(world: World) -> None:
    world.wire(page_size=1)
    tasks = crowded(world, shards=3)
    second = tasks[0].home.second
    world.clock.set_ms(tasks[0].due_ms)
    world.queue.send(
        [PageMessage(second, 1), PageMessage(second, 0, page="1", after=tasks[0].home.place)]
    )
    for message in world.receive():
        world.handle(message)
    assert world.messages_waiting() == 0
    assert world.receiver.task_ids == [tasks[1].task_id]


def test_a_rerun_of_a_cut_page_stops_where_it_was_cut(world: World) -> None:
    """Entries that are added to the range later do not shift the pages behind it."""
    world.wire(page_size=2)
    tasks = tasks_of_one_second(world, 4)
    message = world.dispatched(tasks[0])
    world.recorder.die("BatchWriteItem", "before")
    with pytest.raises(Death):
        world.handle(message)
    lease_ends = world.settings.page_lease_ms + 1
    world.clock.advance_ms(lease_ends)
    world.handle(message)
    world.drain()

    calls = world.receiver.task_ids
    assert calls[:4] == [tasks[0].task_id, tasks[1].task_id] * 2, "repeated because of the crash"
    assert sorted(calls[4:]) == sorted(task.task_id for task in tasks[2:])


def test_a_crash_between_call_and_settle_repeats_the_call_and_loses_nothing(world: World) -> None:
    (task,) = tasks_of_one_second(world, 1)
    message = world.dispatched(task)
    world.recorder.die("BatchWriteItem", "before")
    with pytest.raises(Death):
        world.handle(message)
    assert world.read(task).status is Status.PENDING

    world.clock.advance_ms(100_000)
    world.drain()

    assert world.receiver.task_ids == [task.task_id, task.task_id]
    assert world.read(task).status is Status.DELIVERED


def test_a_crash_after_settling_repeats_nothing(world: World) -> None:
    (task,) = tasks_of_one_second(world, 1)
    world.dispatch_until(task.due_ms // 1000)
    world.recorder.die("BatchWriteItem", "after")
    with pytest.raises(Death):
        world.handle(only_message(world))

    world.clock.advance_ms(100_000)
    world.drain()

    assert world.receiver.task_ids == [task.task_id]


def test_nothing_is_read_before_the_second_less_lead(world: World) -> None:
    (task,) = tasks_of_one_second(world, 1)
    opens_ms = task.due_ms // 1000 * 1000 - world.settings.lead_ms
    world.clock.set_ms(opens_ms - 1_500)
    read_at: list[int] = []

    def note(call: Call) -> None:
        if call.operation == "Query":
            read_at.append(world.clock.now_ms())

    world.recorder.before = note
    world.queue.send([PageMessage(task.home.second, 0)])
    world.handle(only_message(world))

    assert read_at == [opens_ms]
    assert world.receiver.received[0].at_ms == task.due_ms


def test_a_slice_announced_far_too_early_is_hidden_until_it_opens(world: World) -> None:
    (task,) = tasks_of_one_second(world, 1)
    world.queue.send([PageMessage(task.home.second, 0)])
    result = world.handle(only_message(world))

    assert result == LeaseHeld(task.due_ms // 1000 * 1000 - world.settings.lead_ms)
    assert world.receiver.received == []


def test_entries_for_which_the_lambda_has_no_time_are_passed_on_and_called_once(
    world: World,
) -> None:
    """The Lambda's deadline comes while the calls are under way."""
    tasks = [world.created(in_ms=FAR_MS) for _ in range(6)]
    world.dispatch_until(tasks[0].due_ms // 1000)

    def slow(received: Received) -> Outcome:
        world.clock.advance_ms(15_000)
        return OK

    world.receiver.answer = slow
    world.deliver = world.notifier(call_slots=1)
    world.handle(only_message(world), lambda_ms=LAMBDA_MS)
    begun = len(world.receiver.received)
    assert 0 < begun < 6

    world.receiver.answer = lambda received: OK
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_second_run_of_a_page_does_not_call_the_rest_that_the_first_passed_on(
    world: World,
) -> None:
    tasks = [world.created(in_ms=FAR_MS) for _ in range(4)]
    message = world.dispatched(tasks[0])
    world.recorder.die("UpdateItem", of="#done = :value")
    with pytest.raises(Death):
        world.handle(message, lambda_ms=0)
    assert world.receiver.received == [], "there was no time for any call: all four were passed on"

    (rest,) = world.receive()
    world.handle(rest)
    world.clock.advance_ms(world.settings.page_lease_ms + 1)
    world.handle(message)
    world.drain()

    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_task_that_was_passed_on_a_hundred_times_is_called_after_the_sweep(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.dispatch_until(task.due_ms // 1000)
    for _ in range(100):
        world.handle(only_message(world), lambda_ms=0)
    assert world.receive() == []
    assert world.receiver.received == []

    world.sweep_past(task.home.second)
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


def test_a_direct_message_more_than_thirty_seconds_late_is_left_to_the_sweep(world: World) -> None:
    task = world.created(in_ms=0)
    message = only_message(world)
    world.clock.advance_ms(31_000)
    assert isinstance(world.handle(message), PageFinished)
    assert world.receiver.received == []

    world.sweep_past(task.home.second)
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


def test_a_task_whose_next_at_has_moved_to_later_gets_a_new_entry(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    later_ms = task.due_ms + 30_000
    moved = replace(task, due_ms=later_ms, next_ms=later_ms, version=task.version + 1)
    assert world.tasks.change(task, moved)

    world.come_up(task)
    assert world.receiver.received == []
    assert world.read(task).entry.instant_ms == later_ms

    world.dispatch_until(later_ms // 1000)
    world.drain()
    assert [r.at_ms for r in world.receiver.received] == [later_ms]


def test_a_task_past_its_grace_expires_without_a_call(world: World) -> None:
    task = world.created(in_ms=FAR_MS, expires_after_seconds=5.0)
    world.dispatch_until(task.due_ms // 1000 + 6)
    world.drain()

    assert world.receiver.received == []
    assert world.read(task).status is Status.EXPIRED


def test_an_unreadable_message_is_refused_and_left_for_the_dead_letter_queue(world: World) -> None:
    world.sqs.send_message(QueueUrl=world.settings.slice_queue_url, MessageBody="{rubbish")
    message = only_message(world)
    with pytest.raises(MalformedMessage):
        world.handle(message)


def test_a_task_that_fails_to_settle_does_not_affect_the_others(world: World) -> None:
    tasks = [world.created(in_ms=FAR_MS) for _ in range(2)]
    message = world.dispatched(tasks[0])
    bad = tasks[0].task_id

    def break_one(received: Received) -> Outcome:
        if received.task_id == bad:
            raise RuntimeError("a bug")
        return OK

    world.receiver.answer = break_one
    with pytest.raises(RuntimeError):
        world.handle(message)

    assert world.read(tasks[1]).status is Status.DELIVERED
    assert world.read(tasks[0]).status is Status.PENDING


def test_every_attempt_has_the_same_id_and_its_own_number(world: World) -> None:
    (task,) = tasks_of_one_second(world, 1)
    world.come_up(task)

    headers = world.receiver.received[0].headers
    assert headers["webhook-id"] == task.task_id
    assert headers["duewheel-attempt"] == "1"
    assert headers["duewheel-biz-type"] == "orders"
    assert headers["webhook-timestamp"] == str(task.due_ms // 1000)
    assert world.receiver.received[0].body == b'{"order": 17}'


def test_messages_survive_the_queue_unchanged() -> None:
    for message in (
        PageMessage(1_800_000_000, 3, page="12", after="01800000000.500#abcdefghijk"),
        PageMessage(
            1_800_000_000, 0, page="0r", after=None, places=("01800000000.500#abcdefghijk",)
        ),
        DirectMessage(1_800_000_000, ("0:01800000000/500#abcdefghijk",)),
    ):
        assert decode(encode(message)) == message
