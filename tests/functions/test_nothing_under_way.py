"""After the end of a handler no write of it is in flight, even if one of its writes failed."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Any

import pytest

from functions.api import app as api
from functions.notifier import app as notifier
from functions.scheduler import app as scheduler
from functions.sweeper import app as sweeper
from local.chaos.aws_faults import Handle, Reply, answered_by, error_reply, operation_of
from tests.functions.conftest import Context, call, event_from, http_event, received_batch, tick
from tests.functions.ingest_poller import TASK, handed_out, run, send
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock
from tests.support.conflicts import Wanted, of_claims, of_homes

SLOW_SECONDS = 0.3  # a slow write is sent after that, or when the handler has ended
NOWHERE = {"url": "http://127.0.0.1:9/"}


@dataclass
class Wire:
    """Refuses the first write that `wanted` selects, and delays the others."""

    wanted: Wanted
    handler_ended: Event = field(default_factory=Event)
    met: int = 0
    under_way: int = 0
    changed: Condition = field(default_factory=Condition)

    def answer(self, request: Any, handle: Handle) -> Reply | None:
        operation = operation_of(request)
        if not self.wanted(operation, json.loads(request.body) if operation else {}):
            return handle(request)
        with self.changed:
            self.met += 1
            if self.met == 1:
                return error_reply(400, "ValidationException", "refused for the test")
            self.under_way += 1
        try:
            self.handler_ended.wait(SLOW_SECONDS)
            return handle(request)
        finally:
            with self.changed:
                self.under_way -= 1
                self.changed.notify_all()


def left_under_way(wire: Wire, handler: Callable[[], object]) -> int:
    """The number of writes in flight after the handler has returned or raised."""
    with answered_by(wire.answer):
        with suppress(Exception):
            handler()
        with wire.changed:
            left = wire.under_way
            wire.handler_ended.set()
            wire.changed.wait_for(lambda: not wire.under_way)
    return left


def created(wired: ManualClock, number: int, **fields: Any) -> None:
    task = {**TASK, "delay_seconds": 30, "callback": NOWHERE, **fields}
    status, _ = call("POST", "/v1/tasks/batch", {"tasks": [task] * number})
    assert status == 200
    wired.advance_ms(30_000)
    tick()


def parking(wired: ManualClock) -> Callable[[], object]:
    assert call("PUT", "/v1/businesses/orders", {"callback": NOWHERE})[0] == 201
    assert call("POST", "/v1/businesses/orders/pause")[0] == 200
    created(wired, 6)
    batch = received_batch()
    return lambda: notifier.handler(batch, Context())


def waiting_for_the_limit(wired: ManualClock) -> Callable[[], object]:
    settings = {"callback": NOWHERE, "calls_per_second": 0.05}
    assert call("PUT", "/v1/businesses/orders", settings)[0] == 201
    created(wired, 6)
    batch = received_batch()
    return lambda: notifier.handler(batch, Context())


def failing(wired: ManualClock) -> Callable[[], object]:
    created(wired, 6)
    batch = received_batch()
    return lambda: notifier.handler(batch, Context())


def planning(wired: ManualClock) -> Callable[[], object]:
    timer = {"biz_type": "orders", "name": "t", "every_seconds": 1, "callback": NOWHERE}
    assert call("POST", "/v1/timers", timer)[0] == 201
    batch = received_batch()
    return lambda: notifier.handler(batch, Context())


def creating_by_keys(_: ManualClock) -> Callable[[], object]:
    tasks = [{**TASK, "key": f"key-{n}"} for n in range(6)]
    event = http_event("POST", "/v1/tasks/batch", {"tasks": tasks})
    return lambda: api.handler(event, Context())


def ingesting(_: ManualClock) -> Callable[[], object]:
    send({"tasks": [{**TASK, "key": f"key-{n}"} for n in range(6)]})
    records = handed_out()
    return lambda: run(records)


def recording_statistics(wired: ManualClock) -> Callable[[], object]:
    task = {**TASK, "delay_seconds": 30, "callback": NOWHERE, "expires_after_seconds": 1}
    tasks = [{**task, "biz_type": f"business-{number}"} for number in range(6)]
    assert call("POST", "/v1/tasks/batch", {"tasks": tasks})[0] == 200
    wired.advance_ms(40_000)
    tick()
    notifier.handler(received_batch(), Context())  # they expire
    wired.advance_ms(300_000)
    tick()
    sweeper.handler({}, Context())  # records the position of the time pointer
    wired.advance_ms(300_000)
    return lambda: sweeper.handler({}, Context())


def catching_up(wired: ManualClock) -> Callable[[], object]:
    tick()
    wired.advance_ms(60_000)
    turns = iter([1_000_000])
    return lambda: scheduler.handler(event_from("scheduled.json"), Context(lambda: next(turns, 0)))


def of_statistics(operation: str, body: dict[str, Any]) -> bool:
    kind = body.get("Item", {}).get("kind", {}).get("S", "")
    return operation == "PutItem" and kind.startswith("statistics#")


def of_occurrences(operation: str, body: dict[str, Any]) -> bool:
    is_put = operation == "PutItem" and "occurrence" in body["Item"]
    return is_put or operation == "TransactWriteItems"


def of_probes(operation: str, body: dict[str, Any]) -> bool:
    return operation == "Query" and body.get("Limit") == 2


Prepare = Callable[[ManualClock], Callable[[], object]]


@pytest.mark.parametrize(
    ("prepare", "wanted"),
    quick_first(
        [
            (parking, of_homes),
            (ingesting, of_claims),
            (waiting_for_the_limit, of_homes),
            (failing, of_homes),
            (planning, of_occurrences),
            (creating_by_keys, of_claims),
            (recording_statistics, of_statistics),
            (catching_up, of_probes),
        ],
        pytest.mark.exhaustive,
        2,
    ),
    ids=lambda value: value.__name__,
)
def test_no_write_is_in_flight_after_the_end_of_a_handler(
    wired: ManualClock, prepare: Prepare, wanted: Wanted
) -> None:
    handler, wire = prepare(wired), Wire(wanted)
    assert left_under_way(wire, handler) == 0
    assert wire.met >= 4, "several writes were in flight"
