"""A crowd that comes up during a pause, on virtual time and with the real handlers."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from duewheel.rules.instants import rfc3339
from duewheel.workflows.delivery import park_tasks
from duewheel.workflows.tasks import reschedule
from tests.conftest import the_template
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Rates
from tests.simulation.service import Service
from tests.support.clock import NOON_MS

PER_SECOND = 20
DUE_SECONDS = 30
RESUMED_SECONDS = 50
TASKS = 160
DEADLY = Rates(death=0.004, latency_ms=40.0)
FAILING = Rates(aws=0.4, latency_ms=80.0, freeze=0.5)
SLOW = replace(FAILING, latency_ms=200.0)
SEED_THAT_SHOWS_IT = 4


@dataclass
class Paused:
    """Calls by the second from the resume on, in their order, and what became of the tasks."""

    seconds: list[int]
    due_at: list[str]
    called: Counter[str]
    statuses: Counter[str]
    left_at_work: list[str]


def paused(rates: Rates, seed: int = 3) -> Paused:
    service = Service(the_template(), Faults(seed, rates), seed=2)
    with service.running():
        service.run(_lived(service))
        calls = sorted(service.receiver.calls, key=lambda call: call.began_seconds)
        items = service.emulator.items(service.settings.wheel_table, ("status",))
        return Paused(
            [int(call.began_seconds) - RESUMED_SECONDS for call in calls],
            [call.due_at for call in calls],
            Counter(call.task_id for call in calls),
            Counter(item["status"]["S"] for item in items if "status" in item),
            service.environments.left_at_work,
        )


async def _lived(service: Service) -> None:
    EventSources(service).begin()
    path = "/v1/businesses/orders"
    faults, service.faults.rates = service.faults.rates, CALM
    await _ask(service, "PUT", path, {"calls_per_second": PER_SECOND})
    tasks = [
        {
            "biz_type": "orders",
            "due_at": rfc3339(NOON_MS + DUE_SECONDS * 1000 + 10 * number),
            "callback": {"url": "https://far.example/ok"},
        }
        for number in range(TASKS)
    ]
    await _ask(service, "POST", "/v1/tasks/batch", {"tasks": tasks})
    await _ask(service, "POST", f"{path}/pause", None)
    service.faults.rates = faults
    await asyncio.sleep(RESUMED_SECONDS - service.seconds())
    service.faults.rates = CALM  # so that the answer is heard
    await _ask(service, "POST", f"{path}/resume", None)
    service.faults.rates = faults
    await asyncio.sleep(30 + TASKS / PER_SECOND)
    if faults != CALM:
        await asyncio.sleep(200)
        service.faults.rates = CALM
        await asyncio.sleep(400)


async def _ask(service: Service, method: str, path: str, body: object) -> None:
    answer = await service.request(method, path, body)
    assert answer is not None
    assert answer[0] in (200, 201), answer


@pytest.mark.exhaustive
def test_the_crowd_comes_after_the_pause_once_in_due_order_and_at_its_rate() -> None:
    after = paused(CALM)
    assert min(after.seconds) >= 0
    assert after.due_at == sorted(after.due_at)
    assert set(after.called.values()) == {1}
    assert len(after.called) == TASKS
    assert max(Counter(after.seconds).values()) <= PER_SECOND + 1
    assert max(after.seconds) <= 10 + TASKS / PER_SECOND


@pytest.mark.soak
def test_processes_that_die_while_they_park_and_release_lose_nothing() -> None:
    after = paused(DEADLY)
    assert min(after.seconds) >= 0
    assert len(after.called) == TASKS
    assert after.statuses == {"delivered": TASKS}


@pytest.mark.soak
def test_functions_that_fail_while_they_park_and_release_leave_no_write_under_way() -> None:
    for after in (paused(FAILING), paused(SLOW, SEED_THAT_SHOWS_IT)):
        assert after.left_at_work == []
        assert after.statuses == {"delivered": TASKS}


@pytest.mark.soak
def test_one_that_fails_while_its_other_writes_are_under_way_is_found() -> None:
    """Frozen with its failure, it would carry them out when it is thawed, minutes later."""

    def mapped(pool: Any, function: Any, *arguments: Any) -> list[Any]:
        return list(pool.map(function, *arguments))

    def raising(write: Any) -> Any:
        return write

    with ExitStack() as stack:
        for module in (reschedule, park_tasks):
            stack.enter_context(patch.object(module, "fan_out", mapped))
            stack.enter_context(patch.object(module, "tried", raising))
        assert paused(SLOW, SEED_THAT_SHOWS_IT).left_at_work
