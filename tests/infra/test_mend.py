"""`make reconcile` restores the items that tasks depend on: afterwards the audit finds nothing, and
every due task is called."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.tasks.task import Made, Status, Task
from duewheel.rules.wheel.sharding import SLICE_ENTRIES
from duewheel.stores.delivery import parked_items
from duewheel.stores.tasks import keys
from infra.operate.mending import MENDED
from infra.operate.reconciling import DELIVER, EXPIRE, NotReconciled
from tests.support.between_requests import Looks
from tests.support.bounds import quick_first
from tests.support.damage import delete, edit, key_of
from tests.support.each_damage import (
    DAMAGE,
    DAMAGE_WHILE_PARKED,
    FAR,
    audited,
    drop_entry,
    parked,
    pass_over,
    retried,
    words,
)
from tests.support.minutes import minutes_pass
from tests.support.receiver import GONE, OK
from tests.support.recorder import Call
from tests.support.restores import mended, reconcile, restored
from tests.support.world import World

MENDABLE = {
    kind: damage for kind, damage in DAMAGE.items() if damage[1] & {word.value for word in MENDED}
}
POINTERS = ("sweep ahead", "time ahead")


def is_called_once_more(world: World, task: Task) -> bool:
    """Including the first attempt, which failed, the task has been called before."""
    before = len(world.receiver.received)
    world.receiver.answer = lambda received: OK
    minutes_pass(world, 9)
    called = world.receiver.task_ids[before:]
    return called.count(task.task_id) == 1 and world.read(task).status is Status.DELIVERED


@pytest.mark.parametrize("kind", quick_first(MENDABLE, pytest.mark.exhaustive, 2))
def test_items_that_a_task_depends_on_are_restored_after_each_kind_of_damage(
    world: World, kind: str
) -> None:
    task = retried(world)
    healthy = world.created(in_ms=600_000)
    MENDABLE[kind][0](world, task)
    (line,) = mended(world, DELIVER)
    assert line.startswith(task.task_id)
    assert audited(world) == []
    assert world.keyed.read("orders", "order-17").home == task.home
    assert is_called_once_more(world, task)
    assert audited(world) == []
    assert world.read(healthy) == healthy


@pytest.mark.parametrize("kind", quick_first(DAMAGE_WHILE_PARKED, pytest.mark.exhaustive))
def test_a_release_finds_a_parked_task_after_each_kind_of_damage_is_repaired(
    world: World, kind: str
) -> None:
    task = parked(world)
    damage, wrong = DAMAGE_WHILE_PARKED[kind]
    damage(world, task)
    assert len(mended(world)) == bool(wrong), "no parked task is overdue"
    assert world.read(task).parked
    assert audited(world) == []
    minutes_pass(world, 2)
    world.configured("orders", paused=None)
    assert is_called_once_more(world, task)
    assert audited(world) == []


@pytest.mark.parametrize("kind", [k for k in DAMAGE if k not in (*MENDABLE, *POINTERS)])
def test_damage_that_cannot_be_repaired_is_left_to_the_audit(world: World, kind: str) -> None:
    damage, wrong = DAMAGE[kind]
    damage(world, retried(world))
    before = world.items()
    assert mended(world, DELIVER) == []
    assert world.items() == before
    assert words(audited(world)) == wrong


@pytest.mark.parametrize("kind", POINTERS)
def test_no_item_is_repaired_while_a_pointer_is_ahead_of_the_clock(world: World, kind: str) -> None:
    task = retried(world)
    drop_entry(world, task)
    DAMAGE[kind][0](world, task)
    before = world.items()
    with pytest.raises(NotReconciled, match="pointer is ahead"):
        mended(world, DELIVER)
    assert world.items() == before


def test_an_entry_that_is_not_due_yet_is_restored_at_its_place(world: World) -> None:
    task = retried(world, FAR)
    drop_entry(world, task)
    mended(world)
    assert world.read(task).entry == task.entry
    assert world.tasks.existing([task.entry]) == {task.entry}


def test_a_task_whose_entry_is_behind_the_time_pointer_gets_an_entry_ahead(world: World) -> None:
    task = retried(world)
    drop_entry(world, task)
    world.dispatch_until(task.entry.second + 5)
    world.drain()
    before = world.items()
    with pytest.raises(NotReconciled, match="overdue"):
        mended(world)
    assert world.items() == before
    mended(world, DELIVER)
    assert world.read(task).entry.second == world.clock.now_ms() // 1000 + 300
    assert audited(world) == []
    assert is_called_once_more(world, task)


def test_an_overdue_task_expires_if_that_is_chosen(world: World) -> None:
    task = retried(world)
    pass_over(world, task)
    mended(world, EXPIRE)
    minutes_pass(world, 9)
    assert world.read(task).status is Status.EXPIRED
    assert len(world.receiver.received) == 1
    assert audited(world) == []


def test_a_task_that_names_its_home_behind_the_sweep_is_called(world: World) -> None:
    """For example, it was unreadable when the sweep came to it, and its item has been repaired
    since."""
    task = world.created(in_ms=20_000)
    edit(world, key_of(world, task), next_ms={"S": "soon"})
    world.sweep_past(task.home.second)
    edit(world, key_of(world, task), next_ms={"N": str(task.next_ms)})
    assert words(audited(world)) == {"passed"}
    mended(world, DELIVER)
    assert audited(world) == []
    assert is_called_once_more(world, task)


def test_the_header_of_a_crowded_second_is_restored(world: World) -> None:
    results = world.create([world.new(120_000) for _ in range(SLICE_ENTRIES + 1)])
    tasks = [made.task for made in results if isinstance(made, Made)]
    shards = max(task.home.shard for task in tasks) + 1
    assert shards > 1
    second = tasks[0].home.second
    delete(world, next(item for item in world.items() if "shards" in item))
    assert mended(world) == [f"header of second {second}: {shards} shards"]
    minutes_pass(world, 4)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_key_whose_task_was_redriven_expires_with_it(world: World) -> None:
    """The number of redrives shows that its task was redriven."""
    world.receiver.answer = lambda received: GONE
    task = world.created_by_key(world.new(20_000, key="order-17")).task
    minutes_pass(world, 1)
    world.redrive(task.task_id)
    delete(world, keys.key_of(task))
    mended(world)
    world.receiver.answer = lambda received: OK
    world.drain()
    assert world.read(task).status is Status.DELIVERED
    (key,) = [item for item in world.items() if item["place"] == {"S": "order-17"}]
    assert "expires_at" in key


def test_a_key_that_names_an_ended_or_missing_task_names_its_live_task_again(world: World) -> None:
    task = world.created_by_key(world.new(600_000, key="order-17")).task
    ended = world.created(in_ms=600_000)
    world.cancel(ended.task_id)
    for _ in range(2):
        edit(world, keys.key_of(task), task={"S": ended.home.name})
        mended(world)
        assert world.home_of_key("orders", "order-17") == task.home
        delete(world, key_of(world, ended))
    assert audited(world) == []


def test_a_key_that_is_being_claimed_is_given_back_to_its_live_task(world: World) -> None:
    """The creator cannot put its task any more, and finds the live one."""
    task = world.created_by_key(world.new(600_000, key="order-17")).task
    delete(world, keys.key_of(task))
    repaired: list[str] = []
    world.recorder.once("PutItem", lambda: repaired.extend(mended(world)), of="pending")
    found = world.created_by_key(world.new(600_000, key="order-17"))
    assert len(repaired) == 1
    assert (found.task.home, found.is_new) == (task.home, False)
    assert audited(world) == []


def test_a_key_that_names_another_live_task_stays_with_it(world: World) -> None:
    """Both are called: only their callers know which of them is wanted."""
    task = world.created_by_key(world.new(600_000, key="order-17")).task
    delete(world, keys.key_of(task))
    other = world.created_by_key(world.new(600_000, key="order-17")).task
    before = world.items()
    (line,) = mended(world)
    assert line.endswith("key-foreign  left: its key names another live task")
    assert world.items() == before
    world.cancel(task.task_id)
    assert mended(world) == []
    assert audited(world) == []
    assert world.keyed.read("orders", "order-17").home == other.home


def test_all_repairs_of_one_task_are_one_line(world: World) -> None:
    task = retried(world, FAR)
    drop_entry(world, task)
    delete(world, keys.key_of(task))
    edit(world, key_of(world, task), expires_at={"N": "1900000000"})
    (line,) = mended(world)
    assert line.endswith("  entry-missing  key-missing  pending-expires")
    assert audited(world) == []


def test_without_write_repairs_are_only_printed(world: World) -> None:
    task = parked(world)
    delete(world, parked_items.key_of(task))
    delete(world, keys.key_of(task))
    before = world.items()
    (line,) = mended(world, writes=False)
    assert line.endswith("  key-missing  parked-missing")
    assert world.items() == before


def test_a_healthy_or_repaired_wheel_needs_no_repair(world: World) -> None:
    task = parked(world)
    world.created(in_ms=600_000)
    assert mended(world) == []
    delete(world, parked_items.key_of(task))
    mended(world)
    before = world.items()
    assert mended(world) == []
    assert world.items() == before


def test_no_repair_is_found_after_any_request_in_the_life_of_a_task(world: World) -> None:
    """For this reason no function has to be paused for it."""
    looks = Looks(world, mended)
    task = parked(world)
    world.configured("orders", paused=None)
    world.receiver.answer = lambda received: GONE
    minutes_pass(world, 2)
    assert world.read(task).status is Status.DEAD
    world.redrive(task.task_id)
    world.receiver.answer = lambda received: OK
    world.drain()
    assert world.read(task).status is Status.DELIVERED
    assert looks.number > 30


WRITES = ("UpdateItem", "TransactWriteItems")


@pytest.mark.parametrize("kind", quick_first(MENDABLE, pytest.mark.exhaustive))
def test_a_concurrent_change_of_the_task_takes_precedence_over_its_repair(
    world: World, kind: str
) -> None:
    task = retried(world)
    MENDABLE[kind][0](world, task)
    after: list[dict[str, Any]] = []

    def first(call: Call) -> None:
        if call.operation in WRITES and not after:
            edit(world, key_of(world, task), version={"N": str(task.version + 1)})
            after.extend(world.items())

    world.recorder.before = first
    (line,) = mended(world, DELIVER)
    assert line.endswith("left: changed meanwhile: run it again")
    assert world.items() == after
    (line,) = mended(world, DELIVER)
    assert "left" not in line
    assert audited(world) == []


def test_an_unreadable_key_of_a_restored_task_is_repaired(world: World) -> None:
    task = world.created_by_key(world.new(600_000, key="order-17")).task
    restored(world)
    delete(world, key_of(world, task))
    edit(world, keys.key_of(task), task={"N": "17"})
    reconcile(world)
    assert world.keyed.read("orders", "order-17").home == task.home
    assert audited(world) == []


def test_a_task_created_after_the_restored_instant_is_repaired_and_called(world: World) -> None:
    restored(world)
    task = retried(world, FAR)
    lost = replace(task)
    drop_entry(world, task)
    reconcile(world, None)
    assert audited(world) == []
    assert is_called_once_more(world, lost)
