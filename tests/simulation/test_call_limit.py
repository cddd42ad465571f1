"""A crowd of one instant against a limit of calls, on virtual time and with the real handlers."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from duewheel.rules.instants import ms_from_rfc3339, rfc3339
from local.chaos.aws_faults import Handle, Reply, answered_by, operation_of
from tests.conftest import the_template
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Rates
from tests.simulation.receiver import Call
from tests.simulation.service import Service
from tests.support.bounds import quick_first
from tests.support.clock import NOON_MS

PER_SECOND = 50
IN_SECONDS = 30  # the crowd is due then
PROVE = os.environ.get("HYPOTHESIS_PROFILE") == "prove"
TROUBLE_OUTLASTS_SECONDS, SETTLES_IN_SECONDS = 120, 600
DEADLY = Rates(death=0.004, latency_ms=40.0)
LATE_FOR_SECONDS = 480.0

Lateness = Callable[[float], float]  # of a message that is received at this second


class LateSources(EventSources):
    """Hand messages over late for eight minutes."""

    late_seconds: Lateness

    async def _hand_over(self, *args: Any, **options: Any) -> None:
        now = self._service.seconds()
        if now < LATE_FOR_SECONDS:
            await asyncio.sleep(self.late_seconds(now))
        await super()._hand_over(*args, **options)


@dataclass
class Crowd:
    """What came of a crowd of `limited` at one instant, with others beside and behind it."""

    calls: dict[str, list[Call]]
    created: dict[str, set[str]]
    turn_writes: int
    rescheduled: int
    statuses: Counter[str]

    def seconds(self, biz_type: str) -> Counter[int]:
        """Calls by the second, counted from the crowd's instant."""
        return Counter(int(call.began_seconds) - IN_SECONDS for call in self.calls[biz_type])

    def most_at_once(self, biz_type: str) -> int:
        """Calls in any second, wherever it begins."""
        began = sorted(call.began_seconds for call in self.calls[biz_type])
        return max(sum(at <= other < at + 1 for other in began) for at in began)

    def latest_ms(self, biz_type: str) -> float:
        return max(
            NOON_MS + call.began_seconds * 1000 - ms_from_rfc3339(call.due_at)
            for call in self.calls[biz_type]
        )


def crowd_of(
    tasks: int,
    rates: Rates = CALM,
    per_second: float = PER_SECOND,
    apart_ms: int = 0,
    late_seconds: Lateness | None = None,
) -> Crowd:
    """Nobody is beside it where messages are late: what they cost would be most of it."""
    faults = Faults(1, rates)
    service = Service(the_template(), faults, seed=2)
    turn_writes = rescheduled = 0

    def counted(request: Any, handle: Handle) -> Reply | None:
        nonlocal turn_writes, rescheduled
        if operation_of(request) == "UpdateItem":
            turn_writes += b"turns#" in request.body
            rescheduled += b'"line"' in request.body
        return handle(request)

    with service.running(), answered_by(counted):
        created = service.run(_lived(service, tasks, per_second, apart_ms, late_seconds))
        calls: dict[str, list[Call]] = {biz_type: [] for biz_type in created}
        for call in service.receiver.calls:
            (of,) = (biz_type for biz_type, ids in created.items() if call.task_id in ids)
            calls[of].append(call)
        items = service.emulator.items(service.settings.wheel_table, ("status",))
        statuses = Counter(item["status"]["S"] for item in items if "status" in item)
        return Crowd(calls, created, turn_writes, rescheduled, statuses)


async def _lived(
    service: Service,
    tasks: int,
    per_second: float,
    apart_ms: int,
    late_seconds: Lateness | None,
) -> dict[str, set[str]]:
    if late_seconds is None:
        EventSources(service).begin()
    else:
        sources = LateSources(service, notifiers=400)
        sources.late_seconds = late_seconds
        sources.begin()
    faults, service.faults.rates = service.faults.rates, CALM
    settings = {"calls_per_second": per_second}
    answer = await service.request("PUT", "/v1/businesses/limited", settings)
    assert answer is not None
    assert answer[0] == 201, answer
    beside = [0] * 20 + [n * 1_000 for n in range(40)] if late_seconds is None else []
    created = {
        "limited": await _create(service, "limited", [n * apart_ms for n in range(tasks)]),
        "other": await _create(service, "other", beside),
    }
    service.faults.rates = faults
    await asyncio.sleep(IN_SECONDS + max(40, tasks / per_second) + 5)
    if late_seconds is not None:
        await asyncio.sleep(LATE_FOR_SECONDS)
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


