"""A pending task is moved, altered, run or redriven; an entry that is no longer named never
fires."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.refusals import AlreadySettled, TooLate, UnknownTask
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel import timing
from tests.support.receiver import BUSY, GONE, OK
from tests.support.recorder import Call, Death
from tests.support.world import World


def move(world: World, task: Task, due_ms: int) -> Task:
    return world.change(task.task_id, Change(due_ms=due_ms))


def test_a_later_instant_costs_one_write_and_no_entry_until_the_old_entry_falls_due(
    world: World,
) -> None:
    world.wire(list_index=False)
    task = world.created(in_ms=60_000)
    world.recorder.clear()
    later_ms = task.due_ms + 30_000
    moved = move(world, task, later_ms)

    assert world.recorder.operations() == ["GetItem", "UpdateItem"]
    assert (moved.due_ms, moved.next_ms, moved.entry) == (later_ms, later_ms, task.home)
    world.come_up(task)
    assert world.receiver.received == []
    world.dispatch_until(later_ms // 1000)
    world.drain()
    assert [received.at_ms for received in world.receiver.received] == [later_ms]


def test_an_earlier_instant_fires_early_and_only_once(world: World) -> None:
    task = world.created(in_ms=600_000)
    earlier_ms = world.clock.now_ms() + 60_250
    move(world, task, earlier_ms)
    world.dispatch_until(earlier_ms // 1000)
    world.drain()
    assert [received.at_ms for received in world.receiver.received] == [earlier_ms]

    world.come_up(task)
    world.sweep_past(task.due_ms // 1000)
    assert len(world.receiver.received) == 1
    assert [item for item in world.items() if "home" in item] == []


def test_an_instant_earlier_within_its_own_second_gets_an_entry_for_the_message_in_time(
    world: World,
) -> None:
    task = world.created(in_ms=60_900)
    earlier_ms = task.due_ms - 700
    moved = move(world, task, earlier_ms)
    assert moved.entry.instant_ms == earlier_ms

    world.dispatch_until(earlier_ms // 1000)
    world.drain()
    assert [received.at_ms for received in world.receiver.received] == [earlier_ms]


def test_a_task_that_is_moved_to_now_is_called_immediately(world: World) -> None:
    task = world.created(in_ms=600_000)
    move(world, task, world.clock.now_ms())
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


@pytest.mark.exhaustive
@hypothesis_settings(
    max_examples=hypothesis_settings.default.max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(moves=st.lists(st.integers(min_value=20, max_value=90), min_size=1, max_size=5))
def test_a_task_that_is_moved_many_times_fires_once_at_the_last_instant(
    world: World, moves: list[int]
) -> None:
    start_ms = world.clock.now_ms()
    before = len(world.receiver.received)
    task = world.created(in_ms=50_000)
    for seconds in moves:
        move(world, task, start_ms + seconds * 1000)
    world.dispatch_until(start_ms // 1000 + 5)
    for second in sorted({50, *moves}):
        world.dispatch_until(start_ms // 1000 + second)
        world.drain()

    called = world.receiver.received[before:]
    assert [(r.task_id, r.at_ms) for r in called] == [(task.task_id, start_ms + moves[-1] * 1000)]


def test_payload_and_callback_change_and_absent_fields_stay(world: World) -> None:
    task = world.created(in_ms=60_000)
    elsewhere = HttpCallback("https://elsewhere.example/", "PUT", (("x-a", "b"),))
    world.change(task.task_id, Change(callback=elsewhere))
    changed = world.change(task.task_id, Change(sets_payload=True, payload="[1.0]"))

    assert (changed.callback, changed.payload, changed.due_ms) == (elsewhere, "[1.0]", task.due_ms)
    world.come_up(task)
    (received,) = world.receiver.received
    assert (received.url, received.body) == ("https://elsewhere.example/", b"[1.0]")


@pytest.mark.parametrize("early_ms", [0, 1])
def test_a_change_is_refused_from_the_cut_off_onwards(world: World, early_ms: int) -> None:
    task = world.created(in_ms=60_000)
    cut_off_ms = timing.cut_off_ms(task.next_ms, world.settings.lead_ms)
    world.clock.set_ms(cut_off_ms - early_ms)
    if early_ms:
        assert move(world, task, task.due_ms + 5_000).due_ms == task.due_ms + 5_000
        return
    for refused in (
        lambda: move(world, task, task.due_ms + 5_000),
        lambda: world.change.run(task.task_id),
    ):
        with pytest.raises(TooLate) as raised:
            refused()
        assert raised.value.cut_off_ms == cut_off_ms
    assert world.read(task) == task


def test_settled_and_unknown_tasks_cannot_be_changed(world: World) -> None:
    task = world.created(in_ms=0)
    world.drain()
    with pytest.raises(AlreadySettled):
        move(world, task, world.clock.now_ms() + 60_000)
    stranger = replace(task, home=replace(task.home, token="AAAAAAAAAAA"))
    with pytest.raises(UnknownTask):
        move(world, stranger, world.clock.now_ms() + 60_000)


@pytest.mark.exhaustive
def test_a_crash_between_new_entry_and_its_naming_leaves_the_old_instant_in_force(
    world: World,
) -> None:
    task = world.created(in_ms=120_000)

    world.recorder.die("UpdateItem")
    with pytest.raises(Death):
        move(world, task, world.clock.now_ms() + 60_000)

    world.come_up(task)
    world.sweep_past(task.due_ms // 1000)
    assert [received.at_ms for received in world.receiver.received] == [task.due_ms]
    assert [item for item in world.items() if "home" in item] == []


def test_the_second_of_two_changes_keeps_the_first(world: World) -> None:
    task = world.created(in_ms=60_000)

    world.recorder.once(
        "UpdateItem", lambda: world.change(task.task_id, Change(sets_payload=True, payload="2"))
    )
    move(world, task, task.due_ms + 60_000)
    current = world.read(task)
    assert (current.payload, current.due_ms) == ("2", task.due_ms + 60_000)


def test_a_beat_while_the_notifier_writes_a_new_entry_takes_effect(world: World) -> None:
    """The notifier moves the task to the last beat, at 90 s; one more beat comes in between."""
    task = world.created(in_ms=60_000)
    start_ms = world.clock.now_ms()
    move(world, task, start_ms + 90_000)
    world.dispatch_until(task.due_ms // 1000)

    def beat(call: Call) -> None:
        if call.operation == "UpdateItem" and call.request["Key"].get("place", {}) == {
            "S": task.home.place
        }:
            world.recorder.before = None
            move(world, task, start_ms + 100_000)

    world.recorder.before = beat
    world.drain()
    assert world.recorder.before is None
    world.dispatch_until(start_ms // 1000 + 100)
    world.drain()
    assert [received.at_ms for received in world.receiver.received] == [start_ms + 100_000]


def test_run_calls_a_task_now_and_keeps_its_due_instant(world: World) -> None:
    task = world.created(in_ms=3_600_000)
    running = world.change.run(task.task_id)
    world.drain()

    assert running.due_ms == task.due_ms
    assert [received.at_ms for received in world.receiver.received] == [world.clock.now_ms()]
    settled = world.read(task)
    assert (settled.status, settled.lateness_ms) == (Status.DELIVERED, 0)
    world.sweep_past(world.clock.now_ms() // 1000 + 1)
    assert len(world.receiver.received) == 1


def test_a_redriven_task_is_retried_like_any_other(world: World) -> None:
    task = world.created(in_ms=0, retry=RetryPolicy(attempts_max=2, delays_seconds=(10.0,)))
    world.receiver.answer = lambda received: BUSY
    for _ in range(4):
        world.drain()
        world.dispatch_until(world.clock.now_ms() // 1000 + 15)
    assert world.read(task).status is Status.DEAD

    world.redrive(task.task_id)
    for _ in range(4):
        world.drain()
        world.dispatch_until(world.clock.now_ms() // 1000 + 15)
    assert world.read(task).status is Status.DEAD
    assert len(world.receiver.received) == 4


def test_the_sweep_finds_a_redriven_task_whose_message_was_lost(world: World) -> None:
    task = world.created(in_ms=0)
    world.receiver.answer = lambda received: GONE
    world.drain()
    world.receiver.answer = lambda received: OK
    world.redrive(task.task_id)
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)
    world.sweep_past(world.clock.now_ms() // 1000)
    assert world.read(task).status is Status.DELIVERED
