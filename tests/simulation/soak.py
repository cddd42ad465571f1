"""A soak: many tasks, everything going wrong by seeded chance, and then the reckoning."""

import asyncio
import gc
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
from msgspec.structs import replace

from duewheel.rules.instants import rfc3339
from duewheel.rules.sweep.audit import AuditRequest, Finding
from duewheel.rules.sweep.minute_statistics import MINUTE_MS, MINUTES_MAX
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel import sharding
from duewheel.rules.wheel.addresses import holds_seconds, second_of
from duewheel.stores.tasks import codec
from duewheel.stores.wheel import pointers
from duewheel.wiring import api as api_wiring
from duewheel.wiring import process
from duewheel.workflows.wheel import dispatch, run_leader
from local.aws.template import Template, load_template
from local.control.ingest_messages import IngestMessages
from tests.simulation.clients import (
    BUSINESSES,
    FIRST_SERVED,
    IN_SLOW_LANE,
    TOLERANCE_SECONDS,
    TOLERANT,
    Clients,
)
from tests.simulation.event_sources import EventSources
from tests.simulation.expiry import DAY_SECONDS, EVERY_SECONDS, Expiry, short_days
from tests.simulation.faults import CALM, ROUGH, Faults, Outage, Rates, outages_of
from tests.simulation.found_verdict import (
    FirstCall,
    first_calls,
    found_late,
    held_up,
    waited_seconds,
)
from tests.simulation.late_minds import LATE_MINDS
from tests.simulation.ledger import DueAsked
from tests.simulation.lines import ORDERED, judged_lines
from tests.simulation.message_verdict import MessageReport, judged_messages, tasks_of
from tests.simulation.operators import Bulk, judged_bulk, told_of
from tests.simulation.owner_verdict import judged_owners, wrong_labels, wrong_notices
from tests.simulation.owners import (
    DORMANT,
    IN_FLIGHT,
    KEYED,
    LIMITED,
    NARROW,
    ON_OUTCOME,
    TOLD,
)
from tests.simulation.receiver import Call, Dropped
from tests.simulation.senders import MAY_CREATE_FOR, RATION, RATIONED
from tests.simulation.service import Service
from tests.simulation.sweep_watch import BrokenSpan, SweepWatch
from tests.simulation.verdict import Report, judged
from tests.simulation.workers import Workers
from tests.support.clock import NOON_MS
from tests.support.one_core import stay_on_core

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"
TASKS_PER_SECOND = 2.0
SLICE_ENTRIES = 40  # so that a few batches make a crowd, and seconds grow while tasks arrive
STRIDE_SECONDS = 60  # a run that dies at every 250th request gets ahead between two deaths
AFTERWARDS_DAYS = 40  # longer than anything that has ended is kept
TROUBLE_OUTLASTS_SECONDS = 240  # the sweep and the retries shall have their share of it
SETTLING_SECONDS_MAX = 7_200
STATISTICS_MS = MINUTES_MAX * MINUTE_MS  # one call tells no more; each reads ahead of the sweep


@dataclass(frozen=True)
class Soak:
    tasks: int
    seed: int
    rates: Rates = ROUGH
    tasks_per_second: float = TASKS_PER_SECOND
    settling_seconds_max: float = SETTLING_SECONDS_MAX
    turns_before_seconds: float = 0  # how long the wheel has turned when the first task comes
    day_seconds: int = DAY_SECONDS  # shorter: TTL strikes while tasks wait
    operations: int = 0  # on many tasks at once

    @property
    def has_short_days(self) -> bool:
        return self.day_seconds < DAY_SECONDS

    @property
    def seconds(self) -> float:
        return self.tasks / self.tasks_per_second

    @property
    def calls_per_second(self) -> float:
        """Of the business that has a limit: a little more than it needs."""
        return max(1.0, self.tasks_per_second / 8)

    @property
    def outages(self) -> tuple[Outage, ...]:
        return outages_of(self.seed, self.seconds) if self.rates != CALM else ()


@cache
def _template() -> Template:
    return load_template(TEMPLATE, {"IngestBusinesses": MAY_CREATE_FOR})


