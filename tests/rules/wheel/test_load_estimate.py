"""The estimate of what the seconds to come hold."""

import random

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.wheel.sharding import SAMPLED_ONE_IN, MinuteLoad, sampled

MINUTE = 30_000_000
SECOND = MINUTE * 60


def always() -> float:
    return 0.0


def hardly_ever() -> float:
    return 0.999


def test_a_single_entry_is_noted_rarely_and_then_weighs_as_much_as_those_that_are_not() -> None:
    assert sampled([SECOND + 7], hardly_ever) == []
    assert sampled([SECOND + 7], always) == [MinuteLoad(MINUTE, {7: SAMPLED_ONE_IN})]


def test_many_of_one_minute_are_counted_exactly_and_at_once() -> None:
    seconds = [SECOND + number % 4 for number in range(100)]
    assert sampled(seconds, hardly_ever) == [MinuteLoad(MINUTE, {0: 25, 1: 25, 2: 25, 3: 25})]


def test_minutes_are_noted_apart() -> None:
    crowded = [SECOND] * SAMPLED_ONE_IN
    assert sampled([*crowded, SECOND + 60], hardly_ever) == [MinuteLoad(MINUTE, {0: 64})]


@given(st.lists(st.integers(SECOND, SECOND + 59), min_size=1, max_size=100))
def test_what_is_noted_is_right_in_expectation(seconds: list[int]) -> None:
    (noted,) = sampled(seconds, always)
    probability = min(1, len(seconds) / SAMPLED_ONE_IN)
    assert abs(noted.entries * probability - len(seconds)) < 0.01 * len(seconds)


def test_many_single_entries_come_out_about_right() -> None:
    chance = random.Random(17)
    noted = [load for _ in range(20_000) for load in sampled([SECOND], chance.random)]
    assert abs(sum(load.entries for load in noted) / 20_000 - 1) < 0.15


def test_seconds_that_have_begun_are_no_forecast() -> None:
    load = MinuteLoad(MINUTE, {3: 10, 4: 20, 5: 30})
    assert load.after(SECOND + 4) == MinuteLoad(MINUTE, {5: 30})
    assert load.after(SECOND + 60).by_second == {}
