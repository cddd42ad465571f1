"""Turns of a rate are an interval apart, and shortages are exact to the microsecond."""

import math

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.businesses.rate_limit import US_PER_SECOND, RateLimit, ReservedTurns, shortage

RATES = st.floats(min_value=0.001, max_value=10_000, allow_nan=False)
NOW_US = 1_760_000_000_000_000


@given(RATES, st.integers(1, 300))
def test_no_second_holds_more_turns_than_the_rate(per_second: float, count: int) -> None:
    turns = ReservedTurns(NOW_US, RateLimit(per_second, 1).interval_us, count, 1)
    instants = turns.instants_ms()
    most = math.ceil(per_second) + 1  # one more because of rounding to milliseconds
    for first, instant in enumerate(instants):
        in_its_second = [ms for ms in instants[first:] if ms < instant + 1_000]
        assert len(in_its_second) <= most


def test_turns_are_rounded_up_to_milliseconds() -> None:
    assert ReservedTurns(1_500, 333, 4, 1).instants_ms() == [2, 2, 3, 3]


@given(st.integers(-5_000_000, 5_000_000), st.integers(1, 100), st.integers(1_000, 500_000))
def test_a_shortage_reports_exactly_the_free_turns_and_the_time_to_wait(
    free_ahead_us: int, burst: int, interval_us: int
) -> None:
    ahead_us = burst * interval_us
    free_us = NOW_US + free_ahead_us
    short = shortage(free_us, NOW_US, ahead_us, interval_us)
    ends_us = max(free_us, NOW_US) + short.free * interval_us
    latest_us = NOW_US + ahead_us
    assert short.free == 0 or ends_us <= latest_us
    assert ends_us + interval_us > latest_us
    later = shortage(free_us, NOW_US + short.wait_us, ahead_us, interval_us)
    assert later.free > short.free or later.free == burst
    if short.wait_us:
        sooner = shortage(free_us, NOW_US + short.wait_us - 1, ahead_us, interval_us)
        assert sooner.free == short.free


def test_a_rate_of_one_in_a_thousand_seconds_is_one_turn_in_a_thousand_seconds() -> None:
    assert RateLimit(0.001, 1).interval_us == 1_000 * US_PER_SECOND
