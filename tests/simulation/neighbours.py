"""Two businesses side by side: one whose callbacks take ten seconds, due at several times the rate
at which they can be made, and a quick one with a task a second; or the former alone.

On virtual time and with the real handlers. How many notifiers there are and how many calls each has
in flight is cut down by the same measure as the load, so that the relation is as in a large stack.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

from duewheel.rules.businesses import lanes
from duewheel.rules.businesses.lanes import BusinessLane as Lane
from duewheel.rules.instants import ms_from_rfc3339, rfc3339
from duewheel.rules.priority import Priority
from duewheel.wiring import notifier as notifier_wiring
from local.aws.template import Template, load_template
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import CALM, Faults, Rates
from tests.simulation.receiver import Call
from tests.simulation.service import Service
from tests.simulation.soak import TEMPLATE
from tests.support.clock import NOON_MS

CALLBACK_SECONDS = 10
PAGE_SIZE = LINES = 10  # calls in flight of one notifier
NOTIFIERS = 4
SLOW_NOTIFIERS = 2
CAN_TAKE = NOTIFIERS * LINES / CALLBACK_SECONDS  # of the slow ones a second, in the main lane
TIMES = 5
IN_SECONDS = 20  # the first are due then
SETTLED_AFTER_SECONDS = 600
SLOW_SETTINGS = {"timeout_seconds": CALLBACK_SECONDS + 2}


@dataclass
class Neighbours:
    """What came of them."""

    late_ms: dict[str, list[int]]  # of first calls, by business, in the order of due instants
    repeated: int
    undelivered: int


def neighbours(
    lane: Lane | None,
    seconds: int,
    rates: Rates = CALM,
    *,
    slow_notifiers: int = SLOW_NOTIFIERS,
    settled_after: int = SETTLED_AFTER_SECONDS,
    slow_is: Priority = Priority.NORMAL,
    is_alone: bool = False,
) -> Neighbours:
    """`lane` of the slow one: found slow beforehand, or never; None: as it is observed.
    `slow_is`: the priority of the slow one. `is_alone`: there is no quick one. It ends when nothing
    is pending any more, or so many seconds after the last due instant."""
    service = Service(_with_small_pages(), Faults(1, rates), seed=2)
    deliver = partial(notifier_wiring.deliver, call_slots=LINES)
    lines = patch.object(notifier_wiring, "deliver", deliver)
    slow_mean_ms = lanes.MEAN_MS_MAX if lane is not Lane.MAIN else 10**9
    detection = patch.object(lanes, "MEAN_MS_MAX", slow_mean_ms)
    with lines, detection, service.running():
        sources = EventSources(service, notifiers=NOTIFIERS, slow_notifiers=slow_notifiers)
        settings = {"slow": {**SLOW_SETTINGS, "priority": slow_is}}
        if not is_alone:
            settings["quick"] = {}
        if lane is Lane.SLOW:
            service.found_slow("slow")
        service.run(_lived(service, sources, settings, seconds, settled_after))
        first = _first_calls(service.receiver.calls)
        return Neighbours(
            {biz: _late_ms(first, biz) for biz in ("quick", "slow")},
            len(service.receiver.calls) - len(first),
            _pending(service),
        )


def _with_small_pages() -> Template:
    template = load_template(TEMPLATE)
    for function in template.functions():
        function.properties["Environment"]["Variables"]["PAGE_SIZE"] = str(PAGE_SIZE)
    return template


def _pending(service: Service) -> int:
    items = service.emulator.items(service.settings.wheel_table, ("status",))
    return sum(item.get("status", {}).get("S") == "pending" for item in items)


def _first_calls(calls: list[Call]) -> dict[str, Call]:
    first: dict[str, Call] = {}
    for call in calls:
        first.setdefault(call.task_id, call)
    return first


def _late_ms(first: dict[str, Call], biz_type: str) -> list[int]:
    called = sorted((c for c in first.values() if c.biz_type == biz_type), key=lambda c: c.due_at)
    return [
        round(NOON_MS + call.began_seconds * 1000 - ms_from_rfc3339(call.due_at)) for call in called
    ]


async def _lived(
    service: Service,
    sources: EventSources,
    settings: Mapping[str, Mapping[str, Any]],
    seconds: int,
    settled_after: int,
) -> None:
    sources.begin()
    rates, service.faults.rates = service.faults.rates, CALM
    for biz_type, own in settings.items():
        await _asked(service, "PUT", f"/v1/businesses/{biz_type}", own)
    each_second = round(TIMES * CAN_TAKE)
    slow = [s * 1000 + n * 1000 // each_second for s in range(seconds) for n in range(each_second)]
    await _create(service, "slow", f"slow/{CALLBACK_SECONDS}", slow)
    if "quick" in settings:
        await _create(service, "quick", "ok", [s * 1000 + 500 for s in range(seconds)])
    service.faults.rates = rates
    await asyncio.sleep(IN_SECONDS + seconds)
    over = service.seconds() + settled_after
    while service.seconds() < over and _pending(service):
        await asyncio.sleep(min(30.0, over - service.seconds()))


async def _create(service: Service, biz_type: str, path: str, after_ms: list[int]) -> None:
    first_ms = NOON_MS + IN_SECONDS * 1000
    tasks = [
        {
            "biz_type": biz_type,
            "due_at": rfc3339(first_ms + ms),
            "callback": {"url": f"https://far.example/{path}"},
        }
        for ms in after_ms
    ]
    for start in range(0, len(tasks), 500):
        await _asked(service, "POST", "/v1/tasks/batch", {"tasks": tasks[start : start + 500]})


async def _asked(service: Service, method: str, path: str, body: Any) -> None:
    answer = await service.request(method, path, body)
    assert answer is not None
    assert answer[0] in (200, 201), answer
