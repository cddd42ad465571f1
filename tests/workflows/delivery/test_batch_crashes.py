"""A page whose tasks go in one request is interrupted at each of its AWS calls, by a death, an
outage or another request: every task is called afterwards, none before its instant, and all that
was told to callers holds."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from duewheel.rules.callbacks.batch import Batch
from duewheel.rules.callbacks.outcome import Verdict
from duewheel.targets.http.connection import Reply
from tests.support.promises import Told
from tests.support.receiver import BUSY, Received
from tests.support.recorder import Call
from tests.support.stories import End, Interruption, Story
from tests.support.world import World

FAR = 9  # seconds: read with its slice
TASKS = 4


class BatchStory(Story):
    """One task fails at its first attempt, unless none is to fail, and is listed in the answer."""

    def __init__(self, world: World, *, one_fails: bool = True) -> None:
        super().__init__(world)
        world.configured("orders", batch=Batch(10))
        world.receiver.answer_to_batch = self._answered_to_batch
        self.batches: list[list[str]] = []
        self._may_fail = one_fails

    def _answered_to_batch(self, received: Received) -> Reply:
        self.batches.append(received.batch_ids)
        failed = received.batch_ids[0] if self._may_fail else None
        listed: list[dict[str, Any]] = []
        for task_id in received.batch_ids:
            usual = self.answer
            self.answer = BUSY if task_id == failed else usual
            outcome = self._answered(replace(received, task_id=task_id))
            self.answer = usual
            if outcome.verdict is not Verdict.DELIVERED:
                listed.append({"task_id": task_id})
        self._may_fail = False
        return Reply(200, {}, json.dumps({"failed": listed}).encode())

    def begin(self) -> None:
        for number in range(TASKS):
            self.create(FAR * 1000 + number * 100)
        self.create_keyed("order-17", FAR * 1000 + 500)
        self.world.dispatch_until(self.world.clock.now_ms() // 1000 + FAR)

    def first(self) -> Told:
        return next(iter(self.told.values()))


def stories(
    world: World, by: Callable[[BatchStory], object] | End, moment: str
) -> Iterator[BatchStory]:
    """The same page, interrupted at its first AWS call, at its second, and so on."""
    number = 0
    while True:
        number += 1
        story = BatchStory(world)
        story.begin()
        step = by if isinstance(by, End) else lambda story=story: by(story)
        is_interrupted = story.interrupted(story.deliver, Interruption(number, step, moment))
        story.settle_all()
        story.check()
        if not is_interrupted:
            return
        yield story


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_no_end_of_a_notifier_loses_a_task_of_a_batch(world: World, end: End, moment: str) -> None:
    count = 0
    for story in stories(world, end, moment):
        count += 1
        assert max(map(len, story.batches)) == TASKS + 1
    assert count >= 8


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "by",
    [
        lambda story: story.cancel(story.first()),
        lambda story: story.move(story.first(), 30_000),
        lambda story: story.pause(),
        lambda story: story.deliver(),
    ],
    ids=["cancel", "move", "pause", "another notifier"],
)
def test_another_request_in_between_takes_effect_on_its_task_of_the_batch_alone(
    world: World, by: Callable[[BatchStory], object]
) -> None:
    assert sum(1 for _ in stories(world, by, "after")) >= 8


def test_a_notifier_that_dies_before_it_settles_a_batch_repeats_it(world: World) -> None:
    story = BatchStory(world, one_fails=False)
    story.begin()
    begun = len(world.recorder.calls)
    story.deliver()
    settling = [n for n, call in enumerate(world.recorder.calls[begun:], 1) if is_settling(call)]
    story = BatchStory(world, one_fails=False)
    story.begin()
    assert story.interrupted(story.deliver, Interruption(settling[0], End.DEATH))
    story.settle_all()
    story.check()
    first, second, *_ = story.batches
    assert second == first


def is_settling(call: Call) -> bool:
    return call.operation == "BatchWriteItem"
