"""A crowd of one instant against a limit of calls, on virtual time and with the real handlers."""

import asyncio
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from duewheel.rules.instants import ms_from_rfc3339, rfc3339
from duewheel.rules.promises import GOOD_FOR_MS
from local.aws_faults import Handle, Reply, answered_by, operation_of
from tests.conftest import the_template
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Rates
from tests.simulation.receiver import Call
from tests.simulation.service import Service
from tests.support.clock import NOON_MS

PER_SECOND = 50
IN_SECONDS = 30  # the crowd is due then
PROVE = os.environ.get("HYPOTHESIS_PROFILE") == "prove"
TROUBLE_OUTLASTS_SECONDS, SETTLES_IN_SECONDS = 120, 600
DEADLY = Rates(death=0.004, latency_ms=40.0)


@dataclass
class Crowd:
    """What came of a crowd of `limited` at one instant, with others beside and behind it."""

    calls: dict[str, list[Call]]
    created: dict[str, set[str]]
    turn_writes: int
    statuses: Counter[str]

    def seconds(self, biz_type: str) -> Counter[int]:
        """Calls by the second, counted from the crowd's instant."""
        return Counter(int(call.began_seconds) - IN_SECONDS for call in self.calls[biz_type])

    def latest_ms(self, biz_type: str) -> float:
        return max(
            NOON_MS + call.began_seconds * 1000 - ms_from_rfc3339(call.due_at)
            for call in self.calls[biz_type]
        )


def crowd_of(
    tasks: int,
    rates: Rates = CALM,
    per_second: float | None = PER_SECOND,
    apart_ms: int = 0,
) -> Crowd:
    faults = Faults(1, rates)
    service = Service(the_template(), faults, seed=2)
    turn_writes = 0

    def counted(request: Any, handle: Handle) -> Reply | None:
        nonlocal turn_writes
        if operation_of(request) == "UpdateItem":
            turn_writes += b"turns#" in request.body
        return handle(request)

    with service.running(), answered_by(counted):
        created = service.run(_lived(service, tasks, per_second, apart_ms))
        calls: dict[str, list[Call]] = {biz_type: [] for biz_type in created}
        for call in service.receiver.calls:
            (of,) = (biz_type for biz_type, ids in created.items() if call.task_id in ids)
            calls[of].append(call)
        items = service.emulator.items(service.settings.wheel_table, ("status",))
        statuses = Counter(item["status"]["S"] for item in items if "status" in item)
        return Crowd(calls, created, turn_writes, statuses)


async def _lived(
    service: Service, tasks: int, per_second: float | None, apart_ms: int
) -> dict[str, set[str]]:
    EventSources(service).begin()
    faults, service.faults.rates = service.faults.rates, CALM
    settings = {"calls_per_second": per_second}
    answer = await service.request("PUT", "/v1/businesses/limited", settings)
    assert answer is not None
    assert answer[0] == 201, answer
    created = {
        "limited": await _create(service, "limited", [n * apart_ms for n in range(tasks)]),
        "other": await _create(service, "other", [0] * 40 + [n * 500 for n in range(80)]),
    }
    service.faults.rates = faults
    await asyncio.sleep(IN_SECONDS + max(40, tasks / PER_SECOND) + 5)
    if faults != CALM:
        await asyncio.sleep(TROUBLE_OUTLASTS_SECONDS)
        service.faults.rates = CALM
        await asyncio.sleep(SETTLES_IN_SECONDS)
    return created


async def _create(service: Service, biz_type: str, after_ms: list[int]) -> set[str]:
    made: set[str] = set()
    for start in range(0, len(after_ms), 500):
        tasks = [
            {
                "biz_type": biz_type,
                "due_at": rfc3339(NOON_MS + IN_SECONDS * 1000 + ms),
                "payload": start + number,
                "callback": {"url": "https://far.example/ok"},
            }
            for number, ms in enumerate(after_ms[start : start + 500])
        ]
        answer = await service.request("POST", "/v1/tasks/batch", {"tasks": tasks})
        assert answer is not None
        made |= {result["task"]["task_id"] for result in answer[1]["results"]}
    return made


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return crowd_of(10_000 if PROVE else 1_000)


def test_no_second_has_more_calls_than_the_limit(crowd: Crowd) -> None:
    assert max(crowd.seconds("limited").values()) <= PER_SECOND + 1


def test_the_crowd_is_worked_off_at_the_limit_and_everybody_is_called_once(crowd: Crowd) -> None:
    called = [call.task_id for call in crowd.calls["limited"]]
    assert len(called) == len(set(called)) == len(crowd.created["limited"])
    assert max(crowd.seconds("limited")) <= len(called) / PER_SECOND
    assert set(crowd.statuses) == {"delivered"}


def test_what_was_due_first_is_called_first() -> None:
    crowd = crowd_of(400, apart_ms=5)
    in_order = sorted(crowd.calls["limited"], key=lambda call: call.began_seconds)
    assert len(in_order) == 400
    due = [call.due_at for call in in_order]
    assert due == sorted(due)


def test_another_business_is_called_no_later_than_without_the_limit() -> None:
    with_limit, without = crowd_of(300), crowd_of(300, per_second=None)
    assert max(with_limit.seconds("limited")) == 5
    assert max(without.seconds("limited")) <= 2
    for crowd in (with_limit, without):
        assert len(crowd.calls["other"]) == len(crowd.created["other"])
    assert with_limit.latest_ms("other") <= without.latest_ms("other") + 100


def test_a_few_writes_serve_a_hundred_tasks(crowd: Crowd) -> None:
    assert crowd.turn_writes <= 5 * len(crowd.created["limited"]) / 100


def test_whoever_dies_between_turn_and_call_loses_nothing() -> None:
    crowd = crowd_of(200, DEADLY)
    assert {call.task_id for call in crowd.calls["limited"]} == crowd.created["limited"]
    assert set(crowd.statuses) == {"delivered"}
    late_together = PER_SECOND * GOOD_FOR_MS // 1000  # whose promises are still good
    assert max(crowd.seconds("limited").values()) <= PER_SECOND + late_together
