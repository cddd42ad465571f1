"""What a request of a bulk operation says, and what is refused by which field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.bulk.operation import IDS_MAX, Action, Filter, Wish, walk_order
from duewheel.rules.bulk.requests import (
    NewOperation,
    mark_at,
    named_operation,
    operation_request,
)
from duewheel.rules.names import AHEAD_SECONDS_MAX
from duewheel.rules.refusals import InvalidField, TooLarge, UnknownOperation
from duewheel.rules.tasks.listing import Order, Way
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import address_at
from tests.support.cases import each_case

NOON_MS = 1_893_499_200_000  # 2030-01-01T12:00:00Z
ONE, OTHER = (address_at(NOON_MS, bytes([n] * 8)).task_id for n in range(2))
PERIOD = {"due_from": "2030-01-01T12:00:00Z", "due_to": "2030-01-01T12:00:01Z"}


YEAR_ONE = "0001-01-01T00:00:00+01:00"


def asked(action: str, **members: Any) -> NewOperation:
    body = {"biz_type": "orders", "action": action, **members}
    return operation_request(json.dumps(body), NOON_MS)


@each_case("action", ["cancel", "run"])
def test_without_a_member_a_filter_means_all_that_wait(action: str) -> None:
    wish = Wish(action=Action(action), filter=Filter(status=Status.PENDING))
    assert asked(action, filter={}) == NewOperation("orders", wish)


def test_all_members_are_read() -> None:
    chosen = {
        "status": "pending",
        **PERIOD,
        "key_prefix": "order-",
        "flow_key": "customer-7",
        "labels": {"team": "billing"},
    }
    new = asked("reschedule", filter=chosen, shift_seconds=-60, per_second=7, dry_run=True)
    assert new.wish == Wish(
        action=Action.RESCHEDULE,
        shift_seconds=-60,
        filter=Filter(
            status=Status.PENDING,
            due_from_ms=NOON_MS,
            due_to_ms=NOON_MS + 1_000,
            key_prefix="order-",
            flow_key="customer-7",
            labels=(("team", "billing"),),
        ),
        per_second=7,
        dry_run=True,
    )


def test_ids_are_kept_in_their_order_and_counted() -> None:
    new = asked("redrive", ids=[OTHER, ONE])
    assert new.ids == (OTHER, ONE)
    assert (new.wish.total, new.wish.filter) == (2, None)


@each_case(
    ("action", "members", "field"),
    [
        ("cancel", {}, "ids"),
        ("cancel", {"ids": [ONE], "filter": {}}, "ids"),
        ("cancel", {"ids": []}, "ids"),
        ("cancel", {"ids": [ONE, "?"]}, "ids[1]"),
        ("cancel", {"ids": [ONE, OTHER, ONE]}, "ids[2]"),
        ("cancel", {"filter": {}, "shift_seconds": 1}, "shift_seconds"),
        ("run", {"filter": {}, "due_at": "2030-01-01T13:00:00Z"}, "due_at"),
        ("cancel", {"filter": {"status": "dead"}}, "filter.status"),
        ("cancel", {"filter": {"due_to": "tomorrow"}}, "filter.due_to"),
        (
            "cancel",
            {"filter": {"due_from": PERIOD["due_to"], "due_to": PERIOD["due_from"]}},
            "filter.due_to",
        ),
        ("cancel", {"filter": {"state": "dead"}}, "filter.state"),
        ("cancel", {"filter": {"due_to": "9999-12-31T23:59:59.9999Z"}}, "filter.due_to"),
        ("cancel", {"filter": {"labels": {"team": 1}}}, "filter.labels.team"),
        ("cancel", {"filter": {"key_prefix": ""}}, "filter.key_prefix"),
        ("cancel", {"filter": {}, "dry_run": "yes"}, "dry_run"),
        ("redrive", {"filter": {"status": "dead", "since": YEAR_ONE}}, "filter.since"),
        ("cancel", {"filter": {}, "per_second": 0}, "per_second"),
        ("cancel", {"filter": {}, "per_second": 1_001}, "per_second"),
        ("remake", {"filter": {}}, "action"),
        ("reschedule", {"filter": {}}, "due_at"),
        ("reschedule", {"filter": {}, "shift_seconds": 0}, "shift_seconds"),
        ("reschedule", {"filter": {}, "shift_seconds": AHEAD_SECONDS_MAX + 1}, "shift_seconds"),
        ("reschedule", {"filter": {}, "due_at": "2041-01-01T12:00:00Z"}, "due_at"),
        (
            "reschedule",
            {"filter": {}, "shift_seconds": 1, "due_at": "2030-01-01T13:00:00Z"},
            "shift_seconds",
        ),
        ("redrive", {"filter": {}}, "filter.status"),
        ("redrive", {"filter": {"status": "pending", **PERIOD}}, "filter.status"),
        ("redrive", {"filter": {"status": "expired"}}, "filter.due_from"),
        (
            "redrive",
            {"filter": {"status": "expired", **PERIOD, "reason": "stopped"}},
            "filter.reason",
        ),
        ("cancel", {"filter": {"since": PERIOD["due_from"]}}, "filter.since"),
        ("redrive", {"filter": {"status": "dead", "status_code": 7}}, "filter.status_code"),
        (
            "redrive",
            {"filter": {"status": "expired", "due_from": PERIOD["due_from"]}},
            "filter.due_to",
        ),
    ],
)
def test_what_is_not_allowed_is_refused_by_its_field(
    action: str, members: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidField) as refused:
        asked(action, **members)
    assert refused.value.field == field


def test_more_ids_than_it_takes_are_refused() -> None:
    ids = [address_at(NOON_MS, n.to_bytes(8, "big")).task_id for n in range(IDS_MAX + 1)]
    assert len(asked("cancel", ids=ids[:-1]).ids) == IDS_MAX
    with pytest.raises(TooLarge):
        asked("cancel", ids=ids)


@each_case("status", ["delivered", "expired", "cancelled"])
def test_a_redrive_by_a_status_other_than_dead_needs_a_period(status: str) -> None:
    chosen = asked("redrive", filter={"status": status, **PERIOD}).wish.filter
    assert chosen is not None
    assert (chosen.status, chosen.due_from_ms) == (Status(status), NOON_MS)
    chosen = asked("redrive", filter={"status": "dead"}).wish.filter
    assert chosen is not None
    assert chosen.query("orders", Order.ASC).way is Way.DEATH


@each_case(
    ("members", "order"),
    [
        ({"shift_seconds": 60}, Order.DESC),
        ({"shift_seconds": -60}, Order.ASC),
        ({"due_at": "2030-01-01T13:00:00Z"}, Order.DESC),
    ],
)
def test_a_walk_leaves_what_it_moves_behind(members: dict[str, Any], order: Order) -> None:
    assert walk_order(asked("reschedule", filter={}, **members).wish) is order


@given(
    st.from_regex(r"[a-z][a-z0-9_-]{0,30}", fullmatch=True),
    st.integers(0, 2**48 - 1),
    st.binary(min_size=4, max_size=4),
)
def test_an_id_names_its_business_and_its_mark(biz_type: str, now_ms: int, chance: bytes) -> None:
    mark = mark_at(now_ms, chance)
    assert named_operation(f"{biz_type}~{mark}") == (biz_type, mark)
    if now_ms:
        assert mark_at(now_ms - 1, b"\xff" * 4) < mark, "marks sort by their instants"


@each_case("operation_id", ["", "orders", "orders~", "~" + "0" * 20, "orders~" + "0" * 19])
def test_an_id_of_another_form_is_of_no_operation(operation_id: str) -> None:
    with pytest.raises(UnknownOperation):
        named_operation(operation_id)
