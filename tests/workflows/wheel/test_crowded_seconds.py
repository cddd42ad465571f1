"""Seconds that are crowded: how they get their shards, and that nothing is lost in any of them."""

from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.refusals import Unavailable
from duewheel.rules.sweep.audit import AuditRequest, Wrong
from duewheel.rules.tasks.task import Made, Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.rules.wheel.sharding import SLICE_ENTRIES
from duewheel.stores.wheel.sharding import HeaderCache
from tests.support.damage import edit
from tests.support.receiver import BUSY, OK
from tests.support.recorder import Call
from tests.support.world import World

ALWAYS, NEVER = 0.0, 0.999  # of what is left to chance
MINUTE_MS = 60_000


def header(world: World, second: int) -> dict[str, Any] | None:
    place = addresses.header_place(second)
    return next((item for item in world.items() if item["place"]["S"] == place), None)


def shards_of(world: World, second: int) -> int:
    return world.headers.read([second]).get(second, 1)


def batch(world: World, number: int, in_ms: int = MINUTE_MS) -> list[Task]:
    results = world.create([world.new(in_ms=in_ms) for _ in range(number)])
    return [made.task for made in results if isinstance(made, Made)]


def deliver_and_sweep(world: World, *tasks: Task) -> None:
    """Everything is called once, on time, without the sweep's help, and nothing is left behind."""
    second = max(task.home.second for task in tasks)
    world.dispatch_until(second)
    world.drain()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert len(world.receiver.received) == len(tasks)
    world.sweep_past(second)
    assert len(world.receiver.received) == len(tasks)
    assert world.audit(AuditRequest(second - 300, second + 60)).findings == []


@pytest.mark.exhaustive
def test_a_batch_sizes_its_second_before_it_is_written(world: World) -> None:
    tasks = batch(world, SLICE_ENTRIES + 1)
    second = tasks[0].home.second
    assert shards_of(world, second) == 2
    by_shard = Counter(task.home.shard for task in tasks)
    assert set(by_shard) == {0, 1}
    operations = world.recorder.operations()
    raised = operations.index("UpdateItem", operations.index("UpdateItem") + 1)
    assert raised < operations.index("BatchWriteItem")
    deliver_and_sweep(world, *tasks)


def test_a_second_grows_while_tasks_arrive_and_every_slice_is_dispatched(world: World) -> None:
    world.random_unit = ALWAYS  # each counts for 64
    tasks = [world.created() for _ in range(12)]
    second = tasks[0].home.second
    assert shards_of(world, second) == 4  # for 768
    assert len({task.home.shard for task in tasks}) > 1
    assert [task.home.shard for task in tasks[:3]] == [0, 0, 0]
    deliver_and_sweep(world, *tasks)


@pytest.mark.exhaustive
def test_a_process_that_does_not_know_of_the_header_learns_of_it_by_chance(world: World) -> None:
    second = (world.clock.now_ms() + MINUTE_MS) // 1000
    world.headers.raise_to(second, 64)
    unaware = [world.created() for _ in range(4)]
    assert {task.home.shard for task in unaware} == {0}
    world.random_unit = 0.05  # looked at, and not noted
    aware = [world.created() for _ in range(4)]
    assert {task.home.shard for task in aware} != {0}
    world.random_unit = NEVER
    world.recorder.clear()
    known = world.created()
    assert world.recorder.operations() == ["PutItem"]
    deliver_and_sweep(world, *unaware, *aware, known)


@pytest.mark.exhaustive
def test_a_batch_that_meets_a_header_takes_its_shards(world: World) -> None:
    second = (world.clock.now_ms() + MINUTE_MS) // 1000
    world.headers.raise_to(second, 16)
    tasks = batch(world, 40)  # too few to be noted, too many not to look
    assert len({task.home.shard for task in tasks}) > 8
    deliver_and_sweep(world, *tasks)


def test_a_header_only_rises(world: World) -> None:
    second = world.origin + 60
    assert world.headers.raise_to(second, 8) == 8
    assert world.headers.raise_to(second, 2) == 8
    assert world.headers.raise_to(second, 8) == 8
    assert world.headers.raise_to(second, 32) == 32
    assert shards_of(world, second) == 32


def test_no_shard_is_used_before_its_header_has_been_written(world: World) -> None:
    world.recorder.refuse("UpdateItem", code="ThrottlingException", of="shards")
    tasks = batch(world, SLICE_ENTRIES + 1)
    world.recorder.before = None
    assert len(tasks) == SLICE_ENTRIES + 1
    assert {task.home.shard for task in tasks} == {0}
    assert header(world, tasks[0].home.second) is None


