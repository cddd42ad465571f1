"""The runs of a timer are listed from its index."""

import pytest

from duewheel.rules.access.grants import ALL, Access, Grant, Permit, Right
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.requests import RunsQuery
from duewheel.rules.timers.timer import Timer
from duewheel.rules.wheel.addresses import Address
from duewheel.wiring import api
from duewheel.xtimer.calls import read_xtimer
from duewheel.xtimer.requests import Paging
from tests.support.damage import delete, entry_key
from tests.support.timers import (
    made,
    now,
    occurrences,
    plan,
)
from tests.support.world import World

EVERY = 60
HOUR = 3_600
READER = Permit(Access("me", (Grant(Right.READ, ALL),)), Right.READ)


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


@pytest.mark.parametrize("limit", [100, 7])
def test_planned_runs_are_listed_newest_first_page_by_page(world: World, limit: int) -> None:
    timer = made(world, EVERY, jitter_seconds=50)
    plan(world, timer)
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


def test_runs_by_hand_are_listed_between_the_others(world: World) -> None:
    timer = made(world, EVERY)
    for _ in range(5):
        plan(world, timer)
        world.clock.advance_ms(HOUR * 1000 // 2)
        world.run_timer(timer.timer_id)
    past(world)
    planned = newest_first(occurrences(world, timer))
    assert len(planned) > 100
    for limit in (100, 9):
        assert listed(world, timer, limit) == planned


def test_a_page_by_status_reads_as_many_runs_as_a_page_may_have(world: World) -> None:
    timer = made(world, EVERY)
    cancelled: set[Address] = set()
    for _ in range(5):
        plan(world, timer)
        ahead = [task for task in occurrences(world, timer) if task.home.second > now(world) + 60]
        cancelled |= {world.cancel(task.task_id).home for task in ahead[10::20]}
        world.clock.advance_ms(HOUR * 1000 // 2)
    past(world)
    world.recorder.clear()
    found = pages(world, timer, 2, Status.CANCELLED)
    assert [task.home for page in found for task in page] == [
        home for home in newest_first(occurrences(world, timer)) if home in cancelled
    ]
    read = [
        len(call.request["RequestItems"][world.settings.wheel_table]["Keys"])
        for call in world.recorder.calls
        if call.operation == "BatchGetItem"
        and world.settings.wheel_table in call.request["RequestItems"]
    ]
    assert max(read) == 100
    assert len(read) == len(found)


def test_a_cursor_is_the_place_of_a_run_and_outlives_the_run(world: World) -> None:
    timer = made(world, EVERY)
    plan(world, timer)
    past(world)
    planned = newest_first(occurrences(world, timer))
    query = RunsQuery(limit=5)
    first = api.read_timers().runs(timer.timer_id, query, READER)
    delete(world, entry_key(world, planned[4]))
    rest = api.read_timers().runs(timer.timer_id, RunsQuery(limit=5, cursor=first.cursor), READER)
    assert [task.home for task in rest.tasks] == planned[5:10]


def test_the_records_of_xtimer_are_paged(world: World) -> None:
    timer = made(world, EVERY)
    plan(world, timer)
    past(world)
    planned = newest_first(occurrences(world, timer))
    shown, total = read_xtimer().records(timer, Paging(2, 50))
    assert total == len(planned)
    assert [task.home for task in shown] == planned[50:100]
