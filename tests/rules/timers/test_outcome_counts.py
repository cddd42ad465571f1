"""As what a redriven run has been counted before."""

from typing import Any

from msgspec.structs import replace

from duewheel.rules.tasks.task import Occurrence, Revival, Status, Task
from duewheel.rules.timers.outcome_counts import Counted, has_counted
from duewheel.rules.timers.planning import occurrence_home
from tests.support.cases import each_case

TIMER_ID = "4503599627370497"
BEGIN = 1_800_000_000


def redriven(*ends: dict[str, Any]) -> Task:
    home = occurrence_home(TIMER_ID, BEGIN, BEGIN, 1)
    task = Task.at(home, "orders", home.instant_ms, 0)
    revivals = tuple(Revival(ended=BEGIN, revived=BEGIN + 9, **end) for end in ends)
    occurrence = Occurrence(TIMER_ID, BEGIN)
    return replace(task, occurrence=occurrence, redrives=len(ends), revivals=revivals)


@each_case(
    ("ends", "expected"),
    [
        ([], set()),
        ([{}], {"fired", "dead"}),
        ([{"status": Status.DELIVERED}], {"fired", "delivered"}),
        ([{}, {"status": Status.DELIVERED}], {"fired", "dead", "delivered"}),
        ([{"status": Status.EXPIRED, "attempts": 0}], {"expired"}),
        ([{"status": Status.EXPIRED, "attempts": 2}], {"fired", "expired"}),
        ([{"status": Status.CANCELLED, "reason": "missed", "attempts": 0}], {"missed"}),
        ([{"status": Status.CANCELLED, "reason": "superseded", "attempts": 0}], {"superseded"}),
        (
            [{"status": Status.CANCELLED, "reason": "replaced", "attempts": 1}],
            {"fired", "replaced"},
        ),
        ([{"status": Status.CANCELLED, "reason": "cancelled by caller", "attempts": 1}], {"fired"}),
    ],
)
def test_a_run_counts_once_for_each_way_in_which_it_ended(
    ends: list[dict[str, Any]], expected: set[str]
) -> None:
    task = redriven(*ends)
    assert {what.value for what in Counted if has_counted(task, what)} == expected
