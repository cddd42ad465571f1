"""Ids and cursors that the service never gave to the caller. The check of an id detects damage and
hides no information, so a caller can make an id for any place of the wheel."""

import itertools
from typing import Any

import boto3
import pytest

from duewheel.rules.wheel.addresses import SECOND_MAX, SHARD_MAX, Address, address_at
from duewheel.stores.tasks import codec
from duewheel.wiring import process
from tests.attacks.conftest import HOOK, TASK, TIMER, attack, made, problem, stored_items
from tests.support.cases import each_case
from tests.support.clock import NOON_MS, ManualClock

UNKNOWN = (404, "unknown-task")
WAYS = (
    ("GET", "", None),
    ("PATCH", "", {"delay_seconds": 900}),
    ("PATCH", "", {"callback": HOOK}),
    ("DELETE", "", None),
    ("POST", "/run", None),
    ("POST", "/pause", None),
    ("POST", "/resume", None),
    ("POST", "/redrive", None),
)
NOWHERE = (
    address_at(0, b"\0" * 8),
    address_at(NOON_MS, b"\xff" * 8, shard=SHARD_MAX),
    address_at(NOON_MS + 600_000, b"nowhere!", direct=True),
    address_at(SECOND_MAX * 1000 + 999, b"farthest"),
)


def items_of_wheel() -> list[dict[str, Any]]:
    return boto3.client("dynamodb").scan(TableName=process.settings().wheel_table)["Items"]  # type: ignore[return-value]


def check_is_answered_as_unknown(home: Address) -> None:
    """Each call that takes an id answers byte for byte as for an unknown id, and changes no
    item."""
    before = stored_items()
    for method, action, body in WAYS:
        answer = attack(method, f"/v1/tasks/{home.task_id}{action}", body)
        assert answer == attack(method, f"/v1/tasks/{NOWHERE[2].task_id}{action}", body)
        assert problem(method, f"/v1/tasks/{home.task_id}{action}", body) == UNKNOWN
    assert stored_items() == before


@pytest.mark.parametrize("home", NOWHERE)
def test_an_id_of_no_task_changes_nothing(wired: ManualClock, home: Address) -> None:
    made("POST", "/v1/tasks", TASK)
    check_is_answered_as_unknown(home)


def test_an_entry_of_a_task_is_answered_as_unknown(wired: ManualClock) -> None:
    task = made("POST", "/v1/tasks", TASK)
    made("PATCH", f"/v1/tasks/{task['task_id']}", {"delay_seconds": 60})
    (entry,) = (item for item in items_of_wheel() if codec.is_reentry(item))
    check_is_answered_as_unknown(codec.address_of(entry))


def test_the_chain_of_a_timer_is_answered_as_unknown(wired: ManualClock) -> None:
    """If it were cancelled, the timer would stay enabled without runs."""
    made("POST", "/v1/timers", TIMER)
    (chain,) = (item for item in items_of_wheel() if "plan" in item)
    check_is_answered_as_unknown(codec.address_of(chain))
    assert attack("GET", "/v1/tasks", None, "biz_type=orders")[1]["tasks"] == []


# ---------------------------------------------------------------- cursors


def listings(timer: str, other: str) -> list[tuple[str, str, str, str]]:
    """Each list, and the same list of another caller: method, path, query and description."""
    return [
        ("GET", "/v1/tasks", "biz_type=orders&limit=1", "tasks"),
        ("GET", "/v1/tasks", "biz_type=bills&limit=1", "tasks"),
        ("GET", "/v1/businesses", "limit=1", "businesses"),
        ("GET", "/v1/overview", "limit=1", "businesses"),
        ("GET", "/v1/businesses/orders/tasks", "key_prefix=a&limit=1", "tasks"),
        ("GET", "/v1/businesses/orders/tasks", "key_prefix=b&limit=1", "tasks"),
        ("GET", "/v1/businesses/bills/tasks", "key_prefix=a&limit=1", "tasks"),
        ("GET", "/v1/timers", "biz_type=orders&limit=1", "timers"),
        ("GET", "/v1/timers", "biz_type=bills&limit=1", "timers"),
        ("GET", f"/v1/timers/{timer}/runs", "limit=1", "tasks"),
        ("GET", f"/v1/timers/{other}/runs", "limit=1", "tasks"),
    ]


def test_a_cursor_is_accepted_only_by_its_own_list(wired: ManualClock) -> None:
    timers = []
    for biz_type in ("orders", "bills"):
        made("PUT", f"/v1/businesses/{biz_type}", {})
        for key in ("a1", "a2", "b1", "b2"):
            made("POST", "/v1/tasks", {**TASK, "biz_type": biz_type, "key": key})
        for name in ("close", "open"):
            made("POST", "/v1/timers", {**TIMER, "biz_type": biz_type, "name": name})
        timers.append(made("POST", "/v1/timers", {**TIMER, "biz_type": biz_type, "name": "run"}))
        for _ in range(2):
            made("POST", f"/v1/timers/{timers[-1]['timer_id']}/run")
    lists = listings(timers[0]["timer_id"], timers[1]["timer_id"])
    pages = [attack(method, path, None, query)[1] for method, path, query, _ in lists]
    given = [page["cursor"] for page in pages]
    assert all(given)
    for (number, cursor), (other, (method, path, query, _)) in itertools.product(
        enumerate(given), enumerate(lists)
    ):
        request = (method, path, None, f"{query}&cursor={cursor}")
        if number == other:
            assert attack(*request)[0] == 200
        else:
            assert problem(*request) == (422, "invalid-field"), (lists[number], lists[other])


@each_case(
    ("method", "path", "query"),
    [
        ("GET", "/v1/tasks", "biz_type=orders"),
        ("GET", "/v1/businesses", ""),
        ("GET", "/v1/overview", ""),
        ("GET", "/v1/businesses/orders/dead", ""),
        ("GET", "/v1/businesses/orders/tasks", "key_prefix=a"),
        ("DELETE", "/v1/businesses/orders/tasks", "key_prefix=a"),
        ("DELETE", "/v1/businesses/orders", "cancel_pending=true"),
        ("GET", "/v1/timers", "biz_type=orders"),
        ("GET", "/v1/audit", ""),
    ],
)
def test_an_invalid_cursor_is_refused_and_changes_no_item(
    wired: ManualClock, method: str, path: str, query: str
) -> None:
    made("PUT", "/v1/businesses/orders", {})
    made("POST", "/v1/tasks", {**TASK, "key": "a1"})
    attack("GET", "/v1/businesses")  # the first list creates the secret of cursors
    before = stored_items()
    for cursor in ("", "A", "A" * 22, "A" * 43, "A" * 5_000, "%ff", "%00", "é", "../..", "=" * 9):
        request = (method, path, None, f"{query}&cursor={cursor}")
        assert problem(*request) == (422, "invalid-field"), cursor
        assert stored_items() == before, cursor
