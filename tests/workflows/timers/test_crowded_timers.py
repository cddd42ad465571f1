"""Timers have occurrences in crowded seconds: each is written and called once."""

import pytest

from duewheel.rules.timers.planning import PLANNED_SECONDS
from duewheel.rules.timers.timer import Timer
from tests.support.stories import Story
from tests.support.timers import chain_of, fates, made, now, occurrences, patched
from tests.support.world import CALLER, World

EVERY = 20
SELDOM = 300
RUNS = 6
SHARDS = 4


def crowd(world: World, every: int = EVERY, count: int = RUNS + 2) -> None:
    """Raises the shards of the seconds of its occurrences; no process has read them yet."""
    for number in range(1, count):
        world.headers.raise_to(now(world) // every * every + every * number, SHARDS)


def shards(world: World, timer: Timer) -> list[int]:
    return [task.home.shard for task in occurrences(world, timer)]


def check_each_is_called_once(story: Story, timer: Timer) -> None:
    story.pass_time(EVERY * (RUNS + 1))
    assert fates(story.world, timer) == {"delivered": RUNS}
    assert len(story.world.receiver.received) == RUNS
    story.settle_all()
    story.check()


def test_occurrences_are_spread_over_the_shards_of_their_seconds(world: World) -> None:
    story = Story(world)
    crowd(world)
    timer = made(world, EVERY, max_runs=RUNS)
    world.drain()
    assert len(set(shards(world, timer))) > 1
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    assert set(chain.plan.sizes.shards.values()) == {SHARDS}
    check_each_is_called_once(story, timer)


@pytest.mark.soak
def test_a_new_chain_in_crowded_seconds_writes_no_occurrence_twice(world: World) -> None:
    """After each change of the schedule, another chain plans the same seconds again."""
    story = Story(world)
    timer = made(world, EVERY, max_runs=RUNS)
    world.drain()
    assert shards(world, timer) == [0] * RUNS
    crowd(world)
    patched(world, timer, max_runs=RUNS + 1)
    patched(world, timer, max_runs=RUNS)
    world.drain()
    check_each_is_called_once(story, timer)


@pytest.mark.soak
def test_a_timer_that_is_enabled_again_finds_its_occurrences_in_crowded_seconds(
    world: World,
) -> None:
    story = Story(world)
    crowd(world)
    timer = made(world, EVERY, max_runs=RUNS)
    world.drain()
    planned = shards(world, timer)
    for second in range(now(world), now(world) + 200):
        world.headers.raise_to(second, 4 * SHARDS)
    world.change_timer.disable(timer.timer_id, by=CALLER)
    disabled = world.timers.read(timer.timer_id)
    assert disabled is not None
    assert set(disabled.sizes.shards.values()) == {SHARDS}
    world.change_timer.enable(timer.timer_id, by=CALLER)
    world.drain()
    assert shards(world, timer) == planned
    check_each_is_called_once(story, timer)


def test_runs_that_are_due_in_other_seconds_after_a_change_are_in_shards_that_are_read(
    world: World,
) -> None:
    """Only the seconds of the schedule are crowded. Jitter moves runs out of them, and back."""
    story, begins = Story(world), now(world)
    for n in range(1, RUNS + 1):
        world.headers.raise_to(begins + EVERY * n, SHARDS)
    timer = made(world, EVERY, max_runs=RUNS)
    world.drain()
    planned = shards(world, timer)
    assert len(set(planned)) > 1
    patched(world, timer, jitter_seconds=EVERY - 1)
    world.drain()
    jittered = [task for task in occurrences(world, timer) if task.due_ms // 1000 % EVERY]
    assert {task.home.shard for task in jittered} == {0}
    patched(world, timer, jitter_seconds=0)
    world.drain()
    back = [task for task in occurrences(world, timer) if task not in jittered]
    assert [task.home.shard for task in back] == planned
    patched(world, timer, jitter_seconds=EVERY - 1)
    story.settle_all()
    story.check()
    changed = len(back) + len(jittered) - RUNS
    assert fates(world, timer) == {"delivered": RUNS, "timer changed": changed}
    assert len(world.receiver.received) == RUNS


@pytest.mark.soak
def test_sizes_of_past_seconds_are_not_kept(world: World) -> None:
    story = Story(world)
    crowd(world, SELDOM, count=200)
    timer = made(world, SELDOM)
    world.drain()
    story.pass_time(PLANNED_SECONDS)
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    assert min(chain.plan.sizes.shards)[0] > now(world) - PLANNED_SECONDS
