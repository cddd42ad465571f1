"""The end of a page: the tasks of a delivered slice show it, or the lease has a mark."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.delivery.page_lease import (
    LEASE_MS,
    UNMARKED_MAX,
    LeaseHeld,
    PageFinished,
    PageLease,
)
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.queue_messages import Lane, decode
from duewheel.workflows.delivery import settle_batch
from tests.support.damage import delete, edit, key_of
from tests.support.receiver import BUSY, OK, Received
from tests.support.world import FAR_MS, World
from tests.workflows.delivery.test_dying_notifier import HIDING, died

# The calls of a page of one task: take, read, read the business, settle.
AWS_CALLS_OF_A_LONE_PAGE = 4


def due_together(world: World, number: int) -> list[Task]:
    return [world.created(in_ms=FAR_MS + n) for n in range(number)]


def delivered(world: World, number: int = 1) -> tuple[list[Task], dict[str, Any]]:
    """The tasks of a page, and its message."""
    tasks = due_together(world, number)
    message = world.dispatched(tasks[0])
    assert isinstance(world.handle(message), PageFinished)
    return tasks, message


def leases(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if "until_ms" in item]


def is_marked(world: World) -> bool:
    (lease,) = leases(world)
    return "done" in lease


def comes_again(world: World, message: dict[str, Any]) -> dict[str, Any]:
    """A second message of the page."""
    world.queues[Lane.MAIN].send([decode(message["Body"])])
    (again,) = world.receive()
    return again


@pytest.mark.parametrize("number", [1, UNMARKED_MAX])
def test_a_page_whose_few_tasks_are_all_delivered_is_not_marked(world: World, number: int) -> None:
    tasks, _ = delivered(world, number)
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert not is_marked(world)


def too_many(world: World) -> None:
    delivered(world, UNMARKED_MAX + 1)


def several_pages(world: World) -> None:
    world.wire(page_size=2)
    delivered(world, 3)


def several_shards(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.headers.raise_to(task.due_ms // 1000, 2)
    world.dispatch_until(task.due_ms // 1000)
    world.drain()


def a_failed_call(world: World) -> None:
    answers = iter([OK, BUSY])
    world.receiver.answer = lambda received: next(answers)
    delivered(world, 2)


def a_damaged_item(world: World) -> None:
    tasks = due_together(world, 2)
    edit(world, key_of(world, tasks[1]), callback={"S": "{"})
    world.handle(world.dispatched(tasks[0]))
    assert world.receiver.task_ids == [tasks[0].task_id]


def a_cancelled_task(world: World) -> None:
    tasks = due_together(world, 2)
    world.cancel(tasks[1].task_id)
    world.handle(world.dispatched(tasks[0]))


def a_paused_business(world: World) -> None:
    tasks = [world.created(in_ms=FAR_MS), world.created(in_ms=FAR_MS, biz_type="paused")]
    world.configured("paused", paused=True)
    world.handle(world.dispatched(tasks[0]))


def nothing_left(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.cancel(task.task_id)
    world.handle(world.dispatched(task))


def a_dead_notifier_before(world: World) -> None:
    (task,) = due_together(world, 1)
    message = world.dispatched(task)
    died(world, message, 2, "after")
    world.clock.advance_ms(LEASE_MS + 2_000)
    world.drain()


@pytest.mark.parametrize(
    "end",
    [
        too_many,
        several_pages,
        several_shards,
        a_failed_call,
        a_damaged_item,
        a_cancelled_task,
        a_paused_business,
        nothing_left,
        a_dead_notifier_before,
    ],
    ids=lambda end: end.__name__,
)
def test_every_other_page_is_marked(world: World, end: Callable[[World], None]) -> None:
    end(world)
    first = min(leases(world), key=lambda item: item["place"]["S"])
    assert "done" in first


def test_another_message_of_an_unmarked_page_begins_it_once_and_calls_nothing(world: World) -> None:
    tasks, message = delivered(world, 2)
    called = sorted(task.task_id for task in tasks)
    second = comes_again(world, message)
    assert isinstance(world.handle(second), LeaseHeld), "nothing says that its run has ended"
    assert not world.receive()

    world.clock.advance_ms(LEASE_MS + 2_000)
    (second,) = world.receive()
    assert isinstance(world.handle(second), PageFinished)
    assert is_marked(world)

    third = comes_again(world, message)
    world.recorder.clear()
    assert isinstance(world.handle(third), PageFinished)
    assert "Query" not in world.recorder.operations()
    assert sorted(world.receiver.task_ids) == called
    assert world.messages_waiting() == 0


def test_the_sweep_passes_an_unmarked_page_without_a_message(world: World) -> None:
    tasks, _ = delivered(world)
    world.recorder.clear()
    world.sweep_past(tasks[0].due_ms // 1000)
    assert "SendMessageBatch" not in world.recorder.operations()
    assert world.receiver.task_ids == [tasks[0].task_id]
    assert not world.pointer("sweep").open_places


@pytest.mark.parametrize("is_marked_page", [False, True])
def test_an_entry_that_was_written_too_slowly_for_its_page_is_called_after_the_sweep(
    world: World, is_marked_page: bool
) -> None:
    """In an unmarked page by its message, which the sweep sends again; in a marked one by a new
    entry."""
    late = world.created(in_ms=FAR_MS + 5)
    (item,) = [item for item in world.items() if "status" in item]
    delete(world, item)
    if is_marked_page:
        world.receiver.answer = lambda received: BUSY
    tasks, _ = delivered(world)
    assert is_marked(world) == is_marked_page
    world.receiver.answer = lambda received: OK
    world.unrecorded.put_item(TableName=world.settings.wheel_table, Item=item)
    world.sweep_past(late.due_ms // 1000)
    world.clock.advance_ms(10_000)
    world.drain()

    assert {world.read(task).status for task in (late, *tasks)} == {Status.DELIVERED}
    assert world.receiver.task_ids.count(late.task_id) == 1
    assert world.receiver.task_ids.count(tasks[0].task_id) == 1 + is_marked_page


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, AWS_CALLS_OF_A_LONE_PAGE + 1))
def test_a_lone_task_of_a_dead_notifier_is_called_within_twenty_seconds(
    world: World, at: int, moment: str
) -> None:
    (task,) = due_together(world, 1)
    message = world.dispatched(task)
    died(world, message, at, moment)
    died_ms = world.clock.now_ms()
    while world.clock.now_ms() < died_ms + 20_000:
        world.clock.advance_ms(1_000)
        world.drain()

    assert world.read(task).status is Status.DELIVERED
    is_repeated = (at, moment) == (AWS_CALLS_OF_A_LONE_PAGE, "before")
    assert world.receiver.task_ids == [task.task_id] * (1 + is_repeated)
    assert world.messages_waiting() == 0
    world.sweep_past(task.due_ms // 1000)
    assert world.receiver.task_ids == [task.task_id] * (1 + is_repeated)


def test_a_lone_page_makes_as_many_aws_calls_as_the_deaths_above_cover(world: World) -> None:
    (task,) = due_together(world, 1)
    message = world.dispatched(task)
    world.recorder.clear()
    world.handle(message)
    made = [one for one in world.recorder.operations() if one not in (HIDING, "DeleteMessage")]
    assert made == ["UpdateItem", "Query", "BatchGetItem", "BatchWriteItem"]
    assert len(made) == AWS_CALLS_OF_A_LONE_PAGE


def test_a_page_ends_though_its_run_was_frozen_and_the_run_that_took_it_died(world: World) -> None:
    (task,) = due_together(world, 1)
    message = world.dispatched(task)
    page = PageLease(task.home.second, task.home.shard)

    def answer(received: Received) -> Outcome:
        world.clock.advance_ms(LEASE_MS + 1_000)
        taken = world.pages.take(page, "another", world.clock.now_ms(), LEASE_MS)
        assert isinstance(taken, PageLease)
        return OK

    world.receiver.answer = answer
    again = comes_again(world, message)
    world.handle(message)
    assert world.read(task).status is Status.DELIVERED
    assert not is_marked(world), "that is left to the other run"

    world.clock.advance_ms(LEASE_MS + 2_000)
    assert isinstance(world.handle(again), PageFinished)
    assert is_marked(world)
    assert world.receiver.task_ids == [task.task_id]


@pytest.mark.parametrize("number", [1, 2])
def test_a_lone_call_is_settled_at_once_and_others_wait_to_share_a_write(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(settle_batch.asyncio, "sleep", noted)
    tasks, _ = delivered(world, number)
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert (settle_batch.LINGER_SECONDS in pauses) == (number > 1)
