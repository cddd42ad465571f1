"""The shared seconds of tasks with a tolerance."""

from typing import Any

from duewheel.rules.instants import ms_from_rfc3339, rfc3339
from duewheel.rules.tolerance import Window, shared_ms
from duewheel.stores.businesses.cache import KEPT_MS
from tests.functions.conftest import call, created
from tests.support.clock import ManualClock

DUE = "2027-01-15T09:00:00.123Z"
NEW = {"biz_type": "orders", "due_at": DUE, "callback": {"url": "https://receiver.example/"}}


def shared(tolerance: int, due_at: str = DUE) -> str:
    return rfc3339(shared_ms(Window(ms_from_rfc3339(due_at), "orders"), tolerance))


def change(task: Any, **fields: Any) -> Any:
    status, changed = call("PATCH", f"/v1/tasks/{task['task_id']}", fields)
    assert status == 200, changed
    return changed


def times(task: Any) -> tuple[str, str, int | None]:
    return task["due_at"], task["next_at"], task.get("tolerance_seconds")


def test_an_answer_shows_the_due_instant_and_the_shared_second(wired: ManualClock) -> None:
    task = created(due_at=DUE, tolerance_seconds=60)
    assert times(task) == (DUE, shared(60), 60)
    assert task.items() <= call("GET", f"/v1/tasks/{task['task_id']}")[1].items()
    assert times(created(due_at=DUE)) == (DUE, DUE, None)


def test_a_change_moves_the_task_to_another_shared_second(wired: ManualClock) -> None:
    task = created(due_at=DUE, tolerance_seconds=60)
    later = "2027-01-15T10:00:00.001Z"
    assert times(change(task, due_at=later)) == (later, shared(60, later), 60)
    assert times(change(task, tolerance_seconds=900)) == (later, shared(900, later), 900)
    assert times(change(task, tolerance_seconds=0)) == (later, later, 0)


def test_the_setting_of_a_business_is_for_tasks_without_a_tolerance(wired: ManualClock) -> None:
    assert call("PUT", "/v1/businesses/orders", {"tolerance_seconds": 300})[0] == 201
    wired.advance_ms(KEPT_MS)
    assert times(created(due_at=DUE)) == (DUE, shared(300), None)
    assert times(created(due_at=DUE, tolerance_seconds=0)) == (DUE, DUE, 0)
    status, batch = call("POST", "/v1/tasks/batch", {"tasks": [NEW, NEW]})
    assert status == 200
    assert [times(one["task"]) for one in batch["results"]] == [(DUE, shared(300), None)] * 2
    by_key = {name: value for name, value in NEW.items() if name != "biz_type"}
    status, task = call("PUT", "/v1/businesses/orders/tasks/k", by_key)
    assert (status, *times(task)) == (201, DUE, shared(300), None)


def test_a_list_is_in_the_order_of_the_shared_seconds(wired: ManualClock) -> None:
    late = created(due_at=DUE, tolerance_seconds=3_600)
    exact = created(due_at="2027-01-15T09:00:00.124Z")
    _, page = call("GET", "/v1/tasks", query="biz_type=orders")
    assert [task["task_id"] for task in page["tasks"]] == [exact["task_id"], late["task_id"]]
    _, page = call("GET", "/v1/tasks", query=f"biz_type=orders&due_to={late['next_at']}")
    assert [task["task_id"] for task in page["tasks"]] == [exact["task_id"]]
