"""A timer with `max_runs` changes while runs are planned: it is called as often as it says, at the
first seconds that its new definition contains. What was planned before has numbers of its own."""

from collections.abc import Callable
from typing import Any

import pytest

from duewheel.rules.timers.timer import Misfire, Timer
from tests.support.stories import Story
from tests.support.timers import called_seconds, fates, made, now, occurrences, patched
from tests.support.world import World

Change = Callable[[World, Timer], object]
RUNS = 4


def every(seconds: int, **values: Any) -> Change:
    def change(world: World, timer: Timer) -> None:
        begins = timer.created_ms // 1000
        patched(world, timer, every_seconds=seconds, start_at=begins, max_runs=RUNS, **values)

    return change


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ({"every": 30}, every(60), 60),
        ({"every": 60, "max_runs": RUNS}, every(30), 30),
    ],
    ids=["fewer seconds", "more seconds"],
)
def test_a_timer_is_called_as_often_as_its_new_definition_says(
    world: World, before: dict[str, int], change: Change, after: int
) -> None:
    story, begins = Story(world), now(world)
    timer = made(world, before["every"], max_runs=before.get("max_runs"))
    world.drain()
    change(world, timer)
    story.pass_time(2 * 60 * RUNS)
    assert [s - begins for s in called_seconds(world)] == [after * n for n in range(1, RUNS + 1)]
    current = world.timers.read(timer.timer_id)
    assert current is not None
    assert (current.ended, current.numbered) == (True, RUNS)


def test_the_last_run_of_the_new_definition_is_not_superseded_by_one_that_is_over(
    world: World,
) -> None:
    """No notifier runs until all are late by more than the grace."""
    story, begins = Story(world), now(world)
    timer = made(world, 30, misfire=Misfire.LATEST, grace_seconds=5)
    world.drain()
    patched(world, timer, max_runs=2, every_seconds=60, start_at=begins)
    story.idle(300)
    story.settle_all()
    assert fates(world, timer)["delivered"] == 1
    assert fates(world, timer)["superseded"] == 1
    assert len(world.receiver.received) == 1


def test_runs_that_were_planned_late_and_last_are_counted_as_well(world: World) -> None:
    """All that is planned ahead has passed when the chain is planned: it ends in that step."""
    story = Story(world)
    timer = made(world, 60, max_runs=60)
    story.idle(60 * 60 + 1)
    story.settle_all()
    assert len(called_seconds(world)) == 60
    patched(world, timer, max_runs=62)
    story.settle_all()
    assert len(called_seconds(world)) == 62
    assert len(occurrences(world, timer)) == 62
