"""Creating tasks, far and near."""

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.refusals import TooManyWrites, Unavailable
from duewheel.rules.tasks.task import Task
from tests.support.recorder import Call
from tests.support.world import FAR_MS, World


def test_a_far_task_is_one_write_and_no_message(world: World) -> None:
    world.created()
    world.recorder.clear()
    world.created(in_ms=600_000)

    assert world.recorder.operations() == ["PutItem"]


def test_a_near_task_is_one_write_and_one_message(world: World) -> None:
    world.created()
    world.recorder.clear()
    world.created(in_ms=3_000)

    assert world.recorder.operations() == ["PutItem", "SendMessageBatch"]
    entry = world.recorder.calls[-1].request["Entries"][0]
    assert entry["DelaySeconds"] == 2, "whole seconds, rather early than late"


def test_an_entry_is_announced_while_the_registry_refuses_reads(world: World) -> None:
    """The task is stored by then, and its message needs nothing from there."""
    task = world.placed(world.new(in_ms=30_000))
    world.tasks.create(task)
    world.clock.advance_ms(15_000)  # the time pointer has to be read again
    world.recorder.clear()
    world.recorder.refuse("GetItem")
    world.entry_writer.announce([task.home])

    assert world.recorder.operations() == ["SendMessageBatch"]


def test_the_message_of_a_page_is_not_delayed_by_a_clock_far_behind(world: World) -> None:
    """Of AWS's time and its own clock a writer takes the later, as for the entry's place."""
    task = world.placed(world.new(in_ms=30_000))
    world.tasks.create(task)
    world.aws_time._latest_ms = world.clock.now_ms() + 12_000
    world.recorder.clear()
    world.entry_writer.announce([task.home])

    (entry,) = world.recorder.calls[-1].request["Entries"]
    assert entry["DelaySeconds"] == 19, "AWS's time may be 2 s ahead"


def test_the_message_of_a_near_task_comes_shortly_before_its_own_instant(world: World) -> None:
    """Not before its second, or a notifier would be paid for waiting."""
    world.created()
    world.recorder.clear()
    world.created(in_ms=3_900)

    assert world.recorder.operations() == ["PutItem", "SendMessageBatch"]
    entry = world.recorder.calls[-1].request["Entries"][0]
    assert entry["DelaySeconds"] == 3


def test_a_task_that_is_due_in_the_past_is_placed_now_and_keeps_its_due_instant(
    world: World,
) -> None:
    task = world.created(in_ms=-3_600_000)
    world.drain()

    assert task.home.instant_ms == world.clock.now_ms()
    assert world.read(task).due_ms == world.clock.now_ms() - 3_600_000
    assert world.read(task).lateness_ms == 3_600_000


