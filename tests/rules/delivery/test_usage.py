"""How much of a rate is in use follows from its cursors."""

from duewheel.rules.businesses.rate_limit import Cursors, RateLimit
from duewheel.rules.delivery.permits import Holding, Permits
from duewheel.rules.delivery.usage import PermitUsage, RateUsage, permit_usage, rate_usage
from tests.support.cases import each_case

NOW_MS = 1_000_000
NOW_US = NOW_MS * 1_000
SECOND_US = 1_000_000
RATE = RateLimit(2.0, version=7)  # a turn each half second


def cursors(free: float = 0, line: float = 0, late: float = 0, version: int = 7) -> Cursors:
    def at(seconds: float) -> int:
        return NOW_US + round(seconds * SECOND_US)

    return Cursors(500_000, version, free_us=at(free), line_us=at(line), late_us=at(late))


@each_case(
    "seen, expected",
    [
        (None, RateUsage()),
        (cursors(-5, -5, -5), RateUsage()),
        (cursors(1.5), RateUsage(taken=3, free_in_ms=1_500)),
        (cursors(1.5, 2.5), RateUsage(taken=3, free_in_ms=1_500, waiting=2)),
        (cursors(-5, 2.5, 1), RateUsage(waiting=5 + 2)),
        (cursors(0.0001), RateUsage(taken=1, free_in_ms=1)),
        (cursors(9, 99, 99, version=6), RateUsage()),
        (cursors(1, version=8), RateUsage(taken=2, free_in_ms=1_000)),
    ],
)
def test_turns_and_lines_that_lie_ahead_are_in_use(
    seen: Cursors | None, expected: RateUsage
) -> None:
    assert rate_usage(RATE, seen, NOW_MS) == expected


def test_without_a_limit_there_is_no_use_of_it() -> None:
    assert rate_usage(None, cursors(9), NOW_MS) is None


@each_case(
    "seen, expected",
    [
        (Permits(), PermitUsage(0, 0)),
        (Permits(held={"a": Holding(2, NOW_MS, waiting=3)}), PermitUsage(2, 3)),
        (Permits(held={"a": Holding(2, NOW_MS - 60_000, waiting=3)}), PermitUsage(0, 0)),
        (Permits(call_us=1_000_000, line_us=NOW_US + 800_000), PermitUsage(0, 2)),
        (Permits(call_us=1_000_000, line_us=NOW_US - 1, late_us=NOW_US + 1), PermitUsage(0, 1)),
    ],
)
def test_permits_that_are_held_and_tasks_that_wait_for_them_are_in_use(
    seen: Permits, expected: PermitUsage
) -> None:
    assert permit_usage(2, seen, NOW_MS) == expected
    assert permit_usage(None, seen, NOW_MS) is None
