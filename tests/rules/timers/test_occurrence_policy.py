"""Whether an occurrence that has fallen due is called, by the current state of its timer."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Occurrence, Plan
from duewheel.rules.timers.occurrence_policy import (
    Reason,
    misfire,
    should_disable_timer,
    skip_reason,
    with_timer_fields,
)
from duewheel.rules.timers.planning import due_second, next_step, occurrence_task
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Gap, Misfire, Rules, Timer
from tests.support.cases import each_case

HOUR = 3_600
ZERO = 1_800_000_000  # a full hour
TIMER_ID = "4503599627370497"
HOURLY = Schedule(every_seconds=HOUR)


def timer(schedule: Schedule = HOURLY, /, **rules: object) -> Timer:
    own_rules = Rules("closing", schedule, **rules)  # type: ignore[arg-type]
    return Timer(
        timer_id=TIMER_ID,
        biz_type="orders",
        rules=own_rules,
        enabled=True,
        version=1,
        created_ms=0,
        updated_ms=0,
    )


def occurrence(of: Timer, second: int = ZERO, number: int = 1, **more: bool) -> Occurrence:
    return Occurrence(of.timer_id, second, number, **more)


def decided(of: Timer | None, one: Occurrence, now: float = ZERO, **task: object) -> Reason | None:
    made = occurrence_task(timer() if of is None else of, one, 0)
    return skip_reason(replace(made, **task), one, of, round(now * 1000))  # type: ignore[arg-type]


def test_an_occurrence_that_its_timer_contains_is_called() -> None:
    assert decided(timer(), occurrence(timer())) is None


def test_no_occurrence_of_a_deleted_timer_is_called() -> None:
    assert decided(None, occurrence(timer())) is Reason.DELETED
    assert decided(None, occurrence(timer(), manual=True)) is Reason.DELETED


def test_only_runs_requested_by_hand_are_called_for_a_disabled_timer() -> None:
    disabled = replace(timer(), enabled=False)
    assert decided(disabled, occurrence(disabled)) is Reason.DISABLED
    assert decided(disabled, occurrence(disabled, number=0, manual=True)) is None


@each_case(
    ("second", "task", "reason"),
    [
        (ZERO, {}, None),
        (ZERO + HOUR, {}, Reason.DISABLED),
        (ZERO + 2 * HOUR, {}, Reason.DISABLED),
        (ZERO + 3 * HOUR, {}, None),
        (ZERO + HOUR, {"attempts": 1}, None),
        (ZERO + HOUR, {"redrives": 1}, None),
    ],
)
def test_a_first_call_is_not_made_for_a_second_in_which_the_timer_was_disabled(
    second: int, task: dict[str, int], reason: Reason | None
) -> None:
    of = replace(timer(misfire=Misfire.ALL), gaps=(Gap(1, 2), Gap(ZERO, ZERO + 2 * HOUR)))
    assert decided(of, occurrence(of, second), second, **task) is reason


def test_a_late_run_is_not_superseded_by_one_for_a_second_in_which_its_timer_was_disabled() -> None:
    of = replace(timer(misfire=Misfire.LATEST), gaps=(Gap(ZERO, ZERO + 2 * HOUR),))
    assert decided(of, occurrence(of), ZERO + 3 * HOUR - 1) is None
    assert decided(of, occurrence(of), ZERO + 3 * HOUR) is Reason.SUPERSEDED


@each_case(
    "current",
    [
        timer(Schedule(every_seconds=7 * 61)),
        timer(Schedule(every_seconds=HOUR, start_second=ZERO + 1)),
        timer(Schedule(every_seconds=HOUR, end_second=ZERO - 1)),
        timer(Schedule(every_seconds=HOUR, exclude=("2027-01-15",))),
        timer(max_runs=1),
    ],
)
def test_an_occurrence_that_its_timer_no_longer_contains_is_not_called(current: Timer) -> None:
    assert decided(current, occurrence(timer(), number=2)) is Reason.CHANGED


def test_an_occurrence_planned_with_another_jitter_is_not_called() -> None:
    before, after = timer(jitter_seconds=600), timer(jitter_seconds=900)
    moved = next(
        second
        for second in range(ZERO, ZERO + 100 * HOUR, HOUR)
        if due_second(TIMER_ID, second, 600) != due_second(TIMER_ID, second, 900)
    )
    one = occurrence(before, moved)
    as_planned = occurrence_task(before, one, 0)
    assert skip_reason(as_planned, one, before, as_planned.due_ms) is None
    assert skip_reason(as_planned, one, after, as_planned.due_ms) is Reason.CHANGED


def test_an_occurrence_planned_with_another_tolerance_is_not_called() -> None:
    before, after = timer(tolerance_seconds=60), timer(tolerance_seconds=0)
    one = occurrence(before, ZERO + 1)
    before, after = (
        replace(of, rules=replace(of.rules, schedule=Schedule(every_seconds=1)))
        for of in (before, after)
    )
    as_planned = occurrence_task(before, one, 0)
    assert as_planned.due_ms != as_planned.due_at_ms
    assert skip_reason(as_planned, one, before, as_planned.due_ms) is None
    assert skip_reason(as_planned, one, after, as_planned.due_ms) is Reason.CHANGED


def test_changes_of_payload_and_callback_keep_planned_occurrences() -> None:
    changed = timer(payload='"new"', callback=HttpCallback("https://new.example/"), max_runs=9)
    assert decided(changed, occurrence(timer())) is None


# An hourly timer, and no notifier from 0:30 to 3:10: the fate of the runs of 1:00, 2:00 and 3:00,
# and of that of 4:00, which falls due on time.
OUTAGE = {
    Misfire.ALL: [None, None, None, None],
    Misfire.LATEST: [Reason.SUPERSEDED, Reason.SUPERSEDED, None, None],
    Misfire.SKIP: [Reason.MISSED, Reason.MISSED, Reason.MISSED, None],
}


@each_case("policy", Misfire)
def test_the_misfire_policy_decides_after_an_outage(policy: Misfire) -> None:
    of = timer(misfire=policy, grace_seconds=60)
    back, later = ZERO + 3 * HOUR + 600, ZERO + 4 * HOUR
    runs = [
        decided(of, occurrence(of, ZERO + hour * HOUR, hour), later if hour == 4 else back)
        for hour in (1, 2, 3, 4)
    ]
    assert runs == OUTAGE[policy]


@each_case("policy", Misfire)
def test_within_its_grace_a_run_is_only_late(policy: Misfire) -> None:
    of = timer(Schedule(every_seconds=60), misfire=policy, grace_seconds=150)
    assert decided(of, occurrence(of), ZERO + 150) is None
    assert (decided(of, occurrence(of), ZERO + 150.001) is None) is (policy is Misfire.ALL)


@each_case("more", [{"attempts": 1}, {"redrives": 1}])
def test_an_occurrence_that_has_been_called_is_never_misfired(more: dict[str, int]) -> None:
    of = timer(misfire=Misfire.SKIP)
    assert decided(of, occurrence(of), ZERO + 9 * HOUR, **more) is None


def test_a_run_requested_by_hand_is_never_misfired() -> None:
    of = timer(misfire=Misfire.SKIP)
    assert decided(of, occurrence(of, manual=True), ZERO + 9 * HOUR) is None


@each_case(
    ("schedule", "rules"),
    [(Schedule(every_seconds=HOUR, end_second=ZERO), {}), (HOURLY, {"max_runs": 1})],
)
def test_the_last_run_of_a_timer_is_not_superseded(
    schedule: Schedule, rules: dict[str, int]
) -> None:
    of = timer(schedule, misfire=Misfire.LATEST, **rules)
    assert decided(of, occurrence(of), ZERO + 9 * HOUR) is None


@given(st.integers(0, 300), st.integers(0, 120), st.integers(7, 90), st.integers(0, 300))
def test_the_latest_of_late_occurrences_is_called_with_any_jitter_and_tolerance(
    jitter: int, tolerance: int, every: int, outage: int
) -> None:
    of = timer(
        Schedule(every_seconds=every),
        jitter_seconds=jitter,
        tolerance_seconds=tolerance,
        misfire=Misfire.LATEST,
        grace_seconds=0,
    )
    now = ZERO + outage
    step = next_step(of, Plan(TIMER_ID, ZERO - 300, 0), now * 1000)
    tasks = [(one, occurrence_task(of, one, 0)) for one in step.occurrences]
    due = [(one, task) for one, task in tasks if task.due_ms < now * 1000]
    for one, task in due:
        is_last = not any(
            other.second > one.second and another.due_ms <= now * 1000 for other, another in tasks
        )
        expected = None if is_last else Reason.SUPERSEDED
        assert misfire(task, one, of, now * 1000) is expected


def test_a_call_has_payload_callback_and_policy_of_its_timer() -> None:
    of = timer(
        payload='{ "at": "{{due_at}}", "ms":"{{due_ms}}", "n": ["{{number}}", 1.0],\n'
        '"ids": "{{task_id}}/{{timer_id}}", "kept": "{due_at}} \\u007b{number}}" }',
        callback=HttpCallback("https://receiver.example/"),
        retry=RetryPolicy(attempts_max=2),
        expires_after_seconds=5.0,
        jitter_seconds=10,
        flow_key="customer-7",
    )
    one = occurrence(of, ZERO, 17)
    task = occurrence_task(of, one, 0)
    call = with_timer_fields(task, one, of)
    assert call.payload == (
        f'{{ "at": "2027-01-15T08:00:00.000Z", "ms":"{ZERO}000", "n": ["17", 1.0],\n'
        f'"ids": "{task.task_id}/{TIMER_ID}", "kept": "{{due_at}}}} \\u007b{{number}}}}" }}'
    )
    assert (call.callback, call.retry) == (of.rules.callback, of.rules.retry)
    assert call.expires_after_seconds == 5.0
    assert call.flow_key == "customer-7"
    assert with_timer_fields(replace(task, redrives=1), one, of).expires_after_seconds is None


GONE = Outcome(Verdict.STOP, "", status_code=410)


@each_case(
    ("outcome", "stops"),
    [
        (GONE, True),
        (Outcome(Verdict.STOP, "", status_code=503, stopped_by_receiver=True), True),
        (Outcome(Verdict.STOP, "", status_code=400), False),
        (Outcome(Verdict.STOP, "refused-address"), False),
        (Outcome(Verdict.RETRY, "", status_code=410), False),
        (Outcome(Verdict.DELIVERED, "", status_code=200), False),
    ],
)
def test_status_410_and_a_stop_by_the_receiver_disable_the_timer(
    outcome: Outcome, stops: bool
) -> None:
    assert should_disable_timer(timer(disable_on_stop=True), outcome) is stops


def test_a_timer_without_disable_on_stop_stays_enabled() -> None:
    assert not should_disable_timer(timer(), GONE)


def test_an_occurrence_has_the_priority_that_its_timer_has_now() -> None:
    before, after = timer(priority=Priority.LOW), timer(priority=Priority.HIGH)
    one = occurrence(before)
    as_planned = occurrence_task(before, one, 0)
    assert as_planned.priority is Priority.LOW
    assert with_timer_fields(as_planned, one, after).priority is Priority.HIGH
    assert with_timer_fields(as_planned, one, timer()).priority is None
