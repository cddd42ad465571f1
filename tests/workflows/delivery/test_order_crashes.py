"""A flow key in order is interrupted at each write, by a death or by another request: its tasks are
called in order all the same."""

from collections.abc import Callable
from functools import partial

import pytest

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.tasks.flow_order import place_of
from duewheel.stores.tasks import codec
from tests.support.in_order import keep_in_order
from tests.support.receiver import BUSY, GONE, OK, Received
from tests.support.stories import End, Interruption, Story, after_each_write
from tests.support.world import World

FAR = 9  # seconds: read with its slice
KEY = "customer-7"
RETRY = RetryPolicy(attempts_max=50, delays_seconds=(20.0,))


class InOrder(Story):
    """`answers`: of the first calls; the others are answered OK."""

    def __init__(self, world: World, *answers: Outcome) -> None:
        super().__init__(world)
        keep_in_order(world)
        self.sequence: list[str] = []
        self._answers = list(answers)

    def create(self, in_ms: int) -> None:
        due_ms = self.world.clock.now_ms() + in_ms
        with self._asked(None, due_ms) as answered:
            answered(self.world.created(in_ms, retry=RETRY, flow_key=KEY))

    def called(self, received: Received) -> Outcome:
        self.sequence.append(received.task_id)
        self.answer = self._answers.pop(0) if self._answers else OK
        return super().called(received)

    def check(self) -> None:
        super().check()
        places = {}
        for item in self.world.items():
            if "status" in item:
                task = codec.task_from(item)
                places[task.task_id] = place_of(task)
        self.check_order([places[task_id] for task_id in self.sequence])
        items = [item for item in self.world.items() if item["slot"]["S"].startswith("order#")]
        assert len(items) <= self.unfinished

    def check_order(self, called: list[str]) -> None:
        assert called == sorted(called), "called out of order"

    @property
    def first(self):  # type: ignore[no-untyped-def]
        return next(iter(self.told.values()))


Step = Callable[[InOrder], object]


def nothing(_: InOrder) -> None:
    pass


def create_two(story: InOrder) -> None:
    story.create(FAR * 1000)
    story.create(FAR * 1000 + 1_500)


def until_the_second_waits(story: InOrder) -> None:
    """The first one waits for its retry."""
    create_two(story)
    story.pass_time(FAR + 2)


def deliver_all(story: InOrder) -> None:
    story.pass_time(FAR + 30)


def begun(world: World, answers: tuple[Outcome, ...], before: Step) -> InOrder:
    story = InOrder(world, *answers)
    before(story)
    return story


def by_death(_: InOrder) -> Interruption:
    return Interruption(0, End.DEATH)


STEPS = {
    "creating": ((), nothing, create_two),
    "delivering": ((BUSY,), create_two, deliver_all),
    "dying": ((GONE, BUSY), create_two, deliver_all),
    "cancelling": ((BUSY,), until_the_second_waits, lambda story: story.cancel(story.first)),
    "running now": ((), create_two, lambda story: story.run(story.first)),
    "delivering what waited": ((BUSY,), until_the_second_waits, lambda story: story.pass_time(30)),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", STEPS)
def test_a_death_after_any_write_changes_no_order(world: World, name: str) -> None:
    answers, before, step = STEPS[name]
    begins = partial(begun, world, answers, before)
    assert sum(1 for _ in after_each_write(begins, step, by_death)) > 1


def test_a_death_at_some_writes_changes_no_order(world: World) -> None:
    answers, before, step = STEPS["delivering what waited"]
    begins = partial(begun, world, answers, before)
    assert sum(1 for _ in after_each_write(begins, step, by_death, every=6)) > 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("before", "step", "between"),
    [
        (until_the_second_waits, lambda s: s.pass_time(30), lambda s: s.pause()),
        (create_two, deliver_all, lambda s: s.create(500)),
    ],
    ids=["pause while waiting", "create meanwhile"],
)
def test_a_concurrent_request_changes_no_order(
    world: World, before: Step, step: Step, between: Step
) -> None:
    def by_another(story: InOrder) -> Interruption:
        story.check_order = nothing  # type: ignore[method-assign]
        return Interruption(0, lambda: between(story))

    begins = partial(begun, world, (BUSY,), before)
    assert sum(1 for _ in after_each_write(begins, step, by_another)) > 1
