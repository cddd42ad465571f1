"""Many processes share the limit of calls through one record, each with its own cached copy."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import Cursors, Moves, lengthened
from duewheel.rules.businesses.settings import Business
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Reservation, Task
from duewheel.workflows.delivery.call_rate import LimitCallRate
from tests.support.limited_business import a_task
from tests.support.world import World

Shared = tuple[list[tuple[Task, int]], list[tuple[Task, Reservation]]]


@pytest.fixture
def business(world: World) -> Business:
    return limited(world, "orders")


def limited(world: World, biz_type: str, per_second: float = 10.0) -> Business:
    world.configured(biz_type, calls_per_second=per_second)
    (found,) = world.business_cache.many([biz_type]).values()
    return found


def process(world: World) -> LimitCallRate:
    return LimitCallRate(world.clock, world.turns)


def crowd(world: World, count: int) -> list[Task]:
    return [a_task(number, world.clock.now_ms()) for number in range(count)]


def in_line_again(shared: Shared) -> list[Task]:
    return [replace(task, next_ms=held.at_ms, reservation=held) for task, held in shared[1]]


def instants(world: World, shared: Shared) -> list[int]:
    return [from_ms - world.clock.now_ms() for _, from_ms in shared[0]]


def writes(world: World, work: Any) -> tuple[Any, int]:
    before = len(world.recorder.calls)
    return work(), len(world.recorder.calls) - before


def test_many_tasks_get_turns_up_to_two_seconds_ahead_and_the_rest_waits_in_line(
    world: World, business: Business
) -> None:
    now_ms = world.clock.now_ms()
    shared = process(world)(crowd(world, 50), business)
    assert instants(world, shared) == [100 * number for number in range(21)]
    assert [held.at_ms - now_ms for _, held in shared[1]] == [
        2_100 + 100 * number for number in range(29)
    ]
    assert not any(held.is_late for _, held in shared[1])


def test_a_page_that_arrives_at_its_places_costs_one_write(
    world: World, business: Business
) -> None:
    limit = process(world)
    first, count = writes(world, lambda: limit(crowd(world, 100), business))
    assert count == 2  # with the creation of the record
    _, count = writes(world, lambda: limit(crowd(world, 100), business))
    assert count == 1  # all of them are put in line
    in_line = in_line_again(first)
    for start in range(0, 79, 10):  # one second each, on time, with a new cache
        page = in_line[start : start + 10]
        world.clock.set_ms(page[0].next_ms - 300)
        shared, count = writes(world, lambda page=page: process(world)(page, business))
        assert count == 1
        assert [from_ms for _, from_ms in shared[0]] == [task.next_ms for task in page]


def test_a_business_without_a_limit_writes_nothing(world: World) -> None:
    world.configured("mails", calls_in_flight=5)
    (business,) = world.business_cache.many(["mails"]).values()
    tasks = crowd(world, 3)
    shared, count = writes(world, lambda: process(world)(tasks, business))
    assert (shared, count) == (([(task, task.next_ms) for task in tasks], []), 0)


def test_tasks_that_miss_their_turns_are_called_at_the_rate_in_their_order(
    world: World, business: Business
) -> None:
    waiting = in_line_again(process(world)(crowd(world, 100), business))
    world.clock.advance_ms(60_000)
    first = process(world)(waiting[:40], business)
    second = process(world)(waiting[40:], business)
    assert instants(world, first) == [100 * number for number in range(-1, 21)]
    assert instants(world, second) == []
    late = [*first[1], *second[1]]
    assert [task for task, _ in late] == waiting[22:]
    assert all(held.is_late for _, held in late)
    places = [held.at_ms for _, held in late]
    assert places == [places[0] + 100 * number for number in range(len(places))]
    assert places[0] == world.clock.now_ms() + 2_100


def test_a_process_without_a_cached_record_puts_a_new_task_behind_the_line(
    world: World, business: Business
) -> None:
    process(world)(crowd(world, 100), business)
    world.clock.advance_ms(5_000)  # no turn was taken after that
    shared = process(world)(crowd(world, 1), business)
    assert instants(world, shared) == []
    assert [held.at_ms - world.clock.now_ms() for _, held in shared[1]] == [5_000]


def test_a_line_that_another_process_has_begun_is_continued(
    world: World, business: Business
) -> None:
    rate = business.call_rate
    assert rate is not None
    now_us = world.clock.now_ms() * 1_000
    first = world.turns.line_up("orders", rate, 50, now_us)
    unseen = Cursors(rate.interval_us, rate.version)

    def ten_more(seen: Cursors) -> Moves:
        return Moves(line=lengthened(seen.line_us, now_us, 10 * seen.interval_us))

    seen, after = world.turns.move("orders", rate, ten_more, unseen)
    assert seen.line_us == first.first_us + 50 * rate.interval_us
    assert after.line_us == seen.line_us + 10 * rate.interval_us


def test_a_process_with_old_settings_follows_the_newer_record(world: World) -> None:
    slow = limited(world, "orders", 1.0)
    limit = process(world)
    waiting = in_line_again(limit(crowd(world, 10), slow))
    world.clock.advance_ms(1_000)
    faster = limited(world, "orders", 10.0)
    process(world)(crowd(world, 1), faster)
    shared = limit(waiting[:3], slow)  # its places are of the old line
    assert instants(world, shared) == [2_000, 3_000, 4_000]
    shared = limit(crowd(world, 30), slow)
    assert {held.version for _, held in shared[1]} <= {faster.updated_ms}


def test_concurrent_processes_give_each_turn_and_each_place_once(
    world: World, business: Business
) -> None:
    with ThreadPoolExecutor(8) as threads:
        work = [threads.submit(process(world), crowd(world, 3), business) for _ in range(24)]
        shared = [done.result() for done in work]
    turns = sorted(from_ms for soon, _ in shared for _, from_ms in soon)
    places = sorted(held.at_ms for _, later in shared for _, held in later)
    assert turns == [world.clock.now_ms() + 100 * number for number in range(len(turns))]
    assert len({*turns, *places}) == 72


PAGES = st.tuples(
    st.integers(0, 3),  # number of the process
    st.integers(0, 3_000),  # milliseconds that pass
    st.integers(0, 20),  # new tasks
    st.integers(0, 20),  # tasks from the line
)


@pytest.mark.exhaustive
@given(st.lists(PAGES, min_size=1, max_size=12))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_window_has_more_calls_than_the_rate_whatever_each_process_has_cached(
    world: World, pages: Sequence[tuple[int, int, int, int]]
) -> None:
    world.clock.advance_ms(1_000)  # other settings for each example
    business = limited(world, "orders")
    processes = [process(world) for _ in range(4)]
    waiting: list[Task] = []
    calls: list[int] = []
    for number, pause_ms, new, old in pages:
        world.clock.advance_ms(pause_ms)
        now_ms = world.clock.now_ms()
        page = sorted([*waiting[:old], *crowd(world, new)], key=lambda task: task.next_ms)
        waiting = waiting[old:]
        if not page:
            continue
        shared = processes[number](page, business)
        assert len(shared[0]) + len(shared[1]) == len(page)
        calls += [max(now_ms, from_ms) for _, from_ms in shared[0]]
        waiting += in_line_again(shared)
        waiting.sort(key=lambda task: task.next_ms)
    calls.sort()
    for first, at_ms in enumerate(calls):
        for last, until_ms in enumerate(calls[first:], first):
            assert last - first + 1 <= (until_ms - at_ms + 2) / 100 + 2


def test_low_priority_that_finds_no_turn_lines_up_where_no_newcomer_stands(
    world: World, business: Business
) -> None:
    limit = process(world)
    limit(crowd(world, 100), business)
    low = [replace(task, priority=Priority.LOW) for task in crowd(world, 10)]
    (soon, later), count = writes(world, lambda: limit(low, business))
    assert (soon, count) == ([], 1)
    assert all(held.is_late for _, held in later)
    now_ms = world.clock.now_ms()
    places = [held.at_ms - now_ms for _, held in (*later, *limit(low, business)[1])]
    assert places == [2_100 + 100 * number for number in range(20)]


def test_high_priority_takes_turns_before_the_normal_that_wait_already(
    world: World, business: Business
) -> None:
    limit = process(world)
    limit(crowd(world, 200), business)
    high = [replace(task, priority=Priority.HIGH) for task in crowd(world, 100)]
    (soon, later), count = writes(world, lambda: limit(high, business))
    now_ms = world.clock.now_ms()
    turns = [from_ms - now_ms for _, from_ms in soon]
    places = [held.at_ms - now_ms for _, held in later]
    assert (turns, count) == ([2_100 + 100 * number for number in range(len(turns))], 1)
    assert len(turns) > 40
    assert [*turns, *places] == [2_100 + 100 * number for number in range(100)]