def test_a_task_created_while_its_slice_is_being_read_is_delivered_once(world: World) -> None:
    first = world.created(in_ms=FAR_MS)
    world.dispatch_until(first.due_ms // 1000)
    created: list[Task] = []

    def create_one_more(call: Call) -> None:
        if call.operation == "Query":
            world.recorder.before = world.recorder.after = None
            created.append(world.created(in_ms=400))

    (message,) = world.receive()
    world.recorder.after = create_one_more
    world.handle(message)
    world.drain()

    assert sorted(world.receiver.task_ids) == sorted([first.task_id, created[0].task_id])


def test_the_sweep_finds_a_task_whose_slow_write_arrived_after_its_slice_was_read(
    world: World,
) -> None:
    """The second was far when its place was chosen; its slice was dispatched and read before the
    write arrived."""
    witness = world.created(in_ms=20_000)

    def take_long() -> None:
        world.dispatch_until(witness.due_ms // 1000 + 1)
        world.drain()

    world.recorder.once("PutItem", take_long)
    slow = world.created(in_ms=20_000)
    assert not slow.home.direct
    assert world.receiver.task_ids == [witness.task_id]

    world.sweep_past(slow.home.second)
    world.drain()
    assert world.receiver.task_ids == [witness.task_id, slow.task_id]


def test_a_create_whose_answer_was_lost_makes_one_task(world: World) -> None:
    world.recorder.lose_answer(world.dynamodb, "PutItem")
    task = world.created(in_ms=0)
    assert world.recorder.before is None
    world.drain()

    assert world.receiver.task_ids == [task.task_id]


def test_a_near_task_that_the_queue_refuses_is_kept_and_swept(world: World) -> None:
    world.recorder.refuse("SendMessageBatch")
    task = world.created(in_ms=0)
    world.recorder.before = None
    assert world.messages_waiting() == 0

    world.sweep_past(task.home.second)
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


def test_a_batch_writes_twenty_five_to_a_request(world: World) -> None:
    world.created()
    world.recorder.clear()
    results = world.created_many([world.new(in_ms=600_000 + n) for n in range(60)])

    looked_at_the_header = ["BatchGetItem"]
    assert world.recorder.operations() == looked_at_the_header + ["BatchWriteItem"] * 3
    assert all(isinstance(result, Task) for result in results)


def test_near_tasks_of_a_batch_share_messages(world: World) -> None:
    results = world.created_many([world.new(in_ms=0) for _ in range(60)])
    assert world.messages_waiting() == 3
    world.drain()

    assert sorted(world.receiver.task_ids) == sorted(
        result.task_id for result in results if isinstance(result, Task)
    )


def test_items_that_dynamodb_leaves_unprocessed_are_sent_again(world: World) -> None:
    leave_last_unprocessed(world, times=2)
    results = world.created_many([world.new() for _ in range(10)])

    assert all(isinstance(result, Task) for result in results)
    assert sum(1 for item in world.items() if "status" in item) == 10


def test_items_that_stay_unprocessed_are_refused_and_not_created(world: World) -> None:
    leave_last_unprocessed(world, times=1_000)
    results = world.created_many([world.new() for _ in range(10)])

    refused = [result for result in results if isinstance(result, Unavailable)]
    stored = [item for item in world.items() if "status" in item]
    assert len(refused) == 1
    assert len(stored) == 9
    assert isinstance(results[-1], Unavailable)


def test_a_throttled_create_is_refused_as_unavailable(world: World) -> None:
    task = world.placed(world.new(in_ms=600_000))
    world.created()
    world.recorder.refuse("PutItem", "UpdateItem", code="ProvisionedThroughputExceededException")
    (refused,) = world.create.store([task])
    assert isinstance(refused, TooManyWrites)


def leave_last_unprocessed(world: World, times: int) -> None:
    """DynamoDB leaves the last item of a batch unprocessed, so many times."""
    original = world.dynamodb.batch_write_item
    left = iter(range(times))

    def partly(RequestItems: dict[str, list[object]]) -> dict[str, object]:
        ((table, requests),) = RequestItems.items()
        if next(left, None) is None:
            return dict(original(RequestItems=RequestItems))
        if len(requests) > 1:
            original(RequestItems={table: requests[:-1]})
        return {"UnprocessedItems": {table: requests[-1:]}}

    world.dynamodb.batch_write_item = partly


@pytest.mark.parametrize("years", [1, 10])
def test_a_task_years_ahead_is_stored_and_found_by_its_id(world: World, years: int) -> None:
    task = world.created(in_ms=years * 365 * 86_400_000)
    assert world.change_pending.find(task.home) == task


def test_a_batch_that_fails_leaves_no_write_under_way(world: World) -> None:
    """Lambda stops a process after its answer, so a write that is still under way could arrive much
    later."""
    begun: list[Call] = []

    def fail_at_first(call: Call) -> None:
        if call.operation == "PutItem" and "task" in call.request["Item"]:
            begun.append(call)
            if len(begun) == 1:
                raise ClientError({"Error": {"Code": "InternalServerError"}}, call.operation)

    world.recorder.before = fail_at_first
    with pytest.raises(ClientError):
        world.create([world.new(key=f"order-{n}", digest="d") for n in range(20)])

    assert len(begun) == 20
    assert len([item for item in world.items() if "status" in item]) == 19
