"""The last second that the sweep may reach, from earlier reads of the time pointer."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.sweep.horizon import NOTES_KEPT, Notes, noted, sweepable_second
from tests.support.cases import each_case

START = 1_900_000_000
START_MS = START * 1000
LAG_MS = 120_000

lags = st.integers(120_000, 300_000)


@each_case(
    ("notes", "now_ms", "second"),
    [
        ((), START_MS, None),
        # read too short ago
        (((START, START_MS),), START_MS + LAG_MS - 1, None),
        (((START, START_MS),), START_MS + LAG_MS, START),
        # only seconds that were dispatched by then count
        (((START, START_MS), (START + 60, START_MS + 60_000)), START_MS + LAG_MS, START),
        (((START, START_MS), (START + 60, START_MS + 60_000)), START_MS + 180_000, START + 60),
        # the pointer is ahead of the clock by its lead: the age of the second counts, too
        (((START + 5, START_MS),), START_MS + LAG_MS, START),
        (((START + 5, START_MS),), START_MS + LAG_MS + 999, START),
        (((START + 5, START_MS),), START_MS + LAG_MS + 1_000, START + 1),
        # dispatch is an hour behind: its seconds are old, and their dispatch is recent
        (((START - 3_600, START_MS),), START_MS + LAG_MS, START - 3_600),
    ],
)
def test_a_second_may_be_swept_when_it_and_its_dispatch_are_older_than_the_lag(
    notes: Notes, now_ms: int, second: int | None
) -> None:
    assert sweepable_second(notes, now_ms, LAG_MS) == second


def reads_of_pointer(pauses_ms: list[int], advances: list[int]) -> list[tuple[int, int]]:
    """The instants of the sweeper's reads, with the time pointer, which only moves forward."""
    instants = accumulate(pauses_ms, initial=START_MS)
    positions = accumulate(advances, initial=START)
    return list(zip(instants, positions, strict=True))


def same_length_lists(
    size: int, pauses_ms: st.SearchStrategy[int]
) -> st.SearchStrategy[list[tuple[int, int]]]:
    return st.builds(
        reads_of_pointer,
        st.lists(pauses_ms, min_size=size, max_size=size),
        st.lists(st.integers(0, 300), min_size=size, max_size=size),
    )


@given(same_length_lists(20, st.integers(0, 120_000)), st.integers(120_000, 3_600_000))
def test_the_sweep_never_passes_the_lag_nor_the_seconds_dispatched_a_lag_ago(
    seen: list[tuple[int, int]], lag_ms: int
) -> None:
    notes: Notes = ()
    for number, (now_ms, position) in enumerate(seen):
        notes = noted(notes, position, now_ms, lag_ms)
        second = sweepable_second(notes, now_ms, lag_ms)
        dispatched_a_lag_ago = [at for when, at in seen[: number + 1] if when <= now_ms - lag_ms]
        assert len(notes) <= NOTES_KEPT
        if second is not None:
            assert second * 1000 <= now_ms - lag_ms
            assert second <= max(dispatched_a_lag_ago)


@each_case("lag_ms", [120_000, 420_000, 480_000, 3_600_000])
def test_a_sweeper_with_any_allowed_delay_follows_the_pointer(lag_ms: int) -> None:
    notes: Notes = ()
    for minute in range(200):
        now_ms = START_MS + minute * 60_000
        notes = noted(notes, now_ms // 1000, now_ms, lag_ms)
    second = sweepable_second(notes, now_ms, lag_ms)
    assert second is not None
    assert now_ms - second * 1000 <= lag_ms + lag_ms // 6 + 120_000


@given(st.lists(st.integers(0, 59_000), min_size=20, max_size=20), lags)
def test_a_sweeper_that_runs_each_minute_follows_the_pointer_by_little_more_than_the_lag(
    starts_ms: list[int], lag_ms: int
) -> None:
    """The sweeper runs at any moment within each minute, so that up to two minutes are between two
    reads; a read that is too soon after the last is not noted."""
    notes: Notes = ()
    for minute, start_ms in enumerate(starts_ms):
        now_ms = START_MS + minute * 60_000 + start_ms
        notes = noted(notes, now_ms // 1000, now_ms, lag_ms)
        second = sweepable_second(notes, now_ms, lag_ms)
        if minute * 60_000 >= lag_ms + 120_000:
            assert second is not None
            assert now_ms - second * 1000 <= lag_ms + lag_ms // 6 + 120_000
