"""The limits of flow keys: which hold for a key, and which settings are refused."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.flow import PAUSED_MAX, Flow, FlowLimits
from duewheel.rules.businesses.rate_limit import RateLimit
from duewheel.rules.businesses.requests import business_change
from duewheel.rules.businesses.settings import Business, Defaults, Own, changed
from duewheel.rules.names import parts_of, scope_of
from duewheel.rules.refusals import InvalidField
from tests.support.cases import each_case

DEFAULTS = Defaults(30, 10.0, 30.0)
BLANK = Business("orders", DEFAULTS)
FIVE = FlowLimits(calls_per_second=5.0)
TWENTY = FlowLimits(calls_per_second=20.0)
FIVE_OF_A_BODY = {"calls_per_second": 5.0}
ONE = FlowLimits(calls_in_flight=1, in_order=True)


def read(**body: Any) -> dict[str, Any]:
    return business_change(json.dumps(body), DEFAULTS)


def after(business: Business, **body: Any) -> Business:
    return changed(business, read(**body), 1_000)


def test_all_members_are_read() -> None:
    given = {
        "default": {"calls_per_second": 5, "calls_in_flight": 1, "in_order": True},
        "prefixes": {"eu/": {"calls_per_second": 20}},
    }
    whole = FlowLimits(calls_per_second=5.0, calls_in_flight=1, in_order=True)
    assert read(flow=given) == {"flow": Flow(whole, {"eu/": TWENTY})}
    assert read(flow=None) == {"flow": None}


@each_case(
    ("flow_key", "limits"),
    [("us/1", FIVE), ("eu", FIVE), ("eu/1", TWENTY), ("eu/vip/1", ONE), ("eu/vip", TWENTY)],
)
def test_the_longest_prefix_replaces_the_default_as_a_whole(
    flow_key: str, limits: FlowLimits
) -> None:
    flow = Flow(FIVE, {"eu/": TWENTY, "eu/vip/": ONE})
    assert replace(BLANK, own=Own(flow=flow)).flow_limits(flow_key) == limits


def test_a_key_that_no_prefix_has_is_not_limited_without_a_default() -> None:
    business = replace(BLANK, own=Own(flow=Flow(None, {"eu/": TWENTY}, 7)), updated_ms=9)
    assert business.flow_limits("us/1") is None
    assert business.key_rate("us/1") is business.key_rate(None) is BLANK.key_rate("eu/1") is None
    assert business.key_rate("eu/1") == RateLimit(20.0, 7)


@each_case(
    ("flow", "field"),
    [
        ({}, "flow"),
        ({"prefixes": {}}, "flow"),
        (5, "flow"),
        ({"defaults": {"in_order": True}}, "flow.defaults"),
        ({"default": {"calls": 1}}, "flow.default.calls"),
        ({"default": {"calls_per_second": 0}}, "flow.default.calls_per_second"),
        ({"default": {"calls_per_second": 100_001}}, "flow.default.calls_per_second"),
        ({"default": {"calls_in_flight": 0}}, "flow.default.calls_in_flight"),
        ({"default": {"calls_in_flight": 101}}, "flow.default.calls_in_flight"),
        ({"default": {"calls_in_flight": 1.5}}, "flow.default.calls_in_flight"),
        ({"default": {"in_order": True, "calls_in_flight": 2}}, "flow.default.calls_in_flight"),
        ({"prefixes": {"eu/": None}}, "flow.prefixes.eu/"),
        ({"prefixes": {"eu/": {"calls": 1}}}, "flow.prefixes.eu/.calls"),
        ({"prefixes": {"eu/": {"calls_per_second": -1}}}, "flow.prefixes.eu/.calls_per_second"),
        ({"prefixes": {f"{n}": {"in_order": True} for n in range(51)}}, "flow.prefixes"),
    ],
)
def test_limits_that_say_nothing_or_contradict_each_other_are_refused(
    flow: Any, field: str
) -> None:
    with pytest.raises(InvalidField) as refusal:
        read(flow=flow)
    assert refusal.value.field == field


def test_keys_of_a_prefix_without_limits_have_none() -> None:
    flow = {"default": {"calls_per_second": 5}, "prefixes": {"eu/": {}}}
    business = after(BLANK, flow=flow)
    assert business.key_rate("us/1") is not None
    assert business.key_rate("eu/1") is None
    assert business.in_flight_limits("eu/1") == {}


def test_turns_begin_anew_only_with_other_limits() -> None:
    business = after(BLANK, flow={"default": {"calls_per_second": 5}})
    first = business.key_rate("a")
    business = after(business, paused_flow_keys={"a": True}, flow={"default": FIVE_OF_A_BODY})
    assert business.key_rate("a") == first
    business = after(business, flow={"default": {"calls_per_second": 6}})
    assert business.key_rate("a") == RateLimit(6.0, business.updated_ms)


def test_a_limit_of_zero_is_refused_with_the_way_to_pause() -> None:
    with pytest.raises(InvalidField, match="paused_flow_keys"):
        read(flow={"default": {"calls_per_second": 0}})


def test_keys_are_paused_and_resumed_one_by_one() -> None:
    business = after(BLANK, paused_flow_keys={"b": True, "a": True})
    assert business.paused_flow_keys == ("a", "b")
    business = after(business, paused_flow_keys={"a": None, "c": True, "never": None})
    assert business.paused_flow_keys == ("b", "c")
    assert [business.pauses(key) for key in ("b", "c", "a", None)] == [True, True, False, False]
    assert after(business, paused_flow_keys={"b": None, "c": None}).own.paused_flow_keys is None
    assert after(business, paused_flow_keys=None).paused_flow_keys == ()


@each_case(
    ("keys", "field"),
    [
        ({"": True}, "paused_flow_keys."),
        ({"a b": True}, "paused_flow_keys.a b"),
        ({"a": False}, "paused_flow_keys.a"),
        ({"a": 1}, "paused_flow_keys.a"),
        ({"a": "yes"}, "paused_flow_keys.a"),
        (["a"], "paused_flow_keys"),
    ],
)
def test_what_is_no_pause_of_a_key_is_refused(keys: Any, field: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        read(paused_flow_keys=keys)
    assert (refusal.value.field or "").startswith(field.rstrip("."))


def test_more_paused_keys_than_are_kept_are_refused() -> None:
    business = after(BLANK, paused_flow_keys={f"{n}": True for n in range(PAUSED_MAX)})
    with pytest.raises(InvalidField, match="100 together"):
        after(business, paused_flow_keys={"more": True})


def test_the_scopes_of_keys_and_businesses_differ() -> None:
    scopes = [scope_of("a"), scope_of("a", "b"), scope_of("a", "b#c"), scope_of("a.b")]
    assert len(set(scopes)) == len(scopes)
    assert [parts_of(scope) for scope in scopes] == [
        ("a", None),
        ("a", "b"),
        ("a", "b#c"),
        ("a.b", None),
    ]


@each_case("name", ["calls_per_second", "calls_in_flight"])
def test_a_limit_of_0_of_a_business_points_to_pausing_it(name: str) -> None:
    with pytest.raises(InvalidField, match="pause the business") as refused:
        read(**{name: 0})
    assert refused.value.field == name
