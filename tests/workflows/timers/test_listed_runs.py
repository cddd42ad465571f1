"""The runs of a timer are listed from its step records and from the index together."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from duewheel.rules.access.grants import ALL, Access, Grant, Permit, Right
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers import planning
from duewheel.rules.timers.requests import RunsQuery
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.step_records import KEPT_LONGER_SECONDS
from duewheel.rules.timers.timer import Timer
from duewheel.rules.wheel.addresses import Address
from duewheel.stores import registry_keys
from duewheel.stores.tasks import codec
from duewheel.wiring import api
from duewheel.xtimer.calls import read_xtimer
from duewheel.xtimer.requests import Paging
from tests.support.recorder import Call
from tests.support.stories import End, Interruption, Story
from tests.support.timers import chain_of, made, named_by_records, now, occurrences, patched
from tests.support.world import CALLER, LAMBDA_MS, World

EVERY = 60
HOUR = 3_600
READER = Permit(Access("me", (Grant(Right.READ, ALL),)), Right.READ)


@pytest.fixture
def run_index() -> bool:
    """These tests turn the index on where they need it."""
    return False


def plan(world: World, timer: Timer) -> None:
    """The work of a notifier on the due entry of the chain."""
    chain = chain_of(world, timer)
    if chain is not None and chain.plan is not None and chain.is_live:
        deadline_ms = world.clock.now_ms() + LAMBDA_MS
        world.deliver.deliver_entries.plan_timers([(chain, chain.plan)], deadline_ms)


def past(world: World) -> None:
    """Two hours later, when all that was planned has passed, called or not."""
    world.clock.advance_ms(3 * HOUR * 1000)


def pages(
    world: World, timer: Timer, limit: int = 100, status: Status | None = None
) -> list[list[Task]]:
    found: list[list[Task]] = []
    cursor = None
    while True:
        query = RunsQuery(limit=limit, cursor=cursor, status=status)
        page = api.read_timers().runs(timer.timer_id, query, READER)
        found.append(page.tasks)
        cursor = page.cursor
        if cursor is None:
            return found


def listed(world: World, timer: Timer, limit: int = 100) -> list[Address]:
    return [task.home for page in pages(world, timer, limit) for task in page]


def newest_first(tasks: list[Task]) -> list[Address]:
    homes = (task.home for task in tasks)
    return sorted(homes, key=lambda home: home.place, reverse=True)


def indexed(world: World, timer: Timer) -> list[bool]:
    return [task.occurrence.indexed for task in occurrences(world, timer) if task.occurrence]


def step_records(world: World, timer: Timer) -> list[dict[str, dict[str, str]]]:
    answer = world.unrecorded.query(
        TableName=world.settings.registry_table,
        KeyConditionExpression="kind = :kind AND begins_with(#record, :step)",
        ExpressionAttributeNames={"#record": "record"},
        ExpressionAttributeValues={
            ":kind": {"S": registry_keys.timer_kind(timer.timer_id)},
            ":step": {"S": "step#"},
        },
    )
    return list(answer["Items"])


@pytest.mark.parametrize("limit", [100, 7])
def test_planned_runs_are_listed_newest_first_page_by_page(world: World, limit: int) -> None:
    timer = made(world, EVERY, jitter_seconds=50)
    plan(world, timer)
    assert set(indexed(world, timer)) == {False}
    assert len(step_records(world, timer)) == 1
    past(world)
    found = pages(world, timer, limit)
    planned = newest_first(occurrences(world, timer))
    assert [task.home for page in found for task in page] == planned
    assert {len(page) for page in found[:-1]} <= {limit}


def test_runs_that_are_not_due_yet_are_not_listed(world: World) -> None:
    timer = made(world, EVERY)
    plan(world, timer)
    world.clock.advance_ms(10 * EVERY * 1000)
    assert len(listed(world, timer)) == 10
    assert len(listed(world, timer, limit=3)) == 10


def test_runs_in_the_index_and_runs_by_hand_are_listed_between_the_others(world: World) -> None:
    """The index has those of the release before, of other settings, and those by hand."""
    world.wire(run_index=True)
    timer = made(world, EVERY)
    plan(world, timer)
    world.clock.advance_ms(HOUR * 1000)
    world.wire(run_index=False)
    world.run_timer(timer.timer_id)
    for _ in range(2):
        plan(world, timer)
        world.clock.advance_ms(HOUR * 1000)
        world.run_timer(timer.timer_id)
    world.wire(run_index=True)
    plan(world, timer)
    assert set(indexed(world, timer)) == {True, False}
    past(world)
    planned = newest_first(occurrences(world, timer))
    assert len(planned) > 4 * 60
    for limit in (100, 9):
        assert listed(world, timer, limit) == planned


def test_a_page_by_status_reads_no_more_runs_than_from_the_index(world: World) -> None:
    timer = made(world, EVERY)
    plan(world, timer)
    planned = occurrences(world, timer)
    cancelled = planned[10::20]
    for task in cancelled:
        world.cancel(task.task_id)
    past(world)
    world.recorder.clear()
    found = pages(world, timer, 2, Status.CANCELLED)
    assert [task.home for page in found for task in page] == newest_first(cancelled)
    read = [
        len(call.request["RequestItems"][world.settings.wheel_table]["Keys"])
        for call in world.recorder.calls
        if call.operation == "BatchGetItem"
        and world.settings.wheel_table in call.request["RequestItems"]
    ]
    assert max(read) == 100
    assert len(read) == len(found)


def test_a_cursor_is_the_place_of_a_run_and_outlives_the_run(world: World) -> None:
    """As in releases that list from the index alone, so their cursors go on."""
    timer = made(world, EVERY)
    plan(world, timer)
    past(world)
    planned = newest_first(occurrences(world, timer))
    query = RunsQuery(limit=5)
    first = api.read_timers().runs(timer.timer_id, query, READER)
    world.unrecorded.delete_item(
        TableName=world.settings.wheel_table,
        Key={
            "slot": {"S": planned[4].slot(world.settings.buckets)},
            "place": {"S": planned[4].place},
        },
    )
    world.wire(run_index=True)
    rest = api.read_timers().runs(timer.timer_id, RunsQuery(limit=5, cursor=first.cursor), READER)
    assert [task.home for task in rest.tasks] == planned[5:10]


def test_a_timer_that_seldom_fires_has_no_record(world: World) -> None:
    """It would cost as much as the entry in the index."""
    timer = made(world, 2 * HOUR)
    world.clock.advance_ms(30 * 60_000)
    plan(world, timer)
    assert indexed(world, timer) == [True]
    assert step_records(world, timer) == []


def test_runs_that_were_withdrawn_are_passed_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "OCCURRENCES_MAX", 250)
    monkeypatch.setattr(planning, "STEP_SECONDS", 250)
    story = Story(world)
    timer = made(world, 1)
    for _ in range(3):
        story.deliver()
    world.change_timer.disable(timer.timer_id, by=CALLER)
    story.deliver()
    there = newest_first(occurrences(world, timer))
    assert len(named_by_records(world, timer)) > 300 + len(there) > 300
    past(world)
    found = pages(world, timer, 10)
    assert [task.home for page in found for task in page] == there
    assert all(found)


def test_a_record_expires_a_day_later_than_its_runs_and_is_no_longer_read(world: World) -> None:
    """A day more, for runs that end late. DynamoDB may delete it days later."""
    world.configured("orders", retention_days=3)
    timer = made(world, EVERY)
    plan(world, timer)
    last = occurrences(world, timer)[-1]
    (record,) = step_records(world, timer)
    expires_at = last.home.second + 3 * 86_400 + KEPT_LONGER_SECONDS
    assert record["expires_at"] == {"N": str(expires_at)}
    world.clock.set_ms(expires_at * 1000 - 1)
    assert len(listed(world, timer)) == len(occurrences(world, timer))
    world.clock.set_ms(expires_at * 1000)
    assert listed(world, timer) == []


def test_a_damaged_record_is_reported_and_hides_only_its_own_runs(world: World) -> None:
    timer = made(world, EVERY)
    plan(world, timer)
    first = newest_first(occurrences(world, timer))
    world.clock.advance_ms(2 * HOUR * 1000)
    plan(world, timer)
    (record, _) = step_records(world, timer)
    for nonsense in (
        "[1,[0],[0],[0]]",
        "[1,[60,-2000],[0,-2000],[0]]",
        "[1,[60],[0],[0]]",
        "[1,[-1],[0,0],[0]]",
        "[1,[],[0],[0,5]]",
        "[]",
        "?",
    ):
        damaged = {**record, "step": {"S": nonsense}}
        world.unrecorded.put_item(TableName=world.settings.registry_table, Item=damaged)
        past(world)
        assert set(listed(world, timer)) == {*all_homes(world)} - {*first}


def all_homes(world: World) -> list[Address]:
    return [codec.address_of(item) for item in world.items() if "occurrence" in item]


def test_the_records_of_xtimer_are_read_from_both(world: World) -> None:
    timer = made(world, EVERY)
    plan(world, timer)
    past(world)
    planned = newest_first(occurrences(world, timer))
    shown, total = read_xtimer().records(timer, Paging(2, 50))
    assert total == len(planned)
    assert [task.home for task in shown] == planned[50:100]


# Any sequence of changes and crashes


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "STEP_SECONDS", 20)
    monkeypatch.setattr(planning, "OCCURRENCES_MAX", 6)


def crowd(world: World) -> None:
    """The seconds ahead get more shards."""
    for second in range(now(world), now(world) + 60):
        world.headers.raise_to(second, 8)


CHANGES: list[Callable[[World, Timer], object]] = [
    lambda world, timer: world.change_timer.disable(timer.timer_id, by=CALLER),
    lambda world, timer: world.change_timer.enable(timer.timer_id, by=CALLER),
    lambda world, timer: patched(world, timer, every_seconds=3),
    lambda world, timer: patched(world, timer, every_seconds=2),
    lambda world, timer: patched(world, timer, jitter_seconds=1),
    lambda world, timer: patched(world, timer, max_runs=9),
    lambda world, timer: crowd(world),
    lambda world, timer: world.clock.advance_ms(15_000),
    lambda world, timer: world.wire(run_index=True),
    lambda world, timer: world.wire(run_index=False),
    lambda world, timer: None,
]
change = st.sampled_from(CHANGES)
interrupted = st.tuples(st.integers(1, 25), st.just(End.DEATH) | change)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(change, st.none() | interrupted), min_size=1, max_size=5))
def test_after_any_changes_and_crashes_each_planned_run_is_listed_once(
    world: World,
    short_steps: None,
    steps: list[
        tuple[Callable[[World, Timer], object], tuple[int, End | Callable[..., object]] | None]
    ],
) -> None:
    """A planner may die, or see any change, after any of its calls."""
    world.wire(run_index=False)
    story = Story(world)
    timer = made(world, 2)
    for alter, by in steps:
        alter(world, timer)
        between = None
        if by is not None:
            number, what = by
            action = what if isinstance(what, End) else partial(what, world, timer)
            between = Interruption(number, action, "after")
        story.interrupted(partial(plan, world, timer), between)
        assert {task.home for task in occurrences(world, timer)} <= {
            *named_by_records(world, timer),
            *indexed_homes(world, timer),
        }
    past(world)
    assert listed(world, timer, 7) == newest_first(occurrences(world, timer))


def indexed_homes(world: World, timer: Timer) -> set[Address]:
    tasks = occurrences(world, timer)
    return {task.home for task in tasks if task.occurrence and task.occurrence.indexed}


def test_the_record_is_written_before_the_first_occurrence_and_after_the_shards(
    world: World,
) -> None:
    timer = made(world, EVERY)
    world.recorder.clear()
    plan(world, timer)

    def is_record(call: Call) -> bool:
        return "step" in call.request.get("Item", {})

    def is_occurrence(call: Call) -> bool:
        return "occurrence" in call.request.get("Item", {})

    calls = world.recorder.calls
    (record,) = [n for n, call in enumerate(calls) if is_record(call)]
    shards = next(n for n, call in enumerate(calls) if call.operation == "UpdateItem")
    first = next(n for n, call in enumerate(calls) if is_occurrence(call))
    assert shards < record < first


def test_planning_the_same_step_again_writes_the_same_record(world: World) -> None:
    story = Story(world)
    timer = made(world, EVERY)
    assert story.interrupted(partial(plan, world, timer), Interruption(40, End.DEATH))
    before = step_records(world, timer)
    plan(world, timer)
    assert step_records(world, timer) == before
    assert len(before) == 1


def test_a_record_of_a_thousand_irregular_seconds_stays_below_four_kilobytes(
    world: World,
) -> None:
    cron = "0,7,13,25,26,48 * * * * *"
    timer = made(world, schedule=Schedule(cron=cron))
    plan(world, timer)
    (record,) = step_records(world, timer)
    assert len(occurrences(world, timer)) == len(named_by_records(world, timer)) > 700
    assert len(record["step"]["S"]) < 4_000
    homes = [task.home.second for task in occurrences(world, timer)]
    assert {b - a for a, b in pairwise(homes)} == {1, 6, 7, 12, 22}
