"""Runs that are made by hand, in the order of their timer's flow key."""

import pytest

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.tasks.flow_order import Line
from duewheel.rules.tasks.idempotency import IdempotentRequest
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.timer import Timer
from duewheel.wiring import notifier
from tests.support.timers import (
    made,
    occurrences,
    run_for,
)
from tests.support.world import World
from tests.workflows.delivery.test_long_work import accepted, complete

LINE = Line("orders", "ada")


@pytest.fixture
def timer(world: World) -> Timer:
    world.configured("orders", flow=Flow(FlowLimits(in_order=True), {}))
    return made(world, 10, flow_key="ada", enabled=False)


def working(world: World, timer: Timer) -> list[Task]:
    return [task for task in occurrences(world, timer) if task.running is not None]


def items(world: World) -> int:
    found, _ = notifier.order().items.between(LINE, "0", "9")
    return len(found)


def test_a_run_by_hand_waits_for_the_run_before_it_and_is_woken_by_its_end(
    world: World, timer: Timer
) -> None:
    world.receiver.answer = lambda received: accepted(3_000)
    world.run_timer(timer.timer_id)
    run_for(world, 3)
    world.run_timer(timer.timer_id)
    run_for(world, 3)
    assert len(world.receiver.received) == 1
    (first,) = working(world, timer)
    complete(first)
    run_for(world, 5)
    assert len(world.receiver.received) == 2


def test_a_timer_whose_key_has_no_order_puts_no_items(world: World) -> None:
    timer = made(world, 10, flow_key="ada", enabled=False)
    world.run_timer(timer.timer_id)
    assert items(world) == 0


def test_a_repeated_request_of_a_run_leaves_no_item_behind(world: World, timer: Timer) -> None:
    once = IdempotentRequest(name="name", digest="digest", is_single=True)
    made_once = world.run_timer(timer.timer_id, once)
    assert world.run_timer(timer.timer_id, once).task_id == made_once.task_id
    assert items(world) == 1
