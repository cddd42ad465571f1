"""Records of operations that are damaged: nothing else suffers from them."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.interface.bulk.operation_view import operations_text
from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.bulk.operation import OPEN_MAX, Operation, State
from duewheel.rules.bulk.requests import OperationsQuery
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import Status
from duewheel.stores import registry_keys
from duewheel.wiring import bulk
from tests.support.damage import edit
from tests.support.operations import ALL, as_it_is, asked_for, numbers, worked_on
from tests.support.world import World

HOUR_MS = 3_600_000
DEAD = {"status": "dead"}


def overwrite(world: World, operation: Operation, name: str, value: dict[str, Any]) -> None:
    edit(world, registry_keys.operation(operation.biz_type, operation.mark), **{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("changed", {"S": "x"}), ("page", {"S": "{"}), ("state", {"S": "paused"})]
)
def test_a_damaged_operation_does_not_stop_the_others(
    world: World, name: str, value: dict[str, Any]
) -> None:
    task = world.created(HOUR_MS)
    damaged = asked_for(world, "cancel", filter=ALL, biz_type="shop")
    sound = asked_for(world, "cancel", filter=ALL)
    overwrite(world, damaged, name, value)
    world.wake_workers()
    assert len(world.invocations) == 1
    assert worked_on(world, sound).state is State.DONE
    assert world.read(task).status is Status.CANCELLED
    with pytest.raises(UnreadableItem):
        as_it_is(world, damaged)
    world.invocations.clear()
    world.wake_workers()
    assert world.invocations == [], "a worker could do nothing"


@pytest.mark.parametrize(
    ("record", "operation_id"),
    [("key:x#1", {"N": "1"}), ("key:x#1", {"S": "x"}), ("x", {"S": f"orders~{'0' * 16}"})],
)
def test_a_damaged_marker_does_not_stop_other_operations(
    world: World, record: str, operation_id: dict[str, Any]
) -> None:
    sound = asked_for(world, "cancel", filter=ALL)
    kind = registry_keys.OPEN_OPERATIONS_KIND
    edit(world, registry_keys.key(kind, record), operation_id=operation_id)
    assert worked_on(world, sound).state is State.DONE
    assert asked_for(world, "cancel", filter=ALL).state is State.RUNNING


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("changed", {"S": "x"}),
        ("expires_at", {"S": "x"}),
        ("position", {"S": "x"}),
        ("position", {"S": f"1 {10**30} x"}),
        ("wish", {"S": '{"action":"cancel","filter":{"due_to_ms":1000000000000000000}}'}),
        ("wish", {"S": '{"action":"redrive","filter":{"death":{"since_ms":-1000000000000000}}}'}),
        ("wish", {"S": '{"action":"reschedule","due_ms":1000000000000000000}'}),
    ],
)
def test_a_damaged_operation_is_left_out_of_lists(
    world: World, name: str, value: dict[str, Any]
) -> None:
    damaged, sound = (asked_for(world, "redrive", filter=DEAD) for _ in range(2))
    overwrite(world, damaged, name, value)
    page = world.read_operations.page(OperationsQuery(biz_type="orders"), "orders")
    assert [one["operation_id"] for one in json.loads(operations_text(page))["operations"]] == [
        sound.operation_id
    ]
    with pytest.raises(UnreadableItem):
        as_it_is(world, damaged)


@pytest.mark.parametrize(
    "unknown",
    [
        {"max_changes": 5},
        {"filter": {"status": "pending", "priority": "low"}},
        {"filter": {"status": "dead", "death": {"host": "a.example"}}},
    ],
)
def test_an_operation_with_an_unknown_member_is_damaged_and_not_carried_out(
    world: World, unknown: dict[str, Any]
) -> None:
    """Without the member it could change tasks that are not meant."""
    task = world.created(HOUR_MS)
    operation = asked_for(world, "cancel", filter=ALL)
    wish = {"action": "cancel", "filter": {"status": "pending"}, **unknown}
    overwrite(world, operation, "wish", {"S": json.dumps(wish)})
    world.run_operations.run(lambda: 900_000)
    assert world.read(task).is_live
    with pytest.raises(UnreadableItem):
        world.read_operations.find(operation.operation_id, ANYTHING)
    wish = {"action": "cancel", "filter": {"status": "pending"}}
    overwrite(world, operation, "wish", {"S": json.dumps(wish)})
    assert numbers(worked_on(world, operation)) == (1, 0, 0), "it is still open"


def test_as_many_operations_as_may_be_open_do_not_hide_each_others_changes(world: World) -> None:
    """The first dies when it has changed its page, and goes on when all others have ended."""
    tasks = [world.created(HOUR_MS + n * 1_000) for n in range(2)]
    ids = [task.task_id for task in tasks]
    operations = [
        asked_for(world, "reschedule", ids=ids, shift_seconds=60) for _ in range(OPEN_MAX)
    ]
    first = operations[0]
    claimed = world.operations.claim(first, "a worker that dies", world.clock.now_ms())
    assert claimed is not None
    work = bulk.run_operations()
    page = work.source(claimed, None)
    assert world.operations.write(claimed, replace(claimed, page=page)) is not None
    assert all(work.change(claimed, item) for item in page.items)
    for other in operations[1:]:
        assert numbers(worked_on(world, other)) == (2, 0, 0)
    world.clock.advance_ms(200_000)
    assert numbers(worked_on(world, first)) == (2, 0, 0)
    moved = OPEN_MAX * 60_000
    assert [world.read(task).due_ms for task in tasks] == [t.due_ms + moved for t in tasks]