@pytest.fixture(
    scope="module", params=quick_first([100, 10_000 if PROVE else 1_000], pytest.mark.soak)
)
def crowd(request: pytest.FixtureRequest) -> Crowd:
    return crowd_of(request.param)


@pytest.mark.exhaustive
def test_no_second_has_more_calls_than_the_limit(crowd: Crowd) -> None:
    assert max(crowd.seconds("limited").values()) <= PER_SECOND + 1


def test_the_crowd_is_worked_off_at_the_limit_and_everybody_is_called_once(crowd: Crowd) -> None:
    called = [call.task_id for call in crowd.calls["limited"]]
    assert len(called) == len(set(called)) == len(crowd.created["limited"])
    assert max(crowd.seconds("limited")) <= len(called) / PER_SECOND
    assert set(crowd.statuses) == {"delivered"}


@pytest.mark.soak
def test_what_was_due_first_is_called_first_but_for_messages_of_one_second() -> None:
    """Which queues may hand out in another order."""
    crowd = crowd_of(400, apart_ms=5)
    in_order = sorted(crowd.calls["limited"], key=lambda call: call.began_seconds)
    assert len(in_order) == 400
    due = [call.due_at for call in in_order]
    places = {at: place for place, at in enumerate(sorted(due))}
    assert max(abs(place - places[at]) for place, at in enumerate(due)) < PER_SECOND


def test_another_business_is_called_at_its_instants_beside_the_crowd(crowd: Crowd) -> None:
    assert len(crowd.calls["other"]) == len(crowd.created["other"])
    assert crowd.latest_ms("other") <= 100


def test_a_few_writes_serve_a_hundred_tasks(crowd: Crowd) -> None:
    assert crowd.turn_writes <= 5 * len(crowd.created["limited"]) / 100


@pytest.mark.soak
def test_whoever_dies_between_turn_and_call_loses_nothing() -> None:
    crowd = crowd_of(200, DEADLY)
    assert {call.task_id for call in crowd.calls["limited"]} == crowd.created["limited"]
    assert set(crowd.statuses) == {"delivered"}
    assert max(crowd.seconds("limited").values()) <= PER_SECOND + 2


@pytest.mark.soak
def test_tasks_that_are_served_8_s_late_for_8_minutes_are_called_at_the_rate() -> None:
    crowd = crowd_of(100, per_second=5, late_seconds=lambda now: 8.0)
    assert max(crowd.seconds("limited")) <= 8 + 8 + 100 / 5  # late twice
    assert crowd.rescheduled <= 100
    assert_all_called_within_the_limit(crowd)


def by_chance(late_seconds: Callable[[Random], float]) -> Lateness:
    chance = Random(1)
    return lambda now: late_seconds(chance)


LATENESSES: dict[str, Lateness] = {
    "up to 8 s": by_chance(lambda chance: chance.uniform(0, 8)),
    "0 s or 20 s": by_chance(lambda chance: chance.choice((0.0, 20.0))),
    "up to 40 s": by_chance(lambda chance: chance.uniform(0, 40)),
    "all at once after 8 minutes": lambda now: LATE_FOR_SECONDS - now,
}


@pytest.mark.soak
@pytest.mark.parametrize("lateness", LATENESSES.values(), ids=LATENESSES.keys())
def test_however_late_messages_are_served_all_tasks_are_called_within_the_limit(
    lateness: Lateness,
) -> None:
    crowd = crowd_of(100, per_second=5, late_seconds=lateness)
    assert crowd.rescheduled <= 2 * 100
    assert_all_called_within_the_limit(crowd)


def assert_all_called_within_the_limit(crowd: Crowd) -> None:
    called = [call.task_id for call in crowd.calls["limited"]]
    assert len(called) == len(set(called)) == 100
    assert set(called) == crowd.created["limited"]
    assert crowd.most_at_once("limited") <= 5 + 2
