"""The way of a task from its create to its callback, step by step."""

from duewheel.rules.tasks.task import Status
from tests.support.world import World


def test_a_task_is_called_at_its_millisecond_and_settled(world: World) -> None:
    task = world.created(in_ms=90_250)
    world.come_up(task)

    assert [(r.task_id, r.at_ms) for r in world.receiver.received] == [(task.task_id, task.due_ms)]
    settled = world.read(task)
    assert settled.status is Status.DELIVERED
    assert settled.lateness_ms == 0
    assert settled.attempts == 1


def test_a_near_task_is_delivered_without_the_scheduler(world: World) -> None:
    task = world.created(in_ms=0)
    world.drain()

    assert world.receiver.task_ids == [task.task_id]
    assert world.read(task).status is Status.DELIVERED


def test_the_sweep_moves_past_a_delivered_second(world: World) -> None:
    task = world.created(in_ms=90_000)
    world.come_up(task)
    world.sweep_past(task.due_ms // 1000)

    assert world.receiver.task_ids == [task.task_id]