def soaked(soak: Soak) -> tuple[Report, Faults, float]:
    """What came of it, which faults were injected, and how many virtual seconds it took."""
    faults = Faults(soak.seed, soak.rates, soak.outages)
    service = Service(_template(), faults, seed=soak.seed + 1)
    with ExitStack() as stack:
        stack.enter_context(patch.object(sharding, "SLICE_ENTRIES", SLICE_ENTRIES))
        for module in (dispatch, run_leader):
            stack.enter_context(patch.object(module, "STRIDE_SECONDS", STRIDE_SECONDS))
        stack.enter_context(short_days(soak.day_seconds))
        stack.enter_context(service.running())
        far = soak.day_seconds if soak.has_short_days else None
        clients = Clients(
            service, soak.seed + 2, soak.tasks, soak.seconds, far, operations=soak.operations
        )
        service.receiver.works = Workers(service, soak.seed + 3).begin
        expiry = Expiry(service, soak.day_seconds)
        sweep = SweepWatch(service)
        service.run(_lived(service, clients, expiry, sweep, soak))
        health = _items(service)
        items = [*health, *expiry.gone]
        messages = _messages_judged(service, clients, items)
        _note_occurrences(clients, items)
        report = judged(clients.ledger, service.receiver, items)
        report.messages = messages
        spans = held_up(soak.outages, sweep.broken_spans())
        _note_found(report, _first_calls(service, clients, items), spans)
        report.sweep_behind_seconds = sweep.behind_seconds_max
        report.left_at_work = service.environments.left_at_work
        report.disobeyed = judged_owners(
            clients.ledger, service.receiver.calls, _tasks_of(items), soak.calls_per_second
        )
        report.disobeyed += service.receiver.wrong
        report.disobeyed += wrong_notices(_tasks_of(items))
        report.disobeyed += judged_lines(clients.ledger, service.receiver, _tasks_of(items))
        report.operations = len(clients.operators.bulks)
        report.disobeyed += service.run(_wrong_operations(service, clients.operators.bulks, items))
        report.disobeyed += wrong_labels(_tasks_of(items))
        report.inconsistent = inconsistent(service, health)
        for biz_type in (*BUSINESSES, RATIONED, DORMANT, LATE_MINDS):
            report.untrue += service.run(_wrong_statistics(service, biz_type, items))
        seconds = service.seconds()
        service.loop.virtual_seconds += AFTERWARDS_DAYS * soak.day_seconds  # and nobody acts
        expiry.strike()
        report.deleted_wrongly = [*expiry.too_early, *expiry.left_behind()]
        return report, faults, seconds


def soaked_on_core(soak: Soak, core: int) -> tuple[Report, Faults, float]:
    """For a process of its own."""
    stay_on_core(core)
    return soaked(soak)


async def _lived(
    service: Service, clients: Clients, expiry: Expiry, sweep: SweepWatch, soak: Soak
) -> None:
    EventSources(service).begin()
    service.spawn(sweep.watch())
    if soak.has_short_days:
        service.spawn(_expire(expiry))
    service.spawn(_leave_the_past_alone())
    await _configure(service, soak.calls_per_second, clients)
    await asyncio.sleep(soak.turns_before_seconds)
    await clients.live()
    if soak.rates != CALM:
        await asyncio.sleep(TROUBLE_OUTLASTS_SECONDS)
    service.faults.end()
    if soak.has_short_days:
        await clients.wake_the_dormant()
    deadline = service.seconds() + soak.settling_seconds_max
    while service.seconds() < deadline and not _is_settled(service):
        await asyncio.sleep(60)


async def _expire(expiry: Expiry) -> None:
    while True:
        expiry.strike()
        await asyncio.sleep(EVERY_SECONDS)


async def _configure(service: Service, calls_per_second: float, clients: Clients) -> None:
    """Both lanes have their share of it, and messages and calls that a limit holds up."""
    faults, service.faults.rates = service.faults.rates, CALM
    limit = {"creates_per_second": RATION}
    limit_of_keys = {"default": {"calls_per_second": calls_per_second}}
    for biz_type, settings in (
        (RATIONED, limit),
        (LIMITED, {"calls_per_second": calls_per_second}),
        (NARROW, {"calls_in_flight": IN_FLIGHT, "calls_per_second": calls_per_second}),
        (TOLERANT, {"tolerance_seconds": TOLERANCE_SECONDS}),
        (TOLD, {"on_outcome": ON_OUTCOME}),
        (FIRST_SERVED, {"priority": "high"}),
        (KEYED, {"flow": limit_of_keys}),
        (ORDERED, {"flow": {"default": {"in_order": True}}}),
    ):
        answer = await service.request("PUT", f"/v1/businesses/{biz_type}", settings)
        assert answer is not None
        assert answer[0] in (200, 201), answer
    await service.request("POST", f"/v1/businesses/{DORMANT}/pause", None)
    service.found_slow(IN_SLOW_LANE)
    service.faults.rates = faults


async def _leave_the_past_alone() -> None:
    """The table and the ledger only grow; the garbage collector need not walk them each time."""
    while True:
        gc.collect()
        gc.freeze()
        await asyncio.sleep(60)


def _tasks_of(items: list[dict[str, Any]]) -> list[Task]:
    return [codec.task_from(item) for item in items if "status" in item]


