"""The client has every call of the interface, and no other."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from duewheel import Duewheel, Grant, NewTask
from duewheel.errors import DuewheelError
from tests.support import Script, problem

DOCUMENT = Path(__file__).parents[2] / "layers/core/duewheel/interface/openapi.json"
HOUR = timedelta(hours=1)
TASK = NewTask(biz_type="orders", delay=HOUR)

CALLS: dict[str, Callable[[Duewheel], object]] = {
    "POST /v1/tasks": lambda client: client.tasks.create("orders", delay=HOUR),
    "GET /v1/tasks": lambda client: list(client.tasks.list("orders")),
    "POST /v1/tasks/batch": lambda client: client.tasks.create_batch([TASK], idempotency_key="k"),
    "GET /v1/tasks/{task_id}": lambda client: client.tasks.get("AQ"),
    "PATCH /v1/tasks/{task_id}": lambda client: client.tasks.change("AQ", delay=HOUR),
    "DELETE /v1/tasks/{task_id}": lambda client: client.tasks.cancel("AQ"),
    "POST /v1/tasks/{task_id}/run": lambda client: client.tasks.run("AQ"),
    "POST /v1/tasks/{task_id}/pause": lambda client: client.tasks.pause("AQ"),
    "POST /v1/tasks/{task_id}/resume": lambda client: client.tasks.resume("AQ"),
    "POST /v1/tasks/{task_id}/redrive": lambda client: client.tasks.redrive("AQ"),
    "POST /v1/tasks/{task_id}/complete": lambda client: client.work("AQ", "T").complete(),
    "POST /v1/tasks/{task_id}/fail": lambda client: client.work("AQ", "T").fail(),
    "POST /v1/tasks/{task_id}/progress": lambda client: client.work("AQ", "T").progress(),
    "GET /v1/businesses/{biz_type}/tasks": lambda client: list(
        client.tasks.list_by_prefix("orders", "order-")
    ),
    "DELETE /v1/businesses/{biz_type}/tasks": lambda client: client.tasks.cancel_by_prefix(
        "orders", "order-"
    ),
    "GET /v1/businesses/{biz_type}/tasks/{key}": lambda client: client.tasks.get_by_key(
        "orders", "order-17"
    ),
    "PUT /v1/businesses/{biz_type}/tasks/{key}": lambda client: client.tasks.put(
        "orders", "order-17", delay=HOUR
    ),
    "DELETE /v1/businesses/{biz_type}/tasks/{key}": lambda client: client.tasks.cancel_by_key(
        "orders", "order-17"
    ),
    "GET /v1/businesses": lambda client: list(client.businesses.list()),
    "GET /v1/businesses/{biz_type}": lambda client: client.businesses.get("orders"),
    "PUT /v1/businesses/{biz_type}": lambda client: client.businesses.configure("orders"),
    "DELETE /v1/businesses/{biz_type}": lambda client: client.businesses.delete("orders"),
    "POST /v1/businesses/{biz_type}/pause": lambda client: client.businesses.pause("orders"),
    "POST /v1/businesses/{biz_type}/resume": lambda client: client.businesses.resume("orders"),
    "POST /v1/businesses/{biz_type}/probe": lambda client: client.businesses.probe(
        "orders", "receiver.example"
    ),
    "GET /v1/businesses/{biz_type}/changes": lambda client: client.businesses.changes("orders"),
    "GET /v1/businesses/{biz_type}/dead": lambda client: list(client.businesses.dead("orders")),
    "GET /v1/businesses/{biz_type}/stats": lambda client: client.businesses.statistics("orders"),
    "GET /v1/timers": lambda client: list(client.timers.list("orders")),
    "POST /v1/timers": lambda client: client.timers.create("orders", "daily", cron="0 3 * * *"),
    "POST /v1/timers/upcoming": lambda client: client.timers.preview(cron="0 3 * * *"),
    "GET /v1/timers/by-name/{biz_type}/{timer_name}": lambda client: client.timers.get_by_name(
        "orders", "daily"
    ),
    "PUT /v1/timers/by-name/{biz_type}/{timer_name}": lambda client: client.timers.put(
        "orders", "daily", cron="0 3 * * *"
    ),
    "DELETE /v1/timers/by-name/{biz_type}/{timer_name}": lambda client: (
        client.timers.delete_by_name("orders", "daily")
    ),
    "GET /v1/timers/{timer_id}": lambda client: client.timers.get("T1"),
    "PATCH /v1/timers/{timer_id}": lambda client: client.timers.change("T1", name="nightly"),
    "DELETE /v1/timers/{timer_id}": lambda client: client.timers.delete("T1"),
    "POST /v1/timers/{timer_id}/enable": lambda client: client.timers.enable("T1"),
    "POST /v1/timers/{timer_id}/disable": lambda client: client.timers.disable("T1"),
    "POST /v1/timers/{timer_id}/run": lambda client: client.timers.run("T1"),
    "GET /v1/timers/{timer_id}/upcoming": lambda client: client.timers.upcoming("T1"),
    "GET /v1/timers/{timer_id}/runs": lambda client: list(client.timers.runs("T1")),
    "GET /v1/timers/{timer_id}/changes": lambda client: client.timers.changes("T1"),
    "GET /v1/operations": lambda client: list(client.operations.list()),
    "POST /v1/operations": lambda client: client.operations.start("orders", "run", filter={}),
    "GET /v1/operations/{operation_id}": lambda client: client.operations.get("OP1"),
    "POST /v1/operations/{operation_id}/stop": lambda client: client.operations.stop("OP1"),
    "GET /v1/operations/{operation_id}/refused": lambda client: list(
        client.operations.refused("OP1")
    ),
    "GET /v1/keys": lambda client: list(client.keys.list()),
    "POST /v1/keys": lambda client: client.keys.create(
        "viewer", [Grant(right="read", businesses="*")]
    ),
    "GET /v1/keys/{key_id}": lambda client: client.keys.get("K1"),
    "DELETE /v1/keys/{key_id}": lambda client: client.keys.revoke("K1"),
    "POST /v1/keys/{key_id}/rotate": lambda client: client.keys.rotate("K1"),
    "GET /v1/keys/{key_id}/changes": lambda client: client.keys.changes("K1"),
    "GET /v1/overview": lambda client: list(client.overview()),
    "GET /v1/wheel": lambda client: client.wheel(),
    "GET /v1/audit": lambda client: list(client.audit()),
    "GET /v1/health": lambda client: client.health(),
    "GET /v1/openapi.json": lambda client: client.api_document(),
}


def of_the_interface() -> Iterator[str]:
    """The calls of the API document, which the service's own tests compare with its routes."""
    for path, operations in json.loads(DOCUMENT.read_text())["paths"].items():
        yield from (f"{method.upper()} {path}" for method in operations)


def test_the_table_of_this_test_has_exactly_the_calls_of_the_interface() -> None:
    assert sorted(CALLS) == sorted(of_the_interface())


@pytest.mark.parametrize("call", CALLS)
def test_the_client_has_the_call(call: str) -> None:
    script = Script(problem("unavailable", 503))
    with (
        Duewheel(patience_seconds=0, transport=script.transport) as client,
        suppress(DuewheelError),
    ):
        CALLS[call](client)
    (request,) = script.requests
    method, path = call.split(" ")
    assert request.method == method
    assert re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), request.url.path)
