"""Tasks of high priority beside an express queue: they do not wait behind others' messages, and
nothing else about them changes."""

from collections import Counter
from typing import Any

import pytest

from duewheel.rules.priority import Priority
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.task import Made, Status, Task
from duewheel.rules.wheel.addresses import header_place
from duewheel.rules.wheel.queue_messages import Lane, PageMessage, decode
from duewheel.rules.wheel.sharding import Header
from duewheel.stores.wheel.page_queue import SliceQueue
from duewheel.wiring import process
from tests.support.receiver import BUSY, OK
from tests.support.timers import made, occurrences
from tests.support.world import FAR_MS, World

NEAR_MS = 60_000  # announced by the writer


@pytest.fixture(autouse=True)
def has_express(world: World) -> None:
    attributes = {"VisibilityTimeout": "90"}
    url = world.sqs.create_queue(QueueName="express", Attributes=attributes)["QueueUrl"]
    world.wire(express_queue_url=url)


def created(world: World, *priorities: Priority | None, in_ms: int = FAR_MS) -> list[Task]:
    news = [world.new(in_ms=in_ms, priority=priority) for priority in priorities]
    return [made.task for made in world.create(news) if isinstance(made, Made)]


def header_of(world: World, second: int) -> Header | None:
    return world.headers.read([second]).get(second)


def headers_written(world: World) -> int:
    return sum(
        "#shards" in str(call.request.get("UpdateExpression")) for call in world.recorder.calls
    )


def messages(world: World, lane: Lane) -> list[Any]:
    return [decode(message["Body"]) for message in world.receive(lane)]


def deliver_and_sweep(world: World, *tasks: Task) -> None:
    second = max(task.home.second for task in tasks)
    world.dispatch_until(second)
    world.drain()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert len(world.receiver.received) == len(tasks)
    world.sweep_past(second)
    assert len(world.receiver.received) == len(tasks)
    assert world.audit(AuditRequest(second - 300, second + 60)).findings == []


def test_a_second_with_high_priority_has_an_express_shard_for_it_alone(world: World) -> None:
    kinds = [Priority.HIGH, Priority.NORMAL, Priority.LOW, None] * 5
    tasks = created(world, *kinds)

    assert header_of(world, tasks[0].home.second) == Header(2, is_express=True)
    assert [task.home.shard for task in tasks] == [1, 0, 0, 0] * 5
    assert headers_written(world) == 1
    deliver_and_sweep(world, *tasks)


def test_who_has_no_high_priority_writes_no_header(world: World) -> None:
    tasks = created(world, Priority.NORMAL, Priority.LOW, None)
    assert header_of(world, tasks[0].home.second) is None


def test_without_the_queue_high_priority_writes_no_header(world: World) -> None:
    world.wire(express_queue_url="")
    tasks = created(world, Priority.HIGH, None)
    assert header_of(world, tasks[0].home.second) is None
    deliver_and_sweep(world, *tasks)


def test_high_priority_is_called_while_the_messages_of_all_others_wait(world: World) -> None:
    high, *rest = created(world, Priority.HIGH, None, None)
    world.dispatch_until(high.home.second)

    world.drain(Lane.EXPRESS)
    assert world.receiver.task_ids == [high.task_id]
    world.drain(Lane.MAIN)
    assert {*world.receiver.task_ids} == {task.task_id for task in (high, *rest)}


def test_the_priority_of_a_business_counts_where_a_task_says_none(world: World) -> None:
    world.configured("orders", priority=Priority.HIGH)
    own, low = created(world, None, Priority.LOW)
    assert (own.home.shard, low.home.shard) == (1, 0)


def test_of_a_second_with_high_priority_alone_one_message_is_sent(world: World) -> None:
    (task,) = created(world, Priority.HIGH)
    world.dispatch_until(task.home.second)
    world.clock.set_ms(task.due_ms)
    assert messages(world, Lane.MAIN) == []
    assert messages(world, Lane.EXPRESS) == [PageMessage(task.home.second, 1, express=True)]


@pytest.mark.parametrize("in_ms", [NEAR_MS, 2_000])
def test_who_writes_shortly_before_sends_the_message_by_the_queue_of_its_priority(
    world: World, in_ms: int
) -> None:
    high, normal = created(world, Priority.HIGH, None, in_ms=in_ms)
    assert high.home.direct == (in_ms == 2_000)
    world.clock.set_ms(high.due_ms)
    world.drain(Lane.EXPRESS)
    assert world.receiver.task_ids == [high.task_id]
    deliver_and_sweep(world, high, normal)


def test_who_writes_high_priority_into_a_second_that_was_dispatched_without_is_on_time(
    world: World,
) -> None:
    (normal,) = created(world, None, in_ms=NEAR_MS)
    world.dispatch_until(normal.home.second)
    (high,) = created(world, Priority.HIGH, in_ms=normal.due_ms - world.clock.now_ms())
    assert high.home.second == normal.home.second
    world.clock.set_ms(high.due_ms)
    world.drain(Lane.EXPRESS)
    assert world.receiver.task_ids == [high.task_id]
    deliver_and_sweep(world, high, normal)


