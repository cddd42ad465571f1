"""Bulk operations over HTTP: made once, read, listed, stopped and refused, by the rights of their
callers; and the function that carries them out, with its role."""

from typing import Any

import pytest

from duewheel.rules.bulk.operation import IDS_MAX, OPEN_MAX
from functions.bulk import app as bulk
from tests.functions.conftest import Context, call, pages_of, sent
from tests.support.cases import each_case
from tests.support.clock import ManualClock

HOOK = {"url": "https://receiver.example/"}
PATH = "/v1/operations"
CANCEL: dict[str, Any] = {"biz_type": "orders", "action": "cancel", "filter": {}}
RESCHEDULE: dict[str, Any] = {**CANCEL, "action": "reschedule"}
REDRIVE: dict[str, Any] = {**CANCEL, "action": "redrive"}
KEY = {"idempotency-key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}


def run_once() -> None:
    bulk.handler({}, Context(lambda: 900_000))


def created(number: int = 1, biz_type: str = "orders", **members: Any) -> list[str]:
    body = {"biz_type": biz_type, "delay_seconds": 3_600, "callback": HOOK, **members}
    return [call("POST", "/v1/tasks", body)[1]["task_id"] for _ in range(number)]


def made(body: dict[str, Any]) -> dict[str, Any]:
    status, operation = call("POST", PATH, body)
    assert status == 201, operation
    return dict(operation)


def read(operation: dict[str, Any]) -> dict[str, Any]:
    status, found = call("GET", f"{PATH}/{operation['operation_id']}")
    assert status == 200
    return dict(found)


def test_an_operation_is_made_carried_out_and_read(wired: ManualClock) -> None:
    ids = created(3)
    status, operation, headers = sent("POST", PATH, {**CANCEL, "per_second": 2, "filter": {}})
    assert (status, headers["location"]) == (201, f"{PATH}/{operation['operation_id']}")
    assert (operation["state"], operation["changed"]) == ("running", 0)
    assert operation["filter"] == {"status": "pending"}
    assert "ids" not in operation
    run_once()
    after = read(operation)
    assert (after["state"], after["changed"], after["per_second"]) == ("done", 3, 2)
    assert after["ended_at"] is not None
    assert {call("GET", f"/v1/tasks/{one}")[1]["status"] for one in ids} == {"cancelled"}


def test_pending_tasks_are_found_by_the_beginnings_of_their_keys(wired: ManualClock) -> None:
    for key in ("order-1", "order-2", "invoice-1"):
        created(key=key)
    operation = made({**CANCEL, "filter": {"key_prefix": "order-"}})
    run_once()
    after = read(operation)
    assert (after["state"], after["changed"], after["position"]) == ("done", 2, None)


def test_a_reschedule_shows_the_instant_that_its_walk_has_reached(wired: ManualClock) -> None:
    created(3)
    wired.advance_ms(1_000)
    created(1)
    operation = made({**RESCHEDULE, "shift_seconds": 60, "per_second": 1})
    bulk.handler({}, Context(iter([900_000] * 2 + [0] * 9).__next__))
    assert read(operation)["position"] == "2027-01-15T09:00:01.000Z"
    assert read(operation)["shift_seconds"] == 60
    run_once()
    after = read(operation)
    assert (after["state"], after["changed"]) == ("done", 4)


def test_a_repeat_with_an_idempotency_key_gets_the_operation_as_it_is_now(
    wired: ManualClock,
) -> None:
    created(2)
    status, first, _ = sent("POST", PATH, CANCEL, **KEY)
    assert status == 201
    run_once()
    status, again, headers = sent("POST", PATH, CANCEL, **KEY)
    assert (status, again["operation_id"]) == (201, first["operation_id"])
    assert (again["state"], again["changed"]) == ("done", 2)
    assert headers["location"] == f"{PATH}/{first['operation_id']}"
    status, refused, _ = sent("POST", PATH, {**CANCEL, "dry_run": True}, **KEY)
    assert (status, refused["type"]) == (422, "urn:duewheel:problem:idempotency-key-reused")
    assert len(call("GET", PATH, query="biz_type=orders")[1]["operations"]) == 1


def test_operations_are_listed_the_latest_first_page_by_page(wired: ManualClock) -> None:
    ids = []
    for biz_type in ("orders", "shop", "orders", "orders"):
        wired.advance_ms(1_000)
        ids.append(made({**CANCEL, "biz_type": biz_type})["operation_id"])
    mine = [ids[3], ids[2], ids[0]]
    assert listed("biz_type=orders") == mine
    assert listed("biz_type=orders&limit=1") == mine
    stopped = ids[2]
    assert call("POST", f"{PATH}/{stopped}/stop")[1]["state"] == "stopping"
    assert listed("biz_type=orders&state=stopping") == [stopped]
    assert listed("biz_type=orders&state=running&limit=1") == [ids[3], ids[0]]


def listed(query: str) -> list[str]:
    """Of all pages."""
    pages = pages_of(PATH, query)
    return [one["operation_id"] for page in pages for one in page["operations"]]


def test_operations_of_all_businesses_are_listed_one_business_after_the_other(
    wired: ManualClock,
) -> None:
    for name in ("orders", "shop"):
        assert call("PUT", f"/v1/businesses/{name}", {"retention_days": 7})[0] == 201
    shop, orders = (
        made({**CANCEL, "biz_type": name})["operation_id"] for name in ("shop", "orders")
    )
    assert listed("limit=1") == [orders, shop]
    assert call("GET", PATH)[1]["looked_at"] == {"records": 2, "businesses": 2}


def test_what_was_refused_is_listed_with_its_problems(wired: ManualClock) -> None:
    (near,) = created(delay_seconds=2)
    (other,) = created(biz_type="shop")
    operation = made({"biz_type": "orders", "action": "cancel", "ids": [near, other]})
    assert operation["total"] == 2
    run_once()
    assert read(operation)["refused"] == 2
    of_it = f"{PATH}/{operation['operation_id']}/refused"
    status, page = call("GET", of_it, query="limit=1")
    assert (status, page["refused"][0]["task_id"]) == (200, near)
    assert page["refused"][0]["problem"]["type"] == "urn:duewheel:problem:too-late"
    status, page = call("GET", of_it, query=f"limit=1&cursor={page['cursor']}")
    assert page["refused"][0]["problem"]["status"] == 404
    assert page["cursor"] is None


def test_an_operation_that_has_ended_cannot_be_stopped(wired: ManualClock) -> None:
    operation = made(CANCEL)
    run_once()
    status, refused = call("POST", f"{PATH}/{operation['operation_id']}/stop")
    assert (status, refused["type"]) == (409, "urn:duewheel:problem:operation-ended")


def test_a_stopped_operation_is_answered_again(wired: ManualClock) -> None:
    (task,) = created()
    of_it = f"{PATH}/{made(CANCEL)['operation_id']}"
    assert call("POST", f"{of_it}/stop")[1]["state"] == "stopping"
    run_once()
    assert call("POST", f"{of_it}/stop")[1]["state"] == "stopped"
    assert call("GET", f"/v1/tasks/{task}")[1]["status"] == "pending"


@each_case(
    ("body", "field"),
    [
        ({**CANCEL, "action": "delete"}, "action"),
        ({**CANCEL, "filter": {"labels": {"team": 1}}}, "filter.labels.team"),
        ({"biz_type": "orders", "action": "cancel", "ids": ["order-17"]}, "ids[0]"),
    ],
)
def test_a_request_that_is_wrong_names_the_field_and_makes_nothing(
    wired: ManualClock, body: dict[str, Any], field: str
) -> None:
    status, refused = call("POST", PATH, body)
    assert (status, refused["field"]) == (422, field)
    assert call("GET", PATH, query="biz_type=orders")[1]["operations"] == []


def test_ids_are_given_once_and_so_many_at_most(wired: ManualClock) -> None:
    (task,) = created()
    by_ids = {"biz_type": "orders", "action": "cancel"}
    status, refused = call("POST", PATH, {**by_ids, "ids": [task, task]})
    assert (status, refused["field"]) == (422, "ids[1]")
    status, refused = call("POST", PATH, {**by_ids, "ids": [task] * (IDS_MAX + 1)})
    assert (status, refused["type"]) == (413, "urn:duewheel:problem:too-large")


@each_case("operation_id", ["orders~17", "orders", "~", f"shop~{'0' * 20}", f"O~{'0' * 20}"])
def test_an_unknown_operation_is_answered_as_such(wired: ManualClock, operation_id: str) -> None:
    for method, path in (("GET", ""), ("POST", "/stop"), ("GET", "/refused")):
        status, refused = call(method, f"{PATH}/{operation_id}{path}")
        assert (status, refused["type"]) == (404, "urn:duewheel:problem:unknown-operation")


def test_a_business_has_so_many_open_operations_at_most(wired: ManualClock) -> None:
    for _ in range(OPEN_MAX):
        made(CANCEL)
    status, refused, headers = sent("POST", PATH, CANCEL)
    assert (status, refused["type"]) == (429, "urn:duewheel:problem:too-many-operations")
    assert headers["retry-after"] == "60"


def test_a_caller_needs_the_right_to_write_and_sees_no_operation_out_of_reach(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = made(CANCEL)
    identity = "arn:aws:sts::123456789012:assumed-role/duewheel-{}/session"

    def asked(right: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        from duewheel.wiring import api as wiring

        caller = {"iam": {"userArn": identity.format(right)}}
        access = wiring.access(caller)
        monkeypatch.setattr(wiring, "access", lambda _: access)
        answer = call(method, path, body)
        monkeypatch.undo()
        return answer

    of_it = f"{PATH}/{operation['operation_id']}"
    absent = call("GET", f"{PATH}/orders~{'0' * 20}")
    assert asked("read-shop", "GET", of_it) == absent
    assert absent[0] == 404
    assert asked("read-orders", "GET", of_it)[0] == 200
    assert asked("read-orders", "POST", f"{of_it}/stop")[0] == 403
    assert asked("read-orders", "POST", PATH, CANCEL)[0] == 403
    assert asked("write-shop", "POST", PATH, CANCEL)[0] == 403
    assert asked("read-shop", "GET", PATH)[1]["operations"] == []
    assert asked("write-orders", "POST", f"{of_it}/stop")[0] == 200


def test_a_list_of_tasks_is_filtered_by_key_prefix_flow_key_and_timer(wired: ManualClock) -> None:
    created(key="order-17")
    created(flow_key="customer-7")
    created()
    timer = {"biz_type": "orders", "name": "close", "every_seconds": 600, "callback": HOOK}
    timer_id = call("POST", "/v1/timers", timer)[1]["timer_id"]
    run = call("POST", f"/v1/timers/{timer_id}/run")[1]["task_id"]

    def found(query: str) -> list[dict[str, Any]]:
        status, page = call("GET", "/v1/tasks", query=f"biz_type=orders&{query}")
        assert (status, page["cursor"]) == (200, None)
        return list(page["tasks"])

    assert [one["key"] for one in found("key_prefix=order-")] == ["order-17"]
    assert found("key_prefix=orders") == []
    assert [one["flow_key"] for one in found("flow_key=customer-7")] == ["customer-7"]
    assert [one["task_id"] for one in found(f"timer_id={timer_id}")] == [run]
    page = call("GET", "/v1/tasks", query="biz_type=orders&limit=1")[1]
    other = f"biz_type=orders&limit=1&cursor={page['cursor']}&flow_key=customer-7"
    assert problem_field(call("GET", "/v1/tasks", query=other)) == (422, "cursor")
    bad = call("GET", "/v1/tasks", query="biz_type=orders&timer_id=x")
    assert problem_field(bad) == (422, "timer_id")


def problem_field(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1]["field"]
