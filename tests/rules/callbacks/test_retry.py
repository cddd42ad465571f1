"""The instant at which a failed task is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.retry import (
    ATTEMPTS_MAX,
    DEFAULT_RETRY,
    RETRY_AFTER_SECONDS_MAX,
    RETRY_DELAY_SECONDS_MAX,
    RETRY_FACTOR_MAX,
    RETRY_FIRST_DELAY_SECONDS_MIN,
    delay_ms,
)
from duewheel.rules.callbacks.types import RetryPolicy
from tests.support.cases import each_case

units = st.floats(0, 1, exclude_max=True)
exponential = st.builds(
    RetryPolicy,
    attempts_max=st.integers(2, ATTEMPTS_MAX),
    first_delay_seconds=st.floats(RETRY_FIRST_DELAY_SECONDS_MIN, RETRY_DELAY_SECONDS_MAX),
    factor=st.floats(1, RETRY_FACTOR_MAX),
    delay_max_seconds=st.floats(RETRY_FIRST_DELAY_SECONDS_MIN, RETRY_DELAY_SECONDS_MAX),
)
delay_lists = st.lists(
    st.floats(0, RETRY_DELAY_SECONDS_MAX), min_size=1, max_size=ATTEMPTS_MAX - 1
).flatmap(
    lambda delays: st.builds(
        RetryPolicy,
        attempts_max=st.integers(2, ATTEMPTS_MAX),
        delays_seconds=st.just(tuple(delays)),
    )
)


def attempts_of(policy: RetryPolicy) -> st.SearchStrategy[int]:
    return st.integers(1, policy.attempts_max - 1)


@each_case(
    ("attempts_made", "ceiling_ms"),
    [(1, 3_000), (2, 6_000), (3, 12_000), (12, 6_144_000), (13, 12_288_000), (14, 21_600_000)],
)
def test_the_default_doubles_from_three_seconds_up_to_six_hours(
    attempts_made: int, ceiling_ms: int
) -> None:
    assert delay_ms(DEFAULT_RETRY, attempts_made, 1.0) == ceiling_ms
    assert delay_ms(DEFAULT_RETRY, attempts_made, 0.5) == ceiling_ms / 2
    assert delay_ms(DEFAULT_RETRY, attempts_made, 0.0) == 0


def test_the_default_makes_sixteen_attempts() -> None:
    assert delay_ms(DEFAULT_RETRY, 15, 0.5) is not None
    assert delay_ms(DEFAULT_RETRY, 16, 0.5) is None


@given(exponential | delay_lists, st.integers(0, 3), units, st.none() | st.floats(0, 1e6))
def test_no_attempt_follows_the_last_one(
    policy: RetryPolicy, beyond: int, unit: float, retry_after: float | None
) -> None:
    """This holds even when the receiver sets an instant for it."""
    assert delay_ms(policy, policy.attempts_max + beyond, unit, retry_after) is None


@given(exponential, st.data(), units)
def test_an_exponential_delay_lies_between_zero_and_its_ceiling(
    policy: RetryPolicy, data: st.DataObject, unit: float
) -> None:
    made = data.draw(attempts_of(policy))
    delay = delay_ms(policy, made, unit)
    ceiling = delay_ms(policy, made, 1.0)
    assert delay is not None
    assert ceiling is not None
    assert 0 <= delay <= ceiling <= round(policy.delay_max_seconds * 1000)


@given(exponential, st.data())
def test_the_ceiling_doubles_with_each_attempt_up_to_the_largest_delay(
    policy: RetryPolicy, data: st.DataObject
) -> None:
    made = data.draw(attempts_of(policy))
    ceiling = delay_ms(policy, made, 1.0)
    exact = policy.first_delay_seconds * policy.factor ** min(made - 1, 150)
    assert ceiling == pytest.approx(min(exact, policy.delay_max_seconds) * 1000, abs=1)


@given(exponential, st.data())
def test_full_jitter_spreads_evenly_over_the_whole_delay(
    policy: RetryPolicy, data: st.DataObject
) -> None:
    made = data.draw(attempts_of(policy))
    ceiling = delay_ms(policy, made, 1.0)
    assert ceiling is not None
    for tenth in range(10):
        assert delay_ms(policy, made, tenth / 10) == pytest.approx(ceiling * tenth / 10, abs=1)


def test_a_hundred_attempts_with_the_largest_factor_do_not_overflow() -> None:
    policy = RetryPolicy(
        attempts_max=ATTEMPTS_MAX,
        first_delay_seconds=RETRY_DELAY_SECONDS_MAX,
        factor=1e300,
        delay_max_seconds=RETRY_DELAY_SECONDS_MAX,
    )
    delays = [delay_ms(policy, made, 1.0) for made in range(1, ATTEMPTS_MAX)]
    assert delays == [RETRY_DELAY_SECONDS_MAX * 1000] * (ATTEMPTS_MAX - 1)


@given(delay_lists, st.data(), units)
def test_listed_delays_are_used_exactly_and_the_last_one_repeats(
    policy: RetryPolicy, data: st.DataObject, unit: float
) -> None:
    made = data.draw(attempts_of(policy))
    rung = min(made, len(policy.delays_seconds)) - 1
    assert delay_ms(policy, made, unit) == round(policy.delays_seconds[rung] * 1000)


@given(exponential | delay_lists, st.data(), units, st.floats(0, RETRY_AFTER_SECONDS_MAX))
def test_retry_after_may_lengthen_the_delay_and_never_shortens_it(
    policy: RetryPolicy, data: st.DataObject, unit: float, retry_after: float
) -> None:
    made = data.draw(attempts_of(policy))
    planned = delay_ms(policy, made, unit)
    delay = delay_ms(policy, made, unit, retry_after)
    assert planned is not None
    assert delay == max(planned, round(retry_after * 1000))


def test_retry_after_is_limited_to_a_day() -> None:
    assert delay_ms(DEFAULT_RETRY, 1, 0.0, 10_000_000.0) == RETRY_AFTER_SECONDS_MAX * 1000
