"""The comparisons of instants, with clocks that are off: each promise against its rule.

`skews` are what the clocks of two functions may be off against each other, either way.
"""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.wheel import timing
from duewheel.rules.wheel.timing import DELAY_SECONDS_MAX, DIRECT_LATE_MS, NEAR_MARGIN_MS, SKEW_MS
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_000

instants = st.integers(0, 4_000_000_000_000)
leads = st.integers(0, 2_000)
skews = st.integers(-(SKEW_MS - 1), SKEW_MS - 1)
aheads = st.sampled_from([0, timing.AHEAD_MS])
soon_ms = st.integers(-20_000, 20_000)
near_horizon_ms = st.integers(2_000, 12_000)  # how far ahead the near rule turns


# Places


@given(instants, instants)
def test_a_place_is_never_earlier_than_its_instant_nor_than_the_writers_clock(
    instant_ms: int, now_ms: int
) -> None:
    placed_ms = timing.placed_ms(instant_ms, now_ms)
    assert placed_ms >= now_ms
    assert placed_ms >= instant_ms
    assert placed_ms in (instant_ms, now_ms)


# Near entries


@each_case(
    ("further_ms", "ahead_seconds", "near"),
    [
        (0, -3, True),
        (0, 0, True),
        (0, 5, True),
        (0, 6, False),  # lead 0.5 s and margin 5 s
        (timing.AHEAD_MS, 155, True),
        (timing.AHEAD_MS, 156, False),  # the pointer may be at 150
    ],
)
def test_near_is_what_may_have_been_handed_over(
    further_ms: int, ahead_seconds: int, near: bool
) -> None:
    second = NOW_MS // 1000 + ahead_seconds
    assert timing.is_near(second, NOW_MS, 500, further_ms) is near


@given(near_horizon_ms, skews, leads, st.integers(0, NEAR_MARGIN_MS - SKEW_MS))
def test_an_entry_that_is_not_near_is_written_before_its_slice_may_be_read(
    ahead_ms: int, skew_ms: int, lead_ms: int, write_ms: int
) -> None:
    """It may take the margin less the skew to be written."""
    second = (NOW_MS + ahead_ms) // 1000
    is_near = timing.is_near(second, NOW_MS, lead_ms)
    assert is_near or NOW_MS + skew_ms + write_ms < timing.opens_ms(second, lead_ms)


def dispatched_by(clock_ms: int, lead_ms: int, aws_ms: int, further_ms: int) -> int:
    """The last second that a scheduler with this clock may hand over: see `Dispatch`."""
    return timing.dispatchable_second(clock_ms + further_ms, lead_ms, aws_ms + further_ms)


@given(near_horizon_ms, skews, soon_ms, leads, aheads)
def test_an_entry_that_is_not_near_is_written_before_its_second_may_be_dispatched(
    ahead_ms: int,
    skew_ms: int,
    aws_ahead_ms: int,
    lead_ms: int,
    further_ms: int,
) -> None:
    second = (NOW_MS + further_ms + ahead_ms) // 1000
    dispatched = dispatched_by(NOW_MS + skew_ms, lead_ms, NOW_MS + aws_ahead_ms, further_ms)
    is_near = timing.is_near(second, NOW_MS, lead_ms, further_ms)
    assert is_near or second > dispatched


@given(near_horizon_ms, skews, leads, st.integers(0, NEAR_MARGIN_MS - SKEW_MS), aheads)
def test_it_may_take_the_margin_less_the_skew_to_be_written_before_that_too(
    ahead_ms: int, skew_ms: int, lead_ms: int, write_ms: int, further_ms: int
) -> None:
    second = (NOW_MS + further_ms + ahead_ms) // 1000
    written_ms = NOW_MS + write_ms
    dispatched = dispatched_by(written_ms + skew_ms, lead_ms, written_ms, further_ms)
    assert timing.is_near(second, NOW_MS, lead_ms, further_ms) or second > dispatched


@given(near_horizon_ms, skews, st.integers(-10_000_000, 10_000_000), leads, aheads)
def test_this_holds_for_a_scheduler_whose_clock_is_wrong_as_long_as_aws_is_right(
    ahead_ms: int, aws_ahead_ms: int, clock_ahead_ms: int, lead_ms: int, further_ms: int
) -> None:
    second = (NOW_MS + further_ms + ahead_ms) // 1000
    scheduler_ms, aws_ms = NOW_MS + clock_ahead_ms, NOW_MS + aws_ahead_ms
    dispatched = dispatched_by(scheduler_ms, lead_ms, aws_ms, further_ms)
    assert timing.is_near(second, NOW_MS, lead_ms, further_ms) or second > dispatched


@given(near_horizon_ms, leads, st.integers(0, 60), aheads)
def test_what_is_near_stays_near_as_time_goes_by(
    ahead_ms: int, lead_ms: int, later_seconds: int, further_ms: int
) -> None:
    second = (NOW_MS + further_ms + ahead_ms) // 1000
    later_ms = NOW_MS + later_seconds * 1000
    if timing.is_near(second, NOW_MS, lead_ms, further_ms):
        assert timing.is_near(second, later_ms, lead_ms, further_ms)


# Clocks that are off by more than they may


@given(instants, st.integers(0, 1_000_000), st.integers(0, 999))
def test_a_clock_far_behind_is_taken_for_one_that_is_behind_as_far_as_clocks_may_be(
    aws_ms: int, behind_ms: int, cut_ms: int
) -> None:
    taken_ms = timing.not_behind_ms(aws_ms - behind_ms, aws_ms - cut_ms)
    assert aws_ms - SKEW_MS - 1_000 < taken_ms <= aws_ms
    assert taken_ms == aws_ms - behind_ms or behind_ms > SKEW_MS


