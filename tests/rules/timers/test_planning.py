"""The occurrences that a step of planning writes, their places, and the instant of the next
step."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Occurrence, Plan
from duewheel.rules.timers.occurrence_policy import misfire as misfire_of
from duewheel.rules.timers.planning import (
    LEFT_MIN,
    LEFT_SECONDS_MIN,
    PLANNED_MAX,
    PLANNED_SECONDS,
    STEP_SECONDS_MAX,
    Step,
    chain_home,
    due_second,
    manual_task,
    moved_on,
    next_step,
    occurrence_task,
)
from duewheel.rules.timers.schedule import Schedule, seconds_from
from duewheel.rules.timers.timer import Misfire, Rules, Timer
from duewheel.rules.tolerance import Window, shared_ms
from duewheel.rules.wheel.addresses import Address, address_at
from duewheel.rules.wheel.sharding import Placement
from tests.support.cases import each_case

NOW = 1_800_000_000  # 2027-01-15T08:00:00Z
HOUR, DAY = 3_600, 86_400
TIMERS = 400  # of one minute
TIMER_ID = "4503599627370497"


def timer(schedule: Schedule | None = None, /, **rules: object) -> Timer:
    values: dict[str, Any] = {"misfire": Misfire.ALL, **rules}
    own_rules = Rules("closing", schedule or Schedule(every_seconds=60), **values)
    return Timer(
        timer_id=TIMER_ID,
        biz_type="orders",
        rules=own_rules,
        enabled=True,
        version=1,
        created_ms=0,
        updated_ms=0,
    )


def new_plan(first: int = NOW + 1, numbered: int = 0) -> Plan:
    return Plan(TIMER_ID, first, numbered)


def planned(of: Timer, plan: Plan, now: int, until: int) -> Iterator[tuple[int, Step]]:
    """The steps of a chain that always falls due on time."""
    now_ms = now * 1000
    while now_ms is not None and now_ms < until * 1000:
        step = next_step(of, plan, now_ms)
        yield now_ms // 1000, step
        plan, now_ms = step.plan, step.next_ms  # type: ignore[assignment]


def homes(of: Timer, step: Step) -> set[Address]:
    return {occurrence_task(of, one, 0).home for one in step.occurrences}


def test_a_timer_of_ten_minutes_is_planned_two_hours_ahead_and_again_in_time() -> None:
    of = timer(Schedule(every_seconds=600))
    step = next_step(of, new_plan(), NOW * 1000)
    assert step.plan.planned_until_second == NOW + PLANNED_SECONDS
    assert [one.second for one in step.occurrences] == list(range(NOW + 600, NOW + 7_200, 600))
    assert step.next_ms is not None
    left_seconds = step.plan.planned_until_second - step.next_ms // 1000
    assert LEFT_SECONDS_MIN <= left_seconds <= 2 * LEFT_SECONDS_MIN


@each_case("every", [1, 60, 149])
def test_a_timer_is_planned_by_count_and_again_in_time(every: int) -> None:
    """At most so many are ahead at any instant, and a quarter of them at least."""
    of = timer(Schedule(every_seconds=every))
    run = list(planned(of, new_plan(), NOW, NOW + 2_000 * every))
    for at, step in run:
        until = step.plan.planned_until_second
        assert len(seconds_from(of.rules.schedule, at + 1, 5_000, until - 1)) == PLANNED_MAX
    for (_, step), (comes_up, _) in pairwise(run):
        until = step.plan.planned_until_second
        left = len(seconds_from(of.rules.schedule, comes_up + 1, 5_000, until - 1))
        assert LEFT_MIN - 1 <= left <= 2 * LEFT_MIN
    assert len(run) <= 2 + 2_000 / (PLANNED_MAX - 2 * LEFT_MIN)


def test_a_yearly_timer_is_planned_once_a_day() -> None:
    yearly = timer(Schedule(cron="0 8 15 1 *"))
    run = list(planned(yearly, new_plan(), NOW, NOW + 366 * DAY))
    assert len(run) <= 368
    found = [one.second for _, step in run for one in step.occurrences]
    assert found == [NOW + 365 * DAY]


def test_many_timers_on_the_same_minute_enabled_together_make_no_hot_spot() -> None:
    """Neither the writers of the same second's slot nor the planning entries come together."""
    noon = Schedule(cron="0 * * * *")
    planned_in: Counter[int] = Counter()
    written_in: dict[int, Counter[int]] = defaultdict(Counter)  # by the due second
    for n in range(TIMERS):
        of = replace(timer(noon), timer_id=str(2**40 + n))
        later = islice(planned(of, new_plan(), NOW, NOW + 6 * HOUR), 1, None)
        for at, step in later:
            planned_in[at] += 1
            for one in step.occurrences:
                written_in[one.second][at] += 1
    assert max(planned_in.values()) <= 8
    whole = {second: at for second, at in written_in.items() if at.total() == TIMERS}
    assert len(whole) >= 3
    for at in whole.values():
        assert max(at.values()) <= 8
        assert max(at) - min(at) > HOUR / 3