def test_who_writes_into_the_other_shard_after_the_dispatch_is_on_time(world: World) -> None:
    (high,) = created(world, Priority.HIGH, in_ms=NEAR_MS)
    world.dispatch_until(high.home.second)
    (normal,) = created(world, None, in_ms=high.due_ms - world.clock.now_ms())
    assert normal.home.shard == 0
    deliver_and_sweep(world, high, normal)


def test_an_express_page_goes_on_in_its_lane(world: World) -> None:
    world.wire(page_size=2)
    tasks = created(world, *[Priority.HIGH] * 5)
    world.dispatch_until(tasks[0].home.second)
    world.drain(Lane.EXPRESS)
    assert len(world.receiver.received) == len(tasks)


def test_a_retry_of_high_priority_is_made_by_the_express_queue(world: World) -> None:
    (task,) = created(world, Priority.HIGH)
    world.receiver.answer = lambda r: OK if r.headers["duewheel-attempt"] == "2" else BUSY
    world.dispatch_until(task.home.second)
    world.drain(Lane.EXPRESS)
    retried = world.read(task)
    assert (retried.status, retried.entry.shard % 2) == (Status.PENDING, 1)
    world.dispatch_until(retried.entry.second)
    world.drain(Lane.EXPRESS)
    assert world.read(task).status is Status.DELIVERED


def test_a_crowded_second_becomes_an_express_one_with_as_many_shards(world: World) -> None:
    second = (world.clock.now_ms() + FAR_MS) // 1000
    world.headers.raise_to(second, 8)
    world.reserve_shards.known.keep({second: Header(8)})
    tasks = created(world, *[Priority.HIGH] * 6, *[None] * 6)
    assert header_of(world, second) == Header(8, is_express=True)
    assert [task.home.shard % 2 for task in tasks] == [1] * 6 + [0] * 6
    deliver_and_sweep(world, *tasks)


def test_an_express_second_that_gets_crowded_has_twice_the_shards(world: World) -> None:
    world.random_unit = 0.0
    (high,) = created(world, Priority.HIGH)
    world.loads.add([])
    tasks = created(world, *[None] * 300)
    header = header_of(world, high.home.second)
    assert header == Header(4, is_express=True)
    assert {task.home.shard for task in tasks} == {0, 2}


def test_a_header_that_cannot_be_written_leaves_high_priority_in_the_first_shard(
    world: World,
) -> None:
    world.recorder.refuse("UpdateItem", of="#shards < :shards")
    (task,) = created(world, Priority.HIGH)
    assert task.home.shard == 0
    world.recorder.refuse()
    deliver_and_sweep(world, task)


def test_the_header_of_an_express_second_is_let_go_with_it(world: World) -> None:
    (task,) = created(world, Priority.HIGH)
    deliver_and_sweep(world, task)
    place = header_place(task.home.second)
    (header,) = [item for item in world.items() if item["place"]["S"] == place]
    assert "expires_at" in header


def test_lost_messages_of_the_express_queue_are_sent_again(world: World) -> None:
    (task,) = created(world, Priority.HIGH)
    world.dispatch_until(task.home.second)
    world.sqs.purge_queue(QueueUrl=world.queues[Lane.EXPRESS].url)
    world.sweep_past(task.home.second)
    world.drain()
    assert world.read(task).status is Status.DELIVERED


def test_an_express_message_that_sqs_refused_once_leaves_the_queues_countable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweeper hardly sends such messages, so it would not learn that SQS accepts them again."""
    sender = process.message_sender()
    with monkeypatch.context() as outage:
        outage.setattr(SliceQueue, "send", lambda _, messages, *__: list(messages))
        sender.send([PageMessage(world.clock.now_ms() // 1000, 1, express=True)])
    assert sender.waiting() == 0


def test_a_run_of_a_timer_of_high_priority_is_called_by_the_express_queue(world: World) -> None:
    timer = made(world, 200, priority=Priority.HIGH)
    world.drain()
    run = occurrences(world, timer)[1]
    assert run.home.shard == 0, "it follows from the timer and the second"
    assert run.entry.shard == 1
    assert run.entry.second == run.home.second
    world.receiver.received.clear()

    world.dispatch_until(run.entry.second)
    world.drain(Lane.EXPRESS)
    assert run.task_id in world.receiver.task_ids
    world.sweep_past(run.entry.second)
    assert world.receiver.task_ids.count(run.task_id) == 1
    assert world.audit(AuditRequest(run.home.second - 300, run.home.second + 60)).findings == []


def test_planning_writes_nothing_more_for_other_timers(world: World) -> None:
    timer = made(world, 60)
    world.drain()
    assert all(run.names_its_home for run in occurrences(world, timer))


def test_a_second_with_high_priority_alone_costs_two_writes_more(world: World) -> None:
    """The header, and its end."""

    def writes(priority: Priority | None) -> Counter[str]:
        world.recorder.clear()
        (task,) = created(world, priority)
        deliver_and_sweep(world, task)
        world.receiver.received.clear()
        own = [c for c in world.recorder.calls if c.request.get("TableName") == world.tasks.table]
        writing = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
        return Counter(call.operation for call in own if call.operation in writing)

    high, normal = writes(Priority.HIGH), writes(None)
    assert high - normal == Counter({"UpdateItem": 2})
    assert not normal - high
