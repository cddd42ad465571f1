"""A timer whose runs fail in a row is disabled by the service, once, and says why."""

import json
from collections import Counter
from typing import Any

import pytest

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import AttemptName
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, RetryPolicy, Told
from duewheel.rules.history.changes import THE_SERVICE, ChangeAction
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers.change_records import TIMER
from duewheel.rules.timers.timer import DisabledReason, Timer
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.wiring.long_work import reported_work
from duewheel.wiring.notifier import plan_timers
from tests.support.receiver import BUSY, GONE, OK, WORKS_ON, Received
from tests.support.recorder import Death
from tests.support.timers import (
    chain_of,
    made,
    now,
    occurrences,
    patched,
    run_for,
)
from tests.support.world import CALLER, LAMBDA_MS, World

ONE_ATTEMPT = RetryPolicy(1, delays_seconds=())
EVERY = 10


def failing(world: World, failures: int = 3, /, **rules: Any) -> Timer:
    return made(
        world,
        EVERY,
        **{"pause_on_failures": failures, "retry": ONE_ATTEMPT, "max_runs": 30, **rules},
    )


def at(world: World, timer: Timer) -> Timer:
    current = world.timers.read(timer.timer_id)
    assert current is not None
    return current


def state(world: World, timer: Timer) -> tuple[bool, DisabledReason | None]:
    current = at(world, timer)
    return current.enabled, current.disabled_reason


def disabling(world: World, timer: Timer) -> list[str]:
    """Who disabled it, by the record of its changes."""
    records = ChangeRecords(world.unrecorded, world.settings.registry_table)
    kept = records.read(TIMER, timer.timer_id, world.clock.now_ms())
    assert kept is not None
    return [change.by for change in kept.changes if change.did is ChangeAction.DISABLED]


FAILED = (False, DisabledReason.FAILURES)


def test_a_timer_is_disabled_after_so_many_runs_in_a_row_that_ended_dead(world: World) -> None:
    timer = failing(world, 3)
    world.receiver.answer = lambda _: BUSY
    run_for(world, 25)
    assert state(world, timer) == (True, None)
    run_for(world, 60)
    assert len(world.receiver.received) == 3
    assert state(world, timer) == FAILED
    assert disabling(world, timer) == [THE_SERVICE]


def test_a_success_begins_the_count_anew(world: World) -> None:
    timer = failing(world, 2)
    answers = iter([BUSY, OK, BUSY, OK])
    world.receiver.answer = lambda _: next(answers, BUSY)
    run_for(world, 52)
    assert state(world, timer) == (True, None)
    run_for(world, 20)
    assert len(world.receiver.received) == 6
    assert state(world, timer) == FAILED


def test_enabling_begins_the_count_anew_and_takes_the_reason_away(world: World) -> None:
    timer = failing(world, 2)
    world.receiver.answer = lambda _: BUSY
    run_for(world, 25)
    assert state(world, timer) == FAILED
    world.change_timer.enable(timer.timer_id, by=CALLER)
    assert state(world, timer) == (True, None)
    run_for(world, 11)
    assert len(world.receiver.received) == 3
    assert state(world, timer) == (True, None)
    run_for(world, 11)
    assert state(world, timer) == FAILED
    assert disabling(world, timer) == [THE_SERVICE] * 2


def test_other_changes_of_a_disabled_timer_keep_its_reason_and_disabling_it_is_no_change(
    world: World,
) -> None:
    timer = failing(world, 1)
    world.receiver.answer = lambda _: BUSY
    run_for(world, 12)
    version = at(world, timer).version
    world.change_timer.disable(timer.timer_id, by=CALLER)
    assert at(world, timer).version == version
    patched(world, timer, payload='"new"')
    assert state(world, timer) == FAILED


def test_a_timer_that_a_caller_disables_has_no_reason(world: World) -> None:
    timer = failing(world)
    world.change_timer.disable(timer.timer_id, by=CALLER)
    assert state(world, timer) == (False, None)


def test_a_stop_gives_its_own_reason(world: World) -> None:
    timer = failing(world, 1, disable_on_stop=True)
    world.receiver.answer = lambda _: GONE
    run_for(world, 12)
    assert state(world, timer) == (False, DisabledReason.STOPPED)
    assert disabling(world, timer) == [THE_SERVICE]


def test_a_run_that_is_tried_again_for_long_counts_when_it_has_ended(world: World) -> None:
    """The first two of three end behind the third."""
    timer = failing(world, 3, retry=RetryPolicy(2, delays_seconds=(35.0,)), max_runs=3)
    begins = now(world)

    def answer(received: Received) -> Outcome:
        return GONE if received.at_ms // 1000 - begins == 3 * EVERY else BUSY

    world.receiver.answer = answer
    run_for(world, 50)
    assert state(world, timer) == (True, None)
    run_for(world, 10)
    assert [task.status for task in occurrences(world, timer)] == [Status.DEAD] * 3
    assert state(world, timer) == FAILED


