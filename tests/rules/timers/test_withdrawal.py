"""The planned occurrences that are deleted together, instead of being ended one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.tasks.task import Occurrence, Plan, Status, Task
from duewheel.rules.timers.occurrence_policy import Reason, skip_reason
from duewheel.rules.timers.planning import MISFIRES_WRITTEN, TAKEN_BACK_MIN, occurrence_task
from duewheel.rules.timers.schedule import Schedule, seconds_from
from duewheel.rules.timers.timer import Misfire, Rules, Timer
from duewheel.rules.timers.withdrawal import (
    MISFIRES,
    Claims,
    SecondRange,
    missed_range,
    reason_to_take_back,
)
from duewheel.rules.wheel.addresses import address_at
from tests.support.cases import each_case

NOW = 1_800_000_000
TIMER_ID = "4503599627370497"


def timer(every: int = 1, behind: int = 0, **rules: Any) -> Timer:
    schedule = Schedule(every_seconds=every, anchor_second=NOW - behind)
    own_rules = Rules("closing", schedule, **{"misfire": Misfire.SKIP, **rules})
    return Timer(
        timer_id=TIMER_ID,
        biz_type="orders",
        rules=own_rules,
        enabled=True,
        version=1,
        created_ms=0,
        updated_ms=0,
    )


def planned(of: Timer, second: int, number: int = 1) -> Task:
    return occurrence_task(of, Occurrence(TIMER_ID, second, number), 0)


@given(
    misfire=st.sampled_from([Misfire.SKIP, Misfire.LATEST]),
    every=st.integers(1, 20),
    jitter=st.integers(0, 19),
    tolerance=st.integers(0, 120),
    grace=st.integers(0, 90),
    behind=st.integers(0, 2_000),
    written=st.integers(0, 300),
    max_runs=st.none() | st.integers(1, 200),
    later=st.integers(0, 100_000),
)
def test_withdrawn_occurrences_would_be_ended_at_any_time_and_the_latest_ones_are_left(
    misfire: Misfire,
    every: int,
    jitter: int,
    tolerance: int,
    grace: int,
    behind: int,
    written: int,
    max_runs: int | None,
    later: int,
) -> None:
    of = timer(
        every,
        behind,
        misfire=misfire,
        jitter_seconds=min(jitter, every - 1),
        tolerance_seconds=tolerance,
        grace_seconds=grace,
        max_runs=max_runs,
    )
    seconds = seconds_from(of.rules.schedule, NOW - behind, written, NOW + 100)[:max_runs]
    plan = Plan(TIMER_ID, seconds[-1] + 1 if seconds else NOW, len(seconds))
    tasks = [planned(of, second, number) for number, second in enumerate(seconds, 1)]
    seconds = missed_range(of, plan, tasks[0], NOW) if tasks else None
    taken, left = [], []
    for task in tasks:
        last_missed = 0 if seconds is None else seconds.last_missed
        reason = reason_to_take_back(task, of, NOW * 1000, last_missed)
        (left if reason is None else taken).append(task)
        if reason is not None:
            assert seconds is not None
            assert seconds.first <= task.home.second <= seconds.last
            assert task.occurrence is not None
            for now in (NOW, NOW + later):
                assert skip_reason(task, task.occurrence, of, now * 1000) is reason
    before = NOW - grace - of.rules.late_seconds_max
    late = [task for task in tasks if task.occurrence and task.occurrence.second < before]
    assert len(taken) <= max(0, len(late) - MISFIRES_WRITTEN)
    assert tasks == [*taken, *left], "the latest are left"


def test_occurrences_that_a_chain_may_write_again_are_not_withdrawn() -> None:
    """The chain counts the occurrences that it writes."""
    of = timer(behind=1_000)
    met = planned(of, NOW - 1_000)
    seconds = missed_range(of, Plan(TIMER_ID, NOW - 600, 400), met, NOW)
    assert seconds == SecondRange(
        NOW - 1_000, NOW - 601 - MISFIRES_WRITTEN, NOW - 601 - MISFIRES_WRITTEN
    )


@each_case(
    "change",
    [
        {"version": 2},
        {"status": Status.DELIVERED},
        {"entry": address_at(NOW * 1000, bytes(8), direct=True)},
        {"occurrence": Occurrence(TIMER_ID, NOW - 500, manual=True)},
        {"occurrence": None},
    ],
)
def test_only_unchanged_occurrences_are_withdrawn(change: dict[str, Any]) -> None:
    of = timer(behind=1_000)
    task = planned(of, NOW - 500)
    assert reason_to_take_back(task, of, NOW * 1000, NOW) is Reason.MISSED
    assert reason_to_take_back(task, None, NOW * 1000, 0) is Reason.DELETED
    for timer_now in (of, None):
        assert reason_to_take_back(replace(task, **change), timer_now, NOW * 1000, NOW) is None


def test_only_occurrences_that_a_changed_timer_does_not_contain_are_withdrawn() -> None:
    of = timer()
    changed = timer(every=2)
    reasons = [
        reason_to_take_back(planned(of, NOW + n), changed, NOW * 1000, 0) for n in (100, 101)
    ]
    assert reasons == [None, Reason.CHANGED]
    assert Reason.CHANGED not in MISFIRES


@each_case(
    ("ranges", "claimed"),
    [
        ([(0, 500), (0, 500), (250, 500)], [(0, 500), None, None]),
        ([(300, 900), (0, 900)], [(300, 900), (0, 299)]),
        ([(0, 500), (499, 900)], [(0, 500), (501, 900)]),
        ([(0, 500), (1, 501)], [(0, 500), None]),
        ([(0, TAKEN_BACK_MIN - 1)], [None]),
    ],
)
def test_each_range_of_seconds_is_claimed_once(
    ranges: list[tuple[int, int]], claimed: list[tuple[int, int] | None]
) -> None:
    claims = Claims()
    found = [claims.claim(TIMER_ID, SecondRange(first, last)) for first, last in ranges]
    assert [None if one is None else (one.first, one.last) for one in found] == claimed
    assert claims.claim("4503599627370498", SecondRange(0, 500)) is not None
