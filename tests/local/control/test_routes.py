"""The local routes of the inbox and the clock."""

import json
from typing import Any

import pytest

from duewheel.rules.instants import ms_from_rfc3339
from local.aws.http_api import Reply, Request
from local.chaos.faults import Faults
from local.control.clock import real_ms
from local.control.inbox import Inbox
from local.control.real_time import RealTime
from local.control.routes import LocalRoutes
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_250
NOW = "2027-01-15T08:00:00.250Z"


class Wheelwright:
    def __init__(self) -> None:
        self.is_frozen = False
        self.advanced_ms: list[int] = []

    def now_ms(self) -> int:
        return NOW_MS + sum(self.advanced_ms)

    def freeze(self) -> None:
        self.is_frozen = True

    def unfreeze(self) -> None:
        self.is_frozen = False

    def reset(self) -> bool:
        return self.is_frozen

    def advance(self, milliseconds: int) -> int:
        self.advanced_ms.append(milliseconds)
        return 7


class Caller:
    def __init__(self, wheelwright: Any = None) -> None:
        self.slept: list[float] = []
        self.wheelwright = wheelwright or Wheelwright()
        self.routes = LocalRoutes(
            Inbox(lambda: NOW_MS), self.wheelwright, Faults(0, 0), self.slept.append
        )

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        raw = raw.encode() if isinstance(raw, str) else raw
        return self.routes.answer(
            Request(method, f"/_local/{path}", tuple(headers.items()), raw, "127.0.0.1")
        )

    def received(self, name: str = "box") -> list[dict[str, Any]]:
        return json.loads(self.call("GET", f"received/{name}").body)["requests"]

    def statuses(self, count: int) -> list[int]:
        return [self.call("POST", "inbox/box").status for _ in range(count)]


@pytest.fixture
def caller() -> Caller:
    return Caller()


def test_the_inbox_keeps_requests_in_order(caller: Caller) -> None:
    caller.call("POST", "inbox/box", b"one", Accept="a")
    caller.call("PUT", "inbox/box?x=1", b"\xfftwo")
    assert caller.received() == [
        {
            "method": "POST",
            "path": "/_local/inbox/box",
            "headers": {"accept": "a"},
            "body": "one",
            "received_at": NOW,
        },
        {
            "method": "PUT",
            "path": "/_local/inbox/box?x=1",
            "headers": {},
            "body": "\N{REPLACEMENT CHARACTER}two",
            "received_at": NOW,
        },
    ]


def test_inboxes_are_separate(caller: Caller) -> None:
    caller.call("POST", "inbox/other")
    assert caller.received("box") == []


def test_the_inbox_answers_200_by_default(caller: Caller) -> None:
    assert caller.statuses(2) == [200, 200]


def test_an_answer_with_times_is_given_that_often(caller: Caller) -> None:
    caller.call("PUT", "received/box", {"status": 503, "times": 2})
    assert caller.statuses(4) == [503, 503, 200, 200]


def test_an_answer_without_times_is_permanent(caller: Caller) -> None:
    caller.call("PUT", "received/box", {"status": 410})
    assert caller.statuses(3) == [410, 410, 410]


def test_an_answer_may_have_headers_and_a_delay(caller: Caller) -> None:
    answer = {"status": 429, "headers": {"Retry-After": "3"}, "delay_ms": 250}
    assert caller.call("PUT", "received/box", answer).status == 200
    reply = caller.call("POST", "inbox/box")
    assert reply == Reply(429, b"", (("Retry-After", "3"),))
    assert caller.slept == [0.25]


def test_an_answer_may_have_a_body(caller: Caller) -> None:
    answer = {"status": 200, "body": '{"failed": []}', "headers": {}, "delay_ms": 0}
    assert json.loads(caller.call("PUT", "received/box", answer).body) == answer
    assert caller.call("POST", "inbox/box").body == b'{"failed": []}'


def test_an_inbox_can_be_cleared_with_its_answers(caller: Caller) -> None:
    caller.call("PUT", "received/box", {"status": 503})
    caller.statuses(1)
    assert caller.call("DELETE", "received/box").status == 204
    assert caller.received() == []
    assert caller.statuses(1) == [200]


