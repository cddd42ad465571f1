"""Notices of outcomes over HTTP."""

from typing import Any

from tests.functions.conftest import call, created
from tests.support.clock import ManualClock

CALLBACK = {"callback": {"url": "https://receiver.example/"}}
NEW = {"biz_type": "orders", "delay_seconds": 600, **CALLBACK}
TIMER = {"biz_type": "orders", "name": "n", "every_seconds": 60, **CALLBACK}
TOLD: dict[str, Any] = {"outcomes": ["dead", "expired"], "callback": {"url": "https://b.example/"}}


def test_a_cancelled_task_names_its_notice_and_this_names_the_task(wired: ManualClock) -> None:
    task = created(on_outcome={**TOLD, "outcomes": ["cancelled"]})
    cancelled = call("DELETE", f"/v1/tasks/{task['task_id']}")[1]
    notice = call("GET", f"/v1/tasks/{cancelled['notice_id']}")[1]
    assert notice["notice_of"] == task["task_id"]
    assert notice["callback"]["url"] == "https://b.example/"
    assert notice["payload"]["outcome"] == "cancelled"
    assert call("DELETE", f"/v1/tasks/{task['task_id']}")[1] == cancelled


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
