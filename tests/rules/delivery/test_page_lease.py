"""The duration of a page's lease, and the instant by which another run takes the page of a dead
one."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.delivery.page_lease import (
    FIRST_RENEWAL_MS,
    HIDDEN_MS,
    LEASE_MS,
    calls_begin_until_ms,
    renewal_ms,
)
from duewheel.rules.wheel.timing import SKEW_MS

BEGUN_MS = 1_800_000_000_000
CALLED_AGAIN_WITHIN_MS = 20_000
RECEIVED_WITHIN_MS = 2_000  # until SQS delivers it and a notifier starts
SECOND_MS = 1_000  # SQS hides for whole seconds, and one second is added


def renewals(until_ms: int) -> list[int]:
    """The instants at which a run that lives until `until_ms` takes and renews its lease."""
    found = [BEGUN_MS]
    while (renewed_ms := renewal_ms(BEGUN_MS, found[-1])) <= until_ms:
        found.append(renewed_ms)
    return found


@given(lived_ms=st.integers(0, 60_000), ahead_ms=st.integers(-SKEW_MS + 1, SKEW_MS - 1))
def test_the_page_of_a_dead_run_is_called_again_within_twenty_seconds(
    lived_ms: int, ahead_ms: int
) -> None:
    """For any clock skew of the next run: if the message arrives too early, it arrives again."""
    died_ms = BEGUN_MS + lived_ms
    held_ms = renewals(died_ms)[-1]
    comes_ms = held_ms + HIDDEN_MS + RECEIVED_WITHIN_MS
    lapses_ms = held_ms + LEASE_MS - ahead_ms
    if comes_ms <= lapses_ms:
        comes_ms = lapses_ms + SECOND_MS + RECEIVED_WITHIN_MS
    assert comes_ms - died_ms <= CALLED_AGAIN_WITHIN_MS


@given(lived_ms=st.integers(0, 60_000), ahead_ms=st.integers(0, SKEW_MS - 1))
def test_two_runs_never_begin_calls_of_one_page_at_the_same_time(
    lived_ms: int, ahead_ms: int
) -> None:
    """The first run is frozen right after a renewal; the clock of the next one is ahead."""
    held_until_ms = renewals(BEGUN_MS + lived_ms)[-1] + LEASE_MS
    taken_ms = held_until_ms + 1 - ahead_ms  # by the clock of the first run
    assert calls_begin_until_ms(held_until_ms) < taken_ms


@given(lived_ms=st.integers(0, 60_000))
def test_a_run_renews_its_lease_in_time_for_new_calls_and_never_in_its_first_ten_seconds(
    lived_ms: int,
) -> None:
    found = renewals(BEGUN_MS + lived_ms)
    for earlier_ms, later_ms in pairwise(found):
        assert later_ms < calls_begin_until_ms(earlier_ms + LEASE_MS)
        assert later_ms >= BEGUN_MS + FIRST_RENEWAL_MS
    assert FIRST_RENEWAL_MS >= 10_000


def test_a_message_is_visible_again_after_the_lease_of_its_page() -> None:
    assert HIDDEN_MS > LEASE_MS
    assert HIDDEN_MS % 1000 == 0, "SQS counts in seconds"
