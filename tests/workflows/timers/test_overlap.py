"""Runs of a timer that must not overlap: one waits for another, or takes its place."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.payload_encoding import AttemptName
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, RetryPolicy, Told
from duewheel.rules.delivery.waiting import Reason as WaitReason
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.timer import Misfire, Overlap, Timer
from duewheel.stores import registry_keys
from duewheel.wiring.long_work import reported_work
from duewheel.wiring.notifier import keep_apart
from duewheel.workflows.timers.keep_apart import Entrant, Fate
from tests.support.receiver import BUSY, OK, WORKS_ON, Received
from tests.support.stories import End, Interruption, Story
from tests.support.timers import (
    made,
    now,
    occurrences,
    patched,
    run_for,
)
from tests.support.world import CALLER, World

EVERY = 10
BOTH = pytest.mark.parametrize("overlap", [Overlap.BUFFER_ONE, Overlap.CANCEL_RUNNING])


def one_by_one(world: World, overlap: Overlap, retry_after: float, /, **rules: Any) -> Timer:
    retry = RetryPolicy(3, delays_seconds=(retry_after, retry_after))
    return made(world, EVERY, **{"overlap": overlap, "retry": retry, "max_runs": 4, **rules})


def first_is(answer: Outcome) -> Callable[[Received], Outcome]:
    answers = iter([answer])
    return lambda _: next(answers, OK)


def called(world: World, begins: int) -> list[tuple[int, int]]:
    """Number of the run, and seconds after the beginning."""
    return [
        (int(json.loads(one.body or b"")["n"]), one.at_ms // 1000 - begins)
        for one in world.receiver.received
    ]


def outcomes(world: World, timer: Timer) -> list[str]:
    return [task.reason or task.status.value for task in occurrences(world, timer)]


def numbered(world: World, timer: Timer, number: int) -> Task:
    (task,) = [
        t for t in occurrences(world, timer) if t.occurrence and t.occurrence.number == number
    ]
    return task


def test_a_run_waits_for_the_one_before_it_and_is_called_when_that_has_ended(world: World) -> None:
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 15.0), now(world)
    world.receiver.answer = first_is(BUSY)
    run_for(world, 50)
    assert called(world, begins) == [(1, 10), (1, 25), (2, 25), (3, 30), (4, 40)]
    assert outcomes(world, timer) == ["delivered"] * 4


def test_one_run_alone_waits_and_further_ones_are_skipped(world: World) -> None:
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 35.0), now(world)
    world.receiver.answer = first_is(BUSY)
    run_for(world, 60)
    assert called(world, begins) == [(1, 10), (1, 45), (2, 45)]
    assert outcomes(world, timer) == ["delivered", "delivered", "skipped", "skipped"]
    assert world.counters.read(timer.timer_id)["skipped"] == 2


@pytest.mark.parametrize("misfire", [Misfire.LATEST, Misfire.SKIP])
def test_a_run_that_waited_is_not_misfired(world: World, misfire: Misfire) -> None:
    rules = {"misfire": misfire, "grace_seconds": 5}
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 35.0, **rules), now(world)
    world.receiver.answer = first_is(BUSY)
    run_for(world, 60)
    assert called(world, begins)[-1] == (2, 45)
    assert outcomes(world, timer) == ["delivered", "delivered", "skipped", "skipped"]


def test_why_a_run_waits_is_shown(world: World) -> None:
    timer = one_by_one(world, Overlap.BUFFER_ONE, 35.0)
    world.receiver.answer = first_is(BUSY)
    run_for(world, 22)
    wait = world.why_waiting(numbered(world, timer, 2))
    assert wait is not None
    assert wait.reason is WaitReason.OVERLAP


def test_runs_wait_for_work_that_goes_on_after_its_call(world: World) -> None:
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 5.0), now(world)
    world.receiver.answer = first_is(WORKS_ON)
    run_for(world, 16)
    assert called(world, begins) == [(1, 10)]
    reported_work().complete(numbered(world, timer, 1).home, AttemptName(0, 1), None)
    run_for(world, 30)
    assert called(world, begins) == [(1, 10), (2, 20), (3, 30), (4, 40)]


def test_a_report_of_the_end_wakes_the_run_that_waits(world: World) -> None:
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 60.0), now(world)
    world.receiver.answer = first_is(WORKS_ON)
    run_for(world, 15)
    home = numbered(world, timer, 1).home
    while now(world) < begins + 36:
        reported_work().progress(home, AttemptName(0, 1), None, 10)
        run_for(world, 3)
    assert outcomes(world, timer)[:3] == ["pending", "pending", "skipped"]
    reported_work().complete(home, AttemptName(0, 1), None)
    at = now(world) - begins
    run_for(world, 1)
    assert called(world, begins)[:2] == [(1, 10), (2, at)]


def test_a_run_that_is_put_aside_before_its_instant_is_not_called_before_it(world: World) -> None:
    """By the clock of another machine: the earlier run ends before its own has come so far."""
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 60.0), now(world)
    world.receiver.answer = first_is(WORKS_ON)
    run_for(world, 18)
    home = numbered(world, timer, 1).home
    reported_work().progress(home, AttemptName(0, 1), None, 10)
    before_ms = world.clock.now_ms()
    world.dispatch_until(begins + 20)
    world.drain()
    world.clock.set_ms(before_ms + 500)
    assert numbered(world, timer, 2).postponement is not None
    reported_work().complete(home, AttemptName(0, 1), None)
    run_for(world, 4)
    assert called(world, begins) == [(1, 10), (2, 20)]


def test_a_cancelled_run_lets_the_next_one_go_on(world: World) -> None:
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 300.0), now(world)
    world.receiver.answer = first_is(BUSY)
    run_for(world, 23)
    world.cancel.at(numbered(world, timer, 1).home)
    at = now(world) - begins
    run_for(world, 1)
    assert called(world, begins) == [(1, 10), (2, at)]


def test_a_later_run_takes_the_place_of_one_that_waits_for_a_retry(world: World) -> None:
    timer, begins = one_by_one(world, Overlap.CANCEL_RUNNING, 300.0), now(world)
    world.receiver.answer = first_is(BUSY)
    run_for(world, 50)
    assert called(world, begins) == [(1, 10), (2, 20), (3, 30), (4, 40)]
    assert outcomes(world, timer) == ["replaced", *["delivered"] * 3]
    assert world.counters.read(timer.timer_id)["replaced"] == 1


def test_work_that_is_replaced_can_report_no_more_and_gives_its_permit_back(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    timer, begins = one_by_one(world, Overlap.CANCEL_RUNNING, 300.0, max_runs=2), now(world)
    world.receiver.answer = first_is(replace(WORKS_ON, complete_within_seconds=600))
    run_for(world, 15)
    home = numbered(world, timer, 1).home
    reported_work().progress(home, AttemptName(0, 1), "half", None)
    run_for(world, 10)
    assert called(world, begins) == [(1, 10), (2, 20)]
    assert outcomes(world, timer) == ["replaced", "delivered"]
    with pytest.raises(Refusal):
        reported_work().complete(home, AttemptName(0, 1), None)
    assert outcomes(world, timer) == ["replaced", "delivered"]


def test_a_call_that_is_under_way_is_waited_for_and_then_its_run_is_replaced(world: World) -> None:
    """Another process looks at the second run while the first one is being called."""
    timer = one_by_one(world, Overlap.CANCEL_RUNNING, 300.0, max_runs=2)
    fates: list[Fate] = []

    def answer(received: Received) -> Outcome:
        if received.task_id != numbered(world, timer, 1).task_id:
            return OK
        (entered,) = keep_apart().enter([Entrant(numbered(world, timer, 2), timer)])
        fates.append(entered.fate)
        return BUSY

    world.receiver.answer = answer
    run_for(world, 30)
    assert fates == [Fate.WAITS]
    assert outcomes(world, timer) == ["replaced", "delivered"]


def test_who_asks_for_cancelled_is_told_of_a_replaced_run(world: World) -> None:
    told = OnOutcome((Told.CANCELLED,), HttpCallback("https://receiver.example/told"))
    timer = one_by_one(world, Overlap.CANCEL_RUNNING, 300.0, max_runs=2, on_outcome=told)
    first = first_is(BUSY)
    world.receiver.answer = lambda one: OK if one.url.endswith("told") else first(one)
    run_for(world, 30)
    (notice,) = [one for one in world.receiver.received if one.url.endswith("told")]
    body = json.loads(notice.body or b"")
    assert (body["outcome"], body["reason"]) == ("cancelled", "replaced")
    assert body["task_id"] == numbered(world, timer, 1).task_id


@BOTH
def test_a_disabled_timer_calls_the_run_that_waits_no_more(world: World, overlap: Overlap) -> None:
    timer, begins = one_by_one(world, overlap, 5.0), now(world)
    world.receiver.answer = first_is(WORKS_ON)
    run_for(world, 12)
    world.change_timer.disable(timer.timer_id, by=CALLER)
    run_for(world, 60)
    assert called(world, begins) == [(1, 10)]
    assert not [task for task in occurrences(world, timer) if task.is_live]


def test_a_timer_that_lets_its_runs_overlap_reads_no_record_of_the_running_one(
    world: World,
) -> None:
    timer = one_by_one(world, Overlap.ALLOW, 15.0)
    world.receiver.answer = first_is(BUSY)
    world.recorder.calls.clear()
    run_for(world, 50)
    record = registry_keys.timer_running(timer.timer_id)["record"]["S"]
    assert not [call for call in world.recorder.calls if f"'{record}'" in str(call.request)]


def test_a_run_that_waits_when_its_timer_lets_runs_overlap_is_called(world: World) -> None:
    timer, begins = one_by_one(world, Overlap.BUFFER_ONE, 25.0, max_runs=2), now(world)
    world.receiver.answer = first_is(BUSY)
    run_for(world, 22)
    patched(world, timer, overlap=Overlap.ALLOW)
    run_for(world, 40)
    assert called(world, begins)[-1][0] == 2


class Watch:
    """Answers calls, and notes each that is made while another run is under way: it was called, and
    has not ended."""

    def __init__(self, world: World, timer: Timer, answers: dict[int, Outcome]) -> None:
        self._world = world
        self._timer = timer
        self._answers = answers
        self.at_once: list[tuple[int, int]] = []

    def __call__(self, received: Received) -> Outcome:
        number = int(json.loads(received.body or b"")["n"])
        for task in occurrences(self._world, self._timer):
            other = task.occurrence.number if task.occurrence else 0
            if task.is_live and task.attempts and other != number:
                self.at_once.append((other, number))
        return self._answers.pop(number, OK)


@BOTH
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("moment", "step"),
    [("after", 5), ("before", 5)],
)
def test_a_death_at_any_request_neither_loses_the_run_that_waits_nor_lets_two_overlap(
    world: World, overlap: Overlap, moment: str, step: int
) -> None:
    happened, number = True, 0
    while happened:
        number += step
        story = Story(world)
        timer = one_by_one(world, overlap, 15.0, max_runs=3)
        story.deliver()
        watch = Watch(world, timer, {1: BUSY})
        world.receiver.answer = watch
        happened = story.interrupted(
            partial(story.pass_time, 32), Interruption(number, End.DEATH, moment)
        )
        story.settle_all()
        assert watch.at_once == []
        first, second, *_ = outcomes(world, timer)
        assert first in ("delivered", "replaced"), number
        assert second == "delivered", number
        assert not [task for task in occurrences(world, timer) if task.is_live], number
    assert number > 2 * step