def test_many_seconds_after_a_long_gap_are_planned_in_time() -> None:
    """The schedule has more seconds than a step holds, all within minutes of a day."""
    crowd = timer(Schedule(cron="* 0-29 3 * * *"))
    run = list(planned(crowd, new_plan(), NOW, NOW + 3 * DAY))
    written = [(at, one.second) for at, step in run for one in step.occurrences]
    assert [second for _, second in written] == seconds_from(
        crowd.rules.schedule, NOW + 1, len(written)
    )
    assert len(written) == 3 * 1_800
    assert all(second - at >= LEFT_MIN for at, second in written)


def test_numbers_continue_from_the_plan() -> None:
    step = next_step(timer(), new_plan(numbered=41), NOW * 1000)
    assert [one.number for one in step.occurrences[:2]] == [42, 43]
    assert step.plan.numbered == 41 + len(step.occurrences)


def test_a_timer_ends_after_max_runs_when_the_last_one_has_fallen_due() -> None:
    thrice = timer(max_runs=3)
    step = next_step(thrice, new_plan(), NOW * 1000)
    assert [one.number for one in step.occurrences] == [1, 2, 3]
    over_ms = (NOW + 180 + 1) * 1000
    assert step.next_ms == over_ms, "not before the last one is due"
    last = next_step(thrice, step.plan, over_ms)
    assert (last.occurrences, last.next_ms) == ((), None)


def test_a_timer_ends_with_its_schedule_when_the_last_run_with_jitter_has_fallen_due() -> None:
    ends = timer(Schedule(every_seconds=60, end_second=NOW + 120), jitter_seconds=30)
    step = next_step(ends, new_plan(), NOW * 1000)
    assert [one.second for one in step.occurrences] == [NOW + 60, NOW + 120]
    assert step.next_ms == (NOW + 121 + 30) * 1000
    assert next_step(ends, step.plan, step.next_ms).next_ms is None


def test_a_chain_that_is_planned_a_lead_before_its_instant_ends_with_its_schedule() -> None:
    """Its slice opens then."""
    ends = timer(Schedule(every_seconds=60, end_second=NOW + 120))
    step = next_step(ends, new_plan(), NOW * 1000)
    assert step.next_ms is not None
    assert next_step(ends, step.plan, step.next_ms - 500).next_ms is None
    while_due = next_step(ends, step.plan, (NOW + 120) * 1000 - 500)
    assert while_due.next_ms == step.next_ms, "the last one is not due yet"


def test_a_timer_whose_schedule_is_over_ends_immediately() -> None:
    over = timer(Schedule(every_seconds=60, end_second=NOW - 60))
    assert next_step(over, new_plan(), NOW * 1000 + 1500).next_ms is None


def test_after_an_outage_all_late_runs_are_planned_in_immediate_steps() -> None:
    every_second = timer(Schedule(every_seconds=1))
    behind = NOW - 3 * HOUR
    step = next_step(every_second, new_plan(behind), NOW * 1000)
    assert step.occurrences[0].second == behind
    assert len(step.occurrences) == PLANNED_MAX
    assert step.next_ms == NOW * 1000
    run = list(planned(every_second, new_plan(behind), NOW, NOW + 1))
    found = [one.second for _, step in run for one in step.occurrences]
    assert found == list(range(behind, found[-1] + 1))
    assert NOW + 2 * LEFT_MIN <= found[-1] <= NOW + PLANNED_MAX


def test_a_chain_begins_with_the_next_second() -> None:
    placement = Placement(now_ms=NOW * 1000 + 1, lead_ms=500)
    chain = chain_home(timer(), placement, bytes(8))
    assert chain.plan == Plan(TIMER_ID, NOW + 1, 0)
    assert (chain.callback, chain.occurrence, chain.names_its_home) == (None, None, True)


def test_a_chain_that_moves_on_is_another_version_of_itself() -> None:
    chain = chain_home(timer(), Placement(now_ms=NOW * 1000, lead_ms=500), bytes(8))
    step = next_step(timer(), new_plan(), NOW * 1000)
    entry = address_at(step.next_ms or 0, bytes(8))
    after = moved_on(chain, step, entry, step.next_ms or 0, NOW * 1000)
    assert (after.home, after.entry, after.plan) == (chain.home, entry, step.plan)
    assert (after.version, after.next_ms) == (chain.version + 1, step.next_ms)


