"""Which tasks are served first, and how long the others may have to wait."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business, Defaults, Own
from duewheel.rules.callbacks.retry import DEFAULT_RETRY
from duewheel.rules.delivery.priority import (
    RISES_EVERY_MS,
    Rank,
    order_ms,
    place_ms,
    rank,
    waits_since_ms,
)
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Attempt, Reservation, Revival, Task
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.support.limited_business import a_task

MINUTE_MS = 60_000
BUSINESS = Business("limited", Defaults(30, 10.0, 30.0))
LOW_BUSINESS = replace(BUSINESS, own=Own(priority=Priority.LOW))


def task(priority: Priority | None = None, **fields: Any) -> Task:
    return replace(a_task(0, NOON_MS), priority=priority, **fields)


@each_case(
    ("priority", "late_minutes", "expected"),
    [
        (Priority.HIGH, -1, Rank.HIGH),
        (Priority.HIGH, 60, Rank.HIGH),
        (Priority.NORMAL, -1, Rank.NORMAL),
        (Priority.NORMAL, 0, Rank.NORMAL),
        (Priority.NORMAL, 9.9, Rank.NORMAL),
        (Priority.NORMAL, 10, Rank.HIGH),
        (Priority.LOW, -1, Rank.LOW),
        (Priority.LOW, 9.9, Rank.LOW),
        (Priority.LOW, 10, Rank.NORMAL),
        (Priority.LOW, 19.9, Rank.NORMAL),
        (Priority.LOW, 20, Rank.HIGH),
        (Priority.LOW, 600, Rank.HIGH),
        (None, 0, Rank.NORMAL),
    ],
)
def test_a_late_task_rises_a_class_every_ten_minutes(
    priority: Priority | None, late_minutes: float, expected: Rank
) -> None:
    now_ms = NOON_MS + round(late_minutes * MINUTE_MS)
    assert rank(task(priority), BUSINESS, now_ms) is expected


def test_the_priority_of_a_task_has_precedence_over_that_of_its_business() -> None:
    assert rank(task(), LOW_BUSINESS, NOON_MS) is Rank.LOW
    assert rank(task(Priority.NORMAL), LOW_BUSINESS, NOON_MS) is Rank.NORMAL


def test_a_task_of_low_priority_precedes_one_of_high_that_is_due_twenty_minutes_later() -> None:
    low, high = task(Priority.LOW), task(Priority.HIGH, due_ms=NOON_MS + 2 * RISES_EVERY_MS + 1)
    assert order_ms(low, BUSINESS) < order_ms(high, BUSINESS)
    assert order_ms(low, BUSINESS) > order_ms(replace(high, due_ms=NOON_MS), BUSINESS)


@given(
    st.sampled_from(Priority),
    st.sampled_from(Priority),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
)
def test_a_task_is_preceded_only_by_tasks_that_are_due_within_twenty_minutes(
    one: Priority, other: Priority, one_ms: int, other_ms: int
) -> None:
    first, second = task(one, due_ms=NOON_MS + one_ms), task(other, due_ms=NOON_MS + other_ms)
    if order_ms(second, BUSINESS) < order_ms(first, BUSINESS):
        assert other_ms < one_ms + 2 * RISES_EVERY_MS


@each_case(
    ("priority", "came_minutes", "stands_minutes"),
    [
        (Priority.HIGH, 0, 0),
        (Priority.NORMAL, 0, 0),
        (Priority.NORMAL, 15, 15),
        (Priority.LOW, 0, 10),
        (Priority.LOW, 9, 10),
        (Priority.LOW, 15, 15),
    ],
)
def test_between_businesses_low_priority_yields_until_it_has_risen_and_nothing_overtakes(
    priority: Priority, came_minutes: int, stands_minutes: int
) -> None:
    came_ms, stands_ms = (NOON_MS + n * MINUTE_MS for n in (came_minutes, stands_minutes))
    assert place_ms(task(priority), BUSINESS, came_ms) == stands_ms


def test_the_age_of_a_task_counts_from_its_due_instant_however_often_it_was_rescheduled() -> None:
    later_ms = NOON_MS + 30 * MINUTE_MS
    waited = task(Priority.LOW, next_ms=later_ms, reservation=Reservation(later_ms, 1))
    assert rank(waited, BUSINESS, later_ms) is Rank.HIGH


def test_a_task_that_is_created_late_has_not_waited_before() -> None:
    created = task(Priority.LOW, created_ms=NOON_MS + 60 * MINUTE_MS)
    assert rank(created, BUSINESS, NOON_MS + 61 * MINUTE_MS) is Rank.LOW


def test_the_wait_for_a_retry_does_not_count() -> None:
    """However the delay of the retry was chosen, it ends before the age begins."""
    failed = Attempt(
        at_ms=NOON_MS, lateness_ms=0, duration_ms=5_000, outcome="retry", entry_second=0
    )
    retried = task(Priority.LOW, attempts=3, history=(failed,))
    longest_ms = round(DEFAULT_RETRY.first_delay_seconds * DEFAULT_RETRY.factor**2 * 1000)
    assert waits_since_ms(retried, BUSINESS) == NOON_MS + 5_000 + longest_ms


def test_a_redriven_task_waits_since_its_redrive() -> None:
    second = NOON_MS // 1000 + 3_600
    redriven = task(
        Priority.LOW, redrives=1, revivals=(Revival(ended=NOON_MS // 1000, revived=second),)
    )
    assert waits_since_ms(redriven, BUSINESS) == second * 1000
