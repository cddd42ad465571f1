"""Runs that are made by hand, or afterwards, in the order of their timer's flow key."""

from collections.abc import Callable

import pytest

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.tasks.flow_order import Line
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.timer import Timer
from duewheel.wiring import notifier
from duewheel.wiring.bulk import backfill_work
from tests.support.operations import numbers
from tests.support.receiver import OK
from tests.support.timers import made, now, occurrences
from tests.support.world import World
from tests.workflows.delivery.test_long_work import accepted, complete
from tests.workflows.timers.test_backfill import PAYLOAD, asked, backfilled, instants, run

LINE = Line("orders", "ada")
SECONDS = (10, 20, 30, 40)


@pytest.fixture
def timer(world: World) -> Timer:
    """Its runs of the past were not made."""
    world.configured("orders", flow=Flow(FlowLimits(in_order=True), {}))
    timer = made(world, 10, payload=PAYLOAD, flow_key="ada", enabled=False)
    run(world, 45)
    return timer


def working(world: World, timer: Timer) -> list[Task]:
    return [task for task in occurrences(world, timer) if task.running is not None]


def items(world: World) -> int:
    found, _ = notifier.order().items.between(LINE, "0", "9")
    return len(found)


ANSWERS: list[Callable[[], Outcome]] = [lambda: OK, lambda: accepted(3_000)]


@pytest.mark.parametrize("answer", ANSWERS, ids=["at once", "after long work"])
def test_backfilled_runs_are_called_in_the_order_of_the_schedule(
    world: World, timer: Timer, answer: Callable[[], Outcome]
) -> None:
    world.receiver.answer = lambda received: answer()
    began = now(world) - 45
    assert numbers(backfilled(world, timer, began + 1, began + 41)) == (4, 0, 0)
    for _ in range(7):
        run(world, 4)
        at_work = working(world, timer)
        assert len(at_work) <= 1
        for task in at_work:
            complete(task)
    run(world, 3)
    assert instants(world) == [began + second for second in SECONDS]
    assert items(world) == 0


def test_a_run_by_hand_waits_for_the_run_before_it_and_is_woken_by_its_end(
    world: World, timer: Timer
) -> None:
    world.receiver.answer = lambda received: accepted(3_000)
    world.run_timer(timer.timer_id)
    run(world, 3)
    world.run_timer(timer.timer_id)
    run(world, 3)
    assert len(world.receiver.received) == 1
    (first,) = working(world, timer)
    complete(first)
    run(world, 5)
    assert len(world.receiver.received) == 2


def test_a_run_that_was_made_before_leaves_no_item_behind(world: World, timer: Timer) -> None:
    world.receiver.answer = lambda received: OK
    began = now(world) - 45
    backfilled(world, timer, began + 1, began + 41)
    run(world, 30)
    beside = asked(world, timer, began + 1, began + 41)  # its page was planned before
    assert backfill_work().change(beside, str(began + 10)) is False
    assert items(world) == 0
    assert len(world.receiver.received) == 4


def test_a_timer_whose_key_has_no_order_puts_no_items(world: World) -> None:
    timer = made(world, 10, payload=PAYLOAD, flow_key="ada", enabled=False)
    world.run_timer(timer.timer_id)
    assert items(world) == 0