@pytest.mark.exhaustive
def test_a_leader_that_probes_again_leaves_the_other_shards_to_the_run_of_the_first_page(
    world: World,
) -> None:
    """It stays while the queue refuses. What was refused for a second that the pointer had passed
    is sent by no other leader when this one ends."""

    def refuse_shard_1(messages: Iterable[PageMessage], delay_seconds: object) -> list[PageMessage]:
        sent = [message for message in messages if message.shard != 1]
        assert world.queue.send(sent) == []
        return [message for message in messages if message.shard == 1]

    second = (world.clock.now_ms() + MINUTE_MS) // 1000
    world.lead_once()  # dispatches the second as empty
    world.headers.raise_to(second, 2)
    world.reserve_shards.known.keep({second: 2})
    tasks = batch(world, 10)
    assert {task.home.shard for task in tasks} == {0, 1}
    world.clock.set_ms(second * 1000)
    (of_writer,) = world.receive()
    leader = replace(world.dispatch, message_sender=SimpleNamespace(send=refuse_shard_1))
    leader.begin()
    leader.tick(world.pointer().position)
    world.drain()
    world.handle(of_writer)
    world.drain()

    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}


def test_direct_entries_of_many_shards_are_announced_called_and_swept(world: World) -> None:
    """What is due at once by the hundreds does not meet one partition."""
    tasks = batch(world, 2 * SLICE_ENTRIES, in_ms=0)
    assert all(task.home.direct for task in tasks)
    assert len({task.home.shard for task in tasks}) == 2
    world.drain()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    world.sweep_past(tasks[0].home.second)
    assert len(world.receiver.received) == len(tasks)


@pytest.mark.exhaustive
def test_a_direct_entry_written_after_dispatch_in_a_new_shard_is_found_by_the_sweep(
    world: World,
) -> None:
    """The slices of its second were read before its header: they do not matter for it, and the
    sweep reads the header again."""
    early = world.created(in_ms=3_000)
    second = early.home.second
    world.dispatch_until(second)
    world.drain()
    assert header(world, second) is None
    world.headers.raise_to(second, 32)
    world.random_unit = 0.05
    late = [world.created(in_ms=0) for _ in range(4)]
    world.random_unit = NEVER
    assert {task.home.second for task in late} == {second}
    assert {task.home.shard for task in late} != {0}
    world.sqs.purge_queue(QueueUrl=world.queue.url)
    world.sweep_past(second)
    for task in late:
        world.sweep_past(world.read(task).entry.second)
    assert {world.read(task).status for task in [early, *late]} == {Status.DELIVERED}
    assert len(world.receiver.received) == 5


