"""A host that is down for a minute, on virtual time and with the real handlers."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from duewheel.rules.businesses.health import BusinessHealth
from duewheel.rules.delivery.circuit_breaker import WAIT_FIRST_MS
from duewheel.rules.instants import rfc3339
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.businesses.health import HealthStore
from duewheel.stores.tasks import codec
from tests.conftest import the_template
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Outage, Rates
from tests.simulation.receiver import Receiver
from tests.simulation.service import Service
from tests.support.clock import NOON_MS

pytestmark = pytest.mark.exhaustive

BEGINS, DOWN_SECONDS, ENDS = 10, 25, 40  # of the tasks' seconds: down from 10 to 35
PER_SECOND = 3
CALM_BUT_SLOW = Rates(latency_ms=40.0)


@dataclass
class Story:
    tried_while_down: Counter[int]  # calls that found nobody, by the second
    opened_at: int  # that second
    repeats: int  # attempts beyond the first one of each task
    statuses: Counter[str]
    delivered_by: float  # seconds after the host was well
    late_elsewhere_ms: int


@pytest.fixture(scope="module")
def story() -> Story:
    outage = Outage("receiver", BEGINS, BEGINS + DOWN_SECONDS)
    service = Service(the_template(), Faults(1, CALM_BUT_SLOW, (outage,)), seed=2)
    tried: Counter[int] = Counter()
    called = Receiver.called

    async def noted(self: Receiver, *arguments: Any) -> Any:
        began = asyncio.get_running_loop().time()
        tried[int(began)] += service.faults.is_down("receiver", began)
        return await called(self, *arguments)

    opened_at: list[int] = []
    open_one = HealthStore.open

    def opened(*arguments: Any) -> BusinessHealth:
        opened_at.append(int(service.seconds()))
        return open_one(*arguments)

    with service.running(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(Receiver, "called", noted)
        patched.setattr(HealthStore, "open", opened)
        service.run(_lived(service))
        items = service.emulator.items(service.settings.wheel_table)
        tasks = [codec.task_from(item) for item in items if "status" in item]
        down = [t for t in tasks if BEGINS <= (t.due_ms - NOON_MS) / 1000 < BEGINS + DOWN_SECONDS]
        assert len(down) == PER_SECOND * DOWN_SECONDS
        return Story(
            +tried,
            opened_at[0],
            sum(task.attempts for task in tasks) - len(tasks),
            Counter(task.status.value for task in tasks),
            max(t.due_ms + (t.lateness_ms or 0) - NOON_MS for t in tasks) / 1000
            - BEGINS
            - DOWN_SECONDS,
            max(t.lateness_ms or 0 for t in tasks if t.due_ms < NOON_MS + BEGINS * 1000),
        )


async def _lived(service: Service) -> None:
    EventSources(service).begin()
    rates, service.faults.rates = service.faults.rates, CALM
    for start in range(5, ENDS, 60):
        tasks = [
            {
                "biz_type": "orders",
                "due_at": rfc3339(NOON_MS + second * 1000 + number * 1000 // PER_SECOND),
                "callback": {"url": "https://far.example/ok"},
            }
            for second in range(start, min(start + 60, ENDS))
            for number in range(PER_SECOND)
        ]
        answer = await service.request("POST", "/v1/tasks/batch", {"tasks": tasks})
        assert answer is not None
        assert answer[0] == 200
    service.faults.rates = rates
    await asyncio.sleep(ENDS + 60)


def test_a_host_that_is_down_is_noticed_by_one_notifier_and_left_alone_by_all(story: Story) -> None:
    """Before, each of those at work counts by itself; after, what they know ages for seconds."""
    heeded_at = story.opened_at + KEPT_MS // 1000
    assert story.opened_at <= BEGINS + 15
    after = {second: n for second, n in story.tried_while_down.items() if second > heeded_at}
    assert sum(after.values()) <= 3


def test_those_that_wait_use_up_no_attempts_and_all_are_delivered(story: Story) -> None:
    assert set(story.statuses) == {"delivered"}
    assert story.repeats == sum(story.tried_while_down.values())


def test_soon_after_it_is_well_all_have_been_called(story: Story) -> None:
    assert story.delivered_by <= 8 * WAIT_FIRST_MS / 1000
    assert story.late_elsewhere_ms <= 1_000
