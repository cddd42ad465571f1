"""What a run of a timer costs while the movable clock is advanced, counted."""

import pytest

from bench.advance import advanced


@pytest.mark.stack
def test_an_advance_makes_few_calls_for_each_run_and_no_more_later_than_early() -> None:
    delivered, calls, _ = advanced(hours=0.5)
    assert delivered == 30
    assert calls["Query"] / delivered < 12  # a scheduler that probes each second makes 60 more
    assert calls["ReceiveMessage"] / delivered < 4  # a queue without a message is not asked
    assert calls.total() / delivered < 40
