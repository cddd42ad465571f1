"""The order of a flow key: what blocks a task, what it overtakes, how long it waits."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.tasks import flow_order, lifecycle
from duewheel.rules.tasks.flow_order import (
    OVERTAKING_WAIT_MS,
    SOON_MS,
    WAIT_MS_MAX,
    WAIT_MS_MIN,
    Blocked,
    Fate,
    Line,
    OrderItem,
)
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import brought_forward
from duewheel.rules.wheel.addresses import address_at
from duewheel.rules.wheel.timing import SKEW_MS
from tests.support.cases import each_case
from tests.support.clock import NOON_MS

LIVES_MS = 75_000
LINE = Line("orders", "customer-7")


def task(due_ms: int = NOON_MS, number: int = 1, **fields: Any) -> Task:
    home = address_at(due_ms, bytes([number]) * 8)
    made = Task.at(home, "orders", due_ms, NOON_MS - 60_000)
    return replace(made, flow_key="customer-7", **fields)


def item(of: Task, version: int = 1, written_ms: int = NOON_MS) -> OrderItem:
    return OrderItem(place=flow_order.place_of(of), version=version, written_ms=written_ms)


def test_places_sort_by_due_instant_then_by_task_id() -> None:
    early, late = task(NOON_MS, 9), task(NOON_MS + 1, 1)
    same = sorted([task(NOON_MS, 2), task(NOON_MS, 1)], key=lambda one: one.task_id)
    places = [flow_order.place_of(one) for one in (*same, late)]
    assert places == sorted(places)
    assert flow_order.place_of(early) < flow_order.place_of(late)
    assert flow_order.item_of(late, NOON_MS).home == late.home


def test_a_task_with_a_tolerance_has_the_place_of_its_requested_instant() -> None:
    spread = task(NOON_MS + 20_000, requested_ms=NOON_MS)
    assert flow_order.instant_of(spread) == NOON_MS


def test_a_task_that_is_run_now_has_the_place_of_now_through_its_retries() -> None:
    run = brought_forward(task(NOON_MS + 60_000), NOON_MS)
    retried = replace(run, next_ms=NOON_MS + 5_000)
    assert [flow_order.instant_of(one) for one in (run, retried)] == [NOON_MS] * 2
    late = brought_forward(task(NOON_MS - 5_000), NOON_MS)
    assert flow_order.instant_of(late) == NOON_MS - 5_000


LIVE = task()
DEAD = replace(LIVE, status=Status.DEAD, version=2)
MOVED = replace(LIVE, due_ms=NOON_MS + 5_000, version=2)
OLD = NOON_MS + LIVES_MS + SKEW_MS
YOUNG = OLD - 1


@each_case(
    "is_of, home, version, now_ms, fate",
    [
        ("a live task", LIVE, 1, OLD, Fate.LIVE),
        ("a live task, put long before", replace(LIVE, version=7), 1, OLD, Fate.LIVE),
        ("an occurrence, whose timer has the key", replace(LIVE, flow_key=None), 1, OLD, Fate.LIVE),
        ("an ended task", replace(LIVE, status=Status.DELIVERED, version=2), 1, YOUNG, Fate.STALE),
        ("a dead task", DEAD, 2, YOUNG, Fate.STALE),
        ("one that is being redriven", DEAD, 3, YOUNG, Fate.WRITING),
        ("one whose redriver crashed", DEAD, 3, OLD, Fate.STALE),
        ("one that moved away", MOVED, 1, YOUNG, Fate.STALE),
        ("one that is being moved here", MOVED, 3, YOUNG, Fate.WRITING),
        ("a task of another key", replace(LIVE, flow_key="customer-8"), 1, YOUNG, Fate.STALE),
        ("one that is being created", None, 1, YOUNG, Fate.WRITING),
        ("one whose creator crashed", None, 1, OLD, Fate.STALE),
    ],
)
def test_an_item_blocks_while_its_task_is_live_or_may_be_written(
    is_of: str, home: Task | None, version: int, now_ms: int, fate: Fate
) -> None:
    assert flow_order.fate_of(item(LIVE, version), home, LINE, now_ms, LIVES_MS) is fate, is_of


def test_a_task_overtakes_only_what_may_be_looked_at_before_its_item_is_put() -> None:
    ahead = task(NOON_MS + SOON_MS + 1)
    assert flow_order.overtaken_bound([ahead], NOON_MS) is None
    late, later = task(NOON_MS - 1, 1), task(NOON_MS, 2)
    bound = flow_order.overtaken_bound([later, late], NOON_MS)
    assert bound is not None
    assert bound[0] == flow_order.place_of(late) < flow_order.place_of(later) < bound[1]
    assert flow_order.overtaken_by(flow_order.place_of(late), [flow_order.place_of(later)])
    assert not flow_order.overtaken_by(flow_order.place_of(later), [flow_order.place_of(late)])


@pytest.mark.parametrize(
    ("fields", "is_under_way"),
    [
        ({}, True),
        ({"next_ms": NOON_MS + SKEW_MS}, True),
        ({"next_ms": NOON_MS + SKEW_MS + 1}, False),
        ({"status": Status.DELIVERED}, False),
        ({"parked": True}, False),
    ],
)
def test_a_call_may_be_under_way_of_a_task_that_is_pending_and_due(
    fields: dict[str, Any], is_under_way: bool
) -> None:
    one = task(**fields)
    homes = {one.home: one}
    assert flow_order.is_any_under_way([item(one)], homes, NOON_MS) is is_under_way
    assert not flow_order.is_any_under_way([item(one)], {}, NOON_MS)


def test_a_blocked_task_waits_about_as_long_as_it_is_late() -> None:
    retry_ms = NOON_MS + 30_000
    waits = [
        flow_order.waits_until_ms(task(NOON_MS - late_ms), Blocked(retry_ms), NOON_MS) - retry_ms
        for late_ms in (-500, 20_000, 10_000_000)
    ]
    assert waits == [WAIT_MS_MIN, 20_000, WAIT_MS_MAX]


def test_a_blocked_task_falls_due_when_its_grace_is_over() -> None:
    short = task(expires_after_seconds=2)
    until_ms = flow_order.waits_until_ms(short, Blocked(NOON_MS), NOON_MS)
    assert until_ms == NOON_MS + 2_001
    assert lifecycle.is_expired(short, until_ms)


def test_of_two_that_wait_for_each_other_the_later_one_waits_longer() -> None:
    """The one that overtakes looks again before the other may be due by any clock."""
    assert WAIT_MS_MIN > 2 * OVERTAKING_WAIT_MS + SKEW_MS


def test_a_task_that_is_put_aside_again_may_be_woken_from_its_first_instant() -> None:
    once = lifecycle.put_in_line(task(), NOON_MS + 8_000, NOON_MS)
    twice = lifecycle.put_in_line(once, NOON_MS + 24_000, NOON_MS + 8_000)
    assert once.in_line is not None
    assert twice.in_line is not None
    assert [once.in_line.from_ms, twice.in_line.from_ms] == [NOON_MS, NOON_MS]
    assert flow_order.waits_in_line(twice, NOON_MS + 9_000)
    retried = replace(twice, next_ms=NOON_MS + 60_000)
    assert not flow_order.waits_in_line(retried, NOON_MS + 9_000)


def test_a_task_that_falls_due_soon_is_not_woken() -> None:
    """By a clock that is ahead its call may be under way."""
    waiting = lifecycle.put_in_line(task(), NOON_MS + 8_000, NOON_MS)
    assert flow_order.waits_in_line(waiting, NOON_MS + 8_000 - flow_order.SOON_MS - 1)
    assert not flow_order.waits_in_line(waiting, NOON_MS + 8_000 - flow_order.SOON_MS)
