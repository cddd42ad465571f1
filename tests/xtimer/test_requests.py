"""Requests of the xTimer interface: those that are read, malformed or refused."""

import json
from typing import Any

import pytest

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.refusals import InvalidField, MalformedBody, Refusal, TooLarge
from duewheel.rules.timers.schedule import Dialect
from duewheel.xtimer.requests import (
    PAGE_SIZE_MAX,
    Named,
    Paging,
    named_in_body,
    named_in_query,
    new_timer,
    records_of,
    timers_of,
)
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000
PARAM: dict[str, Any] = {
    "url": "https://receiver.example/hook",
    "method": "post",
    "header": {"x-team": ["billing", "orders"], "Content-Type": ["application/json"]},
    "body": '{"order": 17, "at": "{{due_at}}"}',
}
GOOD: dict[str, Any] = {
    "app": "OrderService",
    "name": "close orders",
    "cron": "0 30 9 * * * *",
    "notifyHTTPParam": PARAM,
}


def with_(**members: Any) -> str:
    return json.dumps(GOOD | members)


def with_param(**members: Any) -> str:
    return with_(notifyHTTPParam=PARAM | members)


def test_a_definition_becomes_a_disabled_timer_that_sends_its_body_unchanged() -> None:
    new = new_timer(with_(creator="somebody", status=2, id=7), NOW_MS)
    assert (new.biz_type, new.enabled, new.rules.name) == (
        "x._4frder_53ervice",
        False,
        "close orders",
    )
    assert (new.rules.schedule.cron, new.rules.schedule.dialect) == (
        "0 30 9 * * * *",
        Dialect.CRONEXPR,
    )
    headers = (
        ("x-team", "billing"),
        ("x-team", "orders"),
        ("Content-Type", "application/json"),
    )
    assert new.rules.callback == HttpCallback(PARAM["url"], "POST", headers, is_raw=True)
    assert new.rules.payload is not None
    assert json.loads(new.rules.payload) == PARAM["body"]
    assert "{{" not in new.rules.payload, "braces have no meaning here"


@each_case("members", [{}, {"body": ""}, {"body": None, "header": None}])
def test_header_and_body_may_be_left_out(members: dict[str, Any]) -> None:
    param = {"url": PARAM["url"], "method": "GET", **members}
    new = new_timer(with_(notifyHTTPParam=param), NOW_MS)
    assert new.rules.payload is None
    assert new.rules.callback == HttpCallback(PARAM["url"], "GET", (), is_raw=True)


@each_case(
    "body",
    [
        "",
        "{",
        "[]",
        with_(app=None),
        with_(app=""),
        with_(app=7),
        with_(name=""),
        with_(cron=5),
        with_(notifyHTTPParam=None),
        with_(notifyHTTPParam="https://receiver.example/"),
        with_param(url=None),
        with_param(method=""),
        with_param(header={"x": "1"}),
        with_param(header={"x": [1]}),
        with_param(header=[]),
        with_param(body={"order": 17}),
        '{"app": "a", "app": "b"}',
    ],
)
def test_a_body_that_the_original_server_could_not_read_is_malformed(body: str) -> None:
    with pytest.raises(MalformedBody):
        new_timer(body, NOW_MS)


@each_case(
    ("body", "field"),
    [
        (with_(cron="every day"), "cron"),
        (with_(cron="0 0 30 2 *"), "cron"),
        (with_(cron="* " * 400), "cron"),
        (with_(app="A" * 64), "app"),
        (with_(name="two\nlines"), "name"),
        (with_param(url="ftp://receiver.example/"), "notifyHTTPParam.url"),
        (with_param(method="BREW"), "notifyHTTPParam.method"),
        (with_param(header={"Host": ["x"]}), "notifyHTTPParam.header.Host"),
        (with_param(header={"x": ["a\r\nb: c"]}), "notifyHTTPParam.header.x"),
        (with_param(header={"x": ["1"] * 21}), "notifyHTTPParam.header"),
    ],
)
def test_an_impossible_value_is_refused_by_its_field(body: str, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        new_timer(body, NOW_MS)
    assert refused.value.field == field


def test_a_body_is_limited_to_the_size_of_a_payload() -> None:
    with pytest.raises(TooLarge):
        new_timer(with_param(body="x" * 65_536), NOW_MS)


def test_a_timer_is_addressed_by_its_id_and_its_app() -> None:
    assert named_in_body('{"id": 17, "app": "a", "more": 1}') == Named("17", "a")
    assert named_in_query("id=17&app=my%20app&x=1") == Named("17", "my app")
    assert named_in_query("app=my+app&id=17&id=18") == Named("17", "my app")
    assert records_of("timerID=17") == (Named("17", None), Paging(1, 10))
    assert records_of("timerID=17&app=a&pageIndex=2&pageSize=5") == (
        Named("17", "a"),
        Paging(2, 5),
    )


@each_case("body", ["{}", '{"id": 17}', '{"id": "17", "app": "a"}', '{"id": 0, "app": "a"}', "17"])
def test_a_body_that_names_no_timer_is_malformed(body: str) -> None:
    with pytest.raises(MalformedBody):
        named_in_body(body)


@each_case(
    "query", ["", "id=17", "app=a", "id=x&app=a", "id=-1&app=a", "id=&app=a", f"id={2**63}&app=a"]
)
def test_a_query_that_names_no_timer_is_malformed(query: str) -> None:
    with pytest.raises(Refusal) as refused:
        named_in_query(query)
    assert isinstance(refused.value, MalformedBody)


@each_case(
    ("query", "paging"),
    [
        ("", Paging(1, 10)),
        ("&pageIndex=0&pageSize=0", Paging(1, 10)),
        ("&pageIndex=-1&pageSize=-1", Paging(1, 10)),
        ("&pageIndex=3&pageSize=7", Paging(3, 7)),
        ("&pageSize=5000", Paging(1, PAGE_SIZE_MAX)),
        ("&pageIndex=&pageSize=", Paging(1, 10)),
        ("&pageIndex=2&pageIndex=3", Paging(2, 10)),
        ("&pageSize=007&pageIndex=-0", Paging(1, 7)),
        (f"&pageSize={'9' * 5_000}", Paging(1, PAGE_SIZE_MAX)),
        (f"&pageIndex={'9' * 5_000}", Paging(int("9" * 20), 10)),
        (f"&pageIndex=-{'9' * 5_000}", Paging(1, 10)),
    ],
)
def test_pages_are_numbered_from_one(query: str, paging: Paging) -> None:
    assert timers_of(f"app=a{query}") == ("a", paging)


def test_a_page_that_is_not_a_number_is_malformed() -> None:
    with pytest.raises(MalformedBody):
        timers_of("app=a&pageIndex=first")


def test_a_plus_sign_is_a_blank() -> None:
    assert timers_of("app=my+app")[0] == timers_of("app=my%20app")[0] == "my app"
