"""Any task that has ended is called again by a redrive, once, whatever happens in between."""

import json
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.refusals import NotRedrivable, UnknownTask
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.timing import SKEW_MS
from tests.support.bounds import quick_first
from tests.support.receiver import GONE, OK
from tests.support.stories import End, Interruption, Story
from tests.support.world import FAR_MS, World

KEY = "order-17:unpaid"
SIGNATURE_MS = 300_000  # AWS accepts a request for so long

End_ = Callable[[Story, Task], None]


def deliver(story: Story, task: Task) -> None:
    story.pass_time(FAR_MS // 1000 + 1)
    story.idle(lifecycle.REDRIVABLE_AFTER_MS // 1000)


def die(story: Story, task: Task) -> None:
    story.answer = GONE
    story.pass_time(FAR_MS // 1000 + 1)
    story.answer = OK


def cancel(story: Story, task: Task) -> None:
    story.cancel(story.told[task.task_id])


def expire(story: Story, task: Task) -> None:
    story.idle(FAR_MS // 1000 + 60)
    story.pass_time(2)


ENDS: dict[Status, End_] = {
    Status.DELIVERED: deliver,
    Status.DEAD: die,
    Status.CANCELLED: cancel,
    Status.EXPIRED: expire,
}


def ended(world: World, status: Status, **fields: object) -> tuple[Story, Task]:
    story = Story(world)
    grace = 5.0 if status is Status.EXPIRED else None
    new = world.new(FAR_MS, expires_after_seconds=grace, **fields)
    with story._asked(None, new.due_ms) as answered:
        if new.key is None:
            made = world.created(FAR_MS, expires_after_seconds=grace, **fields)
        else:
            made = world.created_by_key(new).task
        answered(made)
    ENDS[status](story, made)
    task = world.read(made)
    assert task.status is status
    return story, task


def wait(world: World) -> None:
    world.clock.advance_ms(lifecycle.REDRIVABLE_AFTER_MS)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("status", ENDS)
def test_any_task_that_has_ended_is_called_again_and_keeps_its_history(
    world: World, status: Status, key: str | None
) -> None:
    story, task = ended(world, status, key=key)
    calls = len(world.receiver.received)
    redriven = world.redrive(task.task_id)
    assert (redriven.status, redriven.redrives, redriven.attempts) == (Status.PENDING, 1, 0)
    assert redriven.revivals[-1].status is status
    items = [item for item in world.items() if "status" in item]
    assert not {"expires_at", "dead_biz", "settled_ms", "reason"} & set(items[0])

    story.settle_all()
    settled = world.read(task)
    assert settled.status is Status.DELIVERED
    assert settled.history[:-1] == task.history
    assert settled.revivals == redriven.revivals
    assert len(world.receiver.received) == calls + 1
    if key is not None:
        assert world.keyed.read("orders", key).home == task.home


@pytest.mark.parametrize("status", ENDS)
def test_a_second_redrive_is_refused_while_the_task_is_pending(
    world: World, status: Status
) -> None:
    _, task = ended(world, status)
    world.redrive(task.task_id)
    with pytest.raises(NotRedrivable, match="pending"):
        world.redrive(task.task_id)


def test_a_cancelled_task_that_is_redriven_early_is_called_at_its_due_instant(world: World) -> None:
    story, task = ended(world, Status.CANCELLED)
    assert world.redrive(task.task_id).next_ms == task.due_ms
    story.pass_time(FAR_MS // 1000 - 10)
    assert world.receiver.received == []
    story.settle_all()
    assert [received.at_ms for received in world.receiver.received] == [task.due_ms]


def test_a_delivered_task_is_redriven_only_when_its_delivery_cannot_be_written_once_more(
    world: World,
) -> None:
    """A run that had read the task before delivers it once more; nothing of it comes later."""
    lives_ms = world.settings.notifier_lives_ms
    assert 2 * (lives_ms + SKEW_MS) + SIGNATURE_MS <= lifecycle.REDRIVABLE_AFTER_MS
    task = world.created(in_ms=0)
    world.drain()
    delivered = world.read(task)
    with pytest.raises(NotRedrivable, match="just been delivered") as refused:
        world.redrive(task.task_id)
    assert refused.value.redrivable_ms == delivered.updated_ms + lifecycle.REDRIVABLE_AFTER_MS
    wait(world)
    assert world.redrive(task.task_id).is_live


def test_a_run_that_settles_what_another_called_defers_the_redrive(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.clock.set_ms(task.due_ms)
    attempt = lifecycle.attempt_made(task, OK, task.due_ms, task.due_ms)
    record = lifecycle.delivered(task, attempt, task.due_ms, 86_400)
    message = world.dispatched(task)
    body = message["Body"][:-1] + f', "called": [{json.dumps(world.tasks.as_text(record))}]}}'
    world.clock.advance_ms(20_000)
    world.handle({**message, "Body": body})
    settled = world.read(task)
    assert settled.settled_ms == task.due_ms
    assert settled.updated_ms == world.clock.now_ms()
    assert world.receiver.received == []


def test_a_task_is_not_redriven_when_its_record_is_about_to_go(world: World) -> None:
    for status in ENDS:
        _, task = ended(world, status)
        world.clock.set_ms((task.expires_at or 0) * 1000 - lifecycle.ABOUT_TO_GO_MS)
        with pytest.raises(NotRedrivable, match="about to be deleted"):
            world.redrive(task.task_id)
        world.clock.advance_ms(lifecycle.ABOUT_TO_GO_MS)
        with pytest.raises(UnknownTask):
            world.redrive(task.task_id)


@pytest.mark.parametrize("status", ENDS)
def test_a_redrive_does_not_take_a_key_that_another_task_has(world: World, status: Status) -> None:
    story, task = ended(world, status, key=KEY)
    other = world.created_by_key(world.new(FAR_MS, key=KEY)).task
    with pytest.raises(NotRedrivable, match="its key names another task"):
        world.redrive(task.task_id)
    assert world.read(task) == task
    assert world.keyed.read("orders", KEY).home == other.home
    story.settle_all()
    assert world.read(task) == task


def test_a_redriven_task_of_a_key_in_order_goes_before_later_ones(world: World) -> None:
    world.configured("orders", flow=Flow(default=FlowLimits(in_order=True)))
    first = world.created(FAR_MS, flow_key="customer")
    world.come_up(first)
    second = world.created(world_in(world, first, 700_000), flow_key="customer")
    wait(world)
    world.redrive(first.task_id)
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)  # late
    world.clock.set_ms(second.due_ms)
    world.come_up(second)
    assert world.receiver.task_ids == [first.task_id]
    world.sweep_past(world.clock.now_ms() // 1000)
    world.drain()
    assert world.receiver.task_ids[:2] == [first.task_id] * 2


def world_in(world: World, first: Task, ms: int) -> int:
    return first.due_ms + ms - world.clock.now_ms()


def crashes(world: World, status: Status, key: str | None, end: End) -> Iterator[Story]:
    """A redrive that ends at each of its AWS calls, before or after it."""
    for number in count(1):
        for moment in ("before", "after"):
            story, task = ended(world, status, key=key)
            redrive = lambda told=story.told[task.task_id], story=story: story.redrive(told)  # noqa: E731
            if not story.interrupted(redrive, Interruption(number, end, moment)):
                return
            yield story


@pytest.mark.parametrize("end", quick_first(list(End), pytest.mark.exhaustive))
@pytest.mark.parametrize("key", quick_first([KEY, None], pytest.mark.exhaustive))
@pytest.mark.parametrize("status", ENDS)
def test_a_redrive_that_crashes_at_any_call_leaves_the_task_ended_or_calls_it_once(
    world: World, status: Status, key: str | None, end: End
) -> None:
    fates = set()
    for story in crashes(world, status, key, end):
        (told,) = story.told.values()
        task = world.read(told.task)
        fates.add(task.status)
        calls = len(world.receiver.received)
        story.settle_all()
        if told.task.expires_after_seconds is None or task.is_live:  # its grace is not in the model
            story.check()
        assert len(world.receiver.received) == calls + task.is_live
    assert fates == {status, Status.PENDING}


@pytest.mark.parametrize("status", quick_first(list(ENDS), pytest.mark.exhaustive))
def test_of_a_redrive_and_another_between_its_calls_one_is_made(
    world: World, status: Status
) -> None:
    for number in count(1):
        story, task = ended(world, status, key=KEY)
        told, calls = story.told[task.task_id], len(world.receiver.received)
        both = Interruption(number, lambda s=story, t=told: s.redrive(t), "after")
        story.results.clear()
        if not story.interrupted(lambda s=story, t=told: s.redrive(t), both):
            return
        assert sorted(type(result).__name__ for result in story.results) == [
            "NotRedrivable",
            "Task",
        ]
        story.settle_all()
        story.check()
        assert len(world.receiver.received) == calls + 1
