"""Timers over HTTP: create, read, change, list, upcoming, runs."""

import json
from typing import Any

import pytest

from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores import registry_keys
from duewheel.wiring import timers as timer_wiring
from duewheel.wiring import wheel as wheel_wiring
from tests.functions.conftest import call, pages_of, sent
from tests.support.cases import each_case
from tests.support.clock import ManualClock

PATH = "/v1/timers"
HOOK = {"url": "https://receiver.example/hook"}
LEAST = {"biz_type": "orders", "name": "close orders", "cron": "0 3 * * *", "callback": HOOK}
EVERYTHING = {
    **LEAST,
    "timezone": "Europe/London",
    "start_at": "2027-02-01T00:00:00Z",
    "end_at": "2028-02-01T00:00:00Z",
    "max_runs": 10,
    "jitter_seconds": 30,
    "callback": {"url": "https://receiver.example/", "method": "PUT", "headers": {"x": "1"}},
    "retry": {"attempts": 2, "delays_seconds": [5]},
    "expires_after_seconds": 60,
    "dst_gap": "skip",
    "dst_overlap": "both",
    "misfire": "all",
    "grace_seconds": 5,
    "overlap": "cancel_running",
    "exclude": ["2027-12-25"],
    "disable_on_stop": True,
    "pause_on_failures": 3,
    "tolerance_seconds": 60,
    "priority": "low",
    "managed_by": "orders/timers",
    "enabled": False,
}


def made(**members: Any) -> Any:
    status, timer = call("POST", PATH, {**LEAST, **members})
    assert status == 201, timer
    return timer


def path_of(timer: Any, action: str = "") -> str:
    return f"{PATH}/{timer['timer_id']}{action}"


def test_a_minimal_timer_is_returned_with_all_defaults(wired: ManualClock) -> None:
    status, timer, headers = sent("POST", PATH, LEAST)
    assert (status, headers["etag"]) == (201, '"1"')
    assert headers["location"] == path_of(timer)
    assert 2**40 <= int(timer.pop("timer_id")) < 2**53
    assert timer == {
        "name": "close orders",
        "biz_type": "orders",
        "cron": "0 3 * * *",
        "dialect": "cron",
        "every_seconds": None,
        "timezone": "UTC",
        "start_at": None,
        "end_at": None,
        "max_runs": None,
        "jitter_seconds": 0,
        "payload": None,
        "callback": {"type": "http", **HOOK, "method": None, "headers": {}},
        "retry": None,
        "expires_after_seconds": None,
        "dst_gap": "shift",
        "dst_overlap": "first",
        "misfire": "latest",
        "grace_seconds": 60,
        "overlap": "allow",
        "exclude": [],
        "disable_on_stop": False,
        "pause_on_failures": None,
        "tolerance_seconds": 0,
        "priority": None,
        "flow_key": None,
        "labels": {},
        "managed_by": None,
        "on_outcome": None,
        "enabled": True,
        "state": "enabled",
        "disabled_reason": None,
        "next_at": "2027-01-16T03:00:00.000Z",
        "version": 1,
        "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
    }


def test_all_fields_of_a_timer_are_read_back_and_the_payload_unchanged(wired: ManualClock) -> None:
    payload = '{"at":   "{{due_at}}", "price": 1.00}'
    body = json.dumps(EVERYTHING)[:-1] + f', "payload": {payload}}}'
    _, timer = call("POST", PATH, body)
    status, read, headers = sent("GET", path_of(timer))
    assert (status, headers["etag"]) == (200, '"1"')
    expected = {**EVERYTHING, "payload": json.loads(payload)}
    expected["callback"] = {"type": "http", **EVERYTHING["callback"]}  # type: ignore[dict-item]
    expected["start_at"], expected["end_at"] = (
        "2027-02-01T00:00:00.000Z",
        "2028-02-01T00:00:00.000Z",
    )
    assert {name: read[name] for name in expected} == expected
    assert (read["state"], read["next_at"]) == ("disabled", None)
    assert set(read["counters"].values()) == {0}
    assert payload in raw_answer("GET", path_of(timer))


def raw_answer(method: str, path: str) -> str:
    return str(sent(method, path, raw=True)[1])


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"cron": "every day"}, "cron"),
        ({"end_at": "2026-01-01T00:00:00Z"}, "end_at"),
        ({"payload": "{{colour}}"}, "payload"),
        ({"callback": None}, "callback"),
    ],
)
def test_invalid_timers_are_refused_with_their_field_without_an_effect(
    wired: ManualClock, members: dict[str, Any], field: str
) -> None:
    status, problem = call("POST", PATH, {**LEAST, **members})
    assert (status, problem["field"]) == (422, field)
    timer = made(enabled=False)
    assert call("PATCH", path_of(timer), {"name": "other", **members})[0] == 422
    assert call("GET", path_of(timer))[1]["version"] == 1
    assert len(listed()) == 1


