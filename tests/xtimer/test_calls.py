"""The xTimer interface: its requests and answers, and the timers behind it."""

import json
from typing import Any

import pytest

from duewheel.rules.tasks.lifecycle import delivered
from duewheel.rules.tasks.task import Attempt
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.wiring import wheel as wheel_wiring
from duewheel.xtimer.calls import API_DOCUMENT
from tests.functions.conftest import call, sent
from tests.support.cases import each_case
from tests.support.clock import ManualClock

DEF, ENABLE, UNABLE = "/api/timer/v1/def", "/api/timer/v1/enable", "/api/timer/v1/unable"
DEFS, RECORDS = "/api/timer/v1/defs", "/api/task/v1/records"
PARAM = {
    "url": "https://receiver.example/hook",
    "method": "POST",
    "header": {"x-team": ["billing", "orders"]},
    "body": '{"order": "{{due_at}}"}',
}
APP = "OrderService"
NEW = {"app": APP, "name": "close orders", "cron": "0 30 9 * * * *", "notifyHTTPParam": PARAM}
OK = {"code": 0, "msg": "success"}


def created(**members: Any) -> int:
    status, answer = call("POST", DEF, {**NEW, **members})
    assert (status, answer["code"], answer["msg"]) == (200, 0, "success")
    assert isinstance(answer["id"], int)
    return int(answer["id"])


def defined(timer_id: int, app: str = APP) -> tuple[int, Any]:
    return call("GET", DEF, query=f"id={timer_id}&app={app}")


def test_a_definition_is_returned_unchanged_and_inactive(wired: ManualClock) -> None:
    timer_id = created(creator="somebody", status=2)
    status, answer = defined(timer_id)
    assert status == 200
    assert answer == {**OK, "data": {**NEW, "id": timer_id, "status": 1}}


def test_a_timer_is_activated_deactivated_and_deleted(wired: ManualClock) -> None:
    body = {"id": (timer_id := created()), "app": APP}
    for path, status in [(ENABLE, 2), (ENABLE, 2), (UNABLE, 1), (UNABLE, 1), (ENABLE, 2)]:
        assert call("POST", path, body) == (200, OK)
        assert defined(timer_id)[1]["data"]["status"] == status
    assert call("DELETE", DEF, body) == (200, OK)
    assert defined(timer_id)[1]["code"] == 404
    assert call("DELETE", DEF, body)[1]["code"] == 404


def test_the_timer_is_readable_through_v1(wired: ManualClock) -> None:
    timer_id = created()
    status, timer = call("GET", f"/v1/timers/{timer_id}")
    assert status == 200
    assert (timer["biz_type"], timer["cron"], timer["dialect"], timer["enabled"]) == (
        "x._4frder_53ervice",
        NEW["cron"],
        "cronexpr",
        False,
    )
    assert timer["callback"]["headers"] == {"x-team": "billing, orders"}
    assert (timer["callback"]["body"], timer["payload"]) == ("raw", PARAM["body"])
    assert call("POST", f"/v1/timers/{timer_id}/enable")[1]["next_at"] == "2027-01-15T09:30:00.000Z"
    assert defined(timer_id)[1]["data"]["status"] == 2


@pytest.mark.parametrize(
    ("cron", "next_at"),
    [
        ("30 9 * * *", "2027-01-15T09:30:00.000Z"),
        ("30 9 * * * 2028", "2028-01-01T09:30:00.000Z"),
        ("15 30 9 * * * 2027", "2027-01-15T09:30:15.000Z"),
    ],
)
def test_cron_is_read_as_cronexpr_reads_it(wired: ManualClock, cron: str, next_at: str) -> None:
    body = {"id": (timer_id := created(cron=cron)), "app": APP}
    call("POST", ENABLE, body)
    assert call("GET", f"/v1/timers/{timer_id}")[1]["next_at"] == next_at


def test_the_id_of_another_app_is_refused(wired: ManualClock) -> None:
    timer_id = created()
    refused = {"code": 404, "msg": "There is no timer with this id."}
    body = {"id": timer_id, "app": "orders"}
    for method, path in [("POST", ENABLE), ("POST", UNABLE), ("DELETE", DEF)]:
        assert call(method, path, body) == (200, refused)
    assert defined(timer_id, "orders") == (200, refused)
    assert call("GET", RECORDS, query=f"timerID={timer_id}&app=orders") == (200, refused)
    assert defined(timer_id)[1]["data"]["status"] == 1


@each_case(
    ("members", "code", "reason"),
    [
        ({"cron": "every day"}, 422, "cron"),
        ({"cron": "0 0 30 2 *"}, 422, "cron"),
        ({"app": "订单" * 8}, 422, "app"),
        ({"notifyHTTPParam": {**PARAM, "url": "receiver"}}, 422, "notifyHTTPParam.url"),
        ({"notifyHTTPParam": {**PARAM, "method": "BREW"}}, 422, "notifyHTTPParam.method"),
        ({"notifyHTTPParam": {**PARAM, "body": "x" * 65_536}}, 413, "65,536"),
    ],
)
def test_an_invalid_definition_is_refused_with_its_reason(
    wired: ManualClock, members: dict[str, Any], code: int, reason: str
) -> None:
    status, answer = call("POST", DEF, {**NEW, **members})
    assert (status, answer["code"]) == (200, code)
    assert reason in answer["msg"]
    assert call("GET", DEFS, query=f"app={APP}")[1] == {**OK, "data": [], "total": 0}


