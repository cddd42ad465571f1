"""Work that goes on after its call: the write of the answer, every report and the end of the
deadline are interrupted at each AWS call. No task is lost, and no answered report is."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.promises import Told
from tests.support.receiver import WORKS_ON
from tests.support.stories import End, Story, at_each_call
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


def delivered(world: World) -> WorkStory:
    story = WorkStory(world)
    story.deliver()
    return story


STEPS: dict[str, Callable[[WorkStory], object]] = {
    "complete": lambda story: story.complete(story.first),
    "fail": lambda story: story.fail(story.first),
    "progress": lambda story: story.progress(story.first),
    "cancel": lambda story: story.cancel(story.first),
    "lapse": lambda story: story.pass_time(11),
}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_notifier_that_dies_while_it_writes_that_work_goes_on_loses_nothing(
    world: World, moment: str
) -> None:
    stories = at_each_call(partial(WorkStory, world), Story.deliver, End.DEATH, moment)
    assert sum(1 for _ in stories) >= 5


@pytest.mark.parametrize("kind", ["complete", "fail", "progress"])
def test_an_end_that_dies_at_any_call_leaves_the_task_running_or_ended(
    world: World, kind: str
) -> None:
    stories = at_each_call(partial(delivered, world), STEPS[kind], End.DEATH)
    assert sum(1 for _ in stories) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", STEPS)
def test_no_outage_or_death_at_any_call_loses_an_end(
    world: World, kind: str, moment: str, end: End
) -> None:
    stories = at_each_call(partial(delivered, world), STEPS[kind], end, moment)
    assert sum(1 for _ in stories) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", ["complete", "fail", "progress", "cancel"])
@pytest.mark.parametrize("kind", STEPS)
def test_of_two_ends_at_once_one_wins(world: World, kind: str, by: str) -> None:
    for story in at_each_call(partial(delivered, world), STEPS[kind], STEPS[by]):
        assert not (story.first.is_complete and story.first.is_cancelled)


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", ["complete", "fail", "cancel"])
def test_an_end_may_come_before_the_answer_is_written(world: World, by: str) -> None:
    stories = at_each_call(partial(WorkStory, world), Story.deliver, STEPS[by])
    assert sum(1 for _ in stories) >= 5
