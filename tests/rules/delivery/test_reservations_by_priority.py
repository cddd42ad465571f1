"""With a rate limit, high priority is served before normal, and normal before low."""

from collections.abc import Callable, Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import Cursors
from duewheel.rules.delivery.priority import RISES_EVERY_MS, Rank
from duewheel.rules.delivery.reservations import TurnPlan, planned
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Task
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.support.limited_business import LimitedBusiness, a_task

TEN_A_SECOND = Cursors(100_000, version=3)
NOON_US = NOON_MS * 1_000
HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
ONE_A_SECOND = [1_000 * number for number in range(1, 240)]
BEYOND_THE_RATE = [90 * number for number in range(40_000)]  # an hour

Group = tuple[Priority, Sequence[int]]


class Served(LimitedBusiness):
    """`late_ms`: how late the tasks of each group were, in ascending order."""

    def __init__(self, groups: Sequence[Group], late_ms: Callable[[int], int]) -> None:
        super().__init__(10, late_ms)
        due = [ms for _, some in groups for ms in some]
        for priority, some in groups:
            self.owes(some, priority)
        self.works_off()
        called = {number: at_ms for at_ms, number in self.calls}
        assert called.keys() == set(range(len(due)))
        assert self.most_ahead() <= self.allowed_ahead()
        self.late_ms: list[list[int]] = []
        first = 0
        for _, some in groups:
            numbers = range(first, first + len(some))
            self.late_ms.append(sorted(called[number] - due[number] for number in numbers))
            first += len(some)


def served(*groups: Group, late_ms: Callable[[int], int] = lambda now_ms: 20) -> list[list[int]]:
    return Served(groups, late_ms).late_ms


