"""Where entries are placed, and which of them are announced by messages of their own."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.wheel.profile import ECONOMY, PROFILES
from duewheel.rules.wheel.sharding import Placement

seconds = st.integers(1_000, 100_000)
aheads = st.sampled_from([profile.ahead_ms for profile in PROFILES.values()])
LEAD_MS = 500


@given(seconds, st.integers(-900, 900), st.integers(-200_000, 200_000), aheads)
def test_wherever_the_pointer_stands_an_entry_stands_at_its_instant_or_now(
    now: int, pointer_ahead: int, in_ms: int, ahead_ms: int
) -> None:
    """Further ahead, too: as it does for a while when the profile has been changed."""
    placement = Placement(
        now_ms=now * 1000, pointer_second=now + pointer_ahead, lead_ms=LEAD_MS, ahead_ms=ahead_ms
    )
    entry = placement.address(now * 1000 + in_ms, bytes(8))
    assert entry.instant_ms == now * 1000 + max(in_ms, 0)


def test_what_a_run_may_have_handed_over_before_it_was_written_is_direct() -> None:
    placement = Placement(
        now_ms=60_000, pointer_second=60, lead_ms=LEAD_MS, ahead_ms=ECONOMY.ahead_ms
    )
    assert placement.address(60_000 + ECONOMY.ahead_ms, bytes(8)).direct
    assert not placement.address(67_000 + ECONOMY.ahead_ms, bytes(8)).direct
