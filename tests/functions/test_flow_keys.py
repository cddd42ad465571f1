"""The flow key of tasks and timers over HTTP and by messages."""

from typing import Any

from tests.functions.conftest import call
from tests.functions.ingest_poller import TASK, poll, send, tasks_stored
from tests.support.clock import ManualClock

CALLBACK = {"callback": {"url": "https://receiver.example/"}}
NEW = {"biz_type": "orders", "delay_seconds": 600, **CALLBACK}


def create(**fields: Any) -> Any:
    status, task = call("POST", "/v1/tasks", {**NEW, **fields})
    assert status == 201, task
    return task


def test_answers_and_lists_show_the_flow_key_of_a_task(wired: ManualClock) -> None:
    task = create(flow_key="eu/customer-7")
    assert task["flow_key"] == "eu/customer-7"
    assert call("GET", f"/v1/tasks/{task['task_id']}")[1] == task
    assert call("GET", "/v1/tasks", query="biz_type=orders")[1]["tasks"] == [task]


def test_a_task_without_a_flow_key_shows_none(wired: ManualClock) -> None:
    assert "flow_key" not in create()


def test_a_put_replaces_the_flow_key_with_the_rest_of_the_task(wired: ManualClock) -> None:
    path, body = "/v1/businesses/orders/tasks/k", {"delay_seconds": 600, **CALLBACK}
    assert call("PUT", path, {**body, "flow_key": "a"})[1]["flow_key"] == "a"
    assert call("PUT", path, {**body, "flow_key": "b"})[1]["flow_key"] == "b"
    assert "flow_key" not in call("PUT", path, body)[1]


def test_a_message_may_have_a_flow_key(wired: ManualClock) -> None:
    send({**TASK, "delay_seconds": 600, "flow_key": "a"})
    assert poll() == 0
    (item,) = tasks_stored()
    assert item["flow_key"] == {"S": "a"}


def test_a_change_of_a_task_does_not_take_a_flow_key(wired: ManualClock) -> None:
    status, problem = call("PATCH", f"/v1/tasks/{create()['task_id']}", {"flow_key": "b"})
    assert (status, problem["field"]) == (422, "flow_key")


def test_a_timer_gets_and_loses_its_flow_key(wired: ManualClock) -> None:
    body = {"biz_type": "orders", "name": "n", "every_seconds": 60, **CALLBACK, "flow_key": "a"}
    status, timer = call("POST", "/v1/timers", body)
    assert (status, timer["flow_key"]) == (201, "a")
    path = f"/v1/timers/{timer['timer_id']}"
    assert call("PATCH", path, {"flow_key": None})[1]["flow_key"] is None
    assert call("PATCH", path, {"flow_key": ""})[1]["field"] == "flow_key"