def test_jitter_delays_by_whole_seconds_within_its_bound_and_always_by_the_same() -> None:
    offs = [due_second(TIMER_ID, NOW + n, 30) - (NOW + n) for n in range(500)]
    assert (min(offs), max(offs)) == (0, 30)
    assert offs == [due_second(TIMER_ID, NOW + n, 30) - (NOW + n) for n in range(500)]
    assert due_second(TIMER_ID, NOW, 0) == NOW


@given(st.integers(0, 600), st.integers(0, 3_600), st.integers(0, 5_000))
def test_an_occurrence_is_due_within_the_tolerance_after_its_jitter_at_a_shared_second(
    jitter: int, tolerance: int, seconds: int
) -> None:
    of = timer(Schedule(every_seconds=1_000), jitter_seconds=jitter, tolerance_seconds=tolerance)
    task = occurrence_task(of, Occurrence(TIMER_ID, NOW + seconds, 1), 0)
    jittered = due_second(TIMER_ID, NOW + seconds, jitter)
    assert task.due_at_ms == jittered * 1000
    assert task.due_ms == shared_ms(Window(jittered * 1000, of.biz_type), tolerance)
    assert task.due_ms <= (NOW + seconds + of.rules.late_seconds_max) * 1000


def test_a_chain_that_has_planned_all_is_due_when_the_last_occurrence_is_over() -> None:
    of = timer(
        Schedule(every_seconds=600, end_second=NOW + 1_200, anchor_second=NOW),
        tolerance_seconds=300,
    )
    step = next_step(of, new_plan(), NOW * 1000)
    last = occurrence_task(of, step.occurrences[-1], 0)
    assert step.next_ms is not None
    assert step.next_ms > last.due_ms


def test_two_occurrences_that_jitter_brings_together_have_homes_of_their_own() -> None:
    crowd = timer(Schedule(every_seconds=1), jitter_seconds=300)
    step = next_step(crowd, new_plan(), NOW * 1000)
    dues = {occurrence_task(crowd, one, 0).due_ms for one in step.occurrences}
    assert len(homes(crowd, step)) == len(step.occurrences) > len(dues)


def test_a_run_by_hand_has_what_the_timer_says_before_it_is_called() -> None:
    rules = timer(
        priority=Priority.HIGH,
        labels=(("team", "a"),),
        on_outcome=OnOutcome((Told.CANCELLED,), HttpCallback("https://receiver.example/")),
    )
    run = manual_task(rules, Placement(now_ms=NOW * 1000, lead_ms=0), b"12345678")
    planned_one = occurrence_task(rules, Occurrence(TIMER_ID, NOW), NOW * 1000)
    assert run.on_outcome is not None
    for name in ("priority", "labels", "on_outcome"):
        assert getattr(run, name) == getattr(planned_one, name)


def test_another_timer_has_other_homes_at_the_same_instants() -> None:
    other = replace(timer(), timer_id="4503599627370498")
    one = next_step(timer(), new_plan(), NOW * 1000)
    two = next_step(other, replace(new_plan(), timer_id=other.timer_id), NOW * 1000)
    assert not homes(timer(), one) & homes(other, two)


schedules = st.builds(Schedule, every_seconds=st.integers(1, 5_000)) | st.sampled_from(
    [
        Schedule(cron="*/7 * * * *", timezone="Australia/Lord_Howe"),
        Schedule(cron="*/20 * 8-9 * * *"),
        Schedule(cron="0 0 1 * *", timezone="Africa/Cairo"),
    ]
)


@given(
    schedules,
    st.integers(0, 120),
    st.integers(0, 3_600),
    st.none() | st.integers(1, 3_000),
    st.lists(st.integers(0, 9_000), min_size=1, max_size=6),
    st.integers(0, 6_000),
)
def test_two_chains_at_any_moments_plan_the_same_homes(
    schedule: Schedule,
    jitter: int,
    tolerance: int,
    max_runs: int | None,
    pauses: list[int],
    apart: int,
) -> None:
    """One chain falls due on time; the other begins with it and falls due at any time, early or
    late. Both write the same homes with the same numbers."""
    of = timer(schedule, jitter_seconds=jitter, tolerance_seconds=tolerance, max_runs=max_runs)
    first, second = new_plan(), new_plan()
    until = NOW + 9_000
    on_time = [step for _, step in planned(of, first, NOW, until)][:40]
    moments, now = [], NOW
    for pause in [apart, *pauses]:
        now += pause
        moments.append(now)
    otherwise: list[Step] = []
    for moment in moments:
        step = next_step(of, second, moment * 1000)
        otherwise.append(step)
        second = step.plan
    by_both = []
    for steps in (on_time, otherwise):
        written = [one for step in steps for one in step.occurrences]
        assert [one.number for one in written] == list(range(1, len(written) + 1))
        assert [one.second for one in written] == sorted({one.second for one in written})
        by_both.append(written)
    shorter = min(map(len, by_both))
    assert by_both[0][:shorter] == by_both[1][:shorter]
    assert {occurrence_task(of, one, 1).home for one in by_both[0][:shorter]} == {
        occurrence_task(of, one, 2).home for one in by_both[1][:shorter]
    }


