import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.refusals import InvalidField, Refusal, TooLarge
from duewheel.rules.tasks.requests import DUE_MS_MIN, batch_request, single_request
from duewheel.rules.tasks.task import NewTask
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_000
TEN_YEARS_MS = 3_653 * 86_400_000
CALLBACK = {"url": "https://example.com/hook"}


def body(**changes: Any) -> str:
    """A good request with some members changed; a member that is `...` is left out."""
    members = {"biz_type": "orders", "delay_seconds": 5, "callback": CALLBACK, **changes}
    return json.dumps({name: value for name, value in members.items() if value is not ...})


def due(**field: Any) -> str:
    return body(**{"delay_seconds": ..., **field})


def with_callback(**members: Any) -> str:
    return body(callback={**CALLBACK, **members})


def refused(text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        single_request(text, NOW_MS)
    return caught.value


def test_a_small_request_gets_the_defaults() -> None:
    assert single_request(body(), NOW_MS) == NewTask(
        biz_type="orders",
        due_ms=NOW_MS + 5_000,
        callback=HttpCallback("https://example.com/hook", method="", headers=()),
    )


def test_a_callback_and_its_fields_may_be_left_to_the_business() -> None:
    text = '{"biz_type": "orders", "delay_seconds": 5}'
    assert single_request(text, NOW_MS).callback is None
    for callback in ({}, {"type": "http"}):
        assert single_request(body(callback=callback), NOW_MS).callback == HttpCallback("", "", ())


def test_a_retry_may_set_an_age() -> None:
    retry = {"max_age_seconds": 60}
    assert single_request(body(retry=retry), NOW_MS).retry == RetryPolicy(max_age_seconds=60)
    delays = {"delays_seconds": [1], "max_age_seconds": 60}
    assert single_request(body(retry=delays), NOW_MS).retry == RetryPolicy(
        attempts_max=2, delays_seconds=(1,), max_age_seconds=60
    )


def test_all_fields_of_a_request_are_read() -> None:
    text = body(
        payload={"order": 17},
        callback={
            "type": "http",
            "url": "http://example.com:8080/a?b=c",
            "method": "PUT",
            "headers": {"Content-Type": "text/plain", "X-Empty": "", "X-Tab": "a\tb c"},
        },
        retry={"attempts": 3, "first_delay_seconds": 0.5, "factor": 3, "max_delay_seconds": 9},
        expires_after_seconds=60.5,
        tolerance_seconds=60,
        flow_key="eu/customer-7",
    )
    assert single_request(text, NOW_MS) == NewTask(
        biz_type="orders",
        due_ms=NOW_MS + 5_000,
        callback=HttpCallback(
            "http://example.com:8080/a?b=c",
            "PUT",
            (("Content-Type", "text/plain"), ("X-Empty", ""), ("X-Tab", "a\tb c")),
        ),
        payload='{"order": 17}',
        retry=RetryPolicy(3, 0.5, factor=3.0, delay_max_seconds=9.0),
        expires_after_seconds=60.5,
        tolerance_seconds=60,
        flow_key="eu/customer-7",
    )


# ---------------------------------------------------------------- due


@each_case(
    ("field", "value", "due_ms"),
    [
        ("due_at", "2030-01-31T08:00:00.0001Z", 1_896_076_800_001),
        ("due_at", "1970-01-01T00:00:00Z", 0),
        ("due_ms", DUE_MS_MIN, DUE_MS_MIN),
        ("due_ms", NOW_MS - 1, NOW_MS - 1),
        ("due_ms", NOW_MS + TEN_YEARS_MS, NOW_MS + TEN_YEARS_MS),
        ("delay_seconds", 0, NOW_MS),
        ("delay_seconds", 0.07, NOW_MS + 70),
        ("delay_seconds", 0.0701, NOW_MS + 71),
        ("delay_seconds", 1e-300, NOW_MS + 1),
        ("delay_seconds", TEN_YEARS_MS // 1000, NOW_MS + TEN_YEARS_MS),
    ],
)
def test_each_due_field_sets_the_due_instant(field: str, value: Any, due_ms: int) -> None:
    assert single_request(due(**{field: value}), NOW_MS).due_ms == due_ms


@each_case(
    ("field", "value"),
    [
        ("due_at", "tomorrow"),
        ("due_at", "2030-01-31T08:00:00"),
        ("due_at", "1969-12-31T23:59:59.999Z"),
        ("due_at", "2099-01-01T00:00:00Z"),
        ("due_at", 1_900_000_000),
        ("due_at", None),
        ("due_ms", DUE_MS_MIN - 1),
        ("due_ms", -1),
        ("due_ms", NOW_MS + TEN_YEARS_MS + 1),
        ("due_ms", 1.5),
        ("due_ms", True),
        ("due_ms", "1900000000000"),
        ("due_ms", 10**50),
        ("delay_seconds", -0.001),
        ("delay_seconds", True),
        ("delay_seconds", "5"),
        ("delay_seconds", [5]),
        ("delay_seconds", TEN_YEARS_MS),
    ],
)
def test_an_invalid_due_instant_is_refused(field: str, value: Any) -> None:
    refusal = refused(due(**{field: value}))
    assert isinstance(refusal, InvalidField)
    assert refusal.field == field


@each_case("number", ["1e400", "9" * 5000, "-1e400"])
def test_numbers_beyond_all_bounds_are_refused(number: str) -> None:
    text = due(delay_seconds="?").replace('"?"', number)
    assert refused(text).field == "delay_seconds"


def test_exactly_one_due_field_is_needed() -> None:
    assert refused(due()).field == "due_at"
    assert refused(body(due_ms=NOW_MS)).field == "delay_seconds"
    assert refused(due(due_at="2030-01-31T08:00:00Z", due_ms=NOW_MS)).field == "due_ms"


def test_seconds_given_for_milliseconds_are_refused() -> None:
    refusal = refused(due(due_ms=NOW_MS // 1000))
    assert refusal.field == "due_ms"
    assert "was given in seconds" in refusal.detail


# ---------------------------------------------------------------- payload


def test_a_missing_payload_differs_from_null() -> None:
    assert single_request(body(), NOW_MS).payload is None
    assert single_request(body(payload=None), NOW_MS).payload == "null"


def test_a_payload_may_have_64_kib_of_utf_8_and_not_a_byte_more() -> None:
    fits = '"' + "é" * 32_767 + '"'
    for source, is_refused in ((fits, False), (fits[:-1] + 'x"', True)):
        text = body(payload="?").replace('"?"', source)
        if is_refused:
            refusal = refused(text)
            assert isinstance(refusal, TooLarge)
            assert refusal.field == "payload"
        else:
            assert single_request(text, NOW_MS).payload == source


# ---------------------------------------------------------------- fields


@each_case(
    ("text", "field"),
    [
        (body(colour="red"), "colour"),
        (body(biz_type=...), "biz_type"),
        (body(biz_type=""), "biz_type"),
        (body(biz_type="Orders"), "biz_type"),
        (body(biz_type="-orders"), "biz_type"),
        (body(biz_type="a" * 64), "biz_type"),
        (body(biz_type="orders\n"), "biz_type"),
        (body(biz_type=7), "biz_type"),
        (body(callback=None), "callback"),
        (body(callback="https://example.com"), "callback"),
        (with_callback(verb="GET"), "callback.verb"),
        (with_callback(type="smtp"), "callback.type"),
        (with_callback(url="ftp://example.com"), "callback.url"),
        (with_callback(url="https://user:secret@example.com"), "callback.url"),
        (with_callback(url=["https://example.com"]), "callback.url"),
        (with_callback(method="TRACE"), "callback.method"),
        (with_callback(method="post"), "callback.method"),
        (with_callback(headers=[]), "callback.headers"),
        (body(retry=[]), "retry"),
        (body(retry={"times": 3}), "retry.times"),
        (body(retry={"attempts": 0}), "retry.attempts"),
        (body(retry={"attempts": 101}), "retry.attempts"),
        (body(retry={"attempts": 2.5}), "retry.attempts"),
        (body(retry={"delays_seconds": []}), "retry.delays_seconds"),
        (body(retry={"delays_seconds": [1] * 100}), "retry.delays_seconds"),
        (body(retry={"delays_seconds": 5}), "retry.delays_seconds"),
        (body(retry={"delays_seconds": [1, -1]}), "retry.delays_seconds[1]"),
        (body(retry={"delays_seconds": [604_801]}), "retry.delays_seconds[0]"),
        (body(retry={"delays_seconds": [1], "factor": 2}), "retry.factor"),
        (body(retry={"first_delay_seconds": 0}), "retry.first_delay_seconds"),
        (body(retry={"factor": 0.5}), "retry.factor"),
        (body(retry={"max_delay_seconds": 1}), "retry.max_delay_seconds"),
        (body(retry={"max_age_seconds": 0}), "retry.max_age_seconds"),
        (body(expires_after_seconds=0), "expires_after_seconds"),
        (body(expires_after_seconds=None), "expires_after_seconds"),
        (body(tolerance_seconds=-1), "tolerance_seconds"),
        (body(tolerance_seconds=3_601), "tolerance_seconds"),
        (body(tolerance_seconds=1.5), "tolerance_seconds"),
        (body(tolerance_seconds="60"), "tolerance_seconds"),
        (body(tolerance_seconds=None), "tolerance_seconds"),
        (body(flow_key=""), "flow_key"),
        (body(flow_key="k" * 129), "flow_key"),
        (body(flow_key="a b"), "flow_key"),
        (body(flow_key="ä"), "flow_key"),
        (body(flow_key=7), "flow_key"),
        (body(flow_key=None), "flow_key"),
    ],
)
def test_a_bad_field_is_refused_by_its_path(text: str, field: str) -> None:
    refusal = refused(text)
    assert isinstance(refusal, InvalidField)
    assert refusal.field == field
    assert field in refusal.detail


@each_case("biz_type", ["a", "7", "a" * 63, "order.mail_v2-eu"])
def test_a_valid_name_of_a_business_is_accepted(biz_type: str) -> None:
    assert single_request(body(biz_type=biz_type), NOW_MS).biz_type == biz_type


def test_the_last_one_of_repeated_members_counts_for_the_digest_too() -> None:
    keyed = body(key="close-17")
    twice = keyed.replace('"payload"', '"payload": 1, "payload"')
    assert single_request(twice, NOW_MS) == single_request(keyed, NOW_MS)


# ---------------------------------------------------------------- headers


@each_case(
    "name",
    [
        "Host",
        "content-LENGTH",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Accept-Encoding",
        "Proxy-Authorization",
        "webhook-id",
        "Duewheel-Attempt",
        "webhook_id",
        "WEBHOOK_SIGNATURE",
        "Duewheel.Attempt",
        "content_length",
        "transfer_encoding",
        "",
        "X Y",
        "X:",
        "X\r\nHost",
        "É",
    ],
)
def test_a_reserved_or_invalid_header_is_refused(name: str) -> None:
    assert refused(with_callback(headers={name: "x"})).field == (
        f"callback.headers.{name}" if name else "callback.headers"
    )


@each_case("value", ["a\r\nHost: b", "a\x00", "a\x7f", "é", " a", "a ", "\t", 7, None, ["a"]])
def test_a_header_value_is_one_line_of_visible_ascii(value: Any) -> None:
    assert refused(with_callback(headers={"X-A": value})).field == "callback.headers.X-A"


def test_headers_that_differ_only_in_case_are_refused() -> None:
    refusal = refused(with_callback(headers={"X-A": "1", "x-a": "2"}))
    assert refusal.field == "callback.headers.x-a"


def test_headers_are_limited_to_20_and_to_4_kib_together() -> None:
    fits = {f"x-{index:02d}": "v" for index in range(20)}
    assert len(single_request(with_callback(headers=fits), NOW_MS).callback.headers) == 20
    assert refused(with_callback(headers=fits | {"one": "more"})).field == "callback.headers"
    assert single_request(with_callback(headers={"a": "v" * 4_095}), NOW_MS)
    assert isinstance(refused(with_callback(headers={"a": "v" * 4_096})), TooLarge)


# ---------------------------------------------------------------- retry


def test_listed_delays_set_the_number_of_attempts_unless_it_is_given() -> None:
    delays = {"delays_seconds": [1, 2.5, 0]}
    assert single_request(body(retry=delays), NOW_MS).retry == RetryPolicy(
        attempts_max=4, delays_seconds=(1.0, 2.5, 0.0)
    )
    assert single_request(body(retry=delays | {"attempts": 9}), NOW_MS).retry == RetryPolicy(
        attempts_max=9, delays_seconds=(1.0, 2.5, 0.0)
    )


def test_an_empty_retry_has_the_default_values() -> None:
    assert single_request(body(retry={}), NOW_MS).retry == RetryPolicy()


def test_a_long_first_delay_raises_the_default_largest_delay() -> None:
    retry = single_request(body(retry={"first_delay_seconds": 90_000}), NOW_MS).retry
    assert retry is not None
    assert retry.delay_max_seconds == 90_000


# ---------------------------------------------------------------- batch


def test_a_batch_answers_for_each_task_in_order() -> None:
    bad = json.loads(with_callback(url="nowhere"))
    text = json.dumps({"tasks": [json.loads(body()), bad, 7, json.loads(body(payload=1))]})
    first, second, third, fourth = batch_request(text, NOW_MS)
    assert isinstance(first, NewTask)
    assert isinstance(second, InvalidField)
    assert second.field == "tasks[1].callback.url"
    assert isinstance(third, InvalidField)
    assert third.field == "tasks[2]"
    assert isinstance(fourth, NewTask)
    assert fourth.payload == "1"


def test_a_large_payload_in_a_batch_affects_no_other_task() -> None:
    big = json.loads(body(payload="x" * 70_000))
    large, good = batch_request(json.dumps({"tasks": [big, json.loads(body())]}), NOW_MS)
    assert isinstance(large, TooLarge)
    assert large.field == "tasks[0].payload"
    assert isinstance(good, NewTask)


def test_a_batch_has_1_to_500_tasks() -> None:
    task = json.loads(body())
    assert len(batch_request(json.dumps({"tasks": [task] * 500}), NOW_MS)) == 500
    with pytest.raises(TooLarge) as caught:
        batch_request(json.dumps({"tasks": [task] * 501}), NOW_MS)
    assert caught.value.field == "tasks"


@each_case(
    ("text", "field"),
    [
        ('{"tasks": []}', "tasks"),
        ('{"tasks": {}}', "tasks"),
        ('{"tasks": null}', "tasks"),
        ("{}", "tasks"),
        ('{"tasks": [], "more": 1}', "more"),
        ('{"tasks": [], "tasks": []}', "tasks"),
        ('{"tasks": [{]}', None),
        ("[]", None),
    ],
)
def test_an_invalid_batch_is_refused_as_a_whole(text: str, field: str | None) -> None:
    with pytest.raises(Refusal) as caught:
        batch_request(text, NOW_MS)
    assert caught.value.field == field


# ---------------------------------------------------------------- anything

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
NAMES = ["biz_type", "due_at", "due_ms", "delay_seconds", "payload", "callback", "retry", "url"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(NAMES), ANY_JSON))
def test_any_body_is_accepted_or_refused(changes: dict[str, Any]) -> None:
    try:
        request = single_request(body(**changes), NOW_MS)
    except Refusal:
        return
    assert 0 <= request.due_ms <= NOW_MS + TEN_YEARS_MS


@each_case("depth", [700, 900, 960, 980, 990, 1_000])
def test_deep_nesting_in_any_field_is_accepted_or_refused(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    for name in ("biz_type", "payload", "callback", "retry", "due_ms"):
        text = body(**{name: "?"}).replace('"?"', deep)
        try:
            single_request(text, NOW_MS)
        except Refusal:
            continue
        assert name == "payload"
