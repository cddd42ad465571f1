"""A crowd on one second, on a table that takes no more than AWS's would.

Real handlers on virtual time. Clients create tasks for one second, in batches or singly, and say
when each had been answered; then the second comes, and it is seen how long the table takes.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from duewheel.rules.instants import rfc3339
from duewheel.rules.wheel import sharding
from local.aws.template import load_template
from local.chaos.aws_faults import answered_by
from tests.simulation.event_sources import EventSources
from tests.simulation.faults import Faults, Rates
from tests.simulation.service import Service
from tests.simulation.soak import TEMPLATE, inconsistent
from tests.support.clock import NOON_MS
from tests.support.governor import Governor

QUIET = Rates(latency_ms=10.0)  # of each AWS call, as it is within a Region
BATCH = 500
TRIES_MAX = 20
LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Crowd:
    tasks: int
    table_write_units: float
    settling_write_units: float | None = None  # when all are created
    clients: int = 8
    singles: int = 0  # of the tasks, those that are created one by one
    in_seconds: int = 40  # the second that all are due in
    notifiers: int = 100


@dataclass
class Came:
    """What came of it."""

    created_seconds: float = 0  # from the first request to the last answer
    settled_seconds: float = 0  # from the second to the last settled task
    repeated_creates: int = 0  # answered 503, and tried again
    by_shard: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)  # by the governor
    units_to_deliver: float = 0  # written, of the wheel
    writes_to_deliver: int = 0  # requests, refused ones among them
    calls: Counter[str] = field(default_factory=Counter)  # by task
    statuses: Counter[str] = field(default_factory=Counter)
    inconsistent: list[str] = field(default_factory=list)


@contextmanager
def one_fixed_shard() -> Iterator[None]:
    with patch.object(sharding, "SHARDS_MAX", 1):
        yield


def check_nothing_is_lost_or_repeated(came: Came, tasks: int) -> None:
    assert came.statuses == {"delivered": tasks}
    assert len(came.calls) == tasks
    assert set(came.calls.values()) == {1}
    assert came.inconsistent == []


def crowded(crowd: Crowd, seed: int = 1) -> Came:
    service = Service(load_template(TEMPLATE), Faults(seed, QUIET), seed=seed)
    with service.running():
        governor = Governor(
            lambda: service.seconds() * 1000,
            [service.settings.wheel_table, service.settings.registry_table],
            crowd.table_write_units,
        )
        came = Came(refused=governor.refused)
        sources = EventSources(service, notifiers=crowd.notifiers)
        with answered_by(governor.answer):
            service.run(_lived(service, sources, crowd, came, governor))
        items = service.emulator.items(service.settings.wheel_table)
        came.by_shard.update(
            int(item["slot"]["S"].rpartition(".")[2]) for item in items if "status" in item
        )
        came.statuses.update(item["status"]["S"] for item in items if "status" in item)
        came.calls.update(call.task_id for call in service.receiver.calls)
        came.inconsistent = inconsistent(service, items)
        return came


async def _lived(
    service: Service, sources: EventSources, crowd: Crowd, came: Came, governor: Governor
) -> None:
    sources.begin()
    await asyncio.sleep(5)
    due_ms = NOON_MS + (5 + crowd.in_seconds) * 1000
    began = service.seconds()
    await _create(service, crowd, due_ms, came)
    came.created_seconds = service.seconds() - began
    if crowd.settling_write_units is not None:
        governor.limit_table_writes(crowd.settling_write_units)
    wheel = service.settings.wheel_table
    units, writes = governor.used_by_table(wheel), governor.writes[wheel]
    due_seconds = (due_ms - NOON_MS) / 1000
    await asyncio.sleep(max(0, due_seconds - service.seconds()))
    over = service.seconds() + 600
    while service.seconds() < over and _pending(service):
        await asyncio.sleep(LOOK_SECONDS)
    came.settled_seconds = service.seconds() - due_seconds
    came.units_to_deliver = governor.used_by_table(wheel) - units
    came.writes_to_deliver = governor.writes[wheel] - writes


async def _create(service: Service, crowd: Crowd, due_ms: int, came: Came) -> None:
    batches = crowd.tasks - crowd.singles
    work: list[int] = [1] * crowd.singles
    work += [min(BATCH, batches - start) for start in range(0, batches, BATCH)]

    async def client() -> None:
        while work:
            left = work.pop()
            for _ in range(TRIES_MAX):
                left -= await _created(service, left, due_ms)
                if not left:
                    break
                came.repeated_creates += left
                await asyncio.sleep(service.chance.uniform(0.5, 1.5))
            else:
                raise AssertionError(f"{left} tasks could not be created")

    await asyncio.gather(*(service.spawn(client()) for _ in range(crowd.clients)))


async def _created(service: Service, number: int, due_ms: int) -> int:
    tasks = [_task(due_ms + n % 1000) for n in range(number)]
    if number == 1:
        answer = await service.request("POST", "/v1/tasks", tasks[0])
        return int(answer is not None and answer[0] == 201)
    answer = await service.request("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert answer is not None
    if answer[0] != 200:
        return 0
    return sum(result["status"] == 201 for result in answer[1]["results"])


def _task(due_ms: int) -> dict[str, Any]:
    return {
        "biz_type": "orders",
        "due_at": rfc3339(due_ms),
        "payload": {"order": "x" * 200},
        "callback": {"url": "https://receiver.example/ok"},
    }


def _pending(service: Service) -> bool:
    items = service.emulator.items(service.settings.wheel_table, ("status",))
    return any(item.get("status", {}).get("S") == "pending" for item in items)
