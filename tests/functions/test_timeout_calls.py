"""`timeout_seconds` of callbacks over HTTP: bounded by the deployment wherever one is given."""

from typing import Any

from tests.functions.conftest import call
from tests.support.cases import each_case
from tests.support.clock import ManualClock

HOOK: dict[str, Any] = {"url": "https://receiver.example/"}
TASK = {"biz_type": "orders", "delay_seconds": 600}
TIMER = {"biz_type": "orders", "name": "close", "cron": "0 * * * *"}
BY_KEY = "/v1/businesses/orders/tasks/a"
GIVEN = [
    ("POST", "/v1/tasks", lambda it: {**TASK, "callback": it}, "callback"),
    ("PUT", BY_KEY, lambda it: {"delay_seconds": 9, "callback": it}, "callback"),
    ("POST", "/v1/timers", lambda it: {**TIMER, "callback": it}, "callback"),
    ("PUT", "/v1/businesses/orders", lambda it: {"callback": it}, "callback"),
    (
        "POST",
        "/v1/tasks",
        lambda it: {**TASK, "callback": HOOK, "on_outcome": {"outcomes": ["dead"], "callback": it}},
        "on_outcome.callback",
    ),
]


@each_case(("method", "path", "body", "where"), GIVEN)
def test_a_timeout_beyond_that_of_the_deployment_is_refused_with_its_field(
    wired: ManualClock, method: str, path: str, body: Any, where: str
) -> None:
    for seconds in (0, 30.5):
        status, problem = call(method, path, body({**HOOK, "timeout_seconds": seconds}))
        assert status == 422
        assert problem["field"] == f"{where}.timeout_seconds"
    assert "0.1 to 30" in problem["detail"]


@each_case(("method", "path", "body", "where"), GIVEN)
def test_a_timeout_is_shown_where_it_was_given(
    wired: ManualClock, method: str, path: str, body: Any, where: str
) -> None:
    status, shown = call(method, path, body({**HOOK, "timeout_seconds": 30}))
    assert status in (200, 201)
    for name in where.split("."):
        shown = shown[name]
    assert shown["timeout_seconds"] == 30


def test_a_change_of_the_callback_sets_the_timeout_or_takes_it_away(wired: ManualClock) -> None:
    _, task = call("POST", "/v1/tasks", {**TASK, "callback": {**HOOK, "timeout_seconds": 7.5}})
    path = f"/v1/tasks/{task['task_id']}"
    assert call("PATCH", path, {"payload": 1})[1]["callback"]["timeout_seconds"] == 7.5
    assert "timeout_seconds" not in call("PATCH", path, {"callback": HOOK})[1]["callback"]
    status, problem = call("PATCH", path, {"callback": {**HOOK, "timeout_seconds": 31}})
    assert (status, problem["field"]) == (422, "callback.timeout_seconds")
