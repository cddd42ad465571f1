"""A limit of calls is kept, and no task loses its place in the line because of late pages."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import Cursors, Step
from duewheel.rules.delivery.reservations import TurnPlan, allocate, planned
from duewheel.rules.tasks.task import Reservation, Task
from tests.support.bounds import quick_first
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.support.limited_business import LimitedBusiness, a_task

TEN_A_SECOND = Cursors(100_000, version=3)  # a second
NOON_US = NOON_MS * 1_000

Chances = Callable[[Random], Callable[[int], int]]
LATE: dict[str, tuple[int, Chances]] = {
    "on time": (0, lambda chance: lambda now_ms: 20),
    "always 8 s": (8_000, lambda chance: lambda now_ms: 8_000),
    "up to 8 s": (8_000, lambda chance: lambda now_ms: chance.randint(0, 8_000)),
    "up to 40 s": (40_000, lambda chance: lambda now_ms: chance.randint(0, 40_000)),
    "0 s or 20 s": (20_000, lambda chance: lambda now_ms: chance.choice((0, 20_000))),
}
LATENESSES = pytest.mark.parametrize(("most_ms", "lateness"), LATE.values(), ids=LATE.keys())
RATES = pytest.mark.parametrize(
    ("per_second", "tasks"),
    quick_first(
        [(0.2, 150), (1, 400), (5, 1_500), (50, 10_000), (200, 24_000)], pytest.mark.exhaustive, 3
    ),
)


@LATENESSES
@RATES
def test_a_business_with_a_backlog_gets_its_rate_and_no_more_despite_late_pages(
    per_second: float, tasks: int, most_ms: int, lateness: Chances
) -> None:
    business = LimitedBusiness(per_second, lateness(Random(1)))
    business.owes([0] * tasks)
    business.works_off()
    assert sorted(number for _, number in business.calls) == list(range(tasks))
    assert business.most_ahead() <= business.allowed_ahead()
    assert business.share_of_rate(most_ms + 10_000) >= 0.93
    assert sum(business.rescheduled) <= 2 * tasks
    assert max(business.rescheduled) <= 4
    longest = max(per_second, 1) / per_second  # below one call a second, a place is longer
    assert business.overtaken_seconds() <= (2 * most_ms / 1000 + 1) * longest


def test_without_lateness_each_task_is_rescheduled_once_and_called_at_its_place() -> None:
    business = LimitedBusiness(5, lambda now_ms: 20)
    business.owes([0] * 100)
    business.works_off()
    assert [at_ms for at_ms, _ in business.calls] == [200 * number for number in range(100)]
    assert [number for _, number in business.calls] == list(range(100))
    assert sum(business.rescheduled) == 89


def test_tasks_that_missed_their_turns_in_an_outage_are_called_before_punctual_ones() -> None:
    def no_page_for_8_minutes(now_ms: int) -> int:
        return max(20, 490_000 - now_ms) if now_ms > 5_000 else 20

    business = LimitedBusiness(5, no_page_for_8_minutes)
    business.owes([0] * 4_000)
    business.works_off()
    assert len(business.calls) == 4_000
    assert business.most_ahead() <= business.allowed_ahead()
    assert business.share_of_rate(491_000) >= 0.99
    assert max(business.rescheduled) <= 2
    assert business.overtaken_seconds() <= 3


@given(
    st.floats(0.2, 200),
    st.lists(st.integers(0, 600_000), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(1, 250), st.integers(0, 90_000)), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=7),
)
def test_no_window_has_more_calls_than_the_rate_with_late_and_repeated_pages(
    per_second: float, late_ms: list[int], due: list[tuple[int, int]], twice: list[bool]
) -> None:
    late, again = Random(1), Random(2)
    business = LimitedBusiness(
        per_second, lambda now_ms: late.choice(late_ms), lambda: again.choice(twice) and any(twice)
    )
    for count, from_ms in due:
        business.owes([from_ms + 7 * number for number in range(count)])
    business.works_off()
    total = sum(count for count, _ in due)
    assert {number for _, number in business.calls} == set(range(total))
    assert business.most_ahead() <= business.allowed_ahead()


def test_a_new_task_does_not_jump_the_line() -> None:
    line = replace(TEN_A_SECOND, free_us=NOON_US, line_us=NOON_US + 300_000)
    plan = planned([a_task(1, NOON_MS)], line, NOON_MS)
    assert (plan.soon, [task.created_ms for task in plan.line]) == ([], [1])
    assert plan.moves.line == Step(add_us=100_000, least_us=NOON_US)


def test_no_place_is_before_the_instant_of_its_task() -> None:
    tasks = [a_task(number, NOON_MS + 400 * number) for number in range(3)]
    seen = replace(TEN_A_SECOND, free_us=NOON_US, line_us=NOON_US + 300_000)
    after = replace(seen, line_us=NOON_US + 600_000)
    soon, later = allocate(planned(tasks, seen, NOON_MS - 500), seen, after)
    assert soon == []
    assert [held.at_ms - NOON_MS for _, held in later] == [300, 400, 800]


def test_a_free_turn_goes_to_a_task_from_the_line_even_if_it_is_very_late() -> None:
    waited = in_line(a_task(1, NOON_MS), NOON_MS - 40_000)
    plan = planned([waited], replace(TEN_A_SECOND, free_us=NOON_US - 60_000_000), NOON_MS)
    (turn,) = turns(plan)
    assert turn == NOON_US - 100_000  # one call more than the rate in any window, and not two


@each_case(
    ("is_late", "free_ms", "is_called"),
    [(False, 2_000, True), (False, 2_001, False), (True, 5_100, True), (True, 5_101, False)],
)
def test_only_late_tasks_get_turns_further_ahead(
    is_late: bool, free_ms: int, is_called: bool
) -> None:
    cursors = replace(TEN_A_SECOND, free_us=NOON_US + free_ms * 1_000)
    waited = in_line(a_task(1, NOON_MS), NOON_MS, is_late=is_late)
    plan = planned([waited], cursors, NOON_MS)
    assert [bool(plan.soon), bool(plan.late)] == [is_called, not is_called]


def test_a_place_is_void_after_a_change_of_the_settings_or_of_the_instant() -> None:
    cursors = replace(TEN_A_SECOND, line_us=NOON_US + 60_000_000)
    for task in (
        replace(in_line(a_task(1, NOON_MS), NOON_MS), next_ms=NOON_MS - 1_000),
        in_line(a_task(1, NOON_MS), NOON_MS, version=2),
    ):
        assert planned([task], cursors, NOON_MS).line == [task]


def test_turns_of_a_page_move_behind_turns_that_others_took() -> None:
    waited = [in_line(a_task(n, NOON_MS), NOON_MS + 100 * n) for n in range(3)]
    seen = replace(TEN_A_SECOND, free_us=NOON_US)
    plan = planned(waited, seen, NOON_MS)
    soon, later = allocate(plan, seen, replace(seen, free_us=NOON_US + 1_000_000))
    assert [from_ms - NOON_MS for _, from_ms in soon] == [700, 800, 900]
    assert later == []


def in_line(task: Task, at_ms: int, *, version: int = 3, is_late: bool = False) -> Task:
    return replace(task, next_ms=at_ms, reservation=Reservation(at_ms, version, is_late))


def turns(plan: TurnPlan) -> list[int]:
    return [turn_us for _, turn_us in plan.soon]
