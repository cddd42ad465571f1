"""`on_outcome` of tasks and timers over HTTP and by messages."""

from typing import Any

import pytest

from tests.functions.conftest import call
from tests.functions.ingest_poller import TASK, poll, send, tasks_stored
from tests.support.clock import ManualClock

CALLBACK = {"callback": {"url": "https://receiver.example/"}}
NEW = {"biz_type": "orders", "delay_seconds": 600, **CALLBACK}
TIMER = {"biz_type": "orders", "name": "n", "every_seconds": 60, **CALLBACK}
TOLD: dict[str, Any] = {"outcomes": ["dead", "expired"], "callback": {"url": "https://b.example/"}}
SHOWN = {
    "outcomes": ["dead", "expired"],
    "callback": {"type": "http", "url": "https://b.example/", "method": None, "headers": {}},
    "with_payload": False,
}


def create(**fields: Any) -> Any:
    status, task = call("POST", "/v1/tasks", {**NEW, **fields})
    assert status == 201, task
    return task


def test_a_task_shows_who_is_told(wired: ManualClock) -> None:
    task = create(on_outcome=TOLD)
    assert task["on_outcome"] == SHOWN
    assert call("GET", f"/v1/tasks/{task['task_id']}")[1] == task
    assert "on_outcome" not in create()


def test_a_cancelled_task_names_its_notice_and_this_names_the_task(wired: ManualClock) -> None:
    task = create(on_outcome={**TOLD, "outcomes": ["cancelled"]})
    cancelled = call("DELETE", f"/v1/tasks/{task['task_id']}")[1]
    notice = call("GET", f"/v1/tasks/{cancelled['notice_id']}")[1]
    assert notice["notice_of"] == task["task_id"]
    assert notice["callback"]["url"] == "https://b.example/"
    assert notice["payload"]["outcome"] == "cancelled"
    assert call("DELETE", f"/v1/tasks/{task['task_id']}")[1] == cancelled


def test_a_put_replaces_who_is_told_with_the_rest_of_the_task(wired: ManualClock) -> None:
    path, body = "/v1/businesses/orders/tasks/k", {"delay_seconds": 600, **CALLBACK}
    assert call("PUT", path, {**body, "on_outcome": TOLD})[1]["on_outcome"] == SHOWN
    assert "on_outcome" not in call("PUT", path, body)[1]


def test_a_message_may_say_who_is_told(wired: ManualClock) -> None:
    send({**TASK, "delay_seconds": 600, "on_outcome": TOLD})
    assert poll() == 0
    (item,) = tasks_stored()
    assert "on_outcome" in item


def test_a_timer_gets_and_loses_who_is_told(wired: ManualClock) -> None:
    status, timer = call("POST", "/v1/timers", {**TIMER, "on_outcome": TOLD})
    assert (status, timer["on_outcome"]) == (201, SHOWN)
    path = f"/v1/timers/{timer['timer_id']}"
    assert call("GET", path)[1]["on_outcome"] == SHOWN
    assert call("PATCH", path, {"on_outcome": None})[1]["on_outcome"] is None


@pytest.mark.parametrize(
    ("on_outcome", "field"),
    [
        ({"outcomes": ["dead"]}, "callback"),
        ({"callback": TOLD["callback"]}, "outcomes"),
        ({**TOLD, "outcomes": []}, "outcomes"),
        ({**TOLD, "outcomes": ["lost"]}, "outcomes[0]"),
        ({**TOLD, "callback": {"method": "POST"}}, "callback.url"),
        ({**TOLD, "callback": {**TOLD["callback"], "body": "raw"}}, "callback.body"),
        ({**TOLD, "callback": {"type": "sqs", "queue_url": "x"}}, "callback.type"),
        ({**TOLD, "with_payload": "yes"}, "with_payload"),
        ({**TOLD, "more": 1}, "more"),
    ],
)
def test_what_cannot_be_told_is_refused_with_its_field_and_stores_nothing(
    wired: ManualClock, on_outcome: Any, field: str
) -> None:
    wrong = {"on_outcome": on_outcome}
    status, problem = call("POST", "/v1/tasks", {**NEW, **wrong})
    assert (status, problem["field"]) == (422, f"on_outcome.{field}")
    (result,) = call("POST", "/v1/tasks/batch", {"tasks": [{**NEW, **wrong}]})[1]["results"]
    assert result["problem"]["field"] == f"tasks[0].on_outcome.{field}"
    status, problem = call("POST", "/v1/timers", {**TIMER, **wrong})
    assert (status, problem["field"]) == (422, f"on_outcome.{field}")
    assert tasks_stored() == []


def test_a_host_that_the_business_does_not_allow_is_told_nothing(wired: ManualClock) -> None:
    call("PUT", "/v1/businesses/orders", {"allowed_hosts": ["receiver.example"]})
    timer = call("POST", "/v1/timers", TIMER)[1]
    for method, path, body in (
        ("POST", "/v1/tasks", {**NEW, "on_outcome": TOLD}),
        ("POST", "/v1/timers", {**TIMER, "on_outcome": TOLD}),
        ("PATCH", f"/v1/timers/{timer['timer_id']}", {"on_outcome": TOLD}),
    ):
        status, problem = call(method, path, body)
        assert (status, problem["field"]) == (422, "on_outcome.callback.url")
