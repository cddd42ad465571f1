"""A pause is interrupted at each of its writes, by a death or by another request: every task is
called afterwards, and once."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.promises import Told
from tests.support.recorder import Call
from tests.support.stories import End, Interruption, Story, after_each_write, begun
from tests.support.world import World

Step = Callable[[Story], object]
READS = {"Query", "GetItem", "BatchGetItem", "ReceiveMessage"}
FAR = 9  # seconds: read with its slice


def begin(story: Story) -> None:
    story.create(FAR * 1000)
    story.create_keyed("order-17", FAR * 1000 + 300)


def begin_due(story: Story) -> None:
    """The business is paused, and the slice is dispatched."""
    begin(story)
    story.pause()
    story.world.dispatch_until(story.world.clock.now_ms() // 1000 + FAR)


def begin_parked(story: Story) -> None:
    begin_due(story)
    story.deliver()


def begin_resumed(story: Story) -> None:
    begin_parked(story)
    story.world.clock.advance_ms(1_000)
    story.resume()


def first(story: Story) -> Told:
    return next(iter(story.told.values()))


def is_no_read(call: Call) -> bool:
    return call.operation not in READS


def interruption_by_death(_: Story) -> Interruption:
    return Interruption(0, End.DEATH)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("before", "step"),
    [
        (begin, lambda story: story.pause()),
        (begin_due, lambda story: story.deliver()),
        (begin_parked, lambda story: story.resume()),
        (begin_resumed, lambda story: story.deliver()),
    ],
    ids=["pausing", "parking", "resuming", "releasing"],
)
def test_a_death_after_any_write_loses_nothing_and_calls_nothing_twice(
    world: World, before: Step, step: Step
) -> None:
    deaths = 0
    for story in after_each_write(
        partial(begun, world, before), step, interruption_by_death, is_no_read
    ):
        deaths += 1
        assert {len(outcomes) for outcomes in story.outcomes.values()} == {1}
    assert deaths > 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("before", "step", "between"),
    [
        (begin_due, lambda story: story.deliver(), lambda story: story.resume()),
        (begin_resumed, lambda story: story.deliver(), lambda story: story.pause()),
        (begin_resumed, lambda story: story.deliver(), lambda story: story.cancel(first(story))),
        (
            begin_resumed,
            lambda story: story.move(first(story), 20_000),
            lambda story: story.deliver(),
        ),
    ],
    ids=[
        *("resume while parking", "pause while releasing", "cancel while releasing"),
        "release while moving",
    ],
)
def test_a_concurrent_request_in_between_takes_effect(
    world: World, before: Step, step: Step, between: Step
) -> None:
    def by_another(story: Story) -> Interruption:
        return Interruption(0, lambda: between(story))

    assert (
        sum(
            1 for _ in after_each_write(partial(begun, world, before), step, by_another, is_no_read)
        )
        > 0
    )
