"""When the table throttles settlements, notifiers keep trying, and no task is called again."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.delivery.page_lease import LEASE_MS, PageFinished
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.dynamodb import Throttled
from duewheel.workflows.retry_throttled import PAUSE_MS_MAX, TRY_MS_MAX, pause_ms
from tests.support.receiver import BUSY, OK, Received
from tests.support.world import FAR_MS, LAMBDA_MS, World


def refuse_settlements(world: World, times: int = 1_000_000) -> list[int]:
    """DynamoDB refuses so many writes of delivered tasks, in batches or single; the list contains
    the number that is left."""
    batch, put = world.dynamodb.batch_write_item, world.dynamodb.put_item
    left = [times]

    def is_refused() -> bool:
        left[0] -= 1
        return left[0] >= 0

    def batch_refused(RequestItems: dict[str, Any]) -> dict[str, Any]:
        if is_refused():
            return {"UnprocessedItems": RequestItems}
        return dict(batch(RequestItems=RequestItems))

    def put_refused(**request: Any) -> dict[str, Any]:
        if "settled_ms" in request["Item"] and is_refused():
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "PutItem")
        return dict(put(**request))

    world.dynamodb.batch_write_item = batch_refused
    world.dynamodb.put_item = put_refused
    return left


def refuse_updates(world: World, times: int) -> None:
    code, table = "ProvisionedThroughputExceededException", world.settings.wheel_table
    world.recorder.refuse("UpdateItem", code=code, times=times, of=table)


def due_together(world: World, number: int = 4, in_ms: int = FAR_MS) -> list[Task]:
    tasks = [world.created(in_ms=in_ms) for _ in range(number)]
    if not tasks[0].home.direct:
        world.dispatch_until(tasks[0].due_ms // 1000)
    return tasks


def check_called_once_and_settled(world: World, tasks: list[Task]) -> None:
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}


def test_called_tasks_are_settled_once_the_table_accepts_the_write(world: World) -> None:
    tasks = due_together(world)
    (message,) = world.receive()
    refuse_settlements(world, times=12)
    began_ms = world.clock.now_ms()

    assert isinstance(world.handle(message), PageFinished)

    check_called_once_and_settled(world, tasks)
    assert 12 * PAUSE_MS_MAX / 2 < world.clock.now_ms() - began_ms < LAMBDA_MS - TRY_MS_MAX


@pytest.mark.parametrize(("number", "in_ms"), [(4, FAR_MS), (1, 3_000)], ids=["page", "direct"])
def test_settlements_left_at_the_deadline_are_written_by_another_notifier_without_a_call(
    world: World, number: int, in_ms: int
) -> None:
    tasks = due_together(world, number, in_ms)
    world.clock.set_ms(max(world.clock.now_ms(), tasks[0].due_ms - 400))
    messages = world.receive()
    left = refuse_settlements(world)
    for message in messages:
        assert isinstance(world.handle(message), PageFinished)
    assert {world.read(task).status for task in tasks} == {Status.PENDING}
    assert len(world.receiver.received) == len(tasks)

    left[0] = 0
    world.drain()

    check_called_once_and_settled(world, tasks)
    history = world.read(tasks[0]).history
    assert [attempt.at_ms for attempt in history] == [world.receiver.received[0].at_ms]


def test_tasks_are_called_once_if_nothing_of_their_page_can_be_written(world: World) -> None:
    """Neither the settlements nor the record of the rest: the page is begun again by a message with
    the records."""
    tasks = due_together(world)
    (message,) = world.receive()
    left = refuse_settlements(world)

    def answer_and_refuse(_: object) -> Outcome:
        refuse_updates(world, times=1_000_000)
        return OK

    world.receiver.answer = answer_and_refuse
    assert isinstance(world.handle(message), PageFinished)
    assert {world.read(task).status for task in tasks} == {Status.PENDING}

    left[0] = 0
    refuse_updates(world, times=0)
    world.clock.advance_ms(LEASE_MS + 2_000)
    world.drain()

    check_called_once_and_settled(world, tasks)


@pytest.mark.parametrize("in_ms", [FAR_MS, 3_000], ids=["page", "direct"])
def test_a_failed_attempt_that_cannot_be_written_repeats_no_other_call(
    world: World, in_ms: int
) -> None:
    tasks = [t for t in world.created_many([world.new(in_ms)] * 4) if isinstance(t, Task)]
    if not tasks[0].home.direct:
        world.dispatch_until(tasks[0].due_ms // 1000)
    world.clock.set_ms(max(world.clock.now_ms(), tasks[0].due_ms - 400))
    (message,) = world.receive()
    left = refuse_settlements(world)
    failing = tasks[0].task_id

    def answer_and_refuse(received: Received) -> Outcome:
        refuse_updates(world, times=1_000_000)
        return BUSY if received.task_id == failing else OK

    world.receiver.answer = answer_and_refuse
    with suppress(Throttled):
        world.handle(message)

    left[0] = 0
    refuse_updates(world, times=0)
    world.receiver.answer = lambda _: OK
    world.clock.advance_ms(120_000)
    world.drain()

    others = [task for task in tasks if task.task_id != failing]
    called = Counter(world.receiver.task_ids)
    assert {called[task.task_id] for task in others} == {1}
    assert {world.read(task).status for task in others} == {Status.DELIVERED}


def test_a_passed_on_settlement_does_not_settle_a_task_that_has_changed_since(world: World) -> None:
    """The entry of a task may be new, after a sweep that had to write it: that entry is called."""
    (task,) = due_together(world, 1)
    (message,) = world.receive()
    left = refuse_settlements(world)
    world.handle(message)
    left[0] = 0
    moved = world.read(task)
    entry = world.entry_writer.put(moved, moved.next_ms)
    assert world.tasks.change(moved, replace(moved, entry=entry, version=moved.version + 1))

    world.drain()

    assert world.read(task).status is Status.PENDING
    assert world.read(task).entry == entry


def test_tasks_whose_passed_on_settlement_is_lost_are_called_again(world: World) -> None:
    tasks = due_together(world)
    (message,) = world.receive()
    left = refuse_settlements(world)
    world.handle(message)
    left[0] = 0
    (rest,) = world.receive()
    world.sqs.delete_message(
        QueueUrl=world.settings.slice_queue_url, ReceiptHandle=rest["ReceiptHandle"]
    )

    world.sweep_past(tasks[0].due_ms // 1000)

    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert len(world.receiver.received) == 2 * len(tasks)


def test_a_page_waits_for_its_lease_while_the_table_refuses(world: World) -> None:
    tasks = due_together(world)
    (message,) = world.receive()
    refuse_updates(world, times=8)

    assert isinstance(world.handle(message), PageFinished)

    check_called_once_and_settled(world, tasks)


def test_a_failed_attempt_is_recorded_once_the_table_accepts_the_write(world: World) -> None:
    (task,) = due_together(world, 1)
    (message,) = world.receive()
    world.receiver.answer = lambda received: BUSY
    refuse_updates(world, times=8)

    world.handle(message)

    assert len(world.receiver.received) == 1
    assert world.read(task).attempts == 1


@pytest.mark.parametrize("random_unit", [0.0, 0.999])
def test_pauses_grow_up_to_a_bound_and_differ_between_processes(random_unit: float) -> None:
    pauses = [pause_ms(tries, random_unit) for tries in range(20)]
    assert pauses == sorted(pauses)
    assert pauses[0] >= 50
    assert PAUSE_MS_MAX / 2 <= pauses[-1] <= PAUSE_MS_MAX
