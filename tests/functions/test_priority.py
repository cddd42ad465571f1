"""The priority of tasks over HTTP and by messages: what answers show, and what is refused."""

from typing import Any

from tests.functions.conftest import call
from tests.functions.ingest_poller import TASK, poll, send, tasks_stored
from tests.support.cases import each_case
from tests.support.clock import ManualClock

NEW = {
    "biz_type": "orders",
    "delay_seconds": 600,
    "callback": {"url": "https://receiver.example/"},
}
TIMER = {
    "biz_type": "orders",
    "name": "close",
    "every_seconds": 60,
    "callback": {"url": "https://receiver.example/"},
}


def create(**fields: Any) -> Any:
    status, task = call("POST", "/v1/tasks", {**NEW, **fields})
    assert status == 201, task
    return task


def change(task: Any, **fields: Any) -> Any:
    status, changed = call("PATCH", f"/v1/tasks/{task['task_id']}", fields)
    assert status == 200, changed
    return changed


def run_of(timer: Any) -> Any:
    status, run = call("POST", f"/v1/timers/{timer['timer_id']}/run")
    assert status == 201, run
    return run


def test_a_task_shows_its_own_priority_alone(wired: ManualClock) -> None:
    task = create(priority="high")
    assert task["priority"] == "high"
    assert call("GET", f"/v1/tasks/{task['task_id']}")[1] == task
    assert "priority" not in create()


def test_a_change_sets_the_priority_and_keeps_the_instant(wired: ManualClock) -> None:
    task = create(priority="high")
    changed = change(task, priority="low")
    assert (changed["priority"], changed["next_at"]) == ("low", task["next_at"])
    assert change(task, payload=1)["priority"] == "low"


def test_an_upsert_replaces_the_priority(wired: ManualClock) -> None:
    path = "/v1/businesses/orders/tasks/k"
    by_key = {name: value for name, value in NEW.items() if name != "biz_type"}
    assert call("PUT", path, {**by_key, "priority": "low"})[1]["priority"] == "low"
    assert call("PUT", path, {**by_key, "priority": "high"})[1]["priority"] == "high"
    assert "priority" not in call("PUT", path, by_key)[1]


def test_a_batch_and_a_message_may_have_a_priority(wired: ManualClock) -> None:
    status, batch = call("POST", "/v1/tasks/batch", {"tasks": [{**NEW, "priority": "low"}]})
    assert (status, batch["results"][0]["task"]["priority"]) == (200, "low")
    send({**TASK, "priority": "high"})
    assert poll() == 0
    assert {item["priority"]["S"] for item in tasks_stored()} == {"low", "high"}


def test_a_run_by_hand_has_the_priority_of_its_timer(wired: ManualClock) -> None:
    timer = call("POST", "/v1/timers", {**TIMER, "priority": "low"})[1]
    assert run_of(timer)["priority"] == "low"
    status, changed = call("PATCH", f"/v1/timers/{timer['timer_id']}", {"priority": None})
    assert (status, changed["priority"]) == (200, None)
    assert "priority" not in run_of(timer)


@each_case("value", ["urgent", "HIGH", "", 1, True, None, [], {}])
def test_another_priority_is_refused(value: Any, wired: ManualClock) -> None:
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/tasks", NEW),
        ("PATCH", f"/v1/tasks/{create()['task_id']}", {}),
    ]
    if value is not None:
        calls += [("POST", "/v1/timers", TIMER), ("PUT", "/v1/businesses/orders", {})]
    for method, path, body in calls:
        status, problem = call(method, path, {**body, "priority": value})
        assert (status, problem["field"]) == (422, "priority"), (method, path)
