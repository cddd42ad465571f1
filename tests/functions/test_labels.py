"""Lists filtered by labels, and changes of labels."""

from typing import Any

from tests.functions.conftest import call, created
from tests.functions.ingest_poller import tasks_stored
from tests.support.cases import each_case
from tests.support.clock import ManualClock

CALLBACK = {"callback": {"url": "https://receiver.example/"}}
TIMER = {"biz_type": "orders", "name": "close", "every_seconds": 60, **CALLBACK}
LABELS = {"team": "billing", "order": "17"}


def create_timer(**fields: Any) -> Any:
    status, timer = call("POST", "/v1/timers", {**TIMER, **fields})
    assert status == 201, timer
    return timer


def listed(query: str) -> list[Any]:
    status, page = call("GET", "/v1/tasks", query=f"biz_type=orders&{query}")
    assert status == 200, page
    assert page["cursor"] is None
    return [*page["tasks"]]


@each_case("fields", [{}, {"labels": {}}])
def test_a_task_without_labels_stores_none(wired: ManualClock, fields: dict[str, Any]) -> None:
    assert "labels" not in created(**fields)
    assert not any("labels" in item for item in tasks_stored())


def test_a_list_has_the_tasks_with_all_labels_of_its_filter(wired: ManualClock) -> None:
    both, team = created(labels=LABELS), created(labels={"team": "billing"}, delay_seconds=700)
    created(labels={"team": "sales"})
    created()
    assert listed("label=team:billing") == [both, team]
    assert listed("label=team:billing&label=order:17&status=pending") == [both]
    assert listed("label=team:billing&label=team:sales") == []


def test_a_change_replaces_the_labels_as_a_whole(wired: ManualClock) -> None:
    task = created(labels=LABELS)
    path = f"/v1/tasks/{task['task_id']}"
    changed = call("PATCH", path, {"labels": {"team": "sales"}})[1]
    assert (changed["labels"], changed["next_at"]) == ({"team": "sales"}, task["next_at"])
    assert call("PATCH", path, {"payload": 1})[1]["labels"] == {"team": "sales"}
    assert "labels" not in call("PATCH", path, {"labels": {}})[1]
    assert listed("label=team:sales") == []


def test_a_timer_and_its_runs_have_its_labels(wired: ManualClock) -> None:
    timer = create_timer(labels=LABELS)
    path = f"/v1/timers/{timer['timer_id']}"
    assert timer["labels"] == LABELS
    assert call("POST", f"{path}/run")[1]["labels"] == LABELS
    planned = listed("label=team:billing&status=pending")
    assert {task["timer_id"] for task in planned} == {timer["timer_id"]}

    assert call("PATCH", path, {"labels": None})[1]["labels"] == {}
    assert "labels" not in call("POST", f"{path}/run")[1]


def test_a_change_of_the_labels_keeps_the_plan_of_a_timer(wired: ManualClock) -> None:
    timer = create_timer(labels=LABELS)
    path = f"/v1/timers/{timer['timer_id']}"
    same = call("PATCH", path, {"labels": dict(reversed(LABELS.items()))})[1]
    assert (same["version"], same["updated_at"]) == (timer["version"], timer["updated_at"])
    changed = call("PATCH", path, {"labels": {"team": "sales"}})[1]
    assert (changed["version"], changed["next_at"]) == (2, timer["next_at"])
    (change, _) = call("GET", f"{path}/changes")[1]["changes"]
    assert change["fields"] == [{"field": "labels", "from": LABELS, "to": {"team": "sales"}}]


def test_a_list_of_timers_is_filtered_by_labels(wired: ManualClock) -> None:
    billing = create_timer(name="a", labels={"team": "billing"})
    create_timer(name="b", labels={"team": "sales"})
    create_timer(name="c")
    query = "biz_type=orders&label=team:billing&state=enabled"
    status, page = call("GET", "/v1/timers", query=query)
    assert (status, [one["timer_id"] for one in page["timers"]]) == (200, [billing["timer_id"]])
