"""Races for a task or its key: the second step comes at each AWS call of the first.

`interleavings` checks of every story that answers are true and promises are kept. The tests here
state which outcomes are possible.
"""

from collections.abc import Callable

import pytest

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.refusals import (
    AlreadySettled,
    KeyTaken,
    NotRedrivable,
    Refusal,
    TooLate,
    WrittenTooLate,
)
from duewheel.rules.tasks.task import Status, Task
from tests.support.bounds import quick_first
from tests.support.receiver import BUSY, GONE, OK
from tests.support.stories import Story, interleavings
from tests.support.world import World

KEY = "order-17:unpaid"
DUE_MS = 10_000

Step = Callable[[Story], object]


def only(story: Story) -> Task:
    """The task with which the story began."""
    return next(iter(story.told.values())).task


def created(story: Story) -> None:
    story.create_keyed(KEY, DUE_MS)


def dispatch_second(story: Story) -> None:
    """Its second has been dispatched; the notifier may begin."""
    created(story)
    story.world.dispatch_until(only(story).due_ms // 1000)


def dispatch_with_answer(answer: Outcome) -> Step:
    def begin(story: Story) -> None:
        dispatch_second(story)
        story.answer = answer

    return begin


def dead(story: Story) -> None:
    story.create_keyed(KEY, 0)
    story.answer = GONE
    story.deliver()
    story.answer = OK
    story.results.clear()
    assert story.world.read(only(story)).status is Status.DEAD


def upsert(story: Story) -> None:
    story.upsert(KEY, DUE_MS)


def cancel(story: Story) -> None:
    story.cancel_key(KEY)


def redrive(story: Story) -> None:
    story.redrive(story.told[only(story).task_id])


def create_keyed(story: Story) -> None:
    story.create_keyed(KEY, DUE_MS, "another")


def its_second_comes(story: Story) -> None:
    story.world.dispatch_until(only(story).due_ms // 1000)
    story.deliver()


def named(story: Story) -> Task:
    """The task that the key names in the end."""
    return story.world.keyed.read("orders", KEY)


@pytest.mark.parametrize(
    "answer",
    quick_first([OK, BUSY, GONE], pytest.mark.exhaustive),
    ids=["delivered", "retry", "dead"],
)
def test_an_upsert_races_with_a_settling_notifier(world: World, answer: Outcome) -> None:
    """Either the upsert is too late and the old call is made, or the key is free and the upsert
    creates a task, or the retry is recorded first and is rescheduled."""
    types = set()
    for story in interleavings(world, dispatch_with_answer(answer), Story.deliver, upsert):
        result, task = story.results[-1], only(story)
        types.add(type(result))
        if isinstance(result, Refusal):
            assert isinstance(result, TooLate)
            assert named(story).home == task.home
        else:
            assert (result.home == task.home) is (answer is BUSY)
            assert named(story).home == result.home
            assert world.receiver.received[-1].at_ms == result.due_ms
    assert types == {TooLate, Task}


@pytest.mark.exhaustive
def test_a_dispatch_races_with_an_upsert(world: World) -> None:
    def begin(story: Story) -> None:
        created(story)
        world.clock.advance_ms(DUE_MS - 2_501)

    types = set()
    for story in interleavings(world, begin, upsert, its_second_comes):
        types.add(type(story.results[-1]))
        assert isinstance(story.results[-1], Task | TooLate)
        assert named(story).status is Status.DELIVERED
    assert types == {TooLate, WrittenTooLate, Task}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "second"), [(upsert, cancel), (cancel, upsert)])
def test_an_upsert_races_with_a_cancel(world: World, first: Step, second: Step) -> None:
    """Both succeed: the cancelled task is not called, and a task that was created after it is."""
    ends = set()
    for story in interleavings(world, created, first, second):
        assert [type(result) for result in story.results[1:]] == [Task, Task]
        ends.add(named(story).status)
        assert len(world.receiver.received) == (named(story).status is Status.DELIVERED)
    assert ends == {Status.CANCELLED, Status.DELIVERED}


