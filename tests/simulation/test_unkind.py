"""What AWS does besides failing: it freezes, lags, refuses a partition, and is late.

Each is shown to do so, and where it breaks a promise of a worse service, to find that.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import boto3
import pytest

from duewheel.rules.instants import rfc3339
from duewheel.stores import dynamodb
from duewheel.wiring import process
from tests.conftest import the_template
from tests.simulation.event_sources import HELD_TO_ONE, EventSources
from tests.simulation.faults import BUT_ONE, CALM, FLAKY_HOST, SLOW_HOST, Faults, Outage, Rates
from tests.simulation.invocation import FROZEN
from tests.simulation.receiver import SLOW_CALL, Call
from tests.simulation.service import Service, handlers
from tests.simulation.soak import Soak, soaked
from tests.simulation.turn_pool import TurnPool
from tests.support.clock import NOON_MS

LAGGING = Rates(lag=1.0)
DISABLED_SECONDS = 20.3
HEEDED_SECONDS = 0.5  # from the answer on


def test_a_thread_of_a_frozen_environment_goes_on_when_the_next_run_thaws_it() -> None:
    service = Service(the_template(), Faults(1, Rates(latency_ms=1_000.0)), seed=2)
    read: list[float] = []

    def ask() -> None:
        boto3.client("dynamodb").get_item(
            TableName=service.settings.wheel_table,
            Key={"slot": {"S": "1.0"}, "place": {"S": "2"}},
        )
        read.append(service.seconds())

    def handler(event: Any, _: Any) -> None:
        if event["leaves"]:
            TurnPool(service.turns, 1).submit(ask)
        else:
            process.clock().sleep(30)

    async def story() -> None:
        first = await service.spawn(service.invoke("sweeper", {"leaves": True}))
        assert first.is_answered
        assert first.invocation.troubles == [FROZEN]
        await asyncio.sleep(600)
        assert read == []
        service.environments._idle["sweeper"][0].available_seconds = 0
        await service.spawn(service.invoke("sweeper", {"leaves": False}))

    with patch.dict(handlers(), sweeper=handler), service.running():
        service.run(story())
    assert len(read) == 1
    assert 600 <= read[0] < 630
    assert len(service.environments.left_at_work) == 1


def called_after_it_was_disabled(rates: Rates) -> int:
    service = Service(the_template(), Faults(3, CALM), seed=3)
    with service.running():
        service.run(_timer_disabled(service, rates))
        calls = service.receiver.calls
        assert calls
        heeded = DISABLED_SECONDS + HEEDED_SECONDS
        return sum(call.began_seconds > heeded for call in calls)


async def _timer_disabled(service: Service, rates: Rates) -> None:
    EventSources(service).begin()
    new = {
        "name": "every second",
        "biz_type": "orders",
        "every_seconds": 1,
        "end_at": rfc3339(NOON_MS + 40_000),
        "callback": {"url": "https://far.example/ok"},
    }
    answer = await service.request("POST", "/v1/timers", new)
    assert answer is not None
    assert answer[0] == 201
    service.faults.rates = rates
    await asyncio.sleep(DISABLED_SECONDS - service.seconds())
    answer = await service.request("POST", f"/v1/timers/{answer[1]['timer_id']}/disable")
    assert answer is not None
    assert answer[0] == 200
    await asyncio.sleep(60)


@pytest.mark.exhaustive
def test_a_timer_that_was_disabled_is_not_called_though_reads_may_be_behind() -> None:
    assert called_after_it_was_disabled(LAGGING) == 0


@pytest.mark.soak
def test_a_read_that_should_have_been_consistent_is_found() -> None:
    answer = dynamodb._answer

    def behind(client: Any, asked: Any) -> Any:
        return answer(
            client, {name: {**one, "ConsistentRead": False} for name, one in asked.items()}
        )

    with patch.object(dynamodb, "_answer", behind):
        assert called_after_it_was_disabled(LAGGING)
        assert called_after_it_was_disabled(CALM) == 0


@pytest.mark.soak
def test_writes_that_a_partition_refuses_and_that_are_forgotten_are_found_lost() -> None:
    def once(left: Any, request: Any, clock: Any = None) -> list[Any]:
        request(left)
        return []

    soak = Soak(30, 3, Rates(partition_units=2.0), tasks_per_second=8, settling_seconds_max=60)
    with patch.object(dynamodb, "_carry_out", once):
        report, faults, _ = soaked(soak)
    assert faults.injected["refused by a partition"]
    assert report.lost


def calls_of(outage: Outage, host: str, path: str, delays: Sequence[int]) -> list[Call]:
    """Of tasks that are created at once and due after so many seconds."""
    service = Service(the_template(), Faults(1, CALM, (outage,)), seed=2)
    task = {"biz_type": "orders", "callback": {"url": f"https://{host}/{path}"}}

    async def story() -> None:
        EventSources(service).begin()
        for delay_seconds in delays:
            new = {**task, "delay_seconds": delay_seconds}
            answer = await service.request("POST", "/v1/tasks", new)
            assert answer is not None
            assert answer[0] == 201
        await asyncio.sleep(60)

    with service.running():
        service.run(story())
    assert service.faults.injected[SLOW_CALL if outage.what == SLOW_HOST else HELD_TO_ONE]
    return service.receiver.calls


def test_while_all_notifiers_but_one_are_busy_one_run_begins_after_the_other() -> None:
    calls = calls_of(Outage(BUT_ONE, 0.0, 120.0), "receiver.example", "slow/3", [0] * 4)
    assert len(calls) == 4
    for first, second in pairwise(calls):
        assert first.by is second.by or first.ended_seconds <= second.began_seconds


def test_a_host_that_is_slow_for_a_while_is_quick_afterwards() -> None:
    calls = calls_of(Outage(SLOW_HOST, 0.0, 10.0), FLAKY_HOST, "ok", [1, 20])
    takes = [call.ended_seconds - call.began_seconds for call in calls]
    assert [seconds > 5 for seconds in takes] == [True, False]


@pytest.mark.parametrize(("at", "late"), [(9.0, 0.0), (10.0, 30.0), (69.0, 30.0), (70.0, 0.0)])
def test_in_a_backlog_every_message_of_the_queue_waits_half_of_it(at: float, late: float) -> None:
    faults = Faults(1, CALM, (Outage("main late", 10.0, 70.0),))
    assert faults.late_seconds("main", at) == late
    assert faults.late_seconds("slow", at) == 0


def test_while_a_partition_is_down_one_key_in_sixteen_is_refused() -> None:
    faults = Faults(1, CALM, (Outage("partition", 10.0, 70.0),))
    down = [key for key in map(str, range(1_600)) if faults.is_partition_down(key, 20.0)]
    assert 60 < len(down) < 140
    assert not any(faults.is_partition_down(key, 5.0) for key in down)
