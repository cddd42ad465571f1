"""The choice of a lane, and the detection of slow calls."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.businesses.lanes import (
    CALLS_MIN,
    MEAN_MS_MAX,
    PUBLISH_EVERY_MS,
    SLOW_FOR_MS,
    WINDOW_MS,
    BusinessLane,
    ChosenBy,
    LaneChoice,
    Pace,
    lane_choice,
    should_publish,
    with_call,
)
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_000
DURATIONS = st.lists(st.integers(0, 30_000), min_size=1, max_size=40)


@each_case("slow_until_ms", [0, NOW_MS - 1, NOW_MS, NOW_MS + 1])
def test_a_setting_takes_precedence_over_observation_and_observation_over_the_default(
    slow_until_ms: int,
) -> None:
    for lane in BusinessLane:
        set_so = LaneChoice(lane, ChosenBy.SETTING)
        assert lane_choice(lane, slow_until_ms, NOW_MS) == set_so
    left = lane_choice(None, slow_until_ms, NOW_MS)
    if slow_until_ms > NOW_MS:
        assert left == LaneChoice(BusinessLane.SLOW, ChosenBy.OBSERVED)
    else:
        assert left == LaneChoice(BusinessLane.MAIN, ChosenBy.DEFAULT)


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
def test_too_few_calls_in_a_window_are_never_slow(
    durations_ms: list[int],
) -> None:
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