@each_case(
    "timer_id",
    [
        *("17", "0", "-1", "1e15", "4503599627370496", "1099511627775", str(2**53), "9" * 400),
        *("x", "0123456789012", "٣" * 15, "..", "%2e%2e"),
    ],
)
def test_every_call_refuses_an_id_that_is_no_timer(wired: ManualClock, timer_id: str) -> None:
    for method, action, body in [
        ("GET", "", None),
        ("PATCH", "", {"name": "b"}),
        ("DELETE", "", None),
        ("POST", "/enable", None),
        ("POST", "/disable", None),
        ("POST", "/run", None),
        ("GET", "/upcoming", None),
        ("GET", "/runs", None),
    ]:
        status, problem = call(method, f"{PATH}/{timer_id}{action}", body)
        assert (status, problem["type"]) == (404, "urn:duewheel:problem:unknown-timer")


def test_a_change_keeps_other_fields_and_null_restores_a_default(wired: ManualClock) -> None:
    timer = made(max_runs=5, grace_seconds=10)
    wired.advance_ms(1_000)
    status, changed, headers = sent(
        "PATCH", path_of(timer), {"cron": "30 3 * * *", "max_runs": None}
    )
    assert (status, headers["etag"]) == (200, '"2"')
    assert changed == {
        **timer,
        "cron": "30 3 * * *",
        "max_runs": None,
        "next_at": "2027-01-16T03:30:00.000Z",
        "version": 2,
        "updated_at": "2027-01-15T08:00:01.000Z",
    }
    assert call("PATCH", path_of(timer), {"enabled": False})[1]["state"] == "disabled"


def test_enable_and_disable_return_the_timer_and_check_if_match(wired: ManualClock) -> None:
    timer = made(enabled=False)
    assert sent("POST", path_of(timer, "/enable"), if_match='"2"')[0] == 412
    enabled = sent("POST", path_of(timer, "/enable"), if_match='"1"')
    assert (enabled[0], enabled[1]["state"], enabled[1]["version"]) == (200, "enabled", 2)
    assert sent("POST", path_of(timer, "/enable"))[:2] == enabled[:2]
    status, disabled = call("POST", path_of(timer, "/disable"))
    assert (status, disabled["state"], disabled["next_at"]) == (200, "disabled", None)
    assert sent("DELETE", path_of(timer), if_match='"2"')[0] == 412
    answer = {"timer_id": timer["timer_id"], "deleted": True}
    assert call("DELETE", path_of(timer)) == (200, answer)
    assert call("GET", path_of(timer))[0] == 404


def listed(query: str = "") -> list[str]:
    """The names of all pages."""
    pages = pages_of(PATH, f"biz_type=orders{query}")
    return [timer["name"] for page in pages for timer in page["timers"]]


def test_timers_are_listed_by_name_with_filters_of_prefix_and_state(wired: ManualClock) -> None:
    for name, members in {
        "b": {},
        "a off": {"enabled": False},
        "a over": {"cron": None, "every_seconds": 60, "end_at": "2027-01-15T08:00:30Z"},
        "a#1": {"max_runs": 2},
    }.items():
        if name == "a over":
            assert call("POST", PATH, {**LEAST, "name": name, **members})[0] == 422
            members["end_at"] = "2027-01-15T08:01:30Z"
        made(name=name, **members)
    made(name="a elsewhere", biz_type="other")
    wired.advance_ms(120_000)
    assert listed() == ["a off", "a over", "a#1", "b"]
    assert listed("&limit=1") == ["a off", "a over", "a#1", "b"]
    assert listed("&name_prefix=a%20o") == ["a off", "a over"]
    assert listed("&name_prefix=a%231") == ["a#1"]
    assert listed("&name_prefix=c") == []
    assert listed("&state=disabled&limit=1") == ["a off"]
    assert listed("&state=enabled&limit=1") == ["a#1", "b"]
    assert listed("&state=ended") == ["a over"]


@each_case(
    ("query", "field"),
    [
        ("biz_type=", "biz_type"),
        ("biz_type=orders&state=paused", "state"),
        (f"biz_type=orders&name_prefix={'n' * 129}", "name_prefix"),
        ("biz_type=orders&limit=0", "limit"),
        ("biz_type=orders&limit=101", "limit"),
        ("biz_type=orders&cursor=x", "cursor"),
        ("biz_type=orders&colour=red", "colour"),
    ],
)
def test_an_invalid_list_query_is_refused_with_its_parameter(
    wired: ManualClock, query: str, field: str
) -> None:
    status, problem = call("GET", PATH, query=query)
    assert (status, problem["field"]) == (422, field)


def test_a_list_leaves_out_damaged_timers(wired: ManualClock) -> None:
    damaged, store = made(), timer_wiring.timers()
    made(name="other")
    store.client.update_item(
        TableName=store.table,
        Key=registry_keys.timer(damaged["timer_id"]),
        UpdateExpression="SET numbered = :nonsense",
        ExpressionAttributeValues={":nonsense": {"S": "nonsense"}},
    )
    assert listed() == ["other"]
    status, problem = call("GET", path_of(damaged))
    assert (status, problem["type"]) == (500, "urn:duewheel:problem:unreadable")


