"""The statistics are compared with the content of the wheel."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.refusals import Refusal
from duewheel.rules.sweep.minute_statistics import MINUTES_MAX, Statistics, StatsRequest, Tally
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.stores.tasks import codec
from duewheel.stores.wheel import pointers
from local.control.wheel_contents import contents_of
from tests.support.bounds import quick_first
from tests.support.damage import delete
from tests.support.receiver import BUSY, GONE, OK, Received
from tests.support.recorder import Call
from tests.support.world import World

TWICE = RetryPolicy(attempts_max=2, delays_seconds=(90.0,))
OPERATIONS = ("GetItem", "BatchGetItem", "PutItem", "BatchWriteItem", "UpdateItem")


def statistics(world: World, biz_type: str = "orders", back_minutes: int = 120) -> Statistics:
    minute = world.clock.now_ms() // 60_000
    return world.read_statistics(biz_type, StatsRequest(minute - back_minutes, minute))


def total(world: World, biz_type: str = "orders") -> Tally:
    return statistics(world, biz_type).total


def pass_minutes(world: World, minutes: int) -> None:
    for _ in range(minutes):
        deliver_for_a_minute(world)
        world.sweep_once()
        world.drain()


def deliver_for_a_minute(world: World) -> None:
    """Both pointers skip empty seconds, as the local stack lets them."""
    second = world.clock.now_ms() // 1000 + 60
    held = contents_of(world.items())
    due = held.first_owed_after(world.pointer().position) or second + 1
    world.pointers.skip_to(pointers.TIME, world.origin, min(due - 1, second))
    swept = world.pointer(pointers.SWEEP).position
    booked_to = second - world.settings.sweep_delay_seconds - 60
    occupied = held.first_occupied_between(swept, second) or second
    world.pointers.skip_to(pointers.SWEEP, world.origin, min(occupied - 1, booked_to))
    world.dispatch_until(second)
    world.drain()


def in_the_wheel(world: World, biz_type: str = "orders") -> Counter[str]:
    """The number of tasks whose home has fallen due, by status, as stored in the table."""
    now_second = world.clock.now_ms() // 1000
    items = [item for item in world.items() if item.get("biz_type", {}).get("S") == biz_type]
    came_up = [item for item in items if codec.address_of(item).second <= now_second]
    return Counter(item["status"]["S"] for item in came_up)


def assert_reconciled(world: World, biz_type: str = "orders") -> None:
    held, counted = in_the_wheel(world, biz_type), total(world, biz_type)
    assert counted.created == held.total()
    assert {status.value: getattr(counted, status.value) for status in Status} == {
        status.value: held[status.value] for status in Status
    }


def answer_by(order: dict[str, Any]) -> Callable[[Received], Any]:
    return lambda received: order.get(received.task_id, OK)


def test_each_outcome_is_counted_in_the_minute_of_its_task(world: World) -> None:
    delivered = world.created(in_ms=60_000)
    dead = world.created(in_ms=60_000)
    retried = world.created(in_ms=60_000, retry=TWICE)
    world.cancel(world.created(in_ms=61_000).task_id)
    elsewhere = world.created(in_ms=62_000, biz_type="invoices")
    second_try = answer_by({dead.task_id: GONE})
    world.receiver.answer = lambda received: (
        BUSY
        if received.task_id == retried.task_id and received.headers["duewheel-attempt"] == "1"
        else second_try(received)
    )
    pass_minutes(world, 7)

    assert world.pointer(pointers.SWEEP).position > world.read(retried).entry.second
    (stats,) = [s for s in statistics(world).minutes if s.tally.created]
    assert stats.minute == delivered.due_ms // 60_000
    assert (stats.tally.created, stats.tally.pending) == (4, 0)
    assert (stats.tally.delivered, stats.tally.dead, stats.tally.cancelled) == (2, 1, 1)
    assert stats.tally.failed_attempts == 2
    assert stats.tally.lateness_max_ms == world.read(retried).lateness_ms
    assert total(world, "invoices").delivered == 1
    assert world.read(elsewhere).status is Status.DELIVERED
    assert_reconciled(world)


def test_tasks_that_the_sweep_has_not_reached_are_counted(world: World) -> None:
    """Up to now and immediately: the count of deliveries does not wait for the sweep."""
    for _ in range(3):
        world.created(in_ms=0)
    waiting = world.created(in_ms=0, retry=TWICE)
    world.receiver.answer = answer_by({waiting.task_id: BUSY})
    world.drain()
    found = statistics(world)

    assert world.pointer(pointers.SWEEP).position < waiting.home.second
    assert found.counted_until_second == world.clock.now_ms() // 1000 + 1
    assert found.closed_until_second <= waiting.home.second
    assert (found.total.created, found.total.delivered, found.total.pending) == (4, 3, 1)
    assert found.total.failed_attempts == 1
    assert_reconciled(world)


def test_the_count_is_the_same_before_and_after_the_sweep(world: World) -> None:
    tasks = [world.created(in_ms=n * 700, retry=TWICE) for n in range(6)]
    world.receiver.answer = answer_by({tasks[0].task_id: GONE, tasks[1].task_id: BUSY})
    world.dispatch_until(world.clock.now_ms() // 1000 + 5)
    world.drain()
    before = total(world)
    world.clock.advance_ms(30_000)
    assert total(world) == before
    pass_minutes(world, 6)

    after = total(world)
    assert (after.created, after.settled) == (6, 6)
    assert (before.created, before.pending) == (6, 1)
    assert_reconciled(world)


@pytest.mark.exhaustive
def test_a_redriven_task_is_pending_again_and_then_delivered(world: World) -> None:
    """With and without a sweep between the death and the redrive."""
    for minutes_between in (0, 6):
        world.receiver.answer = lambda received: GONE
        task = world.created(in_ms=0)
        world.drain()
        pass_minutes(world, minutes_between)
        dead_before = total(world).dead
        world.receiver.answer = lambda received: OK
        world.redrive(task.task_id)
        assert total(world).dead == dead_before - 1
        world.drain()
        pass_minutes(world, 6)
        assert world.read(task).status is Status.DELIVERED
        assert_reconciled(world)
    assert (total(world).created, total(world).delivered, total(world).dead) == (2, 2, 0)


@pytest.mark.exhaustive
def test_a_task_that_is_run_long_before_its_instant_is_counted_once(world: World) -> None:
    task = world.created(in_ms=900_000)
    world.change.run(task.task_id)
    world.drain()
    assert (total(world).created, total(world).delivered) == (1, 1)
    pass_minutes(world, 20)
    assert (total(world).created, total(world).delivered) == (1, 1)
    assert total(world).lateness_max_ms == 0


@pytest.mark.exhaustive
def test_a_task_that_is_moved_to_later_is_counted_in_the_minute_in_which_it_was_first_due(
    world: World,
) -> None:
    task = world.created(in_ms=60_000)
    world.change(task.task_id, Change(due_ms=world.clock.now_ms() + 600_000))
    pass_minutes(world, 6)
    assert (total(world).created, total(world).pending) == (1, 1)
    assert_reconciled(world)
    pass_minutes(world, 10)
    (stats,) = statistics(world).minutes
    assert stats.minute == task.home.second // 60
    assert (stats.tally.created, stats.tally.delivered, stats.tally.pending) == (1, 1, 0)


@pytest.mark.exhaustive
def test_statistics_never_cost_a_write_per_task(world: World) -> None:
    writes: list[Call] = []

    def note(call: Call) -> None:
        if call.operation == "PutItem" and "statistics" in str(call.request["Item"]):
            writes.append(call)

    world.recorder.after = note
    world.created_many([world.new(in_ms=60_000 + n) for n in range(60)])
    pass_minutes(world, 5)
    assert total(world).delivered == 60
    assert len(writes) == len(statistics(world).minutes) == 1


@pytest.mark.parametrize("operation", quick_first(OPERATIONS, pytest.mark.exhaustive))
def test_a_sweeper_that_dies_at_any_call_counts_each_task_once(
    world: World, operation: str
) -> None:
    """It dies before and after its n-th such call, for each n, until a run finishes."""
    tasks = [world.created(in_ms=60_000 + n * 1_000, retry=TWICE) for n in range(8)]
    fates = [OK, BUSY, GONE]
    answers = {task.task_id: fates[n % 3] for n, task in enumerate(tasks)}
    world.receiver.answer = answer_by(answers)
    for minute in range(7):
        deliver_for_a_minute(world)
        if minute == 3:
            world.sweep_once()  # notes how far everything was dispatched then

    deaths = 0
    for moment in ("before", "after"):
        for nth in range(1, 30):
            if not world.dies(world.sweep_once, nth, moment, lambda c: c.operation == operation):
                break
            deaths += 1
            world.clock.advance_ms(60_000)
        assert_reconciled(world)
    assert deaths
    pass_minutes(world, 3)
    counted = total(world)
    assert (counted.created, counted.pending) == (8, 0)
    assert (counted.delivered, counted.dead) == (3, 5)
    assert counted.failed_attempts == 3 * 2 + 2
    assert world.entries_elsewhere() == []
    assert_reconciled(world)


def test_two_concurrent_sweepers_count_each_task_once(world: World) -> None:
    """The lease of the first ends just before its write."""
    tasks = [world.created(in_ms=60_000, retry=TWICE) for _ in range(4)]
    world.receiver.answer = answer_by({tasks[0].task_id: BUSY})
    for minute in range(7):
        deliver_for_a_minute(world)
        if minute == 3:
            world.sweep_once()  # notes how far everything was dispatched then

    def other_sweeps(call: Call) -> None:
        if call.operation == "PutItem" and "statistics" in str(call.request["Item"]):
            world.recorder.before = None
            world.clock.advance_ms(120_000)
            world.sweep_once()

    world.recorder.before = other_sweeps
    world.sweep_once()

    assert world.recorder.before is None
    assert (total(world).created, total(world).delivered, total(world).dead) == (4, 3, 1)
    assert_reconciled(world)


@pytest.mark.parametrize("seed", quick_first(range(3), pytest.mark.exhaustive))
def test_created_equals_settled_plus_pending_over_any_closed_range(world: World, seed: int) -> None:
    """Some minutes of random requests for tasks of two businesses."""
    chance = random.Random(seed)
    tasks: list[Task] = []
    world.receiver.answer = lambda received: chance.choice([OK, OK, OK, BUSY, GONE])
    for _ in range(8):
        for _ in range(8):
            tasks.append(
                world.created(
                    in_ms=chance.choice([0, 3_000, 30_000, 200_000, 2_000_000]),
                    biz_type=chance.choice(["orders", "invoices"]),
                    retry=RetryPolicy(attempts_max=3, delays_seconds=(0.0, 45.0)),
                    expires_after_seconds=chance.choice([None, 20.0]),
                )
            )
            change_one(world, chance, chance.choice(tasks))
        deliver_for_a_minute(world)
        if chance.random() < 0.7:
            world.sweep_once()

    for biz_type in ("orders", "invoices"):
        found = statistics(world, biz_type)
        assert found.total.created == found.total.settled + found.total.pending
        assert all(stats.tally.pending >= 0 for stats in found.minutes)
        mine = [world.read(task) for task in tasks if task.biz_type == biz_type]
        for first in (found.first_minute, found.minutes[1].minute):
            for last in (found.minutes[-3].minute, found.last_minute):
                answer = world.read_statistics(biz_type, StatsRequest(first, last))
                inside = [task for task in mine if first <= counted_in(task, answer) <= last]
                assert answer.total.created == len(inside)
                for status in Status:
                    held = [task for task in inside if status_in(task, answer) is status]
                    assert getattr(answer.total, status.value) == len(held), status


def counted_in(task: Task, answer: Statistics) -> int:
    """The minute in which this task first fell due; a far one when it has not fallen due yet."""
    ended = [task.entry.second] if task.status is not Status.PENDING else []
    made_for = task.home.second if task.first_second is None else task.first_second
    first = min([made_for, *ended, *(one.ended for one in task.revivals if one.is_seen)])
    return first // 60 if first < answer.counted_until_second else 10**9


def status_in(task: Task, answer: Statistics) -> Status:
    """The status of this task at `counted_until_second`."""
    until = answer.counted_until_second
    for revival in task.revivals:
        if revival.ended < until <= revival.revived:
            return revival.status
    return task.status if task.entry.second < until else Status.PENDING


def change_one(world: World, chance: random.Random, task: Task) -> None:
    in_a_while = Change(due_ms=world.clock.now_ms() + chance.choice([1_000, 60_000, 300_000]))
    try:
        match chance.randrange(8):
            case 0:
                world.cancel(task.task_id)
            case 1:
                world.change.run(task.task_id)
            case 2 | 3:
                world.change(task.task_id, in_a_while)
            case 4 | 5:
                world.redrive(task.task_id)
    except Refusal:
        pass  # too late, or already settled: the statistics must be right nevertheless


def test_statistics_of_expired_minutes_are_not_created_again(world: World) -> None:
    """A watchdog that outlives the statistics of its first minute does not create them again."""
    task = world.created(in_ms=60_000)
    world.change(task.task_id, Change(due_ms=world.clock.now_ms() + 100 * 86_400_000))
    pass_minutes(world, 6)
    for stats in statistics(world).minutes:
        kind = f"statistics#orders#{stats.minute // MINUTES_MAX}"
        delete(world, {"kind": {"S": kind}, "record": {"S": f"{stats.minute:010d}"}})
    world.clock.set_ms(task.due_ms + 100 * 86_400_000 - 90_000)
    pass_minutes(world, 6)

    assert world.read(task).status is Status.DELIVERED
    first = world.read_statistics(
        "orders", StatsRequest(task.home.second // 60, task.home.second // 60)
    )
    assert first.total == Tally()


def test_a_task_moved_to_an_earlier_instant_of_its_own_second_is_counted_once(world: World) -> None:
    task = world.created(in_ms=60_900)
    world.change(task.task_id, Change(due_ms=task.due_ms - 700))
    pass_minutes(world, 5)

    assert [received.at_ms for received in world.receiver.received] == [task.due_ms - 700]
    assert (total(world).created, total(world).delivered) == (1, 1)
