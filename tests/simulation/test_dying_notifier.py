"""A notifier is killed in the middle of its pages, with the real handlers on virtual time."""

import asyncio
from collections import Counter

import pytest

from duewheel.rules.instants import rfc3339
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX
from local.aws.template import load_template
from tests.simulation.crowd import QUIET
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import Faults
from tests.simulation.receiver import Call
from tests.simulation.service import Service
from tests.simulation.soak import TEMPLATE
from tests.support.bounds import quick_first
from tests.support.clock import NOON_MS

TASKS, DUE_SECONDS = 300, 20
CALLED_AGAIN_WITHIN_SECONDS = 20


async def _killed_in_its_calls(service: Service, after_calls: int, each_seconds: int) -> float:
    """When the notifier was killed that had made so many calls."""
    EventSources(service).begin()
    await asyncio.sleep(5)
    task = {
        "biz_type": "orders",
        "due_at": rfc3339(NOON_MS + DUE_SECONDS * 1000),
        "callback": {"url": f"https://receiver.example/slow/{each_seconds}"},
    }
    answer = await service.request("POST", "/v1/tasks/batch", {"tasks": [task] * TASKS})
    assert answer is not None
    assert answer[0] == 200
    while True:
        await asyncio.sleep(0.01)
        by = Counter(call.by.number for call in service.receiver.calls)
        for call in service.receiver.calls:
            if by[call.by.number] >= after_calls:
                call.by.is_dead = call.by.environment.is_dead = True
                return service.seconds()


@pytest.mark.parametrize(
    ("after_calls", "each_seconds"),
    quick_first([(1, 1), (60, 1), (1, 9)], pytest.mark.exhaustive),
)
def test_what_a_killed_notifier_held_is_called_within_twenty_seconds_and_a_page_at_most_again(
    after_calls: int, each_seconds: int
) -> None:
    service = Service(load_template(TEMPLATE), Faults(1, QUIET), seed=1)
    with service.running():
        killed_seconds = service.run(_killed_in_its_calls(service, after_calls, each_seconds))
        service.run(asyncio.sleep(CALLED_AGAIN_WITHIN_SECONDS + each_seconds))
        calls = service.receiver.calls
        items = service.emulator.items(service.settings.wheel_table)
    settled = [item for item in items if item.get("status", {}).get("S") == "delivered"]
    assert len(settled) == TASKS
    assert _last(calls) - killed_seconds <= CALLED_AGAIN_WITHIN_SECONDS
    assert len(calls) - TASKS <= CALLS_IN_FLIGHT_MAX


def _last(calls: list[Call]) -> float:
    return max(call.began_seconds for call in calls)
