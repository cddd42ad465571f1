"""A cancel that is answered in time succeeds; a later one is refused as too late."""

import pytest

from duewheel.rules.refusals import AlreadySettled, MalformedTaskId, TooLate, UnknownTask
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import address_at
from tests.support.receiver import BUSY, OK
from tests.support.recorder import Call
from tests.support.world import World


def cut_off_ms(world: World, task: Task) -> int:
    return timing.cut_off_ms(task.next_ms, world.settings.lead_ms)


def test_a_millisecond_before_the_cut_off_the_cancel_wins(world: World) -> None:
    task = world.created(in_ms=60_999)
    world.clock.set_ms(cut_off_ms(world, task) - 1)

    assert world.cancel(task.task_id).status is Status.CANCELLED
    world.dispatch_until(task.due_ms // 1000 + 1)
    world.drain()

    assert world.receiver.received == []
    assert world.read(task).reason == "cancelled by caller"
    assert world.read(task).expires_at is not None


def test_at_the_cut_off_the_cancel_is_refused_and_the_call_is_made(world: World) -> None:
    task = world.created(in_ms=60_999)
    world.clock.set_ms(cut_off_ms(world, task))

    with pytest.raises(TooLate) as refused:
        world.cancel(task.task_id)
    assert refused.value.cut_off_ms == cut_off_ms(world, task)
    assert refused.value.cut_off_ms == task.due_ms // 1000 * 1000 - 2_500

    world.dispatch_until(task.due_ms // 1000 + 1)
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


def test_a_cancel_that_is_answered_after_the_cut_off_is_reported_as_too_late(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.clock.set_ms(cut_off_ms(world, task) - 10)

    def slow_write(call: Call) -> None:
        if call.operation == "UpdateItem":
            world.clock.advance_ms(10)

    world.recorder.after = slow_write
    with pytest.raises(TooLate, match="written"):
        world.cancel(task.task_id)


def test_cancelling_twice_is_one_cancel(world: World) -> None:
    task = world.created()
    first = world.cancel(task.task_id)
    world.recorder.clear()

    assert world.cancel(task.task_id) == first
    assert "UpdateItem" not in world.recorder.operations()


def test_a_delivered_task_cannot_be_cancelled(world: World) -> None:
    task = world.created(in_ms=0)
    world.drain()
    with pytest.raises(AlreadySettled, match="delivered"):
        world.cancel(task.task_id)


def test_a_cancel_between_read_and_write_of_another_cancel_is_noticed(world: World) -> None:
    task = world.created()

    world.recorder.once("UpdateItem", lambda: world.cancel(task.task_id))
    assert world.cancel(task.task_id).status is Status.CANCELLED


def test_a_cancel_whose_answer_was_lost_succeeds_when_the_sdk_retries(world: World) -> None:
    task = world.created()
    world.recorder.lose_answer(world.dynamodb, "UpdateItem")
    assert world.cancel(task.task_id).status is Status.CANCELLED
    assert world.recorder.before is None


def test_a_task_waiting_for_its_retry_can_be_cancelled(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.receiver.answer = lambda received: BUSY
    world.come_up(task)
    while world.read(task).next_ms - world.clock.now_ms() < 20_000:
        world.dispatch_until(world.read(task).next_ms // 1000 + 1)
        world.drain()
    attempts = len(world.receiver.received)

    assert world.cancel(task.task_id).status is Status.CANCELLED
    world.receiver.answer = lambda received: OK
    world.dispatch_until(world.read(task).next_ms // 1000 + 1)
    world.drain()

    assert len(world.receiver.received) == attempts
    assert world.read(task).status is Status.CANCELLED


@pytest.mark.exhaustive
def test_a_record_past_its_expiry_is_unknown_even_before_ttl_deletes_it(world: World) -> None:
    task = world.created()
    world.cancel(task.task_id)
    world.clock.advance_ms(world.settings.retention_seconds * 1000 + 1_000)

    with pytest.raises(UnknownTask):
        world.change_pending.find(task.home)
    with pytest.raises(UnknownTask):
        world.cancel(task.task_id)


def test_unknown_and_damaged_ids_have_different_refusals(world: World) -> None:
    unknown = address_at(world.clock.now_ms(), b"stranger").task_id
    with pytest.raises(UnknownTask):
        world.cancel(unknown)
    with pytest.raises(MalformedTaskId):
        world.cancel(unknown[:-1] + ("A" if unknown[-1] != "A" else "B"))
