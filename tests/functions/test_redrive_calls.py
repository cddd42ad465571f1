"""Redrives over HTTP of tasks that are not dead: one by its id, many by status and due instants."""

from msgspec.structs import replace

from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.wiring import wheel as wheel_wiring
from tests.functions.conftest import call, created
from tests.support.clock import ManualClock


def cancelled(clock: ManualClock, number: int) -> list[str]:
    ids = []
    for _ in range(number):
        clock.advance_ms(1_000)
        ids.append(created()["task_id"])
        assert call("DELETE", f"/v1/tasks/{ids[-1]}")[0] == 200
    return ids


def delivered(clock: ManualClock) -> str:
    (task_id,) = cancelled(clock, 1)
    tasks = wheel_wiring.tasks()
    task = tasks.get(address_of_task(task_id))
    assert task is not None
    now_ms = clock.now_ms()
    assert tasks.put_delivered([replace(task, status=Status.DELIVERED, updated_ms=now_ms)]) == []
    return task_id


def test_a_redriven_task_says_how_often_and_from_which_end(wired: ManualClock) -> None:
    (task_id,) = cancelled(wired, 1)
    assert "redrives" not in call("GET", f"/v1/tasks/{task_id}")[1]
    status, task = call("POST", f"/v1/tasks/{task_id}/redrive")
    assert (status, task["status"], task["attempts"]) == (200, "pending", 0)
    assert (task["redrives"], task["redriven_from"]) == (1, "cancelled")
    assert task["changed_by"].endswith("assumed-role/orders")
    assert task["next_at"] == task["due_at"]
    status, problem = call("POST", f"/v1/tasks/{task_id}/redrive")
    assert (status, problem["type"]) == (409, "urn:duewheel:problem:not-redrivable")
    assert call("DELETE", f"/v1/tasks/{task_id}")[0] == 200
    assert call("POST", f"/v1/tasks/{task_id}/redrive")[1]["redrives"] == 2


def test_the_refusal_of_a_delivered_task_says_from_when_on_it_can_be_redriven(
    wired: ManualClock,
) -> None:
    task_id = delivered(wired)
    status, problem = call("POST", f"/v1/tasks/{task_id}/redrive")
    assert status == 409
    wired.advance_ms(lifecycle.REDRIVABLE_AFTER_MS)
    status, task = call("POST", f"/v1/tasks/{task_id}/redrive")
    assert (status, task["redriven_from"]) == (200, "delivered")
    assert problem["redrivable_at"] == task["updated_at"]