def test_a_failure_that_ends_behind_a_later_success_does_not_disable(world: World) -> None:
    timer = failing(world, 2, retry=RetryPolicy(2, delays_seconds=(35.0,)), max_runs=3)
    begins = now(world)

    def answer(received: Received) -> Outcome:
        return OK if received.at_ms // 1000 - begins == 3 * EVERY else BUSY

    world.receiver.answer = answer
    run_for(world, 70)
    ends = [task.status for task in occurrences(world, timer)]
    assert ends == [Status.DEAD, Status.DEAD, Status.DELIVERED]
    assert state(world, timer) == (True, None)


def test_work_that_is_reported_as_failed_counts(world: World) -> None:
    world.receiver.answer = lambda _: WORKS_ON
    timer = failing(world, 2)
    for _ in range(2):
        run_for(world, 11)
        (work,) = [task for task in occurrences(world, timer) if task.running]
        assert state(world, timer) == (True, None)
        reported_work().fail(work.home, AttemptName(0, 1), Outcome(Verdict.RETRY, "no paper"))
    assert state(world, timer) == FAILED


def requests_of_three_failures(world: World, timer: Timer) -> Counter[str]:
    """Those on the registry, and the look-ups of runs."""
    world.receiver.answer = lambda _: BUSY
    world.drain()
    world.recorder.calls.clear()
    run_for(world, 35)
    assert len(world.receiver.received) == 3
    of_runs = [call for call in world.recorder.calls if timer.timer_id in str(call.request)]
    return Counter(call.operation for call in of_runs)


def test_a_timer_without_the_setting_makes_no_request_for_it(world: World) -> None:
    timer = made(world, EVERY, retry=ONE_ATTEMPT, max_runs=30)
    requests = requests_of_three_failures(world, timer)
    assert state(world, timer) == (True, None)
    assert requests["Query"] == requests["TransactWriteItems"] == 0
    assert requests["GetItem"] == 0


def test_a_timer_with_the_setting_makes_no_request_for_runs_that_succeed(world: World) -> None:
    timer = failing(world, 3)
    world.drain()
    world.recorder.calls.clear()
    run_for(world, 35)
    assert len(world.receiver.received) == 3
    of_runs = [call for call in world.recorder.calls if timer.timer_id in str(call.request)]
    assert not [call for call in of_runs if call.operation in ("Query", "GetItem")]


def test_runs_that_end_at_once_disable_the_timer_once(world: World) -> None:
    """Another process looks while the first one writes."""
    timer = failing(world, 2)
    world.receiver.answer = lambda _: BUSY
    run_for(world, 12)

    def look_too() -> None:
        world.disable_timer.if_failing(timer.timer_id)

    world.recorder.once("TransactWriteItems", look_too, "before", of=DisabledReason.FAILURES.value)
    run_for(world, 20)
    assert state(world, timer) == FAILED
    assert disabling(world, timer) == [THE_SERVICE]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", ["GetItem", "Query", "BatchGetItem", "TransactWriteItems"])
def test_a_death_at_any_request_leaves_it_to_the_next_look_and_it_is_disabled_once(
    world: World, operation: str, when: str
) -> None:
    timer = failing(world, 2)
    world.receiver.answer = lambda _: BUSY
    world.recorder.refuse("TransactWriteItems", of=DisabledReason.FAILURES.value, times=99)
    run_for(world, 22)
    assert state(world, timer) == (True, None)
    world.recorder.before = None
    world.recorder.die(operation, when)
    with pytest.raises(Death):
        world.disable_timer.if_failing(timer.timer_id)
    world.disable_timer.if_failing(timer.timer_id)
    assert state(world, timer) == FAILED
    assert disabling(world, timer) == [THE_SERVICE]


def test_planning_makes_up_for_a_death_before_the_timer_was_disabled(world: World) -> None:
    timer = failing(world, 2, max_runs=None)
    world.receiver.answer = lambda _: BUSY
    world.recorder.refuse("TransactWriteItems", of=DisabledReason.FAILURES.value, times=1)
    run_for(world, 22)
    assert state(world, timer) == (True, None)
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    plan_timers()([(chain, chain.plan)], world.clock.now_ms() + LAMBDA_MS)
    assert state(world, timer) == FAILED


def test_who_asks_is_told_once_that_a_timer_was_disabled(world: World) -> None:
    told = OnOutcome((Told.DISABLED,), HttpCallback("https://receiver.example/told"))
    timer = failing(world, 2, on_outcome=told)
    world.receiver.answer = lambda received: OK if received.url.endswith("told") else BUSY
    run_for(world, 40)
    (notice,) = [one for one in world.receiver.received if one.url.endswith("told")]
    body = json.loads(notice.body or b"")
    assert body["outcome"] == "disabled"
    assert body["timer_id"] == timer.timer_id
    assert body["reason"] == "runs failed in a row"
    assert (body["attempts"], body["last_status_code"]) == (1, 503)