@given(schedules, st.integers(0, 20_000), st.integers(0, 999))
def test_a_step_leaves_no_second_out_and_the_next_one_comes_in_time(
    schedule: Schedule, behind: int, ms: int
) -> None:
    of, plan, now_ms = timer(schedule), new_plan(NOW - behind), NOW * 1000 + ms
    step = next_step(of, plan, now_ms)
    until = step.plan.planned_until_second
    seconds = [one.second for one in step.occurrences]
    assert seconds == seconds_from(schedule, plan.planned_until_second, 5_000, until - 1)
    assert step.next_ms is not None
    assert now_ms <= step.next_ms <= (NOW + STEP_SECONDS_MAX) * 1000
    following = seconds_from(schedule, until, 1)[0]
    if step.next_ms > now_ms:
        assert following - step.next_ms // 1000 >= LEFT_MIN
    else:
        assert len(seconds) == PLANNED_MAX


@each_case("behind", [0, 3_000, 100_000])
def test_a_chain_moves_on_with_each_immediate_step(behind: int) -> None:
    plan, of = new_plan(NOW - behind), timer(Schedule(every_seconds=1))
    run = 0
    while (step := next_step(of, plan, NOW * 1000)).next_ms == NOW * 1000:
        assert step.plan.planned_until_second > plan.planned_until_second
        plan, run = step.plan, run + 1
    assert run <= behind / PLANNED_MAX + 2


def test_a_chain_that_falls_due_early_plans_nothing_twice_and_waits() -> None:
    of = timer(Schedule(every_seconds=1))
    step = next_step(of, new_plan(), NOW * 1000)
    again = next_step(of, step.plan, NOW * 1000 + 500)
    assert (again.occurrences, again.plan, again.next_ms) == ((), step.plan, step.next_ms)


@given(
    misfire=st.sampled_from(Misfire),
    every=st.integers(1, 50),
    jitter=st.integers(0, 40),
    tolerance=st.integers(0, 120),
    grace=st.integers(0, 90),
    behind=st.integers(0, 4_000),
    max_runs=st.none() | st.integers(1, 900),
)
def test_occurrences_that_are_only_counted_would_each_have_been_cancelled(
    misfire: Misfire,
    every: int,
    jitter: int,
    tolerance: int,
    grace: int,
    behind: int,
    max_runs: int | None,
) -> None:
    """The counted and the written occurrences together are all of them, with the same numbers."""
    of = timer(
        Schedule(every_seconds=every, anchor_second=NOW - behind),
        misfire=misfire,
        jitter_seconds=min(jitter, every - 1),
        tolerance_seconds=tolerance,
        grace_seconds=grace,
        max_runs=max_runs,
    )
    plan = new_plan(NOW - behind)
    step = next_step(of, plan, NOW * 1000)
    of_all = timer(of.rules.schedule, max_runs=max_runs, jitter_seconds=of.rules.jitter_seconds)
    misfired = len(step.misfired)
    assert [*step.misfired] == seconds_from(of.rules.schedule, plan.planned_until_second, misfired)
    for number, second in enumerate(step.misfired, 1):
        one = Occurrence(TIMER_ID, second, number)
        assert misfire_of(occurrence_task(of, one, 0), one, of, NOW * 1000) is not None
    written = next_step(of, step.plan, NOW * 1000) if step.misfired else step
    if written.occurrences:
        first = next_step(of_all, plan, NOW * 1000).occurrences[misfired:]
        assert written.occurrences[: len(first)] == first[: len(written.occurrences)]
        assert written.occurrences[0].number == misfired + 1
    assert written.plan.numbered == misfired + len(written.occurrences)


def test_a_step_counts_a_bounded_number_of_misfires_and_the_next_one_is_immediate() -> None:
    of = timer(Schedule(every_seconds=1), misfire=Misfire.SKIP)
    plan, steps = new_plan(NOW - 259_200), 0
    while plan.planned_until_second <= NOW:
        step = next_step(of, plan, NOW * 1000)
        assert step.next_ms == NOW * 1000 or step.plan.planned_until_second > NOW
        plan, steps = step.plan, steps + 1
    assert steps == 28