@pytest.mark.exhaustive
def test_direct_entries_of_several_shards_pass_to_the_slow_lane(world: World) -> None:
    world.found_slow("orders")
    world.headers.raise_to(world.clock.now_ms() // 1000, 16)
    tasks = batch(world, 30, in_ms=0)
    assert len({task.home.shard for task in tasks}) > 8
    world.drain()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    world.sweep_past(tasks[0].home.second)
    assert len(world.receiver.received) == len(tasks)


@pytest.mark.exhaustive
def test_retries_and_moved_tasks_take_the_shards_of_their_new_second(world: World) -> None:
    retry = RetryPolicy(3, delays_seconds=(120.0,))
    tasks = [world.created(retry=retry) for _ in range(3)]
    moved = world.created(in_ms=3_000_000)
    second = tasks[0].home.second
    for ahead in (120, 121):
        world.headers.raise_to(second + ahead, 8)
    world.random_unit = 0.05
    moved = world.change(moved.task_id, Change(due_ms=(second + 120) * 1000))
    world.receiver.answer = lambda r: OK if r.headers["duewheel-attempt"] == "2" else BUSY
    world.dispatch_until(second)
    world.drain()
    world.random_unit = NEVER
    entries = [world.read(task).entry for task in tasks]
    assert {entry.shard for entry in [*entries, moved.entry]} != {0}
    world.receiver.answer = lambda _: OK
    world.dispatch_until(second + 125)
    world.drain()
    assert {world.read(task).status for task in [*tasks, moved]} == {Status.DELIVERED}
    world.sweep_past(second + 125)
    assert world.entries_elsewhere() == []


@pytest.mark.exhaustive
def test_a_header_can_be_deleted_by_time_once_the_sweep_has_passed_its_second(world: World) -> None:
    tasks = batch(world, SLICE_ENTRIES + 1)
    second = tasks[0].home.second
    world.dispatch_until(second)
    before = header(world, second)
    assert before is not None
    assert "expires_at" not in before
    world.drain()
    kept = max(world.read(task).expires_at or 0 for task in tasks)
    written: list[str] = []
    world.recorder.after = lambda call: written.append(str(call.request.get("Key")))
    world.sweep_past(second)
    after = header(world, second)
    assert after is not None
    assert int(after["expires_at"]["N"]) >= kept
    assert sum(addresses.header_place(second) in key for key in written) == 1


@pytest.mark.exhaustive
def test_a_crowd_of_a_damaged_header_is_called_by_the_sweep(world: World) -> None:
    """Whoever dispatches sees one shard; the sweep looks at all that there could be."""
    tasks = batch(world, SLICE_ENTRIES + 1)
    second = tasks[0].home.second
    edit(
        world,
        {
            "slot": {"S": f"{second % world.settings.buckets}.0"},
            "place": {"S": addresses.header_place(second)},
        },
        shards={"S": "many"},
    )
    found = world.audit(AuditRequest(second, second)).findings
    assert [(one.wrong, one.attribute) for one in found] == [(Wrong.UNREADABLE, "shards")]
    world.dispatch_until(second)
    world.drain()
    called = len(world.receiver.received)
    assert 0 < called < len(tasks)
    world.sweep_past(second)
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert len(world.receiver.received) == len(tasks)


# What DynamoDB would not take


def refuse_in_shard(world: World, shard: int, code: str) -> None:
    """One partition takes nothing any more."""
    suffix = f".{shard}"

    def refuse(call: Call) -> None:
        item = call.request.get("Item", {})
        if call.operation == "PutItem" and item.get("slot", {}).get("S", "").endswith(suffix):
            raise ClientError({"Error": {"Code": code}}, call.operation)

    world.recorder.before = refuse


@pytest.mark.exhaustive
def test_a_throttled_create_looks_at_the_header_and_is_placed_anew(world: World) -> None:
    second = (world.clock.now_ms() + MINUTE_MS) // 1000
    world.headers.raise_to(second, 64)
    refuse_in_shard(world, 0, "ProvisionedThroughputExceededException")
    tasks = batch(world, 1)
    world.recorder.before = None
    assert [task.home.shard != 0 for task in tasks] == [True]
    deliver_and_sweep(world, *tasks)


def test_a_throttled_create_writes_a_header_where_there_is_none(world: World) -> None:
    refuse_in_shard(world, 0, "ThrottlingException")
    results = [world.create([world.new()])[0] for _ in range(8)]
    world.recorder.before = None
    made = [result.task for result in results if isinstance(result, Made)]
    refused = [result for result in results if not isinstance(result, Made)]
    assert made
    assert {task.home.shard for task in made} == {1}
    assert all(isinstance(result, Unavailable) for result in refused)
    assert shards_of(world, made[0].home.second) == 2
    deliver_and_sweep(world, *made)


def test_a_create_that_was_carried_out_before_it_was_throttled_is_not_made_twice(
    world: World,
) -> None:
    """An SDK's first try may time out and yet be done, and its last be refused."""

    def after(call: Call) -> None:
        if call.operation == "PutItem":
            world.recorder.after = None
            code = "ProvisionedThroughputExceededException"
            raise ClientError({"Error": {"Code": code}}, call.operation)

    world.lead_once()  # dispatches the second as empty
    world.recorder.after = after
    (task,) = batch(world, 1)
    assert len([item for item in world.items() if "status" in item]) == 1
    deliver_and_sweep(world, task)


@pytest.mark.exhaustive
def test_what_is_left_of_a_batch_is_placed_anew(world: World) -> None:
    original = world.dynamodb.batch_write_item

    def partly(RequestItems: dict[str, Any]) -> Any:
        """Only shard 1 and above take anything."""
        ((table, requests),) = RequestItems.items()
        left = [r for r in requests if r["PutRequest"]["Item"]["slot"]["S"].endswith(".0")]
        taken = [r for r in requests if r not in left]
        if taken:
            original(RequestItems={table: taken})
        return {"UnprocessedItems": {table: left}} if left else {}

    world.dynamodb.batch_write_item = partly  # type: ignore[method-assign]
    second = (world.clock.now_ms() + MINUTE_MS) // 1000
    world.headers.raise_to(second, addresses.SHARDS_MAX)
    tasks = batch(world, 10)
    world.dynamodb.batch_write_item = original  # type: ignore[method-assign]
    assert len(tasks) == 10
    deliver_and_sweep(world, *tasks)


@pytest.mark.parametrize("code", ["ThrottlingException", "ProvisionedThroughputExceededException"])
def test_a_batch_of_which_nothing_is_taken_is_sent_again(world: World, code: str) -> None:
    world.recorder.refuse("BatchWriteItem", code=code, times=1)
    assert len(batch(world, 5)) == 5


def test_what_is_known_of_seconds_that_have_passed_is_forgotten(world: World) -> None:
    known = HeaderCache(world.clock)
    now = world.clock.now_ms() // 1000
    known.keep(dict.fromkeys(range(now - 9999, now + 1), 2))
    known.keep({now + 1: 4})
    assert known.of(range(now - 9_999, now + 2)) == {now: 2, now + 1: 4}
