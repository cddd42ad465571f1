"""`make reconcile` copies lost items from restored tables, and changes nothing else."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.tasks.task import Made, Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.sharding import SLICE_ENTRIES
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import write_if
from duewheel.stores.tasks import keys
from duewheel.stores.wheel import pointers
from infra.operate import reconcile as command
from infra.operate.bring_back import KEY_TAKEN, BringBack
from infra.operate.reconciling import DELIVER, EXPIRE, NotReconciled
from tests.support import timers
from tests.support.damage import delete, edit, key_of
from tests.support.each_damage import audited
from tests.support.minutes import minutes_pass
from tests.support.receiver import BUSY, GONE, OK
from tests.support.restores import (
    RESTORED,
    items_of,
    lose_all_homes,
    reconcile,
    reconciling,
    restored,
)
from tests.support.world import World

LONG_RETRY = RetryPolicy(attempts_max=5, delays_seconds=(300.0,))


def status(world: World, task: Task) -> Status:
    return world.read(task).status


def test_lost_tasks_are_restored_and_called_when_they_are_due(world: World) -> None:
    far = [world.created(in_ms=600_000 + n) for n in range(3)]
    keyed = world.created_by_key(world.new(600_000, key="order-17")).task
    restored(world)
    lose_all_homes(world)
    later = world.created(in_ms=600_000)
    reconcile(world, None)
    assert audited(world) == []
    assert world.created_by_key(world.new(600_000, key="order-17")).task.home == keyed.home
    minutes_pass(world, 12)
    assert sorted(world.receiver.task_ids) == sorted(t.task_id for t in (*far, keyed, later))


def test_changes_after_the_restored_instant_are_kept(world: World) -> None:
    """Tasks were delivered, cancelled and moved after the restored instant: no change is undone,
    and no task is called twice."""
    delivered, cancelled = world.created(in_ms=60_000), world.created(in_ms=3_600_000)
    beaten = world.created_by_key(world.new(1_200_000, key="watchdog")).task
    restored(world)
    minutes_pass(world, 5)
    world.cancel(cancelled.task_id)
    world.change(beaten.task_id, Change(due_ms=beaten.due_ms + 3_600_000))
    before = world.items()
    assert reconcile(world).found["gone"] == 0
    assert world.items() == before
    assert world.receiver.task_ids == [delivered.task_id]
    assert world.read(beaten).version > beaten.version


def test_overdue_tasks_are_called_at_an_even_rate_some_minutes_later(world: World) -> None:
    tasks = [world.created(in_ms=30_000) for _ in range(6)]
    restored(world)
    lose_all_homes(world)
    minutes_pass(world, 10)
    began_ms = world.clock.now_ms()
    made = reconcile(world, per_second=2)
    assert made.found["overdue"] == 6
    assert audited(world) == []
    assert world.receiver.received == []
    seconds = sorted(world.read(task).entry.second - began_ms // 1000 for task in tasks)
    assert seconds == [300, 300, 301, 301, 302, 302]
    minutes_pass(world, 6)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
    assert audited(world) == []


def test_overdue_tasks_expire_without_a_call_if_that_is_chosen(world: World) -> None:
    task = world.created_by_key(world.new(30_000, key="order-17")).task
    restored(world)
    lose_all_homes(world)
    minutes_pass(world, 10)
    reconcile(world, EXPIRE)
    minutes_pass(world, 6)
    assert status(world, task) is Status.EXPIRED
    assert world.receiver.received == []
    assert audited(world) == []
    assert world.created_by_key(world.new(30_000, key="order-17")).is_new


def test_without_a_choice_for_overdue_tasks_no_task_is_written(world: World) -> None:
    world.created(in_ms=30_000)
    restored(world)
    lose_all_homes(world)
    minutes_pass(world, 10)
    before = world.items()
    with pytest.raises(NotReconciled, match="overdue"):
        reconcile(world, None)
    assert [item for item in world.items() if "status" in item] == [
        item for item in before if "status" in item
    ]


def test_without_write_lost_tasks_are_only_printed(world: World) -> None:
    task = world.created(in_ms=3_600_000)
    world.configured("orders", timeout_seconds=5)
    restored(world)
    lose_all_homes(world)
    made = reconcile(world, writes=False)
    assert made.found["gone"] == 1
    assert world.items() == []
    assert task.task_id in next(BringBack(made).wheel(RESTORED[0]))


def test_a_second_run_finds_no_lost_task(world: World) -> None:
    world.created(in_ms=30_000)
    world.created(in_ms=3_600_000)
    world.receiver.answer = lambda received: BUSY
    retried = world.created(in_ms=30_000, retry=LONG_RETRY)
    minutes_pass(world, 1)
    assert not world.read(retried).names_its_home
    restored(world)
    lose_all_homes(world)
    reconcile(world)
    before = world.items()
    assert reconcile(world).found["gone"] == 0
    assert world.items() == before
    assert audited(world) == []


def test_a_retried_task_is_restored_with_the_entry_that_it_names(world: World) -> None:
    world.receiver.answer = lambda received: BUSY
    task = world.created(in_ms=30_000, retry=LONG_RETRY)
    minutes_pass(world, 1)
    restored(world)
    lose_all_homes(world)
    reconcile(world, None)
    assert audited(world) == []
    world.receiver.answer = lambda received: OK
    minutes_pass(world, 8)
    assert status(world, task) is Status.DELIVERED
    assert len(world.receiver.received) == 2


def test_a_lost_parked_task_is_restored_and_parked_again(world: World) -> None:
    world.configured("orders", paused=True)
    world.clock.advance_ms(10_000)
    task = world.created(in_ms=30_000)
    minutes_pass(world, 4)
    assert world.read(task).parked
    restored(world)
    lose_all_homes(world)
    reconcile(world)
    minutes_pass(world, 7)
    assert world.read(task).parked
    assert audited(world) == []


def test_an_ended_task_is_restored_until_its_retention_ends(world: World) -> None:
    world.receiver.answer = lambda received: GONE
    dead = world.created(in_ms=30_000)
    minutes_pass(world, 1)
    restored(world)
    lose_all_homes(world)
    reconcile(world, None)
    assert status(world, dead) is Status.DEAD
    world.receiver.answer = lambda received: OK
    world.redrive(dead.task_id)
    world.drain()
    assert status(world, dead) is Status.DELIVERED

    lose_all_homes(world)
    world.clock.advance_ms(31 * 86_400_000)
    assert reconcile(world, None).found["ended, and kept long enough"] == 1
    assert world.items() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("overdue", [DELIVER, EXPIRE])
def test_timers_continue_after_a_restore(world: World, overdue: str) -> None:
    timer = timers.made(world, 60)
    world.clock.advance_ms(1_000)
    world.drain()
    restored(world)
    lose_all_homes(world)
    world.dispatch_until(world.clock.now_ms() // 1000 + 600)
    reconcile(world, overdue)
    minutes_pass(world, 130)
    assert audited(world) == []
    fates = timers.fates(world, timer)
    ended = "delivered" if overdue == DELIVER else "not delivered within expires_after_seconds"
    assert fates[ended] >= 9
    assert fates["delivered"] > 115
    assert len(set(world.receiver.task_ids)) == len(world.receiver.task_ids)


def test_a_task_that_was_dispatched_shortly_before_counts_as_overdue(world: World) -> None:
    """The sweep has not reached it yet, and would have it called with any choice."""
    task = world.created(in_ms=30_000)
    restored(world)
    world.dispatch_until(task.home.second + 5)
    world.drain()
    lose_all_homes(world)
    assert world.pointer(pointers.SWEEP).position < task.home.second
    reconcile(world, EXPIRE)
    minutes_pass(world, 7)
    assert status(world, task) is Status.EXPIRED
    assert world.receiver.task_ids == [task.task_id]


EDITS: dict[str, Callable[[World, Task], None]] = {
    "nonsense": lambda w, t: edit(w, key_of(w, t), callback={"N": "17"}),
    "another status": lambda w, t: edit(w, key_of(w, t), status={"S": "cancelled"}),
    "an older version": lambda w, t: edit(w, key_of(w, t), version={"N": "0"}),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_task_that_was_edited_past_the_service_is_restored(world: World, name: str) -> None:
    task = world.created(in_ms=3_600_000)
    restored(world)
    EDITS[name](world, task)
    assert reconcile(world).found["edited past the service"] == 1
    assert world.read(task) == task


def test_a_lost_task_is_left_out_when_its_key_names_another_live_task(world: World) -> None:
    task = world.created_by_key(world.new(3_600_000, key="order-17")).task
    restored(world)
    delete(world, key_of(world, task))
    delete(world, keys.key_of(task))
    other = world.created_by_key(world.new(7_200_000, key="order-17")).task
    made = reconcile(world)
    assert made.found[f"left: {KEY_TAKEN}"] == 1
    assert world.home_of_key("orders", "order-17") == other.home
    assert world.tasks.get(task.home) is None
    assert audited(world) == []


def test_an_edited_task_is_not_restored_when_its_key_names_another_live_task(world: World) -> None:
    task = world.created_by_key(world.new(3_600_000, key="order-17")).task
    restored(world)
    edit(world, key_of(world, task), status={"S": "cancelled"})
    delete(world, keys.key_of(task))
    world.created_by_key(world.new(7_200_000, key="order-17"))
    before = world.items()
    made = reconcile(world)
    assert made.found[f"left: {KEY_TAKEN}"] == 1
    assert world.items() == before


@pytest.mark.exhaustive
def test_the_header_of_a_lost_crowded_second_is_restored(world: World) -> None:
    results = world.create([world.new(3_600_000) for _ in range(SLICE_ENTRIES + 1)])
    tasks = [made.task for made in results if isinstance(made, Made)]
    assert len({task.home.shard for task in tasks}) > 1
    restored(world)
    lose_all_homes(world)
    reconcile(world)
    minutes_pass(world, 64)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_lost_definitions_are_restored_with_their_records(world: World) -> None:
    world.configured("orders", timeout_seconds=5)
    timer = timers.made(world, 60)
    world.clock.advance_ms(1_000)
    world.drain()
    restored(world)
    before = lose_all_definitions(world)
    reconcile(world)
    assert _definitions(world) == before
    minutes_pass(world, 5)
    assert world.receiver.received
    assert world.timers.read(timer.timer_id) == timer


def test_the_next_run_restores_all_definitions_wherever_one_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.configured("orders", timeout_seconds=5)
    timers.made(world, 60)
    restored(world)
    made = BringBack(reconciling(world, None))
    for puts in range(len(_definitions(world))):
        before = lose_all_definitions(world)
        left = iter(range(puts))

        def put_or_fail(*args: Any, left: Any = left, **arguments: Any) -> Any:
            if next(left, None) is None:
                raise ConnectionError
            return write_if(*args, **arguments)

        with monkeypatch.context() as broken:
            broken.setattr("infra.operate.bring_back.write_if", put_or_fail)
            with pytest.raises(ConnectionError):
                list(made.definitions(RESTORED[1]))
        assert len(_definitions(world)) == puts
        list(made.definitions(RESTORED[1]))
        assert _definitions(world) == before


def lose_all_definitions(world: World) -> list[dict[str, Any]]:
    """Returns the deleted definitions."""
    before = _definitions(world)
    for item in before:
        delete(world, item)
    return before


def _definitions(world: World) -> list[dict[str, Any]]:
    items = items_of(world, world.settings.registry_table)
    found = [i for i in items if i["kind"]["S"].partition("#")[0] in _KINDS]
    return sorted(found, key=lambda item: (item["kind"]["S"], item["record"]["S"]))


_KINDS = ("business", "timer", "timers", "changes")


def test_a_deleted_timer_stays_deleted_and_pointers_do_not_move_back(world: World) -> None:
    world.configured("orders", timeout_seconds=5)
    timer = timers.made(world, 60)
    world.clock.advance_ms(1_000)
    world.drain()
    restored(world)
    minutes_pass(world, 5)
    world.change_timer.delete(timer.timer_id, by="me")
    before = sorted(items_of(world, world.settings.registry_table), key=str)
    reconcile(world)
    assert sorted(items_of(world, world.settings.registry_table), key=str) == before


def test_a_wheel_of_another_shape_is_refused(world: World) -> None:
    world.created(in_ms=3_600_000)
    restored(world)
    lose_all_homes(world)
    made = reconciling(world)
    made.tasks = replace(made.tasks, buckets=7_777)
    with pytest.raises(NotReconciled, match="BUCKETS"):
        list(BringBack(made).wheel(RESTORED[0]))


def test_the_command_finds_the_tables_of_the_stack_and_writes_only_with_its_option(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = world.created(in_ms=3_600_000)
    restored(world)
    lose_all_homes(world)
    tables = {"WheelTable": world.settings.wheel_table}
    tables["RegistryTable"] = world.settings.registry_table
    monkeypatch.setattr(command, "outputs_of", lambda client, stack: tables)
    monkeypatch.setattr(command, "SystemClock", lambda: world.clock)
    monkeypatch.setattr(command.boto3, "client", lambda service: world.unrecorded)

    assert command.main(["timers", "--wheel", RESTORED[0], "--registry", RESTORED[1]]) == 0
    printed = capsys.readouterr()
    assert task.task_id in printed.out
    assert "Nothing was written" in printed.err
    assert world.items() == []

    assert command.main(["timers", "--wheel", RESTORED[0], "--write"]) == 0
    assert world.read(task) == task


def lose_wheel_records(world: World) -> None:
    for key in (
        registry_keys.SHAPE,
        registry_keys.pointer(pointers.TIME),
        registry_keys.pointer(pointers.SWEEP),
    ):
        delete(world, key)


def test_lost_shape_and_pointers_are_restored_without_leaving_tasks_out(world: World) -> None:
    delivered, waiting = world.created(in_ms=60_000), world.created(in_ms=240_000)
    minutes_pass(world, 1)
    restored(world)
    minutes_pass(world, 2)
    world.clock.advance_ms(180_000)  # paused, so that the waiting task falls due meanwhile
    lose_wheel_records(world)
    run = reconcile(world, None)
    assert run.found["records of the wheel that are gone"] == 3
    minutes_pass(world, 7)
    assert sorted(world.receiver.task_ids) == sorted([delivered.task_id, waiting.task_id])
    assert audited(world) == []


def test_without_pointers_each_run_needs_a_choice_for_overdue_tasks(world: World) -> None:
    lost = world.created(in_ms=60_000)
    restored(world)
    minutes_pass(world, 3)
    delete(world, key_of(world, lost))
    lose_wheel_records(world)
    for _ in range(2):
        with pytest.raises(NotReconciled, match="overdue"):
            reconcile(world, None)
    reconcile(world, EXPIRE)
    minutes_pass(world, 8)
    assert status(world, lost) is Status.EXPIRED
    assert world.receiver.task_ids == [lost.task_id]


def test_a_lost_time_pointer_is_restored_no_further_back_than_the_sweep_pointer(
    world: World,
) -> None:
    world.created(in_ms=60_000)
    minutes_pass(world, 1)
    restored(world)
    minutes_pass(world, 10)
    swept = world.pointers.read(pointers.SWEEP, world.origin).position
    delete(world, registry_keys.pointer(pointers.TIME))
    reconcile(world, None)
    assert world.pointers.read(pointers.TIME, world.origin).position == swept


def test_a_stack_that_never_ran_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {"WheelTable": world.settings.wheel_table}
    tables["RegistryTable"] = world.settings.registry_table
    world.unrecorded.delete_item(TableName=tables["RegistryTable"], Key=registry_keys.SHAPE)
    monkeypatch.setattr(command, "outputs_of", lambda client, stack: tables)
    monkeypatch.setattr(command.boto3, "client", lambda service: world.unrecorded)
    assert command.main(["timers", "--wheel", RESTORED[0]]) == 1
    assert "never ran" in capsys.readouterr().err


def test_tasks_of_a_deleted_stack_come_into_one_that_has_begun_anew(world: World) -> None:
    """The kept tables are those to copy from. The new stack has a wheel of its own, which begins
    later than some of the tasks were due."""
    soon, far = world.created(in_ms=60_000), world.created(in_ms=3_600_000)
    restored(world)
    lose_all_homes(world)
    registry = world.settings.registry_table
    for item in items_of(world, registry):
        key = {name: item[name] for name in ("kind", "record")}
        world.unrecorded.delete_item(TableName=registry, Key=key)
    world.clock.advance_ms(600_000)
    minutes_pass(world, 2)
    assert world.receiver.task_ids == []
    reconcile(world, DELIVER)
    minutes_pass(world, 70)
    assert sorted(world.receiver.task_ids) == sorted((soon.task_id, far.task_id))
