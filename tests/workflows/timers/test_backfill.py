"""A backfill makes the runs of a past range that were not made, each once."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.bulk.operation import LEASE_MS, Operation, State
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.instants import ms_from_rfc3339, rfc3339
from duewheel.rules.refusals import InvalidField, UnknownTimer
from duewheel.rules.tasks.idempotency import IdempotentRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.backfill import RUNS_MAX, backfill_request
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Misfire, Overlap, Timer
from duewheel.wiring.api import start_backfill
from tests.support.bounds import quick_first
from tests.support.operations import as_it_is, numbers, worked_on
from tests.support.receiver import BUSY
from tests.support.recorder import Call, Death
from tests.support.timers import made, now, occurrences
from tests.support.world import CALLER, World

EVERY = 10
HOURLY = Schedule(cron="0 * * * *")
PAYLOAD = '{"at":"{{due_at}}","n":"{{number}}"}'


def asked(
    world: World,
    timer: Timer,
    first: int,
    last: int,
    once: IdempotentRequest | None = None,
    **members: Any,
) -> Operation:
    """Of the seconds from the first one on, and before the last one; no worker has begun."""
    body = {"from": rfc3339(first * 1000), "to": rfc3339(last * 1000), **members}
    request = backfill_request(json.dumps(body), world.clock.now_ms())
    operation = start_backfill()(timer.timer_id, request, ANYTHING, by=CALLER, once=once)
    world.invocations.clear()
    return operation


def backfilled(world: World, timer: Timer, first: int, last: int, **members: Any) -> Operation:
    members = {"runs_per_second": 1_000, **members}
    return worked_on(world, asked(world, timer, first, last, **members))


def run(world: World, seconds: int) -> None:
    until = now(world) + seconds
    while now(world) < until:
        world.dispatch_until(now(world))
        world.drain()
        world.clock.advance_ms(1_000)
    world.drain()


def instants(world: World) -> list[int]:
    """Of the calls, by their payloads."""
    bodies = [json.loads(one.body or b"") for one in world.receiver.received]
    return [ms_from_rfc3339(body["at"]) // 1000 for body in bodies]


def made_afterwards(world: World, timer: Timer) -> list[int]:
    return [
        task.occurrence.second
        for task in occurrences(world, timer)
        if task.occurrence is not None and task.occurrence.manual
    ]


@pytest.mark.exhaustive
def test_the_runs_of_the_time_in_which_a_timer_was_disabled_are_called_with_their_instants(
    world: World,
) -> None:
    begins = now(world)
    timer = made(world, 4, payload=PAYLOAD)
    run(world, 10)
    world.change_timer.disable(timer.timer_id, by=CALLER)
    world.clock.advance_ms(16_000)
    world.change_timer.enable(timer.timer_id, by=CALLER)
    run(world, 8)
    assert instants(world) == [begins + n for n in (4, 8, 28, 32)]
    operation = backfilled(world, timer, begins + 1, begins + 33)
    assert [second - begins for second in made_afterwards(world, timer)] == [12, 16, 20, 24]
    assert (operation.state, numbers(operation)) == (State.DONE, (4, 0, 0))
    assert (operation.wish.total, operation.counts.looked_at) == (8, 8)
    world.drain()
    sent = [json.loads(one.body or b"") for one in world.receiver.received[4:]]
    assert sorted(instants(world)[4:]) == [begins + n for n in (12, 16, 20, 24)]
    assert [one["n"] for one in sent] == ["0"] * 4
    assert min(one.at_ms for one in world.receiver.received[4:]) >= (begins + 33) * 1000


def test_the_runs_of_the_time_before_a_timer_was_made_are_called(world: World) -> None:
    timer = made(world, schedule=HOURLY, payload=PAYLOAD)
    hour = now(world) // 3_600 * 3_600
    operation = backfilled(world, timer, hour - 5 * 3_600, hour - 2 * 3_600)
    assert numbers(operation) == (3, 0, 0)
    world.drain()
    assert sorted(instants(world)) == [hour - n * 3_600 for n in (5, 4, 3)]


def test_a_disabled_timer_can_be_backfilled(world: World) -> None:
    timer = made(world, enabled=False, schedule=HOURLY, payload=PAYLOAD)
    hour = now(world) // 3_600 * 3_600
    assert numbers(backfilled(world, timer, hour - 3_600, hour)) == (1, 0, 0)
    world.drain()
    assert instants(world) == [hour - 3_600]


def test_runs_that_were_skipped_or_missed_are_made_and_those_that_ended_otherwise_are_not(
    world: World,
) -> None:
    begins = now(world)
    timer = made(
        world,
        EVERY,
        max_runs=6,
        payload=PAYLOAD,
        misfire=Misfire.SKIP,
        grace_seconds=3,
        overlap=Overlap.SKIP,
        retry=RetryPolicy(2, delays_seconds=(12.0,)),
    )
    world.receiver.answer = lambda _: BUSY
    run(world, 42)
    (last,) = [t for t in occurrences(world, timer) if t.occurrence and t.occurrence.number == 6]
    world.cancel.at(last.home)
    world.clock.advance_ms(15_000)
    run(world, 20)
    reasons = [task.reason for task in occurrences(world, timer)]
    assert set(reasons) == {"attempts exhausted", "skipped", "missed", "cancelled by caller"}
    uncalled = [
        task.occurrence.second - begins
        for task in occurrences(world, timer)
        if task.reason in ("skipped", "missed") and task.occurrence
    ]
    assert numbers(backfilled(world, timer, begins + 1, begins + 61)) == (len(uncalled), 0, 0)
    assert [second - begins for second in made_afterwards(world, timer)] == uncalled


def test_a_second_backfill_makes_nothing_twice(world: World) -> None:
    timer = made(world, schedule=HOURLY, payload=PAYLOAD)
    hour = now(world) // 3_600 * 3_600
    backfilled(world, timer, hour - 3 * 3_600, hour)
    wider = backfilled(world, timer, hour - 5 * 3_600, hour)
    assert (numbers(wider), wider.counts.looked_at) == ((2, 0, 0), 5)
    world.drain()
    assert Counter(instants(world)) == Counter(hour - n * 3_600 for n in range(1, 6))


def test_two_backfills_of_one_range_at_once_make_each_run_once(world: World) -> None:
    """The other one has found its runs already."""
    timer = made(world, schedule=HOURLY, payload=PAYLOAD)
    hour = now(world) // 3_600 * 3_600
    first = asked(world, timer, hour - 3 * 3_600, hour)
    other: list[Operation] = []

    def second() -> None:
        other.append(asked(world, timer, hour - 3 * 3_600, hour))
        worked_on(world, other[0])

    world.recorder.once("TransactWriteItems", second, of="backfilled#")
    after = worked_on(world, first)
    counts = [numbers(after), numbers(as_it_is(world, other[0]))]
    assert sum(changed for changed, *_ in counts) == 3
    assert len(made_afterwards(world, timer)) == 3


def test_a_dry_run_counts_and_makes_nothing(world: World) -> None:
    timer = made(world, schedule=HOURLY)
    hour = now(world) // 3_600 * 3_600
    backfilled(world, timer, hour - 2 * 3_600, hour)
    counted = backfilled(world, timer, hour - 6 * 3_600, hour, dry_run=True)
    assert numbers(counted) == (4, 0, 0)
    assert len(made_afterwards(world, timer)) == 2


def test_runs_are_made_at_the_pace_that_was_asked_for(world: World) -> None:
    timer = made(world, schedule=HOURLY)
    hour = now(world) // 3_600 * 3_600
    backfilled(world, timer, hour - 9 * 3_600, hour, runs_per_second=2)
    at = Counter(
        task.created_ms // 1000
        for task in occurrences(world, timer)
        if task.occurrence and task.occurrence.manual
    )
    assert at.total() == 9
    assert len(at) >= 4
    assert max(at.values()) <= 3


def test_a_repeat_under_the_same_idempotency_key_is_the_same_operation(world: World) -> None:
    timer = made(world, schedule=HOURLY)
    hour = now(world) // 3_600 * 3_600
    once = IdempotentRequest(name="key", digest="digest", is_single=True)
    first = asked(world, timer, hour - 3_600, hour, once=once)
    worked_on(world, first)
    assert asked(world, timer, hour - 3_600, hour, once=once).mark == first.mark
    assert len(made_afterwards(world, timer)) == 1


def test_the_runs_of_a_timer_that_is_deleted_meanwhile_are_not_made_and_the_operation_says_why(
    world: World,
) -> None:
    timer = made(world, schedule=HOURLY)
    hour = now(world) // 3_600 * 3_600
    operation = asked(world, timer, hour - 3_600, hour)
    world.change_timer.delete(timer.timer_id, by=CALLER)
    after = worked_on(world, operation)
    assert (after.state, after.last_problem) == (State.FAILED, "There is no timer with this id.")
    assert made_afterwards(world, timer) == []


OUT_OF_BOUNDS: dict[str, tuple[Callable[[int], tuple[int, int]], str]] = {
    "in the future": (lambda at: (at - 60, at + 60), "to"),
    "backwards": (lambda at: (at - 60, at - 61), "to"),
    "empty": (lambda at: (at - 60, at - 60), "to"),
    "too many": (lambda at: (at - 2 * RUNS_MAX, at - RUNS_MAX + 2), "to"),
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_a_range_that_is_out_of_bounds_is_refused(world: World, name: str) -> None:
    bounds, field = OUT_OF_BOUNDS[name]
    timer = made(world, schedule=Schedule(cron="* * * * * *"), enabled=False)
    with pytest.raises(InvalidField) as refused:
        asked(world, timer, *bounds(now(world)))
    assert refused.value.field == field


def test_as_many_runs_as_are_allowed_are_accepted(world: World) -> None:
    timer = made(world, schedule=Schedule(cron="* * * * * *"), enabled=False)
    at = now(world) - 60
    assert asked(world, timer, at - RUNS_MAX, at).wish.total == RUNS_MAX


def test_a_range_without_an_instant_of_the_schedule_is_refused(world: World) -> None:
    timer = made(world, schedule=HOURLY)
    hour = now(world) // 3_600 * 3_600
    with pytest.raises(InvalidField) as refused:
        asked(world, timer, hour - 3_000, hour - 60)
    assert refused.value.field == "from"


def test_runs_of_which_the_records_are_deleted_are_not_made_again(world: World) -> None:
    """Those of before the timer are made at any time."""
    timer = made(world, enabled=False, schedule=HOURLY)
    begins = now(world)
    days = world.business_cache.one("orders").retention_seconds // 86_400
    world.clock.advance_ms((days + 1) * 86_400_000)
    with pytest.raises(InvalidField) as refused:
        asked(world, timer, begins + 3_600, begins + 2 * 86_400)
    assert refused.value.field == "from"
    hour = begins // 3_600 * 3_600
    assert asked(world, timer, hour - 7_200, hour).wish.total == 2


def test_runs_that_are_still_planned_are_refused(world: World) -> None:
    """After an outage, before its planner comes to them."""
    timer = made(world, EVERY)
    world.drain()
    begins = now(world)
    world.clock.advance_ms(20 * 3_600_000)
    with pytest.raises(InvalidField) as refused:
        asked(world, timer, begins, begins + 19 * 3_600)
    assert refused.value.field == "to"


def test_a_timer_that_is_unknown_is_refused(world: World) -> None:
    timer = made(world, schedule=HOURLY)
    world.change_timer.delete(timer.timer_id, by=CALLER)
    with pytest.raises(UnknownTimer):
        asked(world, timer, now(world) - 7_200, now(world))


def requests_of_a_backfill(world: World) -> list[Call]:
    timer = made(world, schedule=HOURLY)
    hour = now(world) // 3_600 * 3_600
    operation = asked(world, timer, hour - 4 * 3_600, hour, runs_per_second=2)
    world.recorder.clear()
    worked_on(world, operation)
    return list(world.recorder.calls)


@pytest.mark.parametrize("when", quick_first(["after", "before"], pytest.mark.exhaustive))
def test_a_worker_that_dies_at_any_request_leaves_each_run_to_be_made_once(
    world: World, when: str
) -> None:
    counted = Counter(call.operation for call in requests_of_a_backfill(world))
    steps = [(name, at) for name, number in counted.items() for at in range(1, number + 1, 2)]
    assert len(steps) > 8
    for operation_name, at in steps:
        world.receiver.received.clear()
        timer = made(world, schedule=HOURLY, payload=PAYLOAD)
        hour = now(world) // 3_600 * 3_600
        operation = asked(world, timer, hour - 4 * 3_600, hour, runs_per_second=2)
        world.recorder.die(operation_name, when, at=at)
        try:
            worked_on(world, operation)
        except Death:
            world.recorder.before = world.recorder.after = None
        world.clock.advance_ms(LEASE_MS)
        after = worked_on(world, operation)
        made_runs = made_afterwards(world, timer)
        assert (after.state, numbers(after)) == (State.DONE, (4, 0, 0)), (operation_name, at)
        assert Counter(made_runs) == Counter(hour - n * 3_600 for n in range(1, 5))


def test_a_backfilled_run_is_not_skipped_for_another_and_no_other_is_skipped_for_it(
    world: World,
) -> None:
    timer = made(world, schedule=HOURLY, payload=PAYLOAD, overlap=Overlap.SKIP)
    hour = now(world) // 3_600 * 3_600
    world.receiver.answer = lambda _: BUSY
    backfilled(world, timer, hour - 3 * 3_600, hour)
    world.drain()
    tasks: list[Task] = [task for task in occurrences(world, timer) if task.attempts]
    assert {task.status for task in tasks} == {Status.PENDING}
    assert len(tasks) == 3
