"""Where entries are placed, whatever the clock of their writer says."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.placing import Placing
from duewheel.rules.wheel import SKEW_MS

seconds = st.integers(1_000, 100_000)
LEAD_MS = 500


@given(pointer=seconds, behind_ms=st.integers(0, 200_000), ahead_ms=st.integers(-200_000, 200_000))
def test_a_clock_that_is_behind_places_nothing_far_behind_the_time_pointer(
    pointer: int, behind_ms: int, ahead_ms: int
) -> None:
    now_ms = pointer * 1000 - behind_ms
    entry = Placing(now_ms, pointer, LEAD_MS).address(now_ms + ahead_ms, bytes(8))
    assert entry.second * 1000 + entry.ms >= max(now_ms, pointer * 1000 - SKEW_MS)


@given(now=seconds, stalled=st.integers(0, 900), ahead_ms=st.integers(0, 200_000))
def test_a_pointer_that_is_behind_changes_no_place(now: int, stalled: int, ahead_ms: int) -> None:
    entry = Placing(now * 1000, now - stalled, LEAD_MS).address(now * 1000 + ahead_ms, bytes(8))
    assert entry.second * 1000 + entry.ms == now * 1000 + ahead_ms
