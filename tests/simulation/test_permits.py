"""A crowd against a limit of calls in flight, on virtual time and with the real handlers."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st

from duewheel.rules.instants import rfc3339
from local.chaos.aws_faults import Handle, Reply, answered_by, operation_of
from tests.conftest import the_template
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Rates
from tests.simulation.owner_verdict import most_in_flight
from tests.simulation.receiver import Call, ReportedEnd
from tests.simulation.service import Service
from tests.simulation.workers import Workers
from tests.support.bounds import quick_first
from tests.support.clock import NOON_MS

IN_SECONDS = 30  # the crowd is due then
DEADLY = Rates(death=0.004, freeze=0.004, latency_ms=40.0)
SETTLES_IN_SECONDS = 600


@dataclass
class Crowd:
    calls: list[Call]
    created: set[str]
    permit_requests: Counter[str]
    rescheduled: int
    statuses: Counter[str]
    ends: list[ReportedEnd]

    @property
    def took_seconds(self) -> float:
        return max(call.ended_seconds for call in self.calls) - IN_SECONDS

    def most_begun_in(self, window_seconds: float) -> int:
        """The most calls that began in any window of this length."""
        began = sorted(call.began_seconds for call in self.calls)
        most = first = 0
        for last, at in enumerate(began):
            while began[first] <= at - window_seconds:
                first += 1
            most = max(most, last + 1 - first)
        return most

    @property
    def work(self) -> list[Call]:
        """The calls, each with the work that followed it: until the report of its end was sent, or
        until its deadline."""
        worked = []
        for call in self.calls:
            sent = [end.begun_seconds for end in self.ends if end.task_id == call.task_id]
            within = call.heard.complete_within_seconds or 0
            until = min((at for at in sent if at >= call.began_seconds), default=inf)
            worked.append(replace(call, ended_seconds=min(until, call.ended_seconds + within)))
        return worked

    @property
    def busy_seconds(self) -> float:
        return sum(call.ended_seconds - call.began_seconds for call in self.calls)


def crowd_of(
    tasks: int,
    limit: int,
    call_seconds: float | Sequence[float],
    *,
    rates: Rates = CALM,
    apart_ms: int = 0,
    settings: dict[str, Any] | None = None,
    seed: int = 2,
    kind: str = "slow",
) -> Crowd:
    service = Service(the_template(), Faults(seed, rates), seed=seed)
    service.receiver.works = Workers(service, seed).begin
    requests: Counter[str] = Counter()
    rescheduled = 0

    def counted(request: Any, handle: Handle) -> Reply | None:
        nonlocal rescheduled
        operation = operation_of(request)
        if b'"permits"' in request.body:
            requests[operation] += 1
        if operation == "UpdateItem":
            rescheduled += b'"line"' in request.body
        return handle(request)

    durations = call_seconds if isinstance(call_seconds, Sequence) else [call_seconds] * tasks
    with service.running(), answered_by(counted):
        created = service.run(_lived(service, durations, kind, limit, apart_ms, settings or {}))
        items = service.emulator.items(service.settings.wheel_table, ("status",))
        statuses = Counter(item["status"]["S"] for item in items if "status" in item)
        calls = list(service.receiver.calls)
        ends = list(service.receiver.ends)
        return Crowd(calls, created, requests, rescheduled, statuses, ends)


async def _lived(
    service: Service,
    durations: Sequence[float],
    kind: str,
    limit: int,
    apart_ms: int,
    settings: dict[str, Any],
) -> set[str]:
    """A task for each of these durations of calls."""
    tasks = len(durations)
    EventSources(service).begin()
    faults, service.faults.rates = service.faults.rates, CALM
    settings = {"calls_in_flight": limit, "timeout_seconds": 10, **settings}
    answer = await service.request("PUT", "/v1/businesses/narrow", settings)
    assert answer is not None
    assert answer[0] == 201, answer
    created: set[str] = set()
    for start in range(0, tasks, 500):
        new = [
            {
                "biz_type": "narrow",
                "due_at": rfc3339(NOON_MS + IN_SECONDS * 1000 + number * apart_ms),
                "callback": {"url": f"https://far.example/{kind}/{durations[number]}"},
            }
            for number in range(start, min(start + 500, tasks))
        ]
        answer = await service.request("POST", "/v1/tasks/batch", {"tasks": new})
        assert answer is not None
        created |= {result["task"]["task_id"] for result in answer[1]["results"]}
    service.faults.rates = faults
    await asyncio.sleep(IN_SECONDS + apart_ms * tasks / 1000)
    at_the_rate = tasks / (settings.get("calls_per_second") or tasks)
    await asyncio.sleep(2 * max(sum(durations) / limit, at_the_rate) + 60)
    if faults != CALM:
        await asyncio.sleep(SETTLES_IN_SECONDS)
        service.faults.rates = CALM
        await asyncio.sleep(SETTLES_IN_SECONDS)
    return created


def assert_all_called_once(crowd: Crowd) -> None:
    assert Counter(call.task_id for call in crowd.calls) == Counter(crowd.created)
    assert set(crowd.statuses) == {"delivered"}


@pytest.mark.parametrize(
    ("tasks", "limit", "call_seconds"),
    quick_first([(60, 2, 0.4), (300, 3, 0.3), (1_000, 20, 0.3), (100, 1, 2.0)], pytest.mark.soak),
)
def test_no_more_calls_than_the_limit_are_under_way_over_all_notifiers(
    tasks: int, limit: int, call_seconds: float
) -> None:
    crowd = crowd_of(tasks, limit, call_seconds)
    assert most_in_flight(crowd.calls) == limit
    assert_all_called_once(crowd)
    assert crowd.took_seconds <= 2 * crowd.busy_seconds / limit
    assert crowd.rescheduled <= 3 * tasks


@pytest.mark.soak
def test_tasks_do_not_go_to_and_fro_between_the_lines_of_permits_and_of_a_rate() -> None:
    crowd = crowd_of(40, 2, 2.0, apart_ms=200, settings={"calls_per_second": 2.0})
    assert_all_called_once(crowd)
    assert most_in_flight(crowd.calls) == 2
    assert crowd.took_seconds <= 1.3 * crowd.busy_seconds / 2
    assert crowd.rescheduled <= 5 * 40


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 4))
def test_notifiers_that_crash_or_freeze_hold_the_bound_and_their_permits_come_back(
    seed: int,
) -> None:
    crowd = crowd_of(150, 2, 0.4, rates=DEADLY, seed=seed)
    assert most_in_flight(crowd.calls) <= 2
    assert {call.task_id for call in crowd.calls} == crowd.created
    assert set(crowd.statuses) == {"delivered"}


@pytest.mark.soak
@pytest.mark.parametrize(("tasks", "limit", "seed"), [(20, 1, 1), (40, 2, 2), (100, 10, 3)])
def test_work_that_goes_on_after_its_call_counts_until_it_ends(
    tasks: int, limit: int, seed: int
) -> None:
    """Some of it fails, some lapses, and is called again."""
    retry = {"attempts": 9, "delays_seconds": [2]}
    crowd = crowd_of(tasks, limit, 20.0, kind="works", seed=seed, settings={"retry": retry})
    assert most_in_flight(crowd.work) == limit
    assert {call.task_id for call in crowd.calls} == crowd.created
    assert set(crowd.statuses) <= {"delivered", "dead"}


@pytest.mark.soak
def test_what_is_due_first_is_called_first_but_for_what_waits_in_runs_at_once() -> None:
    crowd = crowd_of(400, 5, 0.2, apart_ms=33)
    in_order = sorted(crowd.calls, key=lambda call: call.began_seconds)
    due = [call.due_at for call in in_order]
    places = {at: place for place, at in enumerate(sorted(due))}
    assert max(abs(place - places[at]) for place, at in enumerate(due)) < 200


def least_seconds(durations: Sequence[float], limit: int, per_second: float) -> float:
    """How long one queue takes in which the first task waits for both, a permit and a turn."""
    free, turn, end = [0.0] * limit, 0.0, 0.0
    for seconds in durations:
        free.sort()
        begins = max(free[0], turn)
        turn, free[0] = begins + 1 / per_second, begins + seconds
        end = max(end, free[0])
    return end


def assert_both_limits_hold(crowd: Crowd, limit: int, per_second: float) -> None:
    assert_all_called_once(crowd)
    assert most_in_flight(crowd.calls) <= limit
    for window in (1, 3, 10):
        assert crowd.most_begun_in(window) <= per_second * window + 2, window


def test_a_rate_holds_beside_long_calls_that_hold_the_permits_and_wastes_no_turn() -> None:
    durations = [9.0, 9.0] + [0.05] * 100
    crowd = crowd_of(102, 2, durations, settings={"calls_per_second": 10.0})
    assert_both_limits_hold(crowd, 2, 10.0)
    assert crowd.took_seconds <= 1.2 * least_seconds(durations, 2, 10.0)


@pytest.mark.exhaustive
@tried(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    durations=st.lists(st.sampled_from([0.05, 0.05, 0.05, 0.5, 4.0]), min_size=10, max_size=40),
    limit=st.integers(1, 5),
    per_second=st.sampled_from([1.0, 5.0, 12.0]),
    apart_ms=st.sampled_from([0, 40, 150]),
    seed=st.integers(0, 9),
)
def test_no_window_has_more_calls_than_the_rate_beside_any_limit_of_calls_in_flight(
    durations: list[float], limit: int, per_second: float, apart_ms: int, seed: int
) -> None:
    crowd = crowd_of(
        len(durations),
        limit,
        durations,
        apart_ms=apart_ms,
        settings={"calls_per_second": per_second},
        seed=seed,
    )
    assert_both_limits_hold(crowd, limit, per_second)
    least = least_seconds(durations, limit, per_second)
    assert crowd.took_seconds <= 1.5 * least + apart_ms * len(durations) / 1000 + 15


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_rate_holds_beside_permits_while_notifiers_crash_or_freeze(seed: int) -> None:
    durations = [0.05, 0.05, 0.05, 3.0] * 30
    limited = {"calls_per_second": 8.0}
    crowd = crowd_of(120, 3, durations, rates=DEADLY, seed=seed, settings=limited)
    assert crowd.most_begun_in(1) <= 8 + 2
    assert crowd.most_begun_in(10) <= 80 + 2
    assert most_in_flight(crowd.calls) <= 3
    assert {call.task_id for call in crowd.calls} == crowd.created
    assert set(crowd.statuses) == {"delivered"}


def test_a_page_that_finds_permits_takes_them_and_gives_them_back_in_two_writes() -> None:
    crowd = crowd_of(20, 20, 0.4)
    assert_all_called_once(crowd)
    assert crowd.permit_requests == {"GetItem": 3, "UpdateItem": 2}


def test_a_business_without_a_limit_makes_no_request_for_permits() -> None:
    crowd = crowd_of(20, 20, 0.4, settings={"calls_in_flight": None})
    assert_all_called_once(crowd)
    assert not crowd.permit_requests
