"""Where entries are placed, and which of them get messages of their own."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.wheel import timing
from duewheel.rules.wheel.sharding import Placement
from duewheel.rules.wheel.timing import AHEAD_MS

seconds = st.integers(1_000, 100_000)
LEAD_MS = 500


@given(seconds, st.integers(-200_000, 200_000))
def test_an_entry_is_placed_at_its_instant_or_now(now: int, in_ms: int) -> None:
    placement = Placement(now_ms=now * 1000, lead_ms=LEAD_MS)
    entry = placement.address(now * 1000 + in_ms, bytes(8))
    assert entry.instant_ms == now * 1000 + max(in_ms, 0)


@given(st.integers(-10_000, 200_000))
def test_an_entry_is_direct_if_and_only_if_its_slice_may_be_read_before_it_is_written(
    in_ms: int,
) -> None:
    now_ms = 1_900_000_000_250
    placement = Placement(now_ms=now_ms, lead_ms=LEAD_MS)
    entry = placement.address(now_ms + in_ms, bytes(8))
    opens_ms = timing.opens_ms(entry.second, LEAD_MS)
    assert entry.direct == (opens_ms <= now_ms + timing.NEAR_MARGIN_MS)


def test_a_placement_on_record_decides_as_the_release_that_wrote_it() -> None:
    """Earlier releases put no entry into a second that may have been dispatched."""
    recorded = Placement(now_ms=60_000, pointer_second=60, lead_ms=LEAD_MS, ahead_ms=AHEAD_MS)
    assert recorded.address(60_000 + AHEAD_MS, bytes(8)).direct
    assert not recorded.address(67_000 + AHEAD_MS, bytes(8)).direct
    by_pointer = Placement(now_ms=60_000, pointer_second=90, lead_ms=LEAD_MS)
    assert by_pointer.address(95_000, bytes(8)).direct
    assert not by_pointer.address(96_000, bytes(8)).direct
