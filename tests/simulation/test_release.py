"""How quickly what is parked is released, on virtual time and with the real handlers.

Each AWS call takes ten milliseconds in the mean, and its share of the notifier's processor, which
its calls have one after the other.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pytest

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.delivery import parked_tasks
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import NewTask
from duewheel.rules.wheel.addresses import PARKED_SLOTS
from duewheel.rules.wheel.sharding import Placement
from duewheel.stores.delivery.parked_items import ParkedStore
from duewheel.wiring import wheel
from duewheel.workflows.delivery import park_tasks
from local.chaos.aws_faults import Handle, Reply, answered_by, operation_of
from tests.conftest import the_template
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Rates
from tests.simulation.invocation import current
from tests.simulation.service import Service
from tests.simulation.turn_pool import TurnPool
from tests.support.clock import NOON_MS
from tests.workflows.delivery.test_release_by_parts import (
    PER_SECOND,
    PROCESSOR,
    SMALL_REQUEST_CPU_MS,
)

IN_A_REGION = Rates(latency_ms=20.0)  # at most
REQUEST_SECONDS = SMALL_REQUEST_CPU_MS / PROCESSOR / 1000
TASKS = 3_200
IN_LINE = 100


@dataclass
class Processors:
    """One for each environment: a request waits for its share of it."""

    service: Service
    named: list[float] = field(default_factory=list)  # when a home was let name its new entry
    by: Counter[object] = field(default_factory=Counter)  # by environment
    _free_at: dict[object, float] = field(default_factory=dict)

    def answer(self, request: Any, handle: Handle) -> Reply | None:
        run = current.get()
        if run is None or run.function != "notifier":
            return handle(request)
        now = self.service.seconds()
        free_at = max(now, self._free_at.get(run.environment, 0.0)) + REQUEST_SECONDS
        self._free_at[run.environment] = free_at
        self.service.turns.sleep(free_at - now)
        reply = handle(request)
        if operation_of(request) == "UpdateItem" and b'"#entry"' in request.body:
            self.named.append(self.service.seconds())
            self.by[run.environment] += 1
        return reply


def park(service: Service) -> None:
    """As notifiers have left them."""
    store = ParkedStore(wheel.tasks(), TurnPool(service.turns, PARKED_SLOTS))  # type: ignore[arg-type]
    due_ms = NOON_MS - 600_000
    placement = Placement(now_ms=due_ms - 60_000, lead_ms=500)
    new = NewTask(
        biz_type="orders",
        due_ms=due_ms,
        callback=HttpCallback("https://receiver.example/ok", method=""),
        payload="17",
    )
    tasks = [
        lifecycle.parked(new.placed(placement, service.chance.randbytes(8)), due_ms)
        for _ in range(TASKS)
    ]
    assert not wheel.tasks().create_many(tasks)
    store.put(tasks)


async def lived(service: Service, processors: Processors) -> None:
    sources = EventSources(service)
    for mapping in sources._mappings:
        mapping.batch_size = 1  # they come a second apart
    sources.begin()
    faults, service.faults.rates = service.faults.rates, CALM
    for step in ("pause", "resume"):
        if step == "resume":
            park(service)
        answer = await service.request("POST", f"/v1/businesses/orders/{step}")
        assert answer is not None
        assert answer[0] in (200, 201), answer
    service.faults.rates = faults
    while len(processors.named) < TASKS and service.seconds() < 60:
        await asyncio.sleep(0.1)


@pytest.mark.soak
def test_sixteen_notifiers_release_two_thousand_a_second_of_a_business_without_a_limit() -> None:
    """All sixteen at once, as they work on what is too much for one."""
    service = Service(the_template(), Faults(1, IN_A_REGION), seed=2)
    with (
        patch.object(parked_tasks, "BLOCKS_IN_LINE", IN_LINE // park_tasks.BLOCK),
        patch.object(park_tasks, "PARTS_APART_SECONDS", 0),
        service.running(),
    ):
        processors = Processors(service)
        with answered_by(processors.answer):
            service.run(lived(service, processors))
        by_parts = processors.named[IN_LINE:TASKS]
        assert len(processors.named) >= TASKS
        assert len(processors.by) >= PARKED_SLOTS
        per_second = len(by_parts) / (by_parts[-1] - by_parts[0])
        print(f"{per_second:.0f} a second")  # noqa: T201 - the docs tell it
        assert per_second >= PER_SECOND, f"{per_second:.0f}"