@given(instants, st.integers(0, 1_000_000), st.integers(0, 999))
def test_a_clock_far_ahead_is_taken_for_one_that_is_ahead_as_far_as_clocks_may_be(
    aws_ms: int, ahead_ms: int, cut_ms: int
) -> None:
    taken_ms = timing.not_ahead_ms(aws_ms + ahead_ms, aws_ms - cut_ms)
    assert aws_ms <= taken_ms <= aws_ms + SKEW_MS + 1_000
    assert taken_ms == aws_ms + ahead_ms or ahead_ms > SKEW_MS


# The cut-off


@given(instants, leads, st.integers(1, 10_000), skews)
def test_a_cancel_answered_before_the_cut_off_precedes_any_read(
    next_ms: int, lead_ms: int, early_ms: int, skew_ms: int
) -> None:
    """By the API's clock it was answered; at that moment no notifier has read the task."""
    answered_ms = timing.cut_off_ms(next_ms, lead_ms) - early_ms
    notifier_ms = answered_ms + skew_ms
    assert notifier_ms < timing.opens_ms(next_ms // 1000, lead_ms)


@given(instants, instants, leads)
def test_an_entry_opens_no_earlier_than_its_tasks_cut_off_allows(
    next_ms: int, written_ms: int, lead_ms: int
) -> None:
    """An entry stands at its task's next instant or, if that is past, at the clock."""
    entry_second = timing.placed_ms(next_ms, written_ms) // 1000
    opens_ms = timing.opens_ms(entry_second, lead_ms)
    assert timing.cut_off_ms(next_ms, lead_ms) + SKEW_MS <= opens_ms


@given(instants, leads)
def test_the_cut_off_is_lead_and_skew_before_the_second_and_no_more(
    next_ms: int, lead_ms: int
) -> None:
    start_of_second_ms = next_ms - next_ms % 1000
    assert start_of_second_ms - timing.cut_off_ms(next_ms, lead_ms) == lead_ms + SKEW_MS


# Dispatch


@given(instants, leads, soon_ms)
def test_no_second_is_dispatched_before_its_lead_by_the_schedulers_clock(
    now_ms: int, lead_ms: int, aws_ahead_ms: int
) -> None:
    second = timing.dispatchable_second(now_ms, lead_ms, now_ms + aws_ahead_ms)
    assert timing.opens_ms(second, lead_ms) <= now_ms


@given(instants, leads, st.integers(-10_000_000, 10_000_000))
def test_a_fast_clock_takes_the_pointer_no_further_than_a_second_and_the_skew_past_aws(
    aws_ms: int, lead_ms: int, clock_ahead_ms: int
) -> None:
    second = timing.dispatchable_second(aws_ms + clock_ahead_ms, lead_ms, aws_ms)
    assert second * 1000 <= aws_ms + 1_000 + SKEW_MS


@given(st.integers(NOW_MS, NOW_MS + 999), leads, st.integers(0, 1_000), st.data())
def test_a_clock_that_is_ahead_by_no_more_than_skew_less_lead_dispatches_on_time(
    aws_ms: int, lead_ms: int, reply_age_ms: int, data: st.DataObject
) -> None:
    """The last reply may be a second old and its Date is cut: neither holds a second back."""
    most_ms = SKEW_MS - lead_ms
    clock_ahead_ms = data.draw(st.just(most_ms) | st.integers(-SKEW_MS, most_ms))
    now_ms = aws_ms + clock_ahead_ms
    replied_ms = aws_ms - reply_age_ms
    date_ms = replied_ms - replied_ms % 1000
    assert timing.dispatchable_second(now_ms, lead_ms, date_ms) == (now_ms + lead_ms) // 1000


def test_nothing_is_dispatched_before_aws_has_told_the_time() -> None:
    assert timing.dispatchable_second(NOW_MS, 500, aws_ms=0) <= 3


# Messages


@given(instants, soon_ms | st.integers(-5_000_000, 5_000_000), leads)
def test_a_message_never_comes_out_of_the_queue_late(
    now_ms: int, ahead_ms: int, lead_ms: int
) -> None:
    second = (now_ms + ahead_ms) // 1000
    delay_seconds = timing.delay_seconds(timing.opens_ms(second, lead_ms), now_ms)
    assert 0 <= delay_seconds <= DELAY_SECONDS_MAX
    assert now_ms + delay_seconds * 1000 <= max(now_ms, timing.opens_ms(second, lead_ms))


@given(instants, st.integers(0, DELAY_SECONDS_MAX * 1000), leads)
def test_a_message_is_less_than_a_second_early(now_ms: int, ahead_ms: int, lead_ms: int) -> None:
    second = (now_ms + ahead_ms) // 1000
    delay_seconds = timing.delay_seconds(timing.opens_ms(second, lead_ms), now_ms)
    assert timing.opens_ms(second, lead_ms) - (now_ms + delay_seconds * 1000) < 1_000


@each_case(
    ("late_ms", "too_late"),
    [(-5_000, False), (0, False), (DIRECT_LATE_MS, False), (DIRECT_LATE_MS + 1, True)],
)
def test_a_direct_message_too_late_is_left_to_the_sweep(late_ms: int, too_late: bool) -> None:
    assert timing.is_direct_too_late(NOW_MS // 1000, NOW_MS + late_ms) is too_late
