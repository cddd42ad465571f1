"""Work that goes on after its call: the write of the answer, every report and the end of the
deadline are interrupted at each AWS call. No task is lost, and no answered report is."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.promises import Told
from tests.support.receiver import WORKS_ON
from tests.support.stories import End, Interruption, Story
from tests.support.world import World

FAR = 9  # seconds: read with its slice


class WorkStory(Story):
    """One task, with a key, whose receiver works on at its first attempt."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.answer = WORKS_ON
        self.create_keyed("report-17", FAR * 1000)
        self.world.dispatch_until(self.world.clock.now_ms() // 1000 + FAR)

    @property
    def first(self) -> Told:
        return next(iter(self.told.values()))

    def begun(self) -> "WorkStory":
        self.deliver()
        return self

    def lapse(self) -> None:
        self.pass_time(11)


STEPS: dict[str, Callable[[WorkStory], object]] = {
    "complete": lambda story: story.complete(story.first),
    "fail": lambda story: story.fail(story.first),
    "progress": lambda story: story.progress(story.first),
    "cancel": lambda story: story.cancel(story.first),
    "lapse": lambda story: story.lapse(),
}


def interrupted(
    world: World,
    by: Callable[[WorkStory], object] | End,
    moment: str,
    step: Callable[[WorkStory], object],
    begun: Callable[[WorkStory], WorkStory],
) -> Iterator[WorkStory]:
    """The same step, interrupted at its first AWS call, at its second, and so on."""
    number = 0
    while True:
        number += 1
        story = begun(WorkStory(world))
        between = by if isinstance(by, End) else lambda story=story: by(story)
        is_interrupted = story.interrupted(
            lambda story=story: step(story), Interruption(number, between, moment)
        )
        if not is_interrupted and not isinstance(by, End):
            by(story)
        story.settle_all()
        story.check()
        yield story
        if not is_interrupted:
            return


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_notifier_that_dies_while_it_writes_that_work_goes_on_loses_nothing(
    world: World, moment: str
) -> None:
    stories = interrupted(world, End.DEATH, moment, Story.deliver, lambda story: story)
    assert sum(1 for _ in stories) >= 5


@pytest.mark.parametrize("kind", ["complete", "fail", "progress"])
def test_an_end_that_dies_at_any_call_leaves_the_task_running_or_ended(
    world: World, kind: str
) -> None:
    stories = interrupted(world, End.DEATH, "after", STEPS[kind], WorkStory.begun)
    assert sum(1 for _ in stories) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", STEPS)
def test_no_outage_or_death_at_any_call_loses_an_end(
    world: World, kind: str, moment: str, end: End
) -> None:
    assert sum(1 for _ in interrupted(world, end, moment, STEPS[kind], WorkStory.begun)) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", ["complete", "fail", "progress", "cancel"])
@pytest.mark.parametrize("kind", STEPS)
def test_of_two_ends_at_once_one_wins(world: World, kind: str, by: str) -> None:
    for story in interrupted(world, STEPS[by], "after", STEPS[kind], WorkStory.begun):
        assert not (story.first.is_complete and story.first.is_cancelled)


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", ["complete", "fail", "cancel"])
def test_an_end_may_come_before_the_answer_is_written(world: World, by: str) -> None:
    assert sum(1 for _ in interrupted(world, STEPS[by], "after", Story.deliver, lambda s: s)) >= 5