@each_case(
    ("body", "field"),
    [
        ({"status": 99}, "status"),
        ({"status": True}, "status"),
        ({"status": "503"}, "status"),
        ({"delay_ms": -1}, "delay_ms"),
        ({"times": 0}, "times"),
        ({"body": {}}, "body"),
        ({"headers": ["a"]}, "headers"),
        ({"headers": {"a": "b\r\nc: d"}}, "headers"),
        ({"headers": {"a b": "c"}}, "headers"),
        ({"headers": {"Content-Length": "3"}}, "headers"),
        ({"stauts": 503}, "stauts"),
    ],
)
def test_an_invalid_answer_is_refused(caller: Caller, body: dict[str, Any], field: str) -> None:
    reply = caller.call("PUT", "received/box", body)
    assert (reply.status, json.loads(reply.body)["field"]) == (422, field)
    assert caller.statuses(1) == [200]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
@pytest.mark.parametrize("call", [("PUT", "received/box"), ("POST", "clock")])
def test_a_body_that_is_no_object_is_refused(
    caller: Caller, call: tuple[str, str], body: bytes
) -> None:
    assert caller.call(*call, body).status == 400


@pytest.mark.parametrize("path", ["", "inbox", "inbox/", "inbox/a/b", "clocks", "clock/x"])
def test_an_unknown_local_call_is_a_404(caller: Caller, path: str) -> None:
    assert caller.call("GET", path).status == 404


@pytest.mark.parametrize("call", [("POST", "received/box"), ("DELETE", "clock")])
def test_an_unknown_method_of_a_local_call_is_a_405(caller: Caller, call: tuple[str, str]) -> None:
    assert caller.call(*call).status == 405


def test_the_clock_can_be_read(caller: Caller) -> None:
    assert json.loads(caller.call("GET", "clock").body) == {"now": NOW, "frozen": False}


def test_the_clock_can_be_frozen_and_unfrozen(caller: Caller) -> None:
    assert json.loads(caller.call("POST", "clock", {"freeze": True}).body)["frozen"] is True
    assert json.loads(caller.call("POST", "clock", {"freeze": False}).body)["frozen"] is False


def test_an_advance_returns_the_instant_and_the_number_of_deliveries(caller: Caller) -> None:
    reply = caller.call("POST", "clock", {"advance_seconds": 0.75})
    assert json.loads(reply.body) == {"now": "2027-01-15T08:00:01.000Z", "delivered": 7}
    assert caller.wheelwright.advanced_ms == [750]


@each_case(
    "body",
    [
        {},
        {"freeze": 1},
        {"freeze": True, "advance_seconds": 1},
        {"advance_seconds": -1},
        {"advance_seconds": "1"},
        {"advance_seconds": True},
        {"advance_seconds": 1e300},
        {"advance_seconds": float("nan")},
        {"advance_seconds": float("inf")},
        {"advance": 1},
        {"reset": False},
        {"reset": True, "freeze": True},
    ],
)
def test_an_invalid_move_of_the_clock_is_refused(caller: Caller, body: dict[str, Any]) -> None:
    assert caller.call("POST", "clock", body).status == 422
    assert caller.wheelwright.advanced_ms == []
    assert not caller.wheelwright.is_frozen


@each_case("is_kept", [True, False])
def test_a_reset_returns_real_time_and_whether_the_data_was_kept(is_kept: bool) -> None:
    caller = Caller()
    caller.wheelwright.is_frozen = is_kept
    reply = json.loads(caller.call("POST", "clock", {"reset": True}).body)
    assert abs(ms_from_rfc3339(reply["now"]) - real_ms()) < 60_000
    assert reply["kept"] is is_kept


@each_case("body", [{"freeze": True}, {"advance_seconds": 1}])
def test_the_clock_cannot_be_moved_without_moto(body: dict[str, Any]) -> None:
    caller = Caller(RealTime(Wheelwright(), "http://127.0.0.1:4566"))  # type: ignore[arg-type]
    reply = caller.call("POST", "clock", body)
    assert reply.status == 409
    assert "4566" in json.loads(reply.body)["detail"]
    assert caller.call("GET", "clock").status == 200
