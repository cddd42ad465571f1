"""The optional members of a task in every way to give them: what answers show, and what is
refused."""

from typing import Any

import pytest

from tests.functions.conftest import call, created
from tests.functions.ingest_poller import TASK, poll, send, tasks_stored
from tests.support.cases import each_case
from tests.support.clock import ManualClock

CALLBACK = {"callback": {"url": "https://receiver.example/"}}
NEW = {"biz_type": "orders", "delay_seconds": 600, **CALLBACK}
TIMER = {"biz_type": "orders", "name": "n", "every_seconds": 60, **CALLBACK}
TOLD: dict[str, Any] = {"outcomes": ["dead", "expired"], "callback": {"url": "https://b.example/"}}
TOLD_SHOWN: dict[str, Any] = {
    "outcomes": ["dead", "expired"],
    "callback": {"type": "http", "url": "https://b.example/", "method": None, "headers": {}},
    "with_payload": False,
}
ALL_TOLD = {**TOLD_SHOWN, "callback": {**TOLD_SHOWN["callback"], "method": "POST"}}
MEMBERS: dict[str, tuple[Any, Any]] = {
    "flow_key": ("eu/customer-7", "b"),
    "labels": ({"team": "billing", "order": "17"}, {"a": "b"}),
    "priority": ("low", "high"),
    "tolerance_seconds": (60, 900),
    "on_outcome": (TOLD, {**ALL_TOLD, "outcomes": ["cancelled"], "with_payload": True}),
}
OF_RUNS = ["labels", "priority", "on_outcome"]  # the others count when the run is called
CHANGEABLE = ["labels", "priority", "tolerance_seconds"]
each_member = pytest.mark.parametrize("member", MEMBERS)


def shown(value: Any) -> Any:
    return TOLD_SHOWN if value is TOLD else value


def listed() -> list[Any]:
    return list(call("GET", "/v1/tasks", query="biz_type=orders")[1]["tasks"])


@each_member
def test_a_task_shows_a_member_that_it_has_and_no_other(wired: ManualClock, member: str) -> None:
    value, _ = MEMBERS[member]
    task = created(**{member: value})
    assert task[member] == shown(value)
    assert task.items() <= call("GET", f"/v1/tasks/{task['task_id']}")[1].items()
    assert listed() == [task]
    assert not created().keys() & MEMBERS.keys()


@each_member
def test_a_put_replaces_or_removes_a_member_with_the_rest_of_the_task(
    wired: ManualClock, member: str
) -> None:
    path, body = "/v1/businesses/orders/tasks/k", {"delay_seconds": 600, **CALLBACK}
    for value in MEMBERS[member]:
        assert call("PUT", path, {**body, member: value})[1][member] == shown(value)
    assert member not in call("PUT", path, body)[1]


@each_member
def test_a_task_of_a_batch_and_one_of_a_message_may_have_a_member(
    wired: ManualClock, member: str
) -> None:
    value, another = MEMBERS[member]
    status, batch = call("POST", "/v1/tasks/batch", {"tasks": [{**NEW, member: value}]})
    assert (status, batch["results"][0]["task"][member]) == (200, shown(value))
    send({**TASK, member: another})
    assert poll() == 0
    found = [task[member] for task in listed()]
    assert len(found) == 2
    assert shown(value) in found
    assert another in found


@each_member
def test_a_timer_and_its_runs_get_and_lose_a_member(wired: ManualClock, member: str) -> None:
    value, _ = MEMBERS[member]
    status, timer = call("POST", "/v1/timers", {**TIMER, member: value})
    assert (status, timer[member]) == (201, shown(value))
    path = f"/v1/timers/{timer['timer_id']}"
    assert call("GET", path)[1][member] == shown(value)
    run = call("POST", f"{path}/run")[1]
    assert run.get(member) == (shown(value) if member in OF_RUNS else None)
    assert not call("PATCH", path, {member: None})[1][member]
    assert member not in call("POST", f"{path}/run")[1]


@pytest.mark.parametrize("member", CHANGEABLE)
def test_a_change_sets_a_member_and_another_keeps_it(wired: ManualClock, member: str) -> None:
    value, another = MEMBERS[member]
    task = created(**{member: value})
    path = f"/v1/tasks/{task['task_id']}"
    changed = call("PATCH", path, {member: another})[1]
    assert changed[member] == another
    assert (changed["next_at"] == task["next_at"]) == (member != "tolerance_seconds")
    assert call("PATCH", path, {"payload": 1})[1][member] == another


@pytest.mark.parametrize("member", sorted(MEMBERS.keys() - {*CHANGEABLE}))
def test_other_members_cannot_be_changed(wired: ManualClock, member: str) -> None:
    path = f"/v1/tasks/{created()['task_id']}"
    status, problem = call("PATCH", path, {member: MEMBERS[member][0]})
    assert (status, problem["field"]) == (422, member)


@each_case(
    ("member", "value", "field"),
    [
        ("flow_key", "", ""),
        *(("labels", value, "") for value in ([], "team:billing")),
        *(("labels", {"team": value}, ".team") for value in (1, "")),
        ("labels", {"-": "x"}, ".-"),
        *(("priority", value, "") for value in ("urgent", "HIGH", "", 1, True, [], {})),
        *(("tolerance_seconds", value, "") for value in (-1, 3_601, 1.5, "60")),
        ("on_outcome", {"outcomes": ["dead"]}, ".callback"),
        ("on_outcome", {"callback": TOLD["callback"]}, ".outcomes"),
        ("on_outcome", {**TOLD, "outcomes": []}, ".outcomes"),
        ("on_outcome", {**TOLD, "outcomes": ["lost"]}, ".outcomes[0]"),
        ("on_outcome", {**TOLD, "callback": {"method": "POST"}}, ".callback.url"),
        ("on_outcome", {**TOLD, "callback": {**TOLD["callback"], "body": "raw"}}, ".callback.body"),
        ("on_outcome", {**TOLD, "callback": {"type": "sqs", "queue_url": "x"}}, ".callback.type"),
        ("on_outcome", {**TOLD, "with_payload": "yes"}, ".with_payload"),
        ("on_outcome", {**TOLD, "more": 1}, ".more"),
    ],
)
def test_another_value_is_refused_with_its_field_and_stores_nothing(
    wired: ManualClock, member: str, value: Any, field: str
) -> None:
    calls = [("POST", "/v1/tasks", NEW), ("POST", "/v1/timers", TIMER)]
    if member in ("priority", "tolerance_seconds", "on_outcome"):
        calls.append(("PUT", "/v1/businesses/orders", {}))
    for method, path, body in calls:
        status, problem = call(method, path, {**body, member: value})
        assert (status, problem["field"]) == (422, member + field), path
    (result,) = call("POST", "/v1/tasks/batch", {"tasks": [{**NEW, member: value}]})[1]["results"]
    assert result["problem"]["field"] == f"tasks[0].{member}{field}"
    assert tasks_stored() == []


@each_case(
    ("member", "value"),
    [
        *(("labels", value) for value in ([], "team:billing", {"team": 1}, {"-": "x"}, None)),
        *(("priority", value) for value in ("urgent", "", 1, True, None)),
        *(("tolerance_seconds", value) for value in (-1, 3_601, 1.5, "60", None)),
    ],
)
def test_no_change_gives_a_task_another_value(wired: ManualClock, member: str, value: Any) -> None:
    task = created()
    path = f"/v1/tasks/{task['task_id']}"
    status, problem = call("PATCH", path, {member: value})
    assert (status, problem["field"].partition(".")[0]) == (422, member)
    assert task.items() <= call("GET", path)[1].items()
