"""Which lane holds and why, when calls hold pages up, and how long a task waits for the lane."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.lanes import ChosenBy, LaneChoice, lane_choice
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.delivery.postponement import (
    WAIT_MS_MAX,
    WAIT_MS_MIN,
    come_up_again,
    comes_up_again_ms,
)
from duewheel.rules.delivery.slow_calls import (
    CALLS_MIN,
    MEAN_MS_MAX,
    SLOW_FOR_MS,
    TOLD_EVERY_MS,
    WINDOW_MS,
    Pace,
    should_publish,
    with_call,
)
from duewheel.rules.tasks.task import Reservation, Task
from duewheel.rules.wheel.addresses import address_at
from duewheel.rules.wheel.lane import Lane

NOW_MS = 1_900_000_000_000
DURATIONS = st.lists(st.integers(0, 30_000), min_size=1, max_size=40)


@pytest.mark.parametrize("slow_until_ms", [0, NOW_MS - 1, NOW_MS, NOW_MS + 1])
def test_a_setting_beats_what_was_observed_and_that_the_default(slow_until_ms: int) -> None:
    for lane in Lane:
        set_so = LaneChoice(lane, ChosenBy.SETTING)
        assert lane_choice(lane, slow_until_ms, NOW_MS) == set_so
    left = lane_choice(None, slow_until_ms, NOW_MS)
    if slow_until_ms > NOW_MS:
        assert left == LaneChoice(Lane.SLOW, ChosenBy.OBSERVED)
    else:
        assert left == LaneChoice(Lane.MAIN, ChosenBy.DEFAULT)


def seen(durations_ms: list[int], every_ms: int) -> Pace:
    pace = None
    for number, duration_ms in enumerate(durations_ms):
        pace = with_call(pace, duration_ms, NOW_MS + number * every_ms)
    assert pace is not None
    return pace


@given(DURATIONS)
def test_calls_hold_pages_up_when_enough_of_them_take_too_long_on_average(
    durations_ms: list[int],
) -> None:
    pace = seen(durations_ms, every_ms=1)
    mean_ms = sum(durations_ms) / len(durations_ms)
    assert pace.is_slow == (len(durations_ms) >= CALLS_MIN and mean_ms > MEAN_MS_MAX)


@given(DURATIONS)
def test_calls_too_few_for_a_window_say_nothing_however_long_they_take(
    durations_ms: list[int],
) -> None:
    assert not seen(durations_ms, every_ms=WINDOW_MS // (CALLS_MIN - 1)).is_slow


@given(DURATIONS, st.integers(1, WINDOW_MS))
def test_a_window_of_quick_calls_forgets_the_slow_ones_before_it(
    durations_ms: list[int], every_ms: int
) -> None:
    pace = seen(durations_ms, every_ms)
    for number in range(CALLS_MIN):
        pace = with_call(pace, MEAN_MS_MAX, pace.since_ms + WINDOW_MS + number)
    assert not pace.is_slow


def test_a_clock_that_goes_back_begins_a_window_anew() -> None:
    pace = seen([30_000] * 10, every_ms=1)
    assert with_call(pace, 5, pace.since_ms - 1) == Pace(pace.since_ms - 1, 1, 5)


@given(st.integers(NOW_MS, NOW_MS + SLOW_FOR_MS))
def test_what_was_told_within_the_last_minute_is_not_told_again(now_ms: int) -> None:
    told_until_ms = NOW_MS + SLOW_FOR_MS
    assert should_publish(told_until_ms, now_ms) == (now_ms > NOW_MS + TOLD_EVERY_MS)
    assert should_publish(0, now_ms)


def a_task(due_ms: int) -> Task:
    home = address_at(due_ms, bytes(8))
    return Task(
        home=home,
        entry=home,
        biz_type="slow",
        due_ms=due_ms,
        next_ms=due_ms,
        callback=HttpCallback("https://a.example"),
        created_ms=due_ms,
        updated_ms=due_ms,
        reservation=Reservation(due_ms, 1),
    )


@given(st.integers(-60_000, 10**9))
def test_a_task_waits_as_long_again_as_it_is_late_within_bounds(late_ms: int) -> None:
    task = a_task(NOW_MS - late_ms)
    wait_ms = comes_up_again_ms(task, NOW_MS) - NOW_MS
    assert WAIT_MS_MIN <= wait_ms <= WAIT_MS_MAX
    if WAIT_MS_MIN <= late_ms <= WAIT_MS_MAX:
        assert wait_ms == late_ms


def test_to_wait_uses_up_no_attempt_and_no_turn() -> None:
    task = replace(a_task(NOW_MS - 125_000), attempts=2)
    after = come_up_again(task, NOW_MS)
    assert (after.attempts, after.due_ms) == (2, task.due_ms)
    assert after.next_ms == comes_up_again_ms(task, NOW_MS)
    assert (after.reservation, after.version) == (None, task.version + 1)
