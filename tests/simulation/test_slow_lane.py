"""A business whose callbacks take ten seconds, at five times what it can take, delays nobody."""

from collections.abc import Sequence

import pytest

from duewheel.rules.businesses.lanes import BusinessLane
from duewheel.rules.priority import Priority
from tests.simulation.faults import Rates
from tests.simulation.neighbours import (
    CALLBACK_SECONDS,
    CAN_TAKE,
    TIMES,
    Neighbours,
    neighbours,
)

SECONDS = 8
DEADLY = Rates(death=0.004, latency_ms=40.0)


@pytest.fixture(scope="module")
def with_lane() -> Neighbours:
    return neighbours(BusinessLane.SLOW, SECONDS, settled_after=180)


@pytest.mark.exhaustive
def test_with_the_lane_the_other_business_is_called_at_its_instants(with_lane: Neighbours) -> None:
    assert with_lane.late_ms["quick"] == [0] * SECONDS


@pytest.mark.exhaustive
def test_without_the_lane_the_other_business_waits_for_the_slow_calls() -> None:
    without = neighbours(BusinessLane.MAIN, SECONDS, settled_after=90)
    late_ms = sorted(without.late_ms["quick"])
    assert late_ms[len(late_ms) // 2] > CALLBACK_SECONDS * 1_000


@pytest.fixture(scope="module")
def by_instant() -> Sequence[int]:
    """How late the quick one is without the lane, if neither has a priority."""
    return sorted(neighbours(BusinessLane.MAIN, SECONDS).late_ms["quick"])


@pytest.mark.exhaustive
def test_without_the_lane_it_waits_less_if_the_slow_one_has_low_priority(
    by_instant: Sequence[int],
) -> None:
    lived = neighbours(BusinessLane.MAIN, SECONDS, slow_is=Priority.LOW)
    late_ms = sorted(lived.late_ms["quick"])
    assert late_ms[len(late_ms) // 2] <= by_instant[len(by_instant) // 2]
    assert late_ms[-1] <= by_instant[-1]
    assert (lived.undelivered, lived.repeated) == (0, 0)


@pytest.mark.exhaustive
def test_without_the_lane_it_waits_no_longer_if_the_slow_one_has_high_priority(
    by_instant: Sequence[int],
) -> None:
    late_ms = sorted(neighbours(BusinessLane.MAIN, SECONDS, slow_is=Priority.HIGH).late_ms["quick"])
    assert late_ms == by_instant


@pytest.mark.exhaustive
def test_observed_it_waits_until_the_first_slow_calls_have_ended() -> None:
    observed = neighbours(None, SECONDS + 6, settled_after=10)
    late_ms = observed.late_ms["quick"]
    assert max(late_ms) <= CALLBACK_SECONDS * 1_000
    assert not any(late_ms[CALLBACK_SECONDS + 1 :])


@pytest.mark.exhaustive
def test_alone_in_the_service_a_slow_business_is_called_no_later_than_without_the_lane() -> None:
    with_lane_ms, without_ms = (
        neighbours(lane, SECONDS, is_alone=True).late_ms["slow"]
        for lane in (None, BusinessLane.MAIN)
    )
    assert len(with_lane_ms) == len(without_ms) == SECONDS * TIMES * CAN_TAKE
    assert sum(with_lane_ms) <= sum(without_ms)
    assert max(with_lane_ms) <= max(without_ms) + 1_000


@pytest.mark.exhaustive
def test_the_slow_ones_are_all_called_once(with_lane: Neighbours) -> None:
    assert (with_lane.undelivered, with_lane.repeated) == (0, 0)
    assert len(with_lane.late_ms["slow"]) == SECONDS * TIMES * CAN_TAKE


@pytest.mark.soak
def test_whoever_dies_on_the_way_through_a_lane_that_has_too_much_loses_nothing() -> None:
    lived = neighbours(BusinessLane.SLOW, 7, DEADLY, slow_notifiers=1, settled_after=3_600)
    assert lived.undelivered == 0
    assert len(lived.late_ms["slow"]) == 7 * TIMES * CAN_TAKE
