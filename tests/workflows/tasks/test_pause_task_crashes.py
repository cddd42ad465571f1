"""The pause of one task and its end are interrupted at each AWS call, by a death, an outage or
another request, also around the call itself. No task is lost, or called while it is paused."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.promises import Told
from tests.support.stories import End, Story, at_each_call, begun, interleavings
from tests.support.world import World

FAR = 9  # seconds: read with its slice


def first(story: Story) -> Told:
    return next(iter(story.told.values()))


def begin(story: Story) -> None:
    story.create_keyed("order-17", FAR * 1000)


def begin_paused(story: Story) -> None:
    begin(story)
    story.pause_task(first(story))


def begin_placed_later(story: Story) -> None:
    """Its first entry has fired during the pause."""
    begin_paused(story)
    story.pass_time(FAR + 5)


def begin_parked(story: Story) -> None:
    begin(story)
    story.pause()
    story.world.dispatch_until(story.world.clock.now_ms() // 1000 + FAR)
    story.deliver()


def dispatched(story: Story) -> None:
    """It is paused, and its slice is about to be read."""
    begin_paused(story)
    story.world.dispatch_until(story.world.clock.now_ms() // 1000 + FAR)


def pause(story: Story) -> None:
    story.pause_task(first(story))


def resume(story: Story) -> None:
    story.resume_task(first(story))


def cancel(story: Story) -> None:
    story.cancel(first(story))


def run(story: Story) -> None:
    story.run(first(story))


def move(story: Story) -> None:
    story.move(first(story), 20_000)


STEPS: dict[str, tuple[Callable[[Story], None], Callable[[Story], None]]] = {
    "pause": (begin, pause),
    "pause of a parked task": (begin_parked, pause),
    "resume": (begin_paused, resume),
    "resume behind its instant": (begin_placed_later, resume),
    "cancel": (begin_paused, cancel),
    "cancel behind its instant": (begin_placed_later, cancel),
    "run": (begin_placed_later, run),
    "move": (begin_placed_later, move),
    "deliver": (dispatched, Story.deliver),
}


@pytest.mark.parametrize("kind", STEPS)
def test_a_death_at_any_call_loses_no_task_and_calls_none_while_it_is_paused(
    world: World, kind: str
) -> None:
    before, step = STEPS[kind]
    assert sum(1 for _ in at_each_call(partial(begun, world, before), step, End.DEATH)) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", STEPS)
def test_no_death_or_outage_at_any_call_loses_a_task(
    world: World, kind: str, moment: str, end: End
) -> None:
    before, step = STEPS[kind]
    assert sum(1 for _ in at_each_call(partial(begun, world, before), step, end, moment)) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("other", [pause, resume, cancel, run, move])
@pytest.mark.parametrize("kind", STEPS)
def test_of_two_requests_at_once_the_answered_one_holds(
    world: World, kind: str, other: Callable[[Story], None]
) -> None:
    before, step = STEPS[kind]
    assert sum(1 for _ in interleavings(world, before, step, other)) >= 2


def begin_near(story: Story) -> None:
    """It may be paused for another half second."""
    begin(story)
    story.world.dispatch_until(story.world.clock.now_ms() // 1000 + FAR - 3)


def fall_due(story: Story) -> None:
    story.pass_time(6)


def test_a_resume_beside_the_notifier_that_finds_the_task_paused_brings_it_to_its_call(
    world: World,
) -> None:
    assert sum(1 for _ in interleavings(world, dispatched, Story.deliver, resume)) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("other", [pause, resume])
def test_a_pause_beside_a_call_wins_or_is_refused(
    world: World, other: Callable[[Story], None]
) -> None:
    assert sum(1 for _ in interleavings(world, begin_near, other, fall_due)) >= 1
    assert sum(1 for _ in interleavings(world, begin_near, fall_due, other)) >= 2
    assert sum(1 for _ in interleavings(world, dispatched, Story.deliver, other)) >= 2