@each_case(
    ("method", "path", "body", "query"),
    [
        ("POST", DEF, "{", ""),
        ("POST", DEF, json.dumps({**NEW, "app": None}), ""),
        ("POST", DEF, json.dumps({**NEW, "notifyHTTPParam": "x"}), ""),
        ("POST", ENABLE, '{"id": "17", "app": "a"}', ""),
        ("POST", UNABLE, '{"id": 17}', ""),
        ("DELETE", DEF, None, "id=17&app=a"),
        ("GET", DEF, None, "id=17"),
        ("GET", DEF, None, "id=x&app=a"),
        ("GET", DEFS, None, ""),
        ("GET", DEFS, None, "app=a&pageIndex=x"),
        ("GET", RECORDS, None, "app=a"),
    ],
)
def test_malformed_input_is_a_400_with_code_and_reason(
    wired: ManualClock, method: str, path: str, body: str | None, query: str
) -> None:
    status, answer = call(method, path, body, query)
    assert (status, answer["code"], set(answer)) == (400, -1, {"code", "msg"})
    assert answer["msg"]


def test_the_timers_of_an_app_are_paged_with_their_total(wired: ManualClock) -> None:
    ids = {name: created(name=name) for name in ("c", "a", "b")}
    created(app="orders", name="elsewhere")
    by_interval = {"biz_type": "x._4frder_53ervice", "name": "d", "every_seconds": 60}
    call("POST", "/v1/timers", {**by_interval, "callback": {"url": "https://r.example/"}})
    for page, names in [("", "abcd"), ("&pageSize=3", "abc"), ("&pageIndex=2&pageSize=3", "d")]:
        status, answer = call("GET", DEFS, query=f"app={APP}{page}")
        assert (status, answer["code"], answer["total"]) == (200, 0, 4)
        assert [timer["name"] for timer in answer["data"]] == list(names)
    last = answer["data"][0]
    assert (last["app"], last["cron"], last["status"]) == (APP, "", 2)
    (first, *_) = call("GET", DEFS, query=f"app={APP}")[1]["data"]
    assert first["id"] == ids["a"]


def test_records_are_the_runs_of_the_timer_latest_first(wired: ManualClock) -> None:
    timer_id = created()
    for _ in range(3):
        _, run = call("POST", f"/v1/timers/{timer_id}/run")
        wired.advance_ms(1_000)
    home = address_of_task(run["task_id"])
    (task,) = wheel_wiring.tasks().get_many([home]).values()
    attempt = Attempt(
        at_ms=task.due_ms,
        lateness_ms=0,
        duration_ms=35,
        outcome="delivered",
        entry_second=home.second,
        status_code=200,
        note="received",
    )
    wheel_wiring.tasks().put_delivered([delivered(task, attempt, task.due_ms + 35, 86_400)])

    status, answer = call("GET", RECORDS, query=f"timerID={timer_id}")
    assert (status, answer["code"], answer["total"]) == (200, 0, 3)
    latest, *others = answer["data"]
    assert isinstance(latest.pop("id"), int)
    assert latest == {
        "app": APP,
        "timerID": timer_id,
        "output": "received",
        "runTimer": "2027-01-15T08:00:02.000Z",
        "costTime": 35,
        "status": 2,
    }
    assert [record["status"] for record in others] == [0, 0]
    _, page = call("GET", RECORDS, query=f"timerID={timer_id}&app={APP}&pageIndex=2&pageSize=2")
    assert (page["total"], page["data"]) == (3, others[1:])


def test_a_repeated_create_finds_the_first_timer(wired: ManualClock) -> None:
    first, again = (sent("POST", DEF, NEW, idempotency_key="a")[:2] for _ in range(2))
    assert first[1]["code"] == 0
    assert again == first
    assert call("GET", DEFS, query=f"app={APP}")[1]["total"] == 1


def test_the_calls_leave_the_records_of_v1(wired: ManualClock) -> None:
    named = {"id": (timer_id := created()), "app": APP}
    for method, path in (("POST", ENABLE), ("POST", UNABLE), ("DELETE", DEF)):
        assert call(method, path, named) == (200, OK)
    changes = call("GET", f"/v1/timers/{timer_id}/changes")[1]["changes"]
    words = [(one["version"], one["did"]) for one in reversed(changes)]
    assert words == [(1, "created"), (2, "enabled"), (3, "disabled"), (4, "deleted")]
    assert "{{due_at}}" not in json.dumps(changes), "the body is no part of a record"


def test_the_document_is_served_unchanged(wired: ManualClock) -> None:
    status, text, _ = sent("GET", "/api/openapi.json", raw=True)
    assert (status, text) == (200, API_DOCUMENT.read_text("utf-8"))
