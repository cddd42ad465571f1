"""Timers on virtual time and with the real handlers."""

import asyncio
from collections import Counter
from dataclasses import dataclass

import pytest

from duewheel.rules.instants import ms_from_rfc3339
from local.aws.template import load_template
from tests.conftest import TEMPLATE
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Rates
from tests.simulation.receiver import Call
from tests.simulation.service import Service
from tests.support.clock import NOON_MS

CALLBACK_SECONDS = 10
RUNS = 20
DEADLY = Rates(death=0.004, latency_ms=40.0)


@dataclass
class Ran:
    """When each of its runs was called, from when it was due, and what became of it."""

    late_ms: list[int]
    due_at: Counter[str]
    statuses: Counter[str]
    calls: list[Call]


def ran(rates: Rates, settled_after: int, **rules: object) -> Ran:
    template = load_template(TEMPLATE, {"AuthMode": "keys"})
    service = Service(template, Faults(3, rates), seed=2)
    with service.running():
        service.run(_lived(service, settled_after, rules))
        calls = service.receiver.calls
        items = service.emulator.items(service.settings.wheel_table, ("status", "occurrence"))
        return Ran(
            [_late_ms(call) for call in calls],
            Counter(call.due_at for call in calls),
            Counter(item["status"]["S"] for item in items if "occurrence" in item),
            calls,
        )


def _late_ms(call: Call) -> int:
    return NOON_MS + round(call.began_seconds * 1_000) - ms_from_rfc3339(call.due_at)


async def _lived(service: Service, settled_after: int, rules: dict[str, object]) -> None:
    EventSources(service).begin()
    faults, service.faults.rates = service.faults.rates, CALM
    await _ask(service, "PUT", "/v1/businesses/orders", {"timeout_seconds": CALLBACK_SECONDS + 5})
    new = {
        "name": "every second",
        "biz_type": "orders",
        "every_seconds": 1,
        "max_runs": RUNS,
        "misfire": "all",
        "callback": {"url": f"https://far.example/slow/{CALLBACK_SECONDS}"},
        **rules,
    }
    await _ask(service, "POST", "/v1/timers", new)
    service.faults.rates = faults
    await asyncio.sleep(RUNS + CALLBACK_SECONDS + 5 + settled_after)


async def _ask(service: Service, method: str, path: str, body: object) -> None:
    answer = await service.request(method, path, body)
    assert answer is not None
    assert answer[0] in (200, 201), answer


@pytest.mark.exhaustive
def test_a_timer_of_every_second_is_called_every_second_while_its_callbacks_take_ten() -> None:
    lived = ran(CALM, settled_after=0)
    assert lived.late_ms == [0] * RUNS
    assert set(lived.due_at.values()) == {1}
    assert len(lived.due_at) == RUNS
    assert lived.statuses == {"delivered": RUNS}


@pytest.mark.soak
def test_a_crash_while_planning_loses_no_run() -> None:
    # A scheduler that catches up dies every hundred calls or so; the next one comes in a minute.
    lived = ran(DEADLY, settled_after=1_200)
    assert len(lived.due_at) == RUNS
    assert lived.statuses == {"delivered": RUNS}


def at_once(calls: list[Call]) -> list[tuple[Call, Call]]:
    """Calls of different runs that were under way at the same time."""
    in_order = sorted(calls, key=lambda call: call.began_seconds)
    return [
        (one, other)
        for number, one in enumerate(in_order)
        for other in in_order[number + 1 :]
        if other.task_id != one.task_id and other.began_seconds < one.ended_seconds - 0.001
    ]


@pytest.mark.soak
@pytest.mark.parametrize("overlap", ["buffer_one", "cancel_running"])
@pytest.mark.parametrize("rates", [CALM, DEADLY], ids=["calm", "deadly"])
def test_runs_that_must_not_overlap_never_do_and_none_is_lost(rates: Rates, overlap: str) -> None:
    """Their calls take ten times as long as their interval."""
    lived = ran(rates, settled_after=1_200, overlap=overlap)
    assert at_once(lived.calls) == []
    assert set(lived.statuses) == {"delivered", "cancelled"}
    assert lived.statuses.total() == RUNS
    assert lived.statuses["delivered"] >= 3  # the first one, and one behind each that was called