@pytest.mark.exhaustive
@pytest.mark.parametrize("taker", [create_keyed, upsert])
@pytest.mark.parametrize("redrive_is_first", [True, False])
def test_only_one_of_a_redrive_and_another_create_gets_the_key(
    world: World, taker: Step, redrive_is_first: bool
) -> None:
    first, second = (redrive, taker) if redrive_is_first else (taker, redrive)
    refused = set()
    for story in interleavings(world, dead, first, second):
        won = [result for result in story.results if isinstance(result, Task)]
        refused |= {type(result) for result in story.results if isinstance(result, Refusal)}
        assert len(won) == 1
        assert named(story).home == won[0].home
        assert named(story).status is Status.DELIVERED
        is_redriven = won[0].home == only(story).home
        assert world.read(only(story)).status is (Status.DELIVERED if is_redriven else Status.DEAD)
    assert refused == {NotRedrivable, KeyTaken if taker is create_keyed else TooLate}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "second"), [(upsert, create_keyed), (create_keyed, upsert)])
def test_only_one_of_two_creates_of_a_key_creates_the_task(
    world: World, first: Step, second: Step
) -> None:
    for story in interleavings(world, dead, first, second):
        made = {result.home for result in story.results if isinstance(result, Task)}
        refused = [result for result in story.results if isinstance(result, Refusal)]
        assert made == {named(story).home}
        assert only(story).home not in made
        assert all(isinstance(result, KeyTaken) for result in refused)
        assert len([item for item in world.items() if "status" in item]) == 2
        assert len(world.receiver.received) == 2, "the calls of the dead task and of the new one"


@pytest.mark.exhaustive
def test_a_move_to_earlier_races_with_the_dispatch_of_its_second(world: World) -> None:
    """Begun a millisecond before the cut-off, and answered after it."""

    def begin(story: Story) -> None:
        created(story)
        world.clock.advance_ms(DUE_MS - 2_501)

    def move_earlier(story: Story) -> None:
        story.move(story.told[only(story).task_id], 100)

    types = set()
    for story in interleavings(world, begin, move_earlier, its_second_comes):
        types.add(type(story.results[-1]))
        assert len(world.receiver.received) == 1
    assert types == {TooLate, WrittenTooLate, AlreadySettled, Task}


@pytest.mark.exhaustive
@pytest.mark.parametrize("behind_ms", [0, 2_000])
def test_a_move_by_a_clock_two_seconds_behind_races_with_a_notifier(
    world: World, behind_ms: int
) -> None:
    """As early as it may read; the move is nevertheless not answered as made in time."""

    def begin(story: Story) -> None:
        created(story)
        world.clock.set_ms(only(story).due_ms - world.settings.lead_ms)
        world.lead_once()

    def move_earlier(story: Story) -> None:
        now_ms = world.clock.now_ms()
        world.clock.set_ms(now_ms - behind_ms)
        story.move(story.told[only(story).task_id], 100)
        world.clock.set_ms(now_ms)

    for story in interleavings(world, begin, Story.deliver, move_earlier):
        assert isinstance(story.results[-1], TooLate | AlreadySettled)
        assert [r.at_ms for r in world.receiver.received] == [only(story).due_ms]


@pytest.mark.exhaustive
def test_a_move_that_is_answered_after_the_cut_off_races_with_a_notifier(world: World) -> None:
    """Its answer comes after the cut-off, and states that: the notifier may have read before."""

    def move_slowly(story: Story) -> None:
        now_ms = world.clock.now_ms()

        world.recorder.once("UpdateItem", lambda: world.clock.set_ms(now_ms))
        world.clock.set_ms(only(story).due_ms - 2_501)
        story.move(story.told[only(story).task_id], 2 * DUE_MS)
        world.recorder.before = None
        world.clock.set_ms(now_ms)

    calls = set()
    for story in interleavings(world, dispatch_second, Story.deliver, move_slowly):
        assert isinstance(story.results[-1], TooLate | AlreadySettled)
        calls.add(tuple(r.at_ms - only(story).due_ms for r in world.receiver.received))
    assert (0,) in calls, "called nevertheless"


@pytest.mark.exhaustive
@pytest.mark.parametrize("in_ms", [2_000, 30_000])
def test_a_move_races_with_a_notifier_that_writes_an_entry_for_an_earlier_move(
    world: World, in_ms: int
) -> None:
    def begin(story: Story) -> None:
        created(story)
        story.move(story.told[only(story).task_id], 2 * DUE_MS)
        its_second = only(story).due_ms // 1000
        world.dispatch_until(its_second)

    def move(story: Story) -> None:
        story.move(story.told[only(story).task_id], in_ms)

    for story in interleavings(world, begin, Story.deliver, move):
        moved = story.results[-1]
        assert isinstance(moved, Task)
        assert [r.at_ms for r in world.receiver.received] == [moved.due_ms]
