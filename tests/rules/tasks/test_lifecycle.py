"""Changes of a task's record with each attempt, and at its end."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.lifecycle import HISTORY_MAX, NOTE_CHARACTERS_MAX
from duewheel.rules.tasks.task import Attempt, Reservation, Revival, Status, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_000
RETENTION_SECONDS = 30 * 86_400
HOME = address_at(NOW_MS, bytes(TOKEN_BYTES))
TASK = Task.at(HOME, "orders", NOW_MS, NOW_MS - 60_000, HttpCallback("https://example.com/"))
REFUSED = Outcome(Verdict.RETRY, "busy", status_code=503)
STOPPED = Outcome(Verdict.STOP, "gone", status_code=410)

instants = st.integers(NOW_MS - 100_000, NOW_MS + 100_000)
attempts = st.builds(
    Attempt,
    at_ms=instants,
    lateness_ms=st.integers(0, 100_000),
    duration_ms=st.integers(0, 60_000),
    outcome=st.sampled_from([verdict.value for verdict in Verdict]),
    entry_second=st.integers(NOW_MS // 1000 - 100, NOW_MS // 1000),
    status_code=st.none() | st.integers(100, 999),
    note=st.text(max_size=NOTE_CHARACTERS_MAX),
)
tasks = st.builds(
    replace,
    st.just(TASK),
    due_ms=instants,
    next_ms=instants,
    attempts=st.integers(0, 100),
    history=st.lists(attempts, max_size=HISTORY_MAX).map(tuple),
    last_error=st.none() | st.text(max_size=10),
    version=st.integers(1, 1_000),
)


def delivered(task: Task, attempt: Attempt, now_ms: int) -> Task:
    return lifecycle.delivered(task, attempt, now_ms, RETENTION_SECONDS)


def dead(task: Task, attempt: Attempt, now_ms: int) -> Task:
    return lifecycle.dead(task, attempt, "stopped", now_ms, RETENTION_SECONDS)


def expired_before_its_retry(task: Task, attempt: Attempt, now_ms: int) -> Task:
    return lifecycle.expired_after(task, attempt, now_ms, RETENTION_SECONDS)


def expired(task: Task, _: Attempt, now_ms: int) -> Task:
    return lifecycle.expired(task, now_ms, RETENTION_SECONDS)


def cancelled(task: Task, _: Attempt, now_ms: int) -> Task:
    return lifecycle.cancelled(task, "cancelled by caller", now_ms, RETENTION_SECONDS)


def to_be_retried(task: Task, attempt: Attempt, now_ms: int) -> Task:
    entry = address_at(now_ms + 5_000, b"a retry.")
    return lifecycle.to_be_retried(task, attempt, now_ms + 5_000, entry, now_ms)


Change = Callable[[Task, Attempt, int], Task]
ENDS: dict[Change, Status] = {
    delivered: Status.DELIVERED,
    dead: Status.DEAD,
    expired: Status.EXPIRED,
    expired_before_its_retry: Status.EXPIRED,
    cancelled: Status.CANCELLED,
}
ATTEMPTED: list[Change] = [delivered, dead, expired_before_its_retry, to_be_retried]

any_change = st.sampled_from([*ENDS, to_be_retried])


# Every change


@given(any_change, tasks, attempts, instants)
def test_the_version_rises_by_one_with_every_change(
    change: Change, task: Task, attempt: Attempt, now_ms: int
) -> None:
    assert change(task, attempt, now_ms).version == task.version + 1


@given(any_change, tasks, attempts, instants)
def test_an_expiry_is_set_when_and_only_when_the_task_is_settled(
    change: Change, task: Task, attempt: Attempt, now_ms: int
) -> None:
    after = change(task, attempt, now_ms)
    if after.status is Status.PENDING:
        assert (after.expires_at, after.settled_ms) == (None, None)
    else:
        assert (after.expires_at, after.settled_ms) == (now_ms // 1000 + RETENTION_SECONDS, now_ms)


@given(any_change, tasks, attempts, instants)
def test_id_due_instant_callback_and_payload_never_change(
    change: Change, task: Task, attempt: Attempt, now_ms: int
) -> None:
    after = change(task, attempt, now_ms)
    kept = ("home", "biz_type", "due_ms", "callback", "payload", "retry", "created_ms")
    assert [getattr(after, name) for name in kept] == [getattr(task, name) for name in kept]
    assert after.updated_ms == now_ms


@given(any_change, tasks, attempts, instants)
def test_the_history_keeps_the_last_ten_attempts(
    change: Change, task: Task, attempt: Attempt, now_ms: int
) -> None:
    after = change(task, attempt, now_ms)
    everything = (*task.history, attempt) if change in ATTEMPTED else task.history
    assert after.history == everything[-HISTORY_MAX:]
    assert after.attempts == task.attempts + (change in ATTEMPTED)


@each_case(("change", "status"), ENDS.items())
def test_each_end_has_its_status(change: Change, status: Status) -> None:
    attempt = lifecycle.attempt_made(TASK, REFUSED, NOW_MS, NOW_MS)
    assert change(TASK, attempt, NOW_MS).status is status


# One attempt


@given(tasks, instants, st.integers(0, 60_000), st.sampled_from(Verdict))
def test_lateness_is_never_negative(
    task: Task, started_ms: int, took_ms: int, verdict: Verdict
) -> None:
    outcome = Outcome(verdict, "")
    attempt = lifecycle.attempt_made(task, outcome, started_ms, started_ms + took_ms)
    ended = delivered(task, attempt, started_ms + took_ms)
    assert attempt.lateness_ms == max(0, started_ms - task.next_ms)
    assert ended.lateness_ms == max(0, started_ms - task.due_ms)


@given(st.text())
def test_an_attempt_keeps_its_outcome_with_a_short_note(note: str) -> None:
    outcome = Outcome(Verdict.RETRY, note, status_code=503)
    attempt = lifecycle.attempt_made(TASK, outcome, NOW_MS + 3, NOW_MS + 45)
    assert attempt == Attempt(
        at_ms=NOW_MS + 3,
        lateness_ms=3,
        duration_ms=42,
        outcome="retry",
        entry_second=TASK.entry.second,
        status_code=503,
        note=note[:NOTE_CHARACTERS_MAX],
    )


# Delivered


def test_a_delivery_after_failures_removes_the_error() -> None:
    task = replace(TASK, last_error="busy", attempts=3)
    attempt = lifecycle.attempt_made(
        task, Outcome(Verdict.DELIVERED, "ok", status_code=200), NOW_MS, NOW_MS
    )
    assert delivered(task, attempt, NOW_MS).last_error is None


def test_the_lateness_of_a_delivery_counts_from_the_due_instant_and_not_from_the_last_retry() -> (
    None
):
    task = replace(TASK, next_ms=NOW_MS + 60_000)
    attempt = lifecycle.attempt_made(
        task, Outcome(Verdict.DELIVERED, "ok", status_code=200), NOW_MS + 60_002, NOW_MS + 60_040
    )
    ended = delivered(task, attempt, NOW_MS + 60_040)
    assert (attempt.lateness_ms, ended.lateness_ms) == (2, 60_002)


# Failed


def test_a_retry_names_its_new_entry_and_stays_pending() -> None:
    attempt = lifecycle.attempt_made(TASK, REFUSED, NOW_MS, NOW_MS + 40)
    entry = address_at(NOW_MS + 3_000, b"tokenfor")
    after = lifecycle.to_be_retried(TASK, attempt, NOW_MS + 3_000, entry, NOW_MS + 41)
    assert after.status is Status.PENDING
    assert (after.entry, after.next_ms, after.home) == (entry, NOW_MS + 3_000, TASK.home)
    assert after.last_error == "busy"


@given(tasks, st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 86_400), instants)
def test_a_retry_is_never_planned_before_now(
    task: Task, unit: float, retry_after: float | None, now_ms: int
) -> None:
    outcome = Outcome(Verdict.RETRY, "", status_code=503, retry_after_seconds=retry_after)
    next_ms = lifecycle.retry_at_ms(task, RetryPolicy(), outcome, now_ms, unit)
    assert next_ms is None or next_ms >= now_ms + round((retry_after or 0) * 1000)


@each_case("is_recorded", [True, False])
def test_a_failure_that_is_reported_to_a_slow_clock_is_not_retried_before_its_call(
    is_recorded: bool,
) -> None:
    """Else another notifier could make the next call before the due instant."""
    at_once = RetryPolicy(attempts_max=3, delays_seconds=(0.0,))
    task = replace(TASK, next_ms=NOW_MS)
    if is_recorded:
        call = lifecycle.attempt_made(
            task, Outcome(Verdict.DELIVERED, "", status_code=202), NOW_MS, NOW_MS + 5
        )
        task = lifecycle.begun(task, call, 600, (), NOW_MS + 5)
        assert task.running is not None
    assert lifecycle.retry_at_ms(task, at_once, REFUSED, NOW_MS - 800, 1.0) == NOW_MS


@each_case(
    ("attempts_before", "policy", "outcome", "next_after_ms"),
    [
        (0, None, REFUSED, 3_000),
        (14, None, REFUSED, 21_600_000),
        (15, None, REFUSED, None),  # that was the sixteenth
        (0, RetryPolicy(attempts_max=1), REFUSED, None),
        (0, RetryPolicy(attempts_max=3, delays_seconds=(1.0, 5.0)), REFUSED, 1_000),
        (1, RetryPolicy(attempts_max=3, delays_seconds=(1.0, 5.0)), REFUSED, 5_000),
        (2, RetryPolicy(attempts_max=3, delays_seconds=(1.0, 5.0)), REFUSED, None),
        (0, None, Outcome(Verdict.RETRY, "", status_code=429, retry_after_seconds=30.0), 30_000),
        (0, None, STOPPED, None),
        (0, None, Outcome(Verdict.STOP, "", status_code=410, retry_after_seconds=30.0), None),
    ],
)
def test_a_failed_task_is_retried_according_to_its_policy_and_outcome(
    attempts_before: int, policy: RetryPolicy | None, outcome: Outcome, next_after_ms: int | None
) -> None:
    task = replace(TASK, attempts=attempts_before, retry=policy)
    expected_ms = None if next_after_ms is None else NOW_MS + next_after_ms
    assert lifecycle.retry_at_ms(task, RetryPolicy(), outcome, NOW_MS, 1.0) == expected_ms
    if policy is not None:  # a policy of the business has the same effect as one of the task
        plain, own = replace(task, retry=None), RetryPolicy(100, 7.0)
        assert lifecycle.retry_at_ms(plain, policy, outcome, NOW_MS, 1.0) == expected_ms
        assert lifecycle.retry_at_ms(task, own, outcome, NOW_MS, 1.0) == expected_ms


REVIVED = Revival(ended=NOW_MS // 1000, revived=NOW_MS // 1000 + 1)


@each_case(
    ("age_ms", "revivals", "is_too_old"),
    [
        (60_000, (), False),
        (60_001, (), True),
        (60_001, (REVIVED,), False),
        (61_001, (REVIVED,), True),
    ],
)
def test_age_counts_from_the_due_instant_or_the_latest_redrive(
    age_ms: int, revivals: tuple[Revival, ...], is_too_old: bool
) -> None:
    aged = RetryPolicy(max_age_seconds=60.0)
    task = replace(TASK, revivals=revivals)
    assert lifecycle.is_too_old(task, aged, NOW_MS + age_ms) is is_too_old
    assert lifecycle.is_too_old(replace(task, retry=RetryPolicy()), aged, NOW_MS * 2) is False


@each_case(
    ("outcome", "next_ms", "reason"),
    [
        (REFUSED, None, "attempts exhausted"),
        (STOPPED, None, "stopped"),
        (REFUSED, NOW_MS + 1, "older than max_age_seconds"),
    ],
)
def test_a_task_that_is_not_retried_is_dead_with_a_reason(
    outcome: Outcome, next_ms: int | None, reason: str
) -> None:
    attempt = lifecycle.attempt_made(TASK, outcome, NOW_MS, NOW_MS)
    why = lifecycle.reason_of_death(outcome, next_ms)
    after = lifecycle.dead(TASK, attempt, why, NOW_MS, RETENTION_SECONDS)
    assert (after.status, after.reason, after.last_error) == (Status.DEAD, reason, outcome.note)


def test_a_task_whose_grace_ends_before_its_next_attempt_expires_and_keeps_its_error() -> None:
    attempt = lifecycle.attempt_made(TASK, REFUSED, NOW_MS, NOW_MS)
    after = lifecycle.expired_after(TASK, attempt, NOW_MS, RETENTION_SECONDS)
    assert (after.status, after.last_error, after.attempts) == (Status.EXPIRED, "busy", 1)
    assert after.reason == "not delivered within expires_after_seconds"


def test_an_entry_before_the_first_second_of_a_task_becomes_its_first_second() -> None:
    second = HOME.second
    earlier, between, later = (at_second(second + ahead) for ahead in (-60, -30, 60))
    brought_forward = lifecycle.brought_to(TASK, earlier)
    assert (brought_forward.entry, brought_forward.first_second) == (earlier, earlier.second)
    moved_away = lifecycle.brought_to(brought_forward, between)
    assert (moved_away.entry, moved_away.first_second) == (between, earlier.second)
    assert lifecycle.brought_to(TASK, later).first_second is None


def test_a_redrive_by_a_clock_that_is_behind_sets_the_first_second() -> None:
    died = lifecycle.cancelled(TASK, "", NOW_MS, RETENTION_SECONDS)
    behind = at_second(HOME.second - 1)
    assert lifecycle.redriven(died, behind, NOW_MS - 1_000).first_second == behind.second
    assert lifecycle.redriven(died, at_second(HOME.second), NOW_MS).first_second is None


@each_case(
    ("status", "is_late", "refused_for_ms"),
    [
        (Status.DELIVERED, True, lifecycle.REDRIVABLE_AFTER_MS),
        (Status.DEAD, True, 0),
        (Status.DEAD, False, 0),
        (Status.EXPIRED, True, 0),
        (Status.CANCELLED, True, 0),
        (Status.CANCELLED, False, 0),
    ],
)
def test_any_end_is_taken_back_and_kept_as_what_it_was(
    status: Status, is_late: bool, refused_for_ms: int
) -> None:
    now_ms = TASK.due_ms + (90_000 if is_late else -30_000)
    ended = replace(
        TASK,
        status=status,
        reason="why",
        attempts=2,
        lateness_ms=7,
        settled_ms=now_ms,
        updated_ms=now_ms,
        expires_at=now_ms // 1000 + RETENTION_SECONDS,
        expires_after_seconds=1.0,
    )
    assert max(0, lifecycle.redrivable_from_ms(ended) - now_ms) == refused_for_ms
    at_ms = lifecycle.redrive_at_ms(ended, now_ms)
    waits = status is Status.CANCELLED and not is_late
    assert at_ms == (TASK.due_ms if waits else now_ms), "run before its due instant: now"
    entry = at_second(at_ms // 1000)
    redriven = lifecycle.redriven(ended, entry, now_ms)
    assert (redriven.status, redriven.next_ms, redriven.attempts) == (Status.PENDING, at_ms, 0)
    gone = redriven.expires_at, redriven.settled_ms, redriven.reason, redriven.lateness_ms
    assert gone == (None,) * 4
    assert not lifecycle.is_expired(redriven, at_ms)
    (revival,) = redriven.revivals
    assert (revival.ended, revival.revived) == (TASK.entry.second, entry.second)
    how = revival.status, revival.reason, revival.attempts, revival.lateness_ms
    assert how == (status, "why", 2, 7)
    assert revival.is_seen is is_late


def at_second(second: int) -> Address:
    return address_at(second * 1000, bytes(TOKEN_BYTES))


def test_a_cancelled_task_has_the_reason_of_the_cancel() -> None:
    after = lifecycle.cancelled(TASK, "superseded", NOW_MS, RETENTION_SECONDS)
    assert (after.status, after.reason, after.attempts) == (Status.CANCELLED, "superseded", 0)


@given(st.integers(-60_000, 10**9))
def test_a_task_is_postponed_by_as_long_as_it_is_late_within_bounds(late_ms: int) -> None:
    task = replace(TASK, due_ms=NOW_MS - late_ms)
    wait_ms = lifecycle.lateness_wait_ms(task, NOW_MS)
    assert lifecycle.WAIT_MS_MIN <= wait_ms <= lifecycle.WAIT_MS_MAX
    if lifecycle.WAIT_MS_MIN <= late_ms <= lifecycle.WAIT_MS_MAX:
        assert wait_ms == late_ms


def test_a_postponement_uses_up_no_attempt_and_no_turn() -> None:
    due_ms = NOW_MS - 125_000
    task = replace(TASK, due_ms=due_ms, reservation=Reservation(due_ms, 1), attempts=2)
    after = lifecycle.postponed_by_lateness(task, NOW_MS)
    assert (after.attempts, after.due_ms) == (2, due_ms)
    assert after.next_ms == NOW_MS + 125_000
    assert (after.reservation, after.version) == (None, task.version + 1)
