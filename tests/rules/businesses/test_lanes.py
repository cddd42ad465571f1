"""The lane of a business, and the detection of slow calls."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.businesses.health import BusinessHealth
from duewheel.rules.businesses.lanes import (
    CALLS_MIN,
    MEAN_MS_MAX,
    PUBLISH_EVERY_MS,
    SLOW_FOR_MS,
    WINDOW_MS,
    BusinessLane,
    Pace,
    should_publish,
    with_call,
)
from duewheel.rules.businesses.settings import Business, Defaults
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_000
DEFAULTS = Defaults(retention_days=30, timeout_seconds=10, timeout_seconds_max=30)
DURATIONS = st.lists(st.integers(0, 30_000), min_size=1, max_size=40)


@each_case("until_ms", [0, NOW_MS - 1, NOW_MS, NOW_MS + 1])
def test_a_business_is_in_the_slow_lane_until_the_instant_that_was_observed(until_ms: int) -> None:
    business = Business("orders", DEFAULTS, health=BusinessHealth(slow_until_ms=until_ms))
    is_slow = until_ms > NOW_MS
    assert business.lane_at(NOW_MS) is (BusinessLane.SLOW if is_slow else BusinessLane.MAIN)


def seen(durations_ms: list[int], every_ms: int) -> Pace:
    pace = None
    for number, duration_ms in enumerate(durations_ms):
        pace = with_call(pace, duration_ms, NOW_MS + number * every_ms)
    assert pace is not None
    return pace


@given(DURATIONS)
def test_calls_are_slow_when_enough_of_them_take_too_long_on_average(
    durations_ms: list[int],
) -> None:
    pace = seen(durations_ms, every_ms=1)
    mean_ms = sum(durations_ms) / len(durations_ms)
    assert pace.is_slow == (len(durations_ms) >= CALLS_MIN and mean_ms > MEAN_MS_MAX)


@given(DURATIONS)
def test_too_few_calls_in_a_window_are_never_slow(durations_ms: list[int]) -> None:
    assert not seen(durations_ms, every_ms=WINDOW_MS // (CALLS_MIN - 1)).is_slow


@given(DURATIONS, st.integers(1, WINDOW_MS))
def test_slow_calls_do_not_count_after_a_window_of_quick_calls(
    durations_ms: list[int], every_ms: int
) -> None:
    pace = seen(durations_ms, every_ms)
    for number in range(CALLS_MIN):
        pace = with_call(pace, MEAN_MS_MAX, pace.since_ms + WINDOW_MS + number)
    assert not pace.is_slow


def test_a_clock_that_goes_back_begins_a_new_window() -> None:
    pace = seen([30_000] * 10, every_ms=1)
    assert with_call(pace, 5, pace.since_ms - 1) == Pace(pace.since_ms - 1, 1, 5)


@given(st.integers(NOW_MS, NOW_MS + SLOW_FOR_MS))
def test_slowness_is_not_published_again_within_a_minute(now_ms: int) -> None:
    published_until_ms = NOW_MS + SLOW_FOR_MS
    assert should_publish(published_until_ms, now_ms) == (now_ms > NOW_MS + PUBLISH_EVERY_MS)
    assert should_publish(0, now_ms)