def test_the_preview_of_a_schedule_equals_upcoming_of_its_timer(wired: ManualClock) -> None:
    london = {"cron": "30 1 28 3 *", "timezone": "Europe/London", "dst_gap": "shift"}
    ahead = {"upcoming": ["2027-03-28T01:00:00.000Z", "2028-03-28T00:30:00.000Z"]}
    assert call("POST", f"{PATH}/upcoming", {**london, "count": 2}) == (200, ahead)
    timer = made(**london, enabled=False)
    assert call("GET", path_of(timer, "/upcoming"), query="count=2") == (200, ahead)
    later = "count=1&from=2028-01-01T00:00:00Z"
    assert call("GET", path_of(timer, "/upcoming"), query=later)[1]["upcoming"] == [
        "2028-03-28T00:30:00.000Z"
    ]
    status, problem = call("GET", path_of(timer, "/upcoming"), query="count=1000")
    assert (status, problem["field"]) == (422, "count")


def test_upcoming_ends_with_the_remaining_runs(wired: ManualClock) -> None:
    asked = {"every_seconds": 60, "max_runs": 2}
    ahead = ["2027-01-15T08:01:00.000Z", "2027-01-15T08:02:00.000Z"]
    assert call("POST", f"{PATH}/upcoming", asked)[1]["upcoming"] == ahead
    timer = made(cron=None, **asked)
    assert call("GET", path_of(timer, "/upcoming"))[1]["upcoming"] == ahead


def test_a_run_by_hand_is_a_task_of_the_timer_that_cannot_be_changed(wired: ManualClock) -> None:
    timer = made(enabled=False, payload={"order": 17})
    status, task, headers = sent("POST", path_of(timer, "/run"))
    assert (status, headers["location"]) == (201, f"/v1/tasks/{task['task_id']}")
    shown = {"timer_id": timer["timer_id"], "occurrence_at": task["due_at"], "number": None}
    assert {name: task[name] for name in shown} == shown
    for method, action, body in [("PATCH", "", {"delay_seconds": 60}), ("POST", "/run", None)]:
        status, problem = call(method, f"/v1/tasks/{task['task_id']}{action}", body)
        # It is due now, so each change is too late.
        assert (status, problem["type"]) == (409, "urn:duewheel:problem:too-late")
    status, page = call("GET", path_of(timer, "/runs"))
    assert (status, [run["task_id"] for run in page["tasks"]]) == (200, [task["task_id"]])


def test_an_occurrence_can_be_cancelled_but_not_changed(wired: ManualClock) -> None:
    timer = made(enabled=False)
    _, task = call("POST", path_of(timer, "/run"))
    home = address_of_task(task["task_id"])
    (run,) = wheel_wiring.tasks().get_many([home]).values()
    wired.advance_ms(-3_600_000)  # so that it was planned ahead
    for method, action, body in [("PATCH", "", {"delay_seconds": 60}), ("POST", "/run", None)]:
        status, problem = call(method, f"/v1/tasks/{run.task_id}{action}", body)
        assert (status, problem["type"]) == (409, "urn:duewheel:problem:of-a-timer")
        assert timer["timer_id"] in problem["detail"]
    assert call("DELETE", f"/v1/tasks/{run.task_id}")[1]["status"] == "cancelled"


def test_runs_are_paged_from_the_latest_and_by_status(wired: ManualClock) -> None:
    timer = made(enabled=False)
    ids = []
    for _ in range(3):
        ids.insert(0, call("POST", path_of(timer, "/run"))[1]["task_id"])
        wired.advance_ms(1_000)
    assert runs(timer, "limit=1") == runs(timer, "") == ids
    assert runs(timer, "status=pending&limit=2") == ids
    assert runs(timer, "status=dead") == []
    wired.advance_ms(-1_500)  # so that later occurrences are not runs
    assert runs(timer, "") == ids[1:]
    assert call("GET", path_of(timer, "/runs"), query="status=lost")[1]["field"] == "status"


def runs(timer: Any, query: str) -> list[str]:
    pages = pages_of(path_of(timer, "/runs"), query)
    return [task["task_id"] for page in pages for task in page["tasks"]]


def test_a_business_can_be_deleted_with_its_timers(wired: ManualClock) -> None:
    business = "/v1/businesses/orders"
    sent("PUT", business, {})
    for number in range(51):
        made(name=f"timer {number:02d}", enabled=number < 2)
    status, problem, _ = sent("DELETE", business)
    assert (status, problem["type"]) == (409, "urn:duewheel:problem:has-timers")
    first = {"done": False, "timers": 50, "cancelled": 0, "too_late": [], "cursor": None}
    assert sent("DELETE", f"{business}?cancel_pending=true")[:2] == (202, first)
    assert listed() == ["timer 50"]
    done = {"done": True, "timers": 1, "cancelled": 0, "too_late": [], "cursor": None}
    assert sent("DELETE", f"{business}?cancel_pending=true")[:2] == (200, done)
    assert listed() == []
