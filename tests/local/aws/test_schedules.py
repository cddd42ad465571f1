"""Scheduled functions are invoked once a minute by the stack's clock."""

from collections.abc import Callable
from threading import Condition
from typing import Any

import pytest

from local.aws.functions import Function
from local.aws.resources import Resources
from local.aws.schedules import Schedule, Schedules, schedules_of
from local.control.clock import MovableClock

RULE = "arn:aws:events:us-east-1:123456789012:rule/each-minute"


class EndlessFunction:
    """A scheduled function that runs until its remaining time is over."""

    def __init__(self, clock: MovableClock) -> None:
        self.events: list[dict[str, Any]] = []
        self.ended = 0
        self._clock = clock
        self._changed = Condition()

    def __call__(self, event: dict[str, Any], context: Any) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()
        while context.get_remaining_time_in_millis() > 0:
            self._clock.sleep(3_600)
        with self._changed:
            self.ended += 1
            self._changed.notify_all()

    def wait_for(self, predicate: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(predicate, 20)


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def function_code(clock: MovableClock) -> EndlessFunction:
    return EndlessFunction(clock)


@pytest.fixture
def schedules(clock: MovableClock, function_code: EndlessFunction):
    function = Function("scheduler", "scheduler", "arn:scheduler", 300_000, 128, function_code)
    schedules = Schedules([Schedule(function, RULE)], clock)
    schedules.start()
    yield schedules
    clock.stop()
    schedules.stop(10)


def test_the_first_invocation_comes_at_the_start_in_the_shape_of_aws(
    schedules: Schedules, function_code: EndlessFunction
) -> None:
    function_code.wait_for(lambda: len(function_code.events) == 1)
    event = function_code.events[0]
    assert event["detail-type"] == "Scheduled Event"
    assert (event["source"], event["detail"]) == ("aws.events", {})
    assert event["resources"] == [RULE]
    assert event["time"].endswith("Z")


def test_the_next_minute_invokes_again_while_the_first_still_runs(
    schedules: Schedules, function_code: EndlessFunction, clock: MovableClock
) -> None:
    function_code.wait_for(lambda: len(function_code.events) == 1)
    schedules.begin_anew()
    function_code.wait_for(lambda: len(function_code.events) == 2)
    assert function_code.ended == 0


def test_freezing_ends_every_invocation(
    schedules: Schedules, function_code: EndlessFunction, clock: MovableClock
) -> None:
    function_code.wait_for(lambda: len(function_code.events) == 1)
    clock.freeze()
    assert schedules.await_idle(20)
    assert function_code.ended == 1


def test_while_frozen_one_invocation_ends_after_its_first_tick(
    schedules: Schedules, function_code: EndlessFunction, clock: MovableClock
) -> None:
    function_code.wait_for(lambda: len(function_code.events) == 1)
    clock.freeze()
    assert schedules.await_idle(20)
    schedules.invoke_once("scheduler")
    assert function_code.ended == 2


def test_the_template_schedules_scheduler_and_sweeper(resources: Resources) -> None:
    functions = {
        resources.ref(f"{name}Aliaslive"): Function(name, name, name, 1, 1, lambda e, c: None)
        for name in ("SchedulerFunction", "SweeperFunction")
    }
    found = schedules_of(resources, functions)
    assert {schedule.function.name for schedule in found} == {
        "SchedulerFunction",
        "SweeperFunction",
    }
