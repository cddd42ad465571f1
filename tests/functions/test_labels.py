"""Labels of tasks and timers over HTTP and by messages."""

from typing import Any

from tests.functions.conftest import call
from tests.functions.ingest_poller import TASK, poll, send, tasks_stored
from tests.support.cases import each_case
from tests.support.clock import ManualClock

CALLBACK = {"callback": {"url": "https://receiver.example/"}}
NEW = {"biz_type": "orders", "delay_seconds": 600, **CALLBACK}
TIMER = {"biz_type": "orders", "name": "close", "every_seconds": 60, **CALLBACK}
LABELS = {"team": "billing", "order": "17"}


def create(**fields: Any) -> Any:
    status, task = call("POST", "/v1/tasks", {**NEW, **fields})
    assert status == 201, task
    return task


def create_timer(**fields: Any) -> Any:
    status, timer = call("POST", "/v1/timers", {**TIMER, **fields})
    assert status == 201, timer
    return timer


def listed(query: str) -> list[Any]:
    status, page = call("GET", "/v1/tasks", query=f"biz_type=orders&{query}")
    assert status == 200, page
    assert page["cursor"] is None
    return [*page["tasks"]]


def test_a_task_shows_its_labels(wired: ManualClock) -> None:
    task = create(labels=LABELS)
    assert task["labels"] == LABELS
    assert call("GET", f"/v1/tasks/{task['task_id']}")[1] == task


@each_case("fields", [{}, {"labels": {}}])
def test_a_task_without_labels_shows_none_and_stores_none(fields: Any, wired: ManualClock) -> None:
    assert "labels" not in create(**fields)
    assert not any("labels" in item for item in tasks_stored())


def test_a_list_has_the_tasks_with_all_labels_of_its_filter(wired: ManualClock) -> None:
    both, team = create(labels=LABELS), create(labels={"team": "billing"}, delay_seconds=700)
    create(labels={"team": "sales"})
    create()
    assert listed("label=team:billing") == [both, team]
    assert listed("label=team:billing&label=order:17&status=pending") == [both]
    assert listed("label=team:billing&label=team:sales") == []


def test_a_change_replaces_the_labels_as_a_whole(wired: ManualClock) -> None:
    task = create(labels=LABELS)
    path = f"/v1/tasks/{task['task_id']}"
    changed = call("PATCH", path, {"labels": {"team": "sales"}})[1]
    assert (changed["labels"], changed["next_at"]) == ({"team": "sales"}, task["next_at"])
    assert call("PATCH", path, {"payload": 1})[1]["labels"] == {"team": "sales"}
    assert "labels" not in call("PATCH", path, {"labels": {}})[1]
    assert listed("label=team:sales") == []


def test_a_put_replaces_the_labels_with_the_rest_of_the_task(wired: ManualClock) -> None:
    path, body = "/v1/businesses/orders/tasks/k", {"delay_seconds": 600, **CALLBACK}
    assert call("PUT", path, {**body, "labels": LABELS})[1]["labels"] == LABELS
    assert call("PUT", path, {**body, "labels": {"a": "b"}})[1]["labels"] == {"a": "b"}
    assert "labels" not in call("PUT", path, body)[1]


def test_a_batch_and_a_message_may_have_labels(wired: ManualClock) -> None:
    status, batch = call("POST", "/v1/tasks/batch", {"tasks": [{**NEW, "labels": LABELS}]})
    assert (status, batch["results"][0]["task"]["labels"]) == (200, LABELS)
    send({**TASK, "labels": {"a": "b"}})
    assert poll() == 0
    labels = {item["labels"]["S"] for item in tasks_stored()}
    assert labels == {'{"order":"17","team":"billing"}', '{"a":"b"}'}


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


def test_other_labels_are_refused_and_change_nothing(wired: ManualClock) -> None:
    task = create(labels=LABELS)
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/tasks", NEW),
        ("PATCH", f"/v1/tasks/{task['task_id']}", {}),
        ("POST", "/v1/timers", TIMER),
    ]
    for value in ([], "team:billing", {"team": 1}, {"-": "x"}, {"team": ""}):
        for method, path, body in calls:
            status, problem = call(method, path, {**body, "labels": value})
            assert (status, problem["field"].partition(".")[0]) == (422, "labels"), value
    assert listed("") == [task]