def _note_occurrences(clients: Clients, items: list[dict[str, Any]]) -> None:
    """What timers made is to be called like all else."""
    for task in _tasks_of(items):
        if task.occurrence is not None:
            clients.ledger.created(task.task_id, DueAsked(0.0, 0.0, 201, task.due_at_ms))


def _first_calls(
    service: Service, clients: Clients, items: list[dict[str, Any]]
) -> list[FirstCall]:
    made: list[Call | Dropped] = [*service.receiver.calls, *service.receiver.dropped]
    return list(first_calls(clients.ledger, made, _tasks_of(items), service.seconds()))


def _note_found(report: Report, calls: Sequence[FirstCall], spans: Sequence[BrokenSpan]) -> None:
    report.first_calls = len(calls)
    report.found_after_seconds = max((waited_seconds(one, spans) for one in calls), default=0.0)
    report.found_late = list(found_late(calls, spans))


def _messages_judged(
    service: Service, clients: Clients, items: list[dict[str, Any]]
) -> MessageReport:
    """What was made of them is noted in the ledger: it is to be called like all else."""
    sent = clients.senders.messages.sent
    made = tasks_of(sent, _tasks_of(items))
    for task in (task for tasks in made.values() for task in tasks):
        created_seconds = (task.created_ms - NOON_MS) / 1000
        clients.ledger.created(task.task_id, DueAsked(0.0, created_seconds, 201, task.due_at_ms))
    urls = service.settings.ingest_queue_url, service.settings.ingest_dead_letter_queue_url
    return judged_messages(sent, made, IngestMessages(boto3.client("sqs"), *urls).dead_letters())


def _is_settled(service: Service) -> bool:
    """Everything has ended, and the sweep has passed all of it."""
    if service.emulator.messages_visible_at_ms(service.settings.ingest_queue_url):
        return False
    items = _items(service, ("place", "status", "home"))
    if any(item.get("status", {}).get("S") == "pending" or "home" in item for item in items):
        return False
    origin = process.origin()
    sweep = process.pointers().read(pointers.SWEEP, origin)
    if sweep.open_places:
        return False
    return all(int(item["place"]["S"][:11]) <= sweep.position for item in items if "status" in item)


def _items(service: Service, attributes: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Read past everything, by nobody's function."""
    return service.emulator.items(service.settings.wheel_table, attributes)


def inconsistent(service: Service, items: list[dict[str, Any]]) -> list[str]:
    """What the audit finds in all the seconds that were used."""
    placed = [item["place"]["S"] for item in items if holds_seconds(item["slot"]["S"])]
    last_second = max(service.now_ms() // 1000, *map(second_of, placed))
    asked = AuditRequest(process.origin(), last_second)
    findings: dict[Finding, None] = {}
    while True:
        audited = api_wiring.audit()(asked)
        findings |= dict.fromkeys(audited.findings)
        if audited.cursor is None:
            break
        asked = replace(asked, cursor=audited.cursor)
    assert audited.audited_until_second == last_second + 1
    return [f"{f.wrong} {f.task_id or f.at} ({f.attribute or f.sentence})" for f in findings]


async def _wrong_operations(
    service: Service, bulks: Sequence[Bulk], items: list[dict[str, Any]]
) -> list[str]:
    tasks = {task.task_id: task for task in _tasks_of(items)}
    calls = service.receiver.calls
    return [
        wrong
        for bulk in bulks
        for wrong in judged_bulk(
            bulk, await told_of(service.request, bulk.operation_id), tasks, calls
        )
    ]


async def _wrong_statistics(
    service: Service, biz_type: str, items: list[dict[str, Any]]
) -> list[str]:
    """The statistics against what the wheel holds."""
    held = [
        item
        for item in items
        if item.get("biz_type", {}).get("S") == biz_type and "plan" not in item
    ]
    counted: dict[str, int] = {}
    began_ms = NOON_MS - 3_600_000  # a clock may be behind at noon
    for begins_ms in range(began_ms, service.now_ms() + 1, STATISTICS_MS):
        span = f"from={rfc3339(begins_ms)}&to={rfc3339(begins_ms + STATISTICS_MS)}"
        answer = await service.request("GET", f"/v1/businesses/{biz_type}/stats?{span}")
        assert answer is not None
        assert answer[0] == 200, answer
        for name, number in answer[1]["total"].items():
            if isinstance(number, int):
                counted[name] = counted.get(name, 0) + number
    wrong = []
    for name in ("pending", "delivered", "dead", "expired", "cancelled"):
        number = sum(item["status"]["S"] == name for item in held)
        if counted[name] != number:
            wrong.append(f"{biz_type}: {counted[name]} {name} counted, {number} in the wheel")
    if counted["created"] != len(held):
        wrong.append(f"{biz_type}: {counted['created']} created counted, {len(held)} in the wheel")
    return wrong
