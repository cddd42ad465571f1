"""Asynchronous invocations are begun and retried as in Lambda."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from local.aws.emulator import Emulator
from local.aws.environments import no_caller
from local.aws.functions import Function
from local.aws.invocations import Invocations, retries_of
from local.aws.resources import Resources
from local.control.clock import MovableClock

START_MS = 1_800_000_000_000


class Worker:
    """A function with set results, which records its events."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.request_ids: list[str] = []
        self.does: Callable[[], None] = lambda: None

    def __call__(self, event: Any, context: Any) -> None:
        self.events.append(event)
        self.request_ids.append(context.aws_request_id)
        self.does()


class Lambda:
    def __init__(self, emulator: Emulator, clock: MovableClock) -> None:
        self.clock = clock
        self.worker = Worker()
        function = Function("notifier", "duewheel-N", "arn:n", 60_000, 128, self.worker)
        self.times = 1
        self.invocations = Invocations(
            {"arn:n": function}, {"duewheel-N": 2}, clock, no_caller, lambda: self.times
        )
        emulator.accept_invocation = self.invocations.accept
        self.invocations.start()

    def invoke(self, payload: bytes) -> int:
        answer = boto3.client("lambda").invoke(
            FunctionName="duewheel-N", InvocationType="Event", Payload=payload
        )
        return int(answer["StatusCode"])

    def settle(self) -> None:
        while self.is_due() or self.invocations.is_at_work():
            self.invocations.nudge()

    def is_due(self) -> bool:
        next_ms = self.invocations.next_ms()
        return next_ms is not None and next_ms <= self.clock.now_ms()


@pytest.fixture
def lambda_service() -> Iterator[Lambda]:
    clock = MovableClock(START_MS, frozen=True)
    with Emulator(clock) as emulator:
        lambda_service = Lambda(emulator, clock)
        yield lambda_service
        lambda_service.invocations.stop(5)


def test_an_event_is_accepted_and_reaches_the_function(lambda_service: Lambda) -> None:
    assert lambda_service.invoke(b'{"n": 1}') == 202
    lambda_service.settle()

    assert lambda_service.worker.events == [{"n": 1}]
    assert lambda_service.invocations.next_ms() is None


def test_an_event_that_runs_twice_has_one_request_id(lambda_service: Lambda) -> None:
    lambda_service.times = 2
    lambda_service.invoke(b"{}")
    lambda_service.settle()
    assert len(lambda_service.worker.events) == 2
    assert len(set(lambda_service.worker.request_ids)) == 1


def test_a_failed_event_is_retried_after_one_and_two_minutes_and_then_dropped(
    lambda_service: Lambda,
) -> None:
    def fail() -> None:
        raise RuntimeError("no")

    lambda_service.worker.does = fail
    lambda_service.invoke(b"{}")
    lambda_service.settle()
    for minutes, tries in ((1, 2), (2, 3)):
        next_ms = lambda_service.invocations.next_ms()
        assert next_ms == lambda_service.clock.now_ms() + minutes * 60_000
        lambda_service.clock.set_ms(next_ms)
        lambda_service.settle()
        assert len(lambda_service.worker.events) == tries

    assert lambda_service.invocations.next_ms() is None
    assert len(set(lambda_service.worker.request_ids)) == 1, "all tries have one request id"


def test_the_template_sets_the_number_of_retries(resources: Resources) -> None:
    retries = retries_of(resources)

    assert retries[f"{resources.ref('NotifierFunction')}:live"] == 2
    assert retries[f"{resources.ref('SchedulerFunction')}:live"] == 0
