"""Seconds that share a bucket, exactly BUCKETS apart: what befalls one never touches the other."""

from typing import Any

import pytest

from duewheel.rules.tasks.listing import ListQuery, ListRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.stores import registry_keys
from tests.support.world import World

BUCKETS = 400  # seconds; longer than the sweep delay, so that one is swept before the other comes
PAGE_SIZE = 2


@pytest.fixture
def small(world: World) -> World:
    """A world whose wheel comes round after a few minutes."""
    world.dynamodb.delete_item(TableName=world.settings.registry_table, Key=registry_keys.SHAPE)
    world.wire(buckets=BUCKETS, page_size=PAGE_SIZE)
    return world


def items_of(world: World, second: int) -> list[dict[str, Any]]:
    """All that stands in this second: tasks, re-entries, leases."""
    begins = f"{second:011d}"
    found = [item for item in world.items() if item["place"]["S"].startswith(begins)]
    return sorted(found, key=lambda item: item["place"]["S"])


def occupied(world: World, second: int, name: str) -> list[Task]:
    """More tasks than a page holds, one with a key, one brought here by a re-entry."""
    in_ms = second * 1000 - world.clock.now_ms()
    plain = [world.created(in_ms + 100 * number) for number in range(PAGE_SIZE + 1)]
    keyed = world.created_by_key(world.new(in_ms + 500, key=f"key:{name}", digest=name)).task
    elsewhere = world.created(in_ms + 1_000_000 + 600)
    moved = world.change(elsewhere.task_id, Change(due_ms=second * 1000 + 600))
    assert moved.entry.second == second
    return [*plain, keyed, moved]


def listed(world: World, second: int) -> list[str]:
    query = ListQuery("orders", due_from_ms=second * 1000, due_to_ms=(second + 1) * 1000)
    return [task.task_id for task in world.list_tasks(ListRequest(query)).tasks]


@pytest.mark.exhaustive
@pytest.mark.parametrize("message_is_lost", [False, True])
def test_one_is_listed_cancelled_delivered_and_swept_without_the_other(
    small: World, message_is_lost: bool
) -> None:
    first = small.clock.now_ms() // 1000 + 60
    second = first + BUCKETS
    ours, theirs = occupied(small, first, "first"), occupied(small, second, "second")
    assert {task.entry.slot(BUCKETS) for task in [*ours, *theirs]} == {f"{first % BUCKETS}.0"}
    assert listed(small, first) == [task.task_id for task in ours]
    assert listed(small, second) == [task.task_id for task in theirs]

    before = items_of(small, second)
    small.cancel(ours[0].task_id)
    small.keyed.cancel("orders", "key:first")
    small.dispatch_until(first)
    if message_is_lost:
        small.sqs.purge_queue(QueueUrl=small.settings.slice_queue_url)
    small.drain()
    small.sweep_past(first)
    small.drain()

    owed = [task for task in ours if small.read(task).status is not Status.CANCELLED]
    assert len(owed) == len(ours) - 2
    assert sorted(small.receiver.task_ids) == sorted(task.task_id for task in owed)
    assert {small.read(task).status for task in owed} == {Status.DELIVERED}
    assert items_of(small, second) == before
    assert small.keyed.read("orders", "key:second").is_live

    after = [small.read(task) for task in ours]
    small.receiver.received.clear()
    small.dispatch_until(second)
    small.drain()
    small.sweep_past(second)
    assert sorted(small.receiver.task_ids) == sorted(task.task_id for task in theirs)
    assert {received.at_ms // 1000 for received in small.receiver.received} == {second}
    assert [small.read(task) for task in ours] == after


@pytest.mark.exhaustive
@pytest.mark.parametrize("earlier", [True, False])
def test_a_task_moved_from_one_to_the_other_is_called_there_and_only_once(
    small: World, earlier: bool
) -> None:
    """Its home and its re-entry then stand in the same slot."""
    first = small.clock.now_ms() // 1000 + 60
    from_second, to_second = (first + BUCKETS, first) if earlier else (first, first + BUCKETS)
    task = small.created(from_second * 1000 - small.clock.now_ms() + 250)
    beside = small.created(from_second * 1000 - small.clock.now_ms() + 250)
    due_ms = to_second * 1000 + 750
    small.change(task.task_id, Change(due_ms=due_ms))
    for second in (first, first + BUCKETS):
        small.dispatch_until(second)
        small.drain()
        small.sweep_past(second)

    called = {(r.task_id, r.at_ms) for r in small.receiver.received}
    assert called == {(task.task_id, due_ms), (beside.task_id, beside.due_ms)}
    assert len(small.receiver.received) == 2
