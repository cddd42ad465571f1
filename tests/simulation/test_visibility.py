"""Messages that Lambda fetched and no run began wait for 90 s, or for six times the time-out.

Real handlers on virtual time. What Lambda's poller fetched and the function had no room for is
played at its worst: it is given up at once, and waits in the queue until its visibility ends.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from statistics import mean
from typing import Any
from unittest.mock import patch

import boto3
import pytest

from duewheel.rules.instants import ms_from_rfc3339, rfc3339
from tests.conftest import the_template
from tests.simulation.crowd import QUIET
from tests.simulation.event_sources import EventSources, Mapping
from tests.simulation.faults import Faults
from tests.simulation.invocation import current
from tests.simulation.service import Service, handlers
from tests.support.clock import NOON_MS

AS_DEPLOYED, AS_RECOMMENDED = 90, 360
SWEEP_DELAY_SECONDS = 120
DUE_SECONDS = range(20, 200, 20)
TAKEN_FROM, TAKEN_UNTIL = 15.0, 195.0  # the account's concurrency, by others
OVER_SECONDS = 900


class Throttled(EventSources):
    """Whose notifiers Lambda has no room for, for three minutes."""

    async def _hand_over(
        self, mapping: Mapping, messages: list[dict[str, Any]], *, is_copy: bool
    ) -> None:
        if TAKEN_FROM <= self._service.seconds() < TAKEN_UNTIL:
            mapping.busy -= 1
            return
        await super()._hand_over(mapping, messages, is_copy=is_copy)


@dataclass(frozen=True)
class Came:
    late_seconds: list[float]
    last_seconds: float  # when the last task was called
    dead_letters: int

    @property
    def latest(self) -> float:
        return max(self.late_seconds)


def dying_once(handler: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The first run ends before its first request."""
    runs = count()

    def handled(event: Any, context: Any) -> Any:
        if next(runs) == 0:
            run = current.get()
            assert run is not None
            run.die("before it begins")
        return handler(event, context)

    return handled


async def lived(service: Service, sources: EventSources) -> None:
    sources.begin()
    await asyncio.sleep(5)
    tasks = [
        {
            "biz_type": "orders",
            "due_at": rfc3339(NOON_MS + second * 1000),
            "callback": {"url": "https://receiver.example/ok"},
        }
        for second in DUE_SECONDS
    ]
    answer = await service.request("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert answer is not None
    assert answer[0] == 200
    while len({call.task_id for call in service.receiver.calls}) < len(tasks):
        await asyncio.sleep(1)
        assert service.seconds() < OVER_SECONDS
    await asyncio.sleep(5)


def came_of(sources: type[EventSources], *, visibility_seconds: int) -> Came:
    service = Service(the_template(), Faults(1, QUIET), seed=1)
    with service.running():
        sqs = boto3.client("sqs")
        for queue in (service.settings.slice_queue_url, service.settings.slow_queue_url):
            sqs.set_queue_attributes(
                QueueUrl=queue, Attributes={"VisibilityTimeout": str(visibility_seconds)}
            )
        service.run(lived(service, sources(service)))
        calls = service.receiver.calls
        dead_letters = sum(
            len(service.emulator.messages_visible_at_ms(url))
            for url in sqs.list_queues()["QueueUrls"]
            if "DeadLetter" in url
        )
    assert len(calls) == len(DUE_SECONDS), "each is called once"
    return Came(
        late_seconds=[
            call.began_seconds - (ms_from_rfc3339(call.due_at) - NOON_MS) / 1000 for call in calls
        ],
        last_seconds=max(call.began_seconds for call in calls),
        dead_letters=dead_letters,
    )


def compared(what: str, sources: type[EventSources], *, dies: bool = False) -> tuple[Came, Came]:
    both = []
    for seconds in (AS_DEPLOYED, AS_RECOMMENDED):
        handler = handlers()["notifier"]
        with patch.dict(handlers(), notifier=dying_once(handler) if dies else handler):
            came = came_of(sources, visibility_seconds=seconds)
        both.append(came)
        late = f"late by {mean(came.late_seconds):.0f} s in the mean, {came.latest:.0f} at most"
        last = f"the last called at {came.last_seconds:.0f} s"
        letters = f"{came.dead_letters} dead letters"
        print(f"{what}, {seconds} s: {late}, {last}, {letters}")  # noqa: T201 - the docs tell it
    return both[0], both[1]


@pytest.mark.soak
def test_what_was_throttled_is_called_sooner_with_ninety_seconds() -> None:
    deployed, recommended = compared("throttled", Throttled)

    assert deployed.last_seconds + 30 < recommended.last_seconds
    assert deployed.latest < recommended.latest
    assert 1.2 * mean(deployed.late_seconds) < mean(recommended.late_seconds)
    assert (deployed.dead_letters, recommended.dead_letters) == (0, 0)


@pytest.mark.exhaustive
def test_what_a_notifier_was_to_begin_that_died_is_called_within_ninety_seconds() -> None:
    with patch.dict(handlers(), notifier=dying_once(handlers()["notifier"])):
        came = came_of(EventSources, visibility_seconds=AS_DEPLOYED)

    assert AS_DEPLOYED / 2 < came.latest <= AS_DEPLOYED
    assert came.dead_letters == 0


@pytest.mark.soak
def test_what_a_notifier_was_to_begin_that_died_is_called_sooner_with_ninety_seconds() -> None:
    deployed, recommended = compared("dead", EventSources, dies=True)

    assert deployed.latest <= AS_DEPLOYED
    assert recommended.latest > SWEEP_DELAY_SECONDS, "by then the sweep has seen to it"
    assert (deployed.dead_letters, recommended.dead_letters) == (0, 0)
