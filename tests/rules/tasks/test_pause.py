"""The pause of one task: what it becomes, and what each change makes of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import InvalidField, MalformedBody
from duewheel.rules.tasks import lifecycle, pause
from duewheel.rules.tasks.lifecycle import Decision, decide
from duewheel.rules.tasks.pause import PAUSE_MS_MAX, is_paused, paused, resumed, until_from
from duewheel.rules.tasks.task import (
    InLine,
    Paused,
    PostponedBy,
    Postponement,
    Reservation,
    Status,
    Task,
)
from duewheel.rules.tasks.updates import Change, brought_forward, changed, needs_new_entry
from duewheel.rules.tolerance import Window
from duewheel.stores.tasks import codec
from tests.rules.tasks.test_lifecycle import TASK
from tests.support.cases import each_case

NOW_MS = TASK.due_ms - 3_600_000
UNTIL_MS = TASK.due_ms + 86_400_000
BY = "arn:aws:iam::123456789012:role/ops"
PAUSED = paused(TASK, UNTIL_MS, BY, NOW_MS)


def as_requested(window: Window) -> int:
    return window.due_ms


def test_a_paused_task_is_pending_and_due_at_the_end_of_its_pause() -> None:
    assert PAUSED.status is Status.PENDING
    assert (PAUSED.due_ms, PAUSED.next_ms) == (TASK.due_ms, UNTIL_MS)
    assert PAUSED.paused == Paused(since_ms=NOW_MS, by=BY, until_ms=UNTIL_MS, from_ms=TASK.next_ms)
    assert (PAUSED.version, PAUSED.attempts) == (TASK.version + 1, 0)
    assert not needs_new_entry(PAUSED, NOW_MS)
    assert decide(PAUSED.entry, PAUSED, TASK.due_ms) is Decision.PLACE_LATER


def test_without_an_end_a_pause_lasts_for_the_longest_time_behind_the_instant_of_the_call() -> None:
    assert paused(TASK, None, BY, NOW_MS).next_ms == TASK.due_ms + PAUSE_MS_MAX
    retried = replace(TASK, due_ms=NOW_MS - 9_000, next_ms=NOW_MS - 9_000)
    assert paused(retried, None, BY, NOW_MS).next_ms == NOW_MS + PAUSE_MS_MAX


def test_a_pause_never_brings_a_call_forward() -> None:
    early = paused(TASK, TASK.due_ms - 1, BY, NOW_MS)
    assert early.next_ms == TASK.due_ms
    assert early.paused is not None
    assert early.paused.until_ms == TASK.due_ms


def test_a_paused_task_that_is_paused_again_keeps_who_did_it_and_its_instant() -> None:
    again = paused(PAUSED, UNTIL_MS + 5, "another", NOW_MS + 7)
    assert again.paused == replace(PAUSED.paused, until_ms=UNTIL_MS + 5)  # type: ignore[type-var]
    assert again.next_ms == UNTIL_MS + 5


@each_case(
    ("task", "until_ms", "expected"),
    [
        (TASK, None, False),
        (TASK, UNTIL_MS, False),
        (PAUSED, None, True),
        (PAUSED, UNTIL_MS, True),
        (PAUSED, UNTIL_MS + 1, False),
    ],
)
def test_a_request_that_would_change_nothing_is_done(
    task: Task, until_ms: int | None, expected: bool
) -> None:
    assert is_paused(task, until_ms) is expected


@each_case(
    ("now_ms", "expected_ms"),
    [(NOW_MS + 1, TASK.due_ms), (TASK.due_ms, TASK.due_ms), (UNTIL_MS - 5, UNTIL_MS - 5)],
)
def test_a_resumed_task_is_due_at_its_instant_or_now(now_ms: int, expected_ms: int) -> None:
    task = resumed(PAUSED, now_ms)
    assert (task.paused, task.next_ms) == (None, expected_ms)
    assert task.due_ms == TASK.due_ms


def test_a_task_that_waits_for_a_retry_is_resumed_at_the_instant_of_that() -> None:
    retried = replace(TASK, attempts=2, next_ms=TASK.due_ms + 60_000)
    task = resumed(paused(retried, UNTIL_MS, BY, TASK.due_ms + 9_000), TASK.due_ms + 10_000)
    assert (task.next_ms, task.attempts) == (TASK.due_ms + 60_000, 2)


def test_what_it_waited_for_is_void_but_not_when_it_may_be_called() -> None:
    at_ms = TASK.due_ms + 60_000
    waiting = replace(
        TASK,
        next_ms=at_ms,
        reservation=Reservation(at_ms, 1),
        postponement=Postponement(PostponedBy.FLOW_KEY, at_ms),
        in_line=InLine(at_ms, TASK.due_ms),
        parked=True,
        parked_key="a",
    )
    task = paused(waiting, UNTIL_MS, BY, NOW_MS)
    void = (task.reservation, task.postponement, task.in_line, task.parked, task.parked_key)
    assert void == (None, None, None, False, None)
    assert task.call_ms == TASK.due_ms


def test_a_move_keeps_the_pause_and_changes_what_follows_it() -> None:
    moved = changed(PAUSED, Change(due_ms=TASK.due_ms + 5_000), NOW_MS, as_requested)
    assert (moved.due_ms, moved.next_ms) == (TASK.due_ms + 5_000, UNTIL_MS)
    assert resumed(moved, NOW_MS).next_ms == TASK.due_ms + 5_000
    beyond = changed(PAUSED, Change(due_ms=UNTIL_MS + 1), NOW_MS, as_requested)
    assert (beyond.next_ms, beyond.call_ms) == (UNTIL_MS + 1, UNTIL_MS + 1)
    assert beyond.paused is not None


def test_a_change_of_something_else_keeps_the_pause() -> None:
    after = changed(PAUSED, Change(sets_payload=True, payload="7"), NOW_MS, as_requested)
    assert (after.paused, after.next_ms) == (PAUSED.paused, UNTIL_MS)
    wide = changed(PAUSED, Change(tolerance_seconds=60), NOW_MS, as_requested)
    assert (wide.paused, wide.next_ms) == (PAUSED.paused, UNTIL_MS)


def test_a_run_ends_the_pause() -> None:
    run = brought_forward(PAUSED, NOW_MS + 9)
    assert (run.paused, run.next_ms) == (None, NOW_MS + 9)


ENDS = {
    "cancelled": lambda task: lifecycle.cancelled(task, "", UNTIL_MS, 60),
    "expired": lambda task: lifecycle.expired(task, UNTIL_MS, 60),
    "parked": lambda task: lifecycle.parked(task, UNTIL_MS),
    "postponed": lambda task: lifecycle.postponed(task, UNTIL_MS + 1, UNTIL_MS),
    "rescheduled": lambda task: lifecycle.rescheduled(task, Reservation(UNTIL_MS + 1, 1), UNTIL_MS),
    "put in line": lambda task: lifecycle.put_in_line(task, UNTIL_MS + 1, UNTIL_MS),
}


@each_case("after", list(ENDS.values()))
def test_whatever_becomes_of_it_at_the_end_of_the_pause_it_is_paused_no_more(after: Any) -> None:
    assert after(PAUSED).paused is None


def test_a_grace_goes_on_during_the_pause() -> None:
    task = replace(PAUSED, expires_after_seconds=60.0)
    assert decide(task.entry, task, TASK.due_ms + 61_000) is Decision.PLACE_LATER
    assert decide(task.entry, task, UNTIL_MS) is Decision.EXPIRE
    back = resumed(task, TASK.due_ms + 61_000)
    assert decide(back.entry, back, TASK.due_ms + 61_000) is Decision.EXPIRE


# The request


def test_a_body_may_name_the_end() -> None:
    assert until_from(None, NOW_MS) is None
    assert until_from("{}", NOW_MS) is None
    body = f'{{"until": "{rfc3339(UNTIL_MS)}"}}'
    assert until_from(body, NOW_MS) == UNTIL_MS
    latest_ms = NOW_MS + PAUSE_MS_MAX
    assert until_from(f'{{"until": "{rfc3339(latest_ms)}"}}', NOW_MS) == latest_ms


@each_case("until_ms", [NOW_MS, NOW_MS - 1, NOW_MS + PAUSE_MS_MAX + 1])
def test_an_end_that_is_not_ahead_or_too_far_is_refused(until_ms: int) -> None:
    with pytest.raises(InvalidField) as refused:
        until_from(f'{{"until": "{rfc3339(until_ms)}"}}', NOW_MS)
    assert refused.value.field == "until"


@each_case("body", ["[]", '{"until": null}', '{"until": 7}', '{"untill": "x"}', "nonsense"])
def test_a_body_that_is_not_understood_is_refused(body: str) -> None:
    with pytest.raises((InvalidField, MalformedBody)):
        until_from(body, NOW_MS)


# The stored form


@given(st.integers(1, 10**12), st.integers(0, 10**12), st.text(st.characters(codec="ascii")))
def test_a_pause_is_read_as_it_was_written(until_ms: int, from_ms: int, by: str) -> None:
    task = replace(
        TASK,
        next_ms=until_ms,
        paused=Paused(since_ms=5, by=by, until_ms=until_ms, from_ms=from_ms),
    )
    assert codec.task_from(codec.task_item(task, 1_000, listed=True)) == task


def test_a_task_that_was_never_paused_has_no_attribute_for_it() -> None:
    assert "paused" not in codec.task_item(TASK, 1_000, listed=True)
    assert "paused" not in codec.task_item(resumed(PAUSED, NOW_MS), 1_000, listed=True)


@given(
    st.integers(0, 10**9),
    st.none() | st.integers(1, PAUSE_MS_MAX),
    st.integers(0, 10**9),
    st.lists(st.sampled_from(["pause", "move", "resume", "run"]), max_size=6),
)
def test_no_sequence_of_changes_brings_a_call_before_its_instant(
    now_after_ms: int, until_after_ms: int | None, step_ms: int, steps: list[str]
) -> None:
    task, now_ms, call_ms = TASK, NOW_MS + now_after_ms, TASK.due_ms
    for step in steps:
        now_ms += step_ms
        match step:
            case "pause":
                until_ms = None if until_after_ms is None else now_ms + until_after_ms
                task = pause.paused(task, until_ms, BY, now_ms)
                assert task.next_ms >= (until_ms or now_ms + PAUSE_MS_MAX)
            case "move":
                call_ms = now_ms + 1_000
                task = changed(task, Change(due_ms=call_ms), now_ms, as_requested)
            case "run":
                call_ms = now_ms
                task = brought_forward(task, now_ms)
            case "resume" if task.paused is not None:
                call_ms = max(now_ms, call_ms)
                task = resumed(task, now_ms)
        assert task.call_ms == call_ms
        if task.paused is None:
            assert task.next_ms == call_ms
        else:
            assert task.next_ms == task.paused.until_ms >= call_ms
