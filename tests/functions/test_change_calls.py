"""PATCH, run and redrive over HTTP."""

from typing import Any

from tests.functions.conftest import call, created
from tests.support.cases import each_case
from tests.support.clock import ManualClock


def test_a_patch_changes_only_the_named_fields(wired: ManualClock) -> None:
    task = created(payload={"order": 17})
    path = f"/v1/tasks/{task['task_id']}"
    status, moved = call("PATCH", path, {"due_at": "2030-01-01T00:00:00Z"})
    assert status == 200
    assert moved["due_at"] == moved["next_at"] == "2030-01-01T00:00:00.000Z"
    assert (moved["payload"], moved["callback"]) == (task["payload"], task["callback"])

    status, altered = call("PATCH", path, '{"payload": 1e400}')
    assert status == 200
    assert altered["due_at"] == moved["due_at"]
    assert call("PATCH", path, {"payload": None})[1]["payload"] is None


@each_case(
    ("method", "action", "body", "field"),
    [
        ("PATCH", "", {}, None),
        ("PATCH", "", {"biz_type": "other"}, "biz_type"),
        ("PATCH", "", {"due_ms": 1, "delay_seconds": 1}, "delay_seconds"),
        ("PATCH", "", {"callback": {"url": "ftp://x/"}}, "callback.url"),
        ("PATCH", "", {"delay_seconds": -1}, "delay_seconds"),
        ("PATCH", "", [], None),
        ("POST", "/pause", {"until": "2027-01-15T07:59:59Z"}, "until"),
        ("POST", "/pause", {"until": "2028-02-15T00:00:00Z"}, "until"),
        ("POST", "/pause", {"until": None}, "until"),
        ("POST", "/pause", {"untill": "2027-02-01T00:00:00Z"}, "untill"),
        ("POST", "/pause", [], None),
    ],
)
def test_an_invalid_patch_or_pause_is_refused_with_its_field(
    wired: ManualClock, method: str, action: str, body: Any, field: str | None
) -> None:
    task = created()
    path = f"/v1/tasks/{task['task_id']}"
    status, problem = call(method, f"{path}{action}", body)
    assert 400 <= status < 500
    assert problem.get("field") == field
    assert task.items() <= call("GET", path)[1].items()


def test_a_patch_after_the_cut_off_is_refused_with_its_instant(wired: ManualClock) -> None:
    task = created(delay_seconds=2)
    for method, path in (("PATCH", ""), ("POST", "/run"), ("DELETE", "")):
        body = {"delay_seconds": 60} if method == "PATCH" else None
        status, problem = call(method, f"/v1/tasks/{task['task_id']}{path}", body)
        assert (status, problem["type"]) == (409, "urn:duewheel:problem:too-late")
        assert problem["cut_off"] == "2027-01-15T07:59:59.500Z"


def test_run_brings_the_call_forward(wired: ManualClock) -> None:
    task = created()
    status, running = call("POST", f"/v1/tasks/{task['task_id']}/run")
    assert status == 200
    assert (running["due_at"], running["status"]) == (task["due_at"], "pending")
    assert running["next_at"] < task["next_at"]


def test_a_task_is_paused_and_resumed_however_often_it_is_requested(wired: ManualClock) -> None:
    task = created()
    path = f"/v1/tasks/{task['task_id']}"
    status, paused = call("POST", f"{path}/pause", {"until": "2027-02-01T00:00:00Z"})
    assert status == 200
    assert paused["next_at"] == paused["paused"]["until"] == "2027-02-01T00:00:00.000Z"
    assert (paused["status"], paused["due_at"]) == ("pending", task["due_at"])
    assert paused["paused"]["by"]
    assert call("POST", f"{path}/pause") == (200, paused)
    waiting = call("GET", path)[1]["waiting"]
    assert waiting == {
        "reason": "paused",
        "expected_at": paused["next_at"],
        "since": paused["paused"]["since"],
        "until": paused["next_at"],
    }
    for _ in range(2):
        status, resumed = call("POST", f"{path}/resume")
        assert (status, resumed["next_at"]) == (200, task["next_at"])
        assert "paused" not in resumed
