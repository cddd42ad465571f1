"""How many of the latest runs of a timer have failed in a row."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.tasks.task import Occurrence, Status, Task
from duewheel.rules.timers.outcome_counts import FailuresInARow
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at

DEAD, DELIVERED, PENDING = Status.DEAD, Status.DELIVERED, Status.PENDING
ENDS = st.sampled_from([*Status])


def run(second: int, status: Status, attempts: int = 1, *, manual: bool = False) -> Task:
    home = address_at(second * 1000, second.to_bytes(TOKEN_BYTES, "big"))
    task = Task.at(home, "orders", second * 1000, 0)
    occurrence = Occurrence("1", second, 0 if manual else second, manual=manual)
    return replace(task, occurrence=occurrence, status=status, attempts=attempts)


def counted(runs: Sequence[Task], behind: int = 0) -> FailuresInARow:
    """By runs in their order."""
    found = FailuresInARow(behind)
    for one in reversed(runs):
        if found.is_over:
            break
        found = found.before(one)
    return found


def test_runs_that_ended_dead_or_expired_count_up_to_the_latest_that_was_delivered() -> None:
    ends = [DEAD, DELIVERED, DEAD, Status.EXPIRED, DEAD]
    found = counted([run(n, status) for n, status in enumerate(ends, 1)])
    assert (found.count, found.is_over) == (3, True)
    assert found.last is not None
    assert found.last.home.second == 5


@pytest.mark.parametrize(
    "passed_over",
    [
        run(2, PENDING),
        run(2, Status.CANCELLED, 0),
        run(2, Status.EXPIRED, 0),
        run(2, DELIVERED, manual=True),
        run(2, DEAD, manual=True),
    ],
    ids=["not ended", "cancelled", "never called", "by hand", "dead by hand"],
)
def test_a_run_that_says_nothing_of_the_schedule_is_passed_over(passed_over: Task) -> None:
    found = counted([run(1, DEAD), passed_over, run(3, DEAD)])
    assert (found.count, found.is_over) == (2, False)


def test_runs_before_the_timer_was_enabled_do_not_count() -> None:
    found = counted([run(1, DEAD), run(2, DEAD), run(3, DEAD)], behind=2)
    assert (found.count, found.is_over) == (1, True)


@given(st.lists(ENDS, max_size=12), st.permutations(range(12)), st.integers(1, 4))
def test_in_whatever_order_runs_end_the_last_end_finds_what_the_schedule_says(
    ends: list[Status], order: list[int], failures_max: int
) -> None:
    """Each end looks at the records; that of the last one sees all."""
    runs = [run(n + 1, PENDING, 0) for n in range(len(ends))]
    found = counted(runs)
    for n in [n for n in order if n < len(ends)]:
        runs[n] = run(n + 1, ends[n])
        found = counted(runs)
    ended = [status for status in ends if status in (DEAD, DELIVERED, Status.EXPIRED)]
    behind_success = ended[::-1]
    if DELIVERED in behind_success:
        behind_success = behind_success[: behind_success.index(DELIVERED)]
    assert (found.count >= failures_max) is (len(behind_success) >= failures_max)
