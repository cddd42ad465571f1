"""The table of calls: the right of each, and the checks before a call is made."""

import pytest

from duewheel.interface.http import (
    Answer,
    Call,
    Calls,
    Request,
    administers,
    for_all_callers,
    reads,
    reads_all,
    writes,
)
from duewheel.rules.access.grants import ANONYMOUS, Access, Grant, Right
from duewheel.rules.refusals import InvalidField, MethodNotAllowed, NotPermitted, UnknownCall
from tests.support.cases import each_case
from tests.support.every_call import EVERY_CALL

WRITER = Access("writer", (Grant(Right.WRITE, "orders"),))
TABLE = {(m, path): c for path, calls in EVERY_CALL.by_path.items() for m, c in calls.items()}
OPEN = {("GET", "/v1/health"), ("POST", "/v1/timers/upcoming")}
OPEN |= {("GET", "/v1/openapi.json"), ("GET", "/api/openapi.json")}


def answered(request: Request, **_: str) -> Answer:
    return Answer(200, request.permit.right)


def request(method: str, path: str, access: Access = WRITER) -> Request:
    return Request(method=method, path=path, request_id="request-17", access=access)


SOME = Calls(
    {
        "/b/{biz_type}": {"GET": reads(answered), "PUT": administers(answered)},
        "/b/{biz_type}/tasks": {"POST": writes(answered)},
        "/all": {"GET": reads_all(answered)},
        "/open": {"GET": for_all_callers(answered)},
    }
)


def made(asked: Request) -> Answer:
    return SOME.match_route(asked).answer(asked)


def test_only_reads_and_the_preview_need_no_more_than_the_read_right() -> None:
    read = {name for name, call in TABLE.items() if call.right is Right.READ}
    assert {name for name in read if name[0] != "GET"} == {("POST", "/v1/timers/upcoming")}


def test_only_settings_pauses_deletions_and_keys_need_the_admin_right() -> None:
    business = "/v1/businesses/{biz_type}"
    settings = {("PUT", business), ("DELETE", business)}
    pauses = {("POST", f"{business}/{end}") for end in ("pause", "resume")}
    keys = {name for name in TABLE if name[1].startswith("/v1/keys")}
    admins = {name for name, call in TABLE.items() if call.right is Right.ADMIN}
    assert admins == settings | pauses | keys


def test_health_documents_and_the_preview_alone_concern_no_business() -> None:
    assert {name for name, call in TABLE.items() if call.on_none} == OPEN


def test_a_business_in_the_path_is_checked_before_the_call_is_made() -> None:
    assert made(request("GET", "/b/orders")).text == Right.READ
    assert made(request("POST", "/b/orders/tasks")).text == Right.WRITE
    for asked in (request("PUT", "/b/orders"), request("GET", "/b/mail"), request("GET", "/all")):
        with pytest.raises(NotPermitted):
            made(asked)
    with pytest.raises(InvalidField):
        made(request("GET", "/b/Orders"))


def test_a_caller_without_access_is_refused_even_calls_for_all_callers() -> None:
    assert made(request("GET", "/open")).status == 200
    for path in ("/open", "/all", "/b/orders", "/none"):
        with pytest.raises(NotPermitted):
            made(request("GET", path, ANONYMOUS))


def test_a_request_has_no_permit_before_its_caller_is_known() -> None:
    fresh = Request(method="GET", path="/b/orders", request_id="request-17")
    assert fresh.access is ANONYMOUS
    with pytest.raises(NotPermitted):
        fresh.permit.check("orders")


def test_an_unknown_call_is_refused() -> None:
    with pytest.raises(UnknownCall):
        made(request("GET", "/none"))
    with pytest.raises(MethodNotAllowed):
        made(request("DELETE", "/all"))


def test_a_change_is_logged_with_its_path_and_arguments() -> None:
    asked = request("PUT", "/b/orders")
    answer = Answer(200, "secret", log_fields={"task_ids": ["a"]})
    assert SOME.match_route(asked).access_log_line(asked, answer) == {
        "action": "change",
        "by": "writer",
        "call": "PUT /b/{biz_type}",
        "biz_type": "orders",
        "task_ids": ["a"],
        "status": 200,
    }


def test_long_parts_of_a_path_are_cut_in_the_log() -> None:
    asked = request("PUT", "/b/" + "x" * 5_000)
    line = SOME.match_route(asked).access_log_line(asked, Answer(422, ""))
    assert line is not None
    assert line["biz_type"] == "x" * 128


@each_case("call", [reads, for_all_callers])
def test_reads_and_unknown_calls_are_not_logged(call: type[Call]) -> None:
    table = Calls({"/b": {"GET": call(answered), "POST": for_all_callers(answered)}})
    for asked in (request("GET", "/b"), request("POST", "/b"), request("POST", "/none")):
        assert table.match_route(asked).access_log_line(asked, Answer(200, "")) is None
    asked = request("DELETE", "/b")
    assert table.match_route(asked).access_log_line(asked, Answer(405, "")) is None
