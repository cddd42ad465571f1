"""Where entries are placed, and which of them get messages of their own."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.wheel import timing
from duewheel.rules.wheel.sharding import Placement

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
