"""Bulk operations change the tasks that are meant, each once, and count them exactly."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.bulk.operation import IDS_MAX, State
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.refusals import (
    ListIndexOff,
    UnknownOperation,
)
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import address_of_task
from tests.support.operations import (
    ALL,
    as_it_is,
    asked_for,
    done,
    numbers,
    refused,
    worked_on,
)
from tests.support.receiver import BUSY
from tests.support.world import CALLER, World

HOUR_MS = 3_600_000


def spread(world: World, number: int, first_ms: int = HOUR_MS, **fields: Any) -> list[Task]:
    """Tasks a second apart."""
    news = [world.new(first_ms + n * 1_000, **fields) for n in range(number)]
    found = world.created_many(news)
    assert all(isinstance(task, Task) for task in found)
    return [task for task in found if isinstance(task, Task)]


def dues(world: World, tasks: list[Task]) -> list[int]:
    return [world.read(task).due_ms for task in tasks]


def test_all_pending_tasks_of_a_business_are_cancelled_and_no_others(world: World) -> None:
    mine = spread(world, 130)
    theirs = spread(world, 3, biz_type="shop")
    operation = done(world, "cancel", filter=ALL)
    assert (operation.state, numbers(operation)) == (State.DONE, (130, 0, 0))
    assert operation.counts.looked_at == 130
    assert {world.read(task).status for task in mine} == {Status.CANCELLED}
    assert {world.read(task).status for task in theirs} == {Status.PENDING}
    assert world.operations.open_ones().operations == []


def test_an_operation_cancels_no_notice(world: World) -> None:
    """Only an admin may, and an operation has the right to write."""
    hook = HttpCallback("https://receiver.example/outcomes")
    world.configured("orders", on_outcome=OnOutcome((Told.CANCELLED,), hook))
    world.receiver.answer = lambda received: BUSY
    world.cancel(world.created(HOUR_MS).task_id)
    world.drain()  # the notice waits for its next attempt
    operation = done(world, "cancel", filter=ALL)
    assert numbers(operation) == (0, 0, 1)
    assert [one.type for one in refused(world, operation)] == ["not-permitted"]


def test_a_filter_leaves_out_what_it_does_not_match(world: World) -> None:
    meant = spread(world, 3, key=None, flow_key="customer-7", labels=(("team", "billing"),))
    others = spread(world, 3, flow_key="customer-8", labels=(("team", "billing"),))
    others += spread(world, 2, flow_key="customer-7")
    chosen = {"flow_key": "customer-7", "labels": {"team": "billing"}}
    operation = done(world, "cancel", filter=chosen)
    assert (numbers(operation), operation.counts.looked_at) == ((3, 0, 0), 8)
    assert {world.read(task).status for task in meant} == {Status.CANCELLED}
    assert {world.read(task).status for task in others} == {Status.PENDING}


def test_tasks_are_found_by_the_beginnings_of_their_keys(world: World) -> None:
    meant = [world.created_by_key(world.new(HOUR_MS, key=f"order-{n}")).task for n in range(3)]
    other = world.created_by_key(world.new(HOUR_MS, key="invoice-1")).task
    assert numbers(done(world, "cancel", filter={"key_prefix": "order-"})) == (3, 0, 0)
    assert {world.read(task).status for task in meant} == {Status.CANCELLED}
    assert world.read(other).is_live


@pytest.mark.parametrize("shift_seconds", [1, 60, 3_600, -1, -60])
def test_a_shift_moves_each_task_once_however_far(world: World, shift_seconds: int) -> None:
    """The tasks are a second apart, so a moved task comes where others are still to be moved."""
    tasks = spread(world, 230)
    before = dues(world, tasks)
    operation = done(world, "reschedule", filter=ALL, shift_seconds=shift_seconds)
    assert (operation.state, numbers(operation)) == (State.DONE, (230, 0, 0))
    assert dues(world, tasks) == [ms + shift_seconds * 1_000 for ms in before]


def test_a_shift_moves_each_task_once_though_its_tolerance_takes_it_back(world: World) -> None:
    """In a crowded second the tolerance spreads the tasks: a moved one may come before its old
    instant, where the walk meets it again."""
    tasks = spread(world, 120, tolerance_seconds=3_600)
    seconds = {task.due_ms // 1000 for task in tasks}
    world.reserve_shards.known.keep(dict.fromkeys(seconds, 8))
    operation = done(world, "reschedule", filter=ALL, shift_seconds=1)
    after = [world.read(task) for task in tasks]
    assert any(one.due_ms < task.due_ms for one, task in zip(after, tasks, strict=True))
    assert numbers(operation) == (120, 0, 0)
    assert [one.due_at_ms for one in after] == [task.due_at_ms + 1_000 for task in tasks]


def test_tasks_that_are_due_at_the_instant_already_are_unchanged(world: World) -> None:
    at_ms = world.clock.now_ms() + 2 * HOUR_MS
    tasks = spread(world, 5)
    there = [world.created(2 * HOUR_MS) for _ in range(2)]
    later = spread(world, 4, 3 * HOUR_MS)
    due_at = "2027-01-15T10:00:00Z"
    operation = done(world, "reschedule", filter=ALL, due_at=due_at)
    assert (operation.state, numbers(operation)) == (State.DONE, (9, 2, 0))
    assert set(dues(world, [*tasks, *there, *later])) == {at_ms}


def test_tasks_that_are_run_are_due_now_and_called_once(world: World) -> None:
    tasks = spread(world, 30)
    operation = done(world, "run", filter=ALL)
    assert numbers(operation) == (30, 0, 0)
    world.drain()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert len(world.receiver.received) == 30


def test_tasks_are_paused_and_resumed_each_once(world: World) -> None:
    tasks = spread(world, 30)
    world.pause_task(tasks[0].task_id, None, CALLER)
    assert numbers(done(world, "pause", filter=ALL)) == (29, 1, 0)
    assert all(world.read(task).paused for task in tasks)
    assert dues(world, tasks) == [task.due_ms for task in tasks]
    world.cancel(tasks[0].task_id)
    assert numbers(done(world, "resume", ids=[task.task_id for task in tasks])) == (29, 0, 1)
    assert [world.read(task).next_ms for task in tasks[1:]] == [one.due_ms for one in tasks[1:]]


def test_dead_tasks_are_redriven_also_without_a_list_index(world: World) -> None:
    world.wire(list_index=False)
    tasks = spread(world, 120)
    now_ms = world.clock.now_ms()
    for task in tasks:
        dead = replace(
            task,
            status=Status.DEAD,
            settled_ms=now_ms,
            updated_ms=now_ms,
            expires_at=now_ms // 1000 + 86_400,
            version=2,
        )
        assert world.tasks.change(task, dead)
    operation = done(world, "redrive", filter={"status": "dead"})
    assert (operation.state, numbers(operation)) == (State.DONE, (120, 0, 0))
    found = [world.read(task) for task in tasks]
    assert {(task.status, task.redrives) for task in found} == {(Status.PENDING, 1)}


def test_cancelled_tasks_are_redriven_by_their_due_instants(world: World) -> None:
    tasks = spread(world, 5)
    done(world, "cancel", filter=ALL)
    world.clock.advance_ms(1_000)
    chosen = {
        "status": "cancelled",
        "due_from": "2027-01-15T09:00:00Z",
        "due_to": "2027-01-15T09:00:03Z",
    }
    assert numbers(done(world, "redrive", filter=chosen)) == (3, 0, 0)
    assert [world.read(task).is_live for task in tasks] == [True, True, True, False, False]


def test_ids_of_no_task_and_of_other_businesses_are_refused_alike(world: World) -> None:
    mine, other = world.created(HOUR_MS), world.created(HOUR_MS, biz_type="shop")
    gone = world.placed(world.new(HOUR_MS))
    ids = [mine.task_id, other.task_id, gone.task_id]
    operation = done(world, "cancel", ids=ids)
    assert (operation.state, numbers(operation)) == (State.DONE, (1, 0, 2))
    assert (operation.wish.total, operation.counts.looked_at) == (3, 3)
    found = refused(world, operation)
    assert [(one.item_id, one.type) for one in found] == [
        (other.task_id, "unknown-task"),
        (gone.task_id, "unknown-task"),
    ]
    assert len({one.detail for one in found}) == 1
    assert world.read(other).is_live


def test_as_many_ids_as_it_takes_are_carried_out_in_pages(world: World) -> None:
    tasks = spread(world, IDS_MAX)
    operation = done(world, "cancel", ids=[task.task_id for task in tasks])
    assert (operation.state, numbers(operation)) == (State.DONE, (IDS_MAX, 0, 0))


def test_what_is_cancelled_before_counts_as_unchanged_and_what_has_ended_as_refused(
    world: World,
) -> None:
    cancelled, delivered, live = (world.created(20_000) for _ in range(3))
    world.cancel(cancelled.task_id)
    now_ms = world.clock.now_ms()
    world.tasks.put_delivered([replace(delivered, status=Status.DELIVERED, updated_ms=now_ms)])
    ids = [task.task_id for task in (cancelled, delivered, live)]
    operation = done(world, "cancel", ids=ids)
    assert numbers(operation) == (1, 1, 1)
    (one,) = refused(world, operation)
    assert (one.item_id, one.type, one.status) == (delivered.task_id, "already-settled", 409)


def test_a_task_past_its_cut_off_is_refused_and_called(world: World) -> None:
    near, far = world.created(2_000), world.created(HOUR_MS)
    operation = done(world, "cancel", filter=ALL)
    assert numbers(operation) == (1, 0, 1)
    assert [one.type for one in refused(world, operation)] == ["too-late"]
    world.come_up(near)
    assert world.read(near).status is Status.DELIVERED
    assert world.read(far).status is Status.CANCELLED


def test_a_dry_run_counts_what_would_be_tried_and_writes_no_task(world: World) -> None:
    tasks = spread(world, 120)
    before = world.items()
    operation = done(world, "cancel", filter=ALL, dry_run=True)
    assert (operation.state, numbers(operation)) == (State.DONE, (120, 0, 0))
    assert world.items() == before
    assert all(world.read(task).is_live for task in tasks)


def test_tasks_that_are_made_after_the_operation_are_not_meant(world: World) -> None:
    spread(world, 3)
    operation = asked_for(world, "cancel", filter=ALL)
    world.clock.advance_ms(1_000)
    (new,) = spread(world, 1)
    assert numbers(worked_on(world, operation)) == (3, 0, 0)
    assert world.read(new).is_live


def test_the_pace_is_kept(world: World) -> None:
    spread(world, 95)
    began_ms = world.clock.now_ms()
    operation = done(world, "cancel", filter=ALL, per_second=10)
    assert numbers(operation) == (95, 0, 0)
    assert 9_000 <= world.clock.now_ms() - began_ms <= 10_500


def test_a_stop_takes_effect_within_a_page(world: World) -> None:
    tasks = spread(world, 60)
    operation = asked_for(world, "cancel", filter=ALL, per_second=10)

    def stop() -> None:
        state = world.stop_operation(operation.operation_id, ANYTHING).state
        assert state is State.STOPPING

    # Pages have ten tasks by the pace. The page does not end before this write of its has.
    world.recorder.once("UpdateItem", stop, "after", of=world.settings.wheel_table, at=25)
    after = worked_on(world, operation)
    assert (after.state, numbers(after)) == (State.STOPPED, (30, 0, 0))
    assert sum(not world.read(task).is_live for task in tasks) == 30
    assert after.page is None
    assert world.stop_operation(operation.operation_id, ANYTHING) == after
    assert worked_on(world, operation) == after


def test_a_stop_of_one_that_no_worker_has_begun_ends_it_with_the_next_run(world: World) -> None:
    (task,) = spread(world, 1)
    operation = asked_for(world, "cancel", filter=ALL)
    world.stop_operation(operation.operation_id, ANYTHING)
    world.drain_invocations()
    after = as_it_is(world, operation)
    assert (after.state, numbers(after)) == (State.STOPPED, (0, 0, 0))
    assert world.read(task).is_live


def test_a_run_that_has_to_end_leaves_the_rest_to_the_next_one(world: World) -> None:
    tasks = spread(world, 300)
    operation = asked_for(world, "cancel", filter=ALL, per_second=10)
    first = worked_on(world, operation, run_ms=70_000)
    assert (first.state, first.owner) == (State.RUNNING, None)
    assert 0 < first.counts.changed < 200
    after = worked_on(world, operation)
    assert (after.state, numbers(after)) == (State.DONE, (300, 0, 0))
    assert not any(world.read(task).is_live for task in tasks)


def test_the_sweeper_starts_a_worker_for_an_operation_that_has_none(world: World) -> None:
    spread(world, 3)
    operation = asked_for(world, "cancel", filter=ALL)
    world.sweep_once()
    world.drain_invocations()
    assert as_it_is(world, operation).state is State.DONE
    world.sweep_once()
    assert world.invocations == []


def test_without_operations_the_sweeper_makes_one_read(world: World) -> None:
    world.recorder.clear()
    world.wake_workers()
    assert world.recorder.operations() == ["Query"]


def test_the_index_has_to_be_on_for_a_walk_by_due_instant(world: World) -> None:
    world.wire(list_index=False)
    with pytest.raises(ListIndexOff):
        asked_for(world, "cancel", filter=ALL)
    world.wire(list_index=True)
    operation = asked_for(world, "cancel", filter=ALL)
    world.wire(list_index=False)
    after = worked_on(world, operation)
    assert after.state is State.FAILED
    assert after.last_problem is not None
    assert "ListIndex=on" in after.last_problem


def test_an_operation_is_gone_when_its_time_is_over(world: World) -> None:
    operation = done(world, "cancel", filter=ALL)
    assert operation.expires_at is not None
    world.clock.set_ms(operation.expires_at * 1000)
    with pytest.raises(UnknownOperation):
        world.read_operations.find(operation.operation_id, ANYTHING)


def test_the_mark_of_an_operation_does_not_hide_that_of_another(world: World) -> None:
    (task,) = spread(world, 1)
    first = asked_for(world, "reschedule", filter=ALL, shift_seconds=60)
    second = asked_for(world, "reschedule", filter=ALL, shift_seconds=60)
    worked_on(world, first)
    found = world.tasks.get(address_of_task(task.task_id))
    assert found is not None
    assert found.marks == f"{first.mark} {second.mark}"
    assert found.due_ms == task.due_ms + 120_000
