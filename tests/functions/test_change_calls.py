"""PATCH, run and redrive over HTTP."""

from typing import Any

from tests.functions.conftest import call, created
from tests.support.cases import each_case
from tests.support.clock import ManualClock

CALLER = "arn:aws:sts::123456789012:assumed-role/orders"


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


@each_case(
    ("method", "below", "body"),
    [
        ("PATCH", "", {"delay_seconds": 900}),
        ("POST", "/run", None),
        ("POST", "/pause", None),
        ("POST", "/pause", {"until": "2027-02-01T00:00:00Z"}),
        ("DELETE", "", None),
    ],
)
def test_a_task_says_which_caller_changed_it(
    wired: ManualClock, method: str, below: str, body: Any
) -> None:
    task = created()
    assert "changed_by" not in task
    path = f"/v1/tasks/{task['task_id']}"
    assert call(method, f"{path}{below}", body)[1]["changed_by"] == CALLER
    assert call("GET", path)[1]["changed_by"] == CALLER


def test_a_beat_says_no_caller_and_leaves_the_one_of_a_change(wired: ManualClock) -> None:
    path = "/v1/businesses/orders/tasks/watchdog"
    for delay_seconds in (600, 900):
        assert "changed_by" not in call("PUT", path, new_task(delay_seconds))[1]
    task_id = call("GET", path)[1]["task_id"]
    assert call("PATCH", f"/v1/tasks/{task_id}", {"delay_seconds": 60})[0] == 200
    assert call("PUT", path, new_task(600))[1]["changed_by"] == CALLER


@each_case("path", ["/v1/businesses/orders/tasks/a", "/v1/businesses/orders/tasks"])
def test_a_task_says_which_caller_cancelled_it_by_its_key(wired: ManualClock, path: str) -> None:
    task = created(key="a")
    query = "" if path.endswith("a") else "key_prefix=a"
    assert call("DELETE", path, query=query)[0] == 200
    assert call("GET", f"/v1/tasks/{task['task_id']}")[1]["changed_by"] == CALLER


def new_task(delay_seconds: int) -> dict[str, Any]:
    return {"delay_seconds": delay_seconds, "callback": {"url": "https://x.example/"}}
