"""A slot has more than 1 MB of homes, of which DynamoDB returns a part at a time."""

import pytest

from duewheel.rules.preconditions import Precondition
from duewheel.rules.tasks.listing import ListQuery, ListRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.wheel import pointers
from tests.support.world import CALLER, World

HOMES = 40
PAYLOAD = '"' + "x" * (64 * 1024 - 2) + '"'


@pytest.fixture
def large(world: World) -> list[Task]:
    """In one second and one shard; BatchGetItem returns 15 of them in an answer."""
    created = world.created_many(world.new(60_000, payload=PAYLOAD) for _ in range(HOMES))
    tasks = [task for task in created if isinstance(task, Task)]
    assert len(tasks) == HOMES
    assert {(task.home.second, task.home.shard) for task in tasks} == {(tasks[0].home.second, 0)}
    return tasks


def answers_of(world: World, operation: str) -> int:
    return world.recorder.operations().count(operation)


@pytest.mark.moto_only(reason="the emulator of moto cuts answers, as AWS does")
def test_a_read_continues_without_a_pause_while_answers_contain_items(
    world: World, large: list[Task]
) -> None:
    world.recorder.clear()
    began_ms = world.clock.now_ms()

    assert len(world.tasks.get_many(task.home for task in large)) == HOMES
    assert answers_of(world, "BatchGetItem") == 3
    assert world.clock.now_ms() == began_ms, "without a pause"


@pytest.mark.exhaustive
def test_a_slot_of_large_homes_is_listed(world: World, large: list[Task]) -> None:
    listed: list[Task] = []
    cursor = None
    for _ in range(HOMES):
        page = world.list_tasks(ListRequest(ListQuery("orders"), 100, cursor))
        listed += page.tasks
        if (cursor := page.cursor) is None:
            break
    assert {task.task_id for task in listed} == {task.task_id for task in large}


def test_a_slot_of_large_homes_is_released_and_swept(world: World, large: list[Task]) -> None:
    world.configure_business.pause("orders", Precondition(), paused=True, by=CALLER)
    world.clock.advance_ms(KEPT_MS + 1_000)
    second = large[0].home.second
    world.dispatch_until(second)
    world.drain()
    assert world.read(large[0]).parked

    world.configure_business.pause("orders", Precondition(), paused=False, by=CALLER)
    world.drain()
    released = {world.read(task).entry.second for task in large}
    assert not any(world.read(task).parked for task in large)
    world.sweep_past(max(released))

    assert {world.read(task).status for task in large} == {Status.DELIVERED}
    assert len(world.receiver.received) == HOMES, "each was called once"
    assert world.pointer(pointers.SWEEP).position >= max(released)
