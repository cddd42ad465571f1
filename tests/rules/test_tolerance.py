"""The second that a task with a tolerance gets: never early, never too late, and shared."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.tolerance import (
    GRIDS_SECONDS,
    TOLERANCE_SECONDS_MAX,
    Window,
    shared_ms,
    spread_ms,
)
from duewheel.rules.wheel.sharding import Placement

HOUR_MS = 3_600_000
instants = st.integers(0, 4_000_000_000_000)
tolerances = st.integers(1, TOLERANCE_SECONDS_MAX)
businesses = st.sampled_from(["orders", "bills", "a", "z" * 63])
tokens = st.binary(min_size=8, max_size=8)
parts = st.sampled_from([2**n for n in range(1, 9)])


def test_each_grid_contains_the_coarser_ones() -> None:
    assert all(coarser % finer == 0 for finer, coarser in pairwise(GRIDS_SECONDS))
    assert GRIDS_SECONDS[0] == 1


@given(instants, tolerances, businesses)
def test_the_shared_second_is_never_early_and_at_most_the_tolerance_late(
    due_ms: int, tolerance: int, biz_type: str
) -> None:
    shared = shared_ms(Window(due_ms, biz_type), tolerance)
    assert due_ms <= shared <= due_ms + tolerance * 1000
    assert shared % 1000 == 0


@given(instants, tolerances, businesses, parts, tokens)
def test_a_spread_second_is_never_early_and_at_most_the_tolerance_late(
    due_ms: int, tolerance: int, biz_type: str, shards: int, token: bytes
) -> None:
    spread = spread_ms(Window(due_ms, biz_type), tolerance, shards, token)
    assert due_ms <= spread <= due_ms + tolerance * 1000
    assert spread % 1000 == 0


@given(instants, businesses)
def test_without_tolerance_a_task_keeps_its_millisecond(due_ms: int, biz_type: str) -> None:
    assert shared_ms(Window(due_ms, biz_type), 0) == due_ms


@given(instants, businesses, tolerances, tolerances)
def test_a_shared_second_of_a_larger_tolerance_is_one_of_the_smaller(
    due_ms: int, biz_type: str, one: int, other: int
) -> None:
    """So tasks of different tolerances meet."""
    smaller, larger = sorted((one, other))
    shared = shared_ms(Window(due_ms, biz_type), larger)
    assert shared_ms(Window(shared, biz_type), smaller) == shared


@given(instants, businesses)
def test_tasks_of_a_business_within_a_minute_share_one_or_two_seconds(
    from_ms: int, biz_type: str
) -> None:
    seconds = {shared_ms(Window(from_ms + n, biz_type), 60) for n in range(0, 60_000, 501)}
    assert len(seconds) <= 2


def test_businesses_share_different_seconds() -> None:
    seconds = {shared_ms(Window(0, f"business-{n}"), 3_600) for n in range(500)}
    assert len(seconds) > 400
    assert all(0 <= second < HOUR_MS for second in seconds)
    of_the_minute = {shared_ms(Window(0, f"business-{n}"), 60) for n in range(500)}
    assert len(of_the_minute) == 60


@given(instants, tolerances)
def test_a_larger_load_is_spread_over_more_seconds(due_ms: int, tolerance: int) -> None:
    def seconds(shards: int) -> set[int]:
        window = Window(due_ms, "orders")
        return {spread_ms(window, tolerance, shards, bytes([n, n, n])) for n in range(200)}

    few, many = seconds(2), seconds(64)
    assert len(few) <= len(many) <= tolerance + 1
    assert len(few) <= 11  # the grids differ by a factor of 5 at most
    if tolerance >= 60:
        assert len(many) > 30


@given(instants, tolerances, tokens, st.integers(-HOUR_MS, HOUR_MS))
def test_a_placement_that_knows_no_crowd_gives_the_shared_second(
    due_ms: int, tolerance: int, token: bytes, ago_ms: int
) -> None:
    placement = Placement(now_ms=max(0, due_ms + ago_ms), lead_ms=500)
    window = Window(due_ms, "orders", tolerance)
    assert placement.due_ms(window, token) == shared_ms(window, tolerance)


@given(instants, tolerances, tokens, parts)
def test_a_placement_spreads_a_crowd_and_only_that(
    due_ms: int, tolerance: int, token: bytes, shards: int
) -> None:
    window = Window(due_ms, "orders", tolerance)
    second = shared_ms(window, tolerance) // 1000
    placement = Placement(now_ms=0, lead_ms=500, shards={second: shards})
    assert placement.due_ms(window, token) == spread_ms(window, tolerance, shards, token)
    exact = Window(second * 1000, "orders", 0)
    assert placement.due_ms(exact, token) == second * 1000


def test_the_own_tolerance_of_a_task_counts_before_that_of_its_business() -> None:
    placement = Placement(now_ms=0, lead_ms=500, tolerances={"orders": 60})
    assert placement.due_ms(Window(1, "orders", None), b"") == shared_ms(Window(1, "orders"), 60)
    assert placement.due_ms(Window(1, "orders", 5), b"") == shared_ms(Window(1, "orders"), 5)
    assert placement.due_ms(Window(1, "orders", 0), b"") == 1
    assert placement.due_ms(Window(1, "bills", None), b"") == 1