def test_high_priority_waits_for_seconds_behind_a_flood_that_takes_minutes() -> None:
    before = served((NORMAL, [0] * 3_000), (NORMAL, ONE_A_SECOND))[1]
    assert before[len(before) // 2] > 180_000
    assert served((NORMAL, [0] * 3_000), (HIGH, ONE_A_SECOND))[1][-1] <= 6_000
    assert served((LOW, [0] * 3_000), (HIGH, ONE_A_SECOND))[1][-1] <= 3_000
    assert served((LOW, [0] * 3_000), (NORMAL, ONE_A_SECOND))[1][-1] <= 3_000


def test_high_priority_waits_for_seconds_also_if_pages_are_late() -> None:
    chance = Random(1)
    late_ms = served(
        (LOW, [0] * 3_000), (HIGH, ONE_A_SECOND), late_ms=lambda now_ms: chance.randint(0, 8_000)
    )[1]
    assert late_ms[-1] <= 8_000 + 3_000


def test_a_crowd_of_high_priority_overtakes_a_flood_that_waits_in_line() -> None:
    for flood in (LOW, NORMAL):
        assert served((flood, [0] * 3_000), (HIGH, [5_000] * 200))[1][-1] < 25_000


def test_of_a_crowd_of_all_priorities_the_low_wait_longest() -> None:
    groups = served((LOW, [0] * 1_000), (NORMAL, [0] * 1_000), (HIGH, [0] * 1_000))
    low_ms, *others_ms = (late_ms[len(late_ms) // 2] for late_ms in groups)
    assert low_ms > 200_000
    assert max(others_ms) < 150_000


def test_low_priority_alone_gets_the_whole_rate() -> None:
    business = Served([(LOW, [0] * 2_000)], lambda now_ms: 20)
    assert business.calls[-1][0] <= 200_000
    assert max(business.rescheduled) == 1


def test_low_priority_is_not_starved_by_an_endless_flood_of_the_others() -> None:
    waited = {
        flood: served((LOW, [0] * 100), (flood, BEYOND_THE_RATE))[0][-1] for flood in (HIGH, NORMAL)
    }
    assert RISES_EVERY_MS < waited[NORMAL] < RISES_EVERY_MS + 2 * 60_000
    assert 2 * RISES_EVERY_MS < waited[HIGH] < 2 * RISES_EVERY_MS + 20 * 60_000


def test_high_priority_has_a_share_of_the_rate_beside_a_backlog_that_has_risen() -> None:
    """After an outage of half an hour all are late by more than twenty minutes."""
    due = [30 * 60_000 + ms for ms in ONE_A_SECOND]

    def outage(now_ms: int) -> int:
        return max(20, 30 * 60_000 - now_ms)

    late_ms = served((LOW, [0] * 5_000), (HIGH, due), late_ms=outage)[1]
    assert late_ms[-1] < 60_000


@given(
    st.lists(
        st.tuples(st.sampled_from(Priority), st.integers(1, 150), st.integers(0, 90_000)),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.integers(0, 1_500_000), min_size=1, max_size=9),
)
def test_no_window_has_more_calls_than_the_rate_whatever_the_priorities(
    groups: list[tuple[Priority, int, int]], late_ms: list[int]
) -> None:
    late = Random(1)
    crowds = [
        (priority, [from_ms + 7 * number for number in range(count)])
        for priority, count, from_ms in groups
    ]
    served(*crowds, late_ms=lambda now_ms: late.choice(late_ms))


def ranked(tasks: Sequence[tuple[int, Rank]], cursors: Cursors) -> TurnPlan:
    """A plan for tasks with these instants after noon."""
    ranks = dict(enumerate(rank for _, rank in tasks))
    due = [a_task(number, NOON_MS + ms) for number, (ms, _) in enumerate(tasks)]
    return planned(due, cursors, NOON_MS - 500, lambda task: ranks[task.created_ms])


def numbers(tasks: Sequence[Task]) -> list[int]:
    return [task.created_ms for task in tasks]


def turns_ms(plan: TurnPlan) -> dict[int, int]:
    return {task.created_ms: turn_us // 1_000 - NOON_MS for task, turn_us in plan.soon}


def test_where_there_is_a_turn_for_each_none_waits_for_one_of_higher_priority() -> None:
    plan = ranked([(0, Rank.LOW), (200, Rank.NORMAL), (400, Rank.HIGH)], TEN_A_SECOND)
    assert turns_ms(plan) == {0: 0, 1: 200, 2: 400}


def test_of_tasks_that_wait_for_the_same_turn_the_one_of_the_highest_priority_gets_it() -> None:
    tasks = [(0, Rank.LOW), (0, Rank.NORMAL), (0, Rank.HIGH), (150, Rank.HIGH)]
    plan = ranked(tasks, replace(TEN_A_SECOND, free_us=NOON_US))
    assert turns_ms(plan) == {2: 0, 1: 100, 3: 200, 0: 300}


def test_high_priority_does_not_stand_behind_the_line_and_moves_nothing_in_it() -> None:
    line = replace(TEN_A_SECOND, free_us=NOON_US, line_us=NOON_US + 60_000_000)
    plan = ranked([(0, Rank.HIGH), (0, Rank.NORMAL)], line)
    assert (turns_ms(plan), numbers(plan.line)) == ({0: 0}, [1])
    assert plan.moves.line_most_us is None


def test_low_priority_takes_no_turn_before_the_end_of_the_line_and_does_not_lengthen_it() -> None:
    cursors = replace(TEN_A_SECOND, free_us=NOON_US, line_us=NOON_US + 300_000)
    plan = ranked([(0, Rank.LOW)], cursors)
    assert (plan.soon, plan.line, numbers(plan.late)) == ([], [], [0])


@each_case(("line", "late", "stands_in"), [(60, 30, "late"), (30, 60, "line"), (0, 0, "late")])
def test_high_priority_that_finds_no_turn_stands_in_the_shorter_line(
    line: int, late: int, stands_in: str
) -> None:
    free_us = NOON_US + 20_000_000
    line_us, late_us = NOON_US + line * 1_000_000, NOON_US + late * 1_000_000
    cursors = replace(TEN_A_SECOND, free_us=free_us, line_us=line_us, late_us=late_us)
    plan = ranked([(0, Rank.HIGH)], cursors)
    assert (plan.soon, numbers(getattr(plan, stands_in))) == ([], [0])
