"""Tasks of a flow key in order, by the handlers with their roles."""

from typing import Any

import pytest

from tests.functions.conftest import call
from tests.functions.ingest_poller import TASK, items_stored, poll, send
from tests.support.clock import ManualClock

CALLBACK = {"callback": {"url": "https://receiver.example/"}}
NEW = {"biz_type": "orders", "flow_key": "customer-7", **CALLBACK}


@pytest.fixture(autouse=True)
def _in_order(wired: ManualClock) -> None:
    body = {"flow": {"default": {"in_order": True}}}
    assert call("PUT", "/v1/businesses/orders", body)[0] == 201


def order_items() -> list[Any]:
    return [item for item in items_stored() if item["slot"]["S"].startswith("order#")]


def test_a_task_that_is_created_moved_and_cancelled_has_one_order_item_while_it_lives(
    wired: ManualClock,
) -> None:
    status, task = call("POST", "/v1/tasks", {**NEW, "delay_seconds": 600})
    assert status == 201
    (first,) = order_items()
    path = f"/v1/tasks/{task['task_id']}"
    assert call("PATCH", path, {"delay_seconds": 900})[0] == 200
    (second,) = order_items()
    assert second["place"]["S"] > first["place"]["S"]
    assert call("DELETE", path)[0] == 200
    assert not order_items()


def test_a_message_creates_tasks_with_order_items(wired: ManualClock) -> None:
    """One of them is due so soon that the line is read."""
    send({"tasks": [{**TASK, **NEW, "delay_seconds": 0}, {**TASK, **NEW}]})
    assert poll() == 0
    assert len(order_items()) == 2
