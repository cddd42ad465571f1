"""A crowded second is swept slice by slice, since it can have more tasks than a run can hold in
memory."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from duewheel.rules.sweep.minute_statistics import StatsRequest
from duewheel.rules.tasks.task import Made, Status, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.leader_election import LEASE_MS
from duewheel.rules.wheel.open_places import Why
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.stores.wheel import pointers
from duewheel.workflows.sweep import read_statistics
from tests.support.bounds import quick_first
from tests.support.conflicts import conflicts, of_keys
from tests.support.recorder import Call
from tests.support.world import LAMBDA_MS, World
from tests.workflows.sweep.test_open_places import is_write, places

SHARDS = 4
PLENTY_MS = 1_000_000


@pytest.fixture
def crowd(world: World) -> list[Task]:
    """A few tasks in each of several slices of one second, whose messages are all lost."""
    second = (world.clock.now_ms() + 60_000) // 1000
    world.headers.raise_to(second, SHARDS)
    world.reserve_shards.known.keep({second: SHARDS})
    made = world.create([world.new(in_ms=60_000) for _ in range(6 * SHARDS)])
    tasks = [one.task for one in made if isinstance(one, Made)]
    assert len({task.home.shard for task in tasks}) == SHARDS
    world.dispatch_until(second)
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)
    return tasks


def make_sweepable(world: World) -> None:
    """One run before the second can be swept; then the clock passes that instant."""
    world.sweep_once()
    world.dispatch_until(world.clock.now_ms() // 1000 + 300)


def passed(world: World, task: Task) -> bool:
    return world.swept_second >= task.home.second


def delivered_once(world: World, tasks: list[Task]) -> bool:
    return sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks) and all(
        world.read(task).status is Status.DELIVERED for task in tasks
    )


def test_each_slice_is_read_once_and_sent_again(world: World, crowd: list[Task]) -> None:
    make_sweepable(world)
    calls: list[str] = []

    def note(call: Call) -> None:
        if call.operation == "Query":
            calls.append("read")
        elif call.operation.startswith("SendMessage"):
            calls.append("sent")

    world.recorder.before = note
    world.sweep_second_once(crowd[0].home.second)
    world.recorder.before = None
    assert calls == ["read"] * SHARDS + ["sent"] * SHARDS
    before = len(world.recorder.calls)
    world.drain()
    assert delivered_once(world, crowd)
    assert "SendMessageBatch" not in world.recorder.operations()[before:], (
        "each is sent by the sweep"
    )


@pytest.mark.exhaustive
def test_the_lease_is_kept_while_one_second_takes_long(world: World, crowd: list[Task]) -> None:
    make_sweepable(world)
    world.drain()
    holders: set[str | None] = set()

    def slowly(call: Call) -> None:
        if call.operation == "Query":
            world.clock.advance_ms(LEASE_MS * 3 // 4)
            held = world.pointer(pointers.SWEEP)
            holders.add(held.owner)
            assert held.lease_until_ms > world.clock.now_ms()

    world.recorder.after = slowly
    world.sweep.run("slow", lambda: PLENTY_MS)
    world.recorder.after = None
    assert holders == {"slow"}
    world.sweep_past(crowd[0].home.second)
    assert delivered_once(world, crowd)


def test_a_sweeper_that_loses_its_lease_within_a_second_leaves_it_to_the_other(
    world: World, crowd: list[Task]
) -> None:
    make_sweepable(world)
    reads = 0

    def overtaken(call: Call) -> None:
        nonlocal reads
        if call.operation == "Query":
            reads += 1
            if reads == 1:
                world.clock.advance_ms(LEASE_MS + 1)
                seen = world.pointer(pointers.SWEEP)
                assert world.pointers.claim(seen, "other", world.clock.now_ms()) is not None

    world.recorder.after = overtaken
    world.sweep.run("slow", lambda: PLENTY_MS)
    world.recorder.after = None
    assert reads == 1
    assert not passed(world, crowd[0])
    world.clock.advance_ms(LEASE_MS)
    world.sweep_past(crowd[0].home.second)
    assert delivered_once(world, crowd)


def test_a_run_that_ends_within_a_second_leaves_it_to_the_next(
    world: World, crowd: list[Task]
) -> None:
    make_sweepable(world)
    world.sweep_once()
    world.drain()
    world.clock.advance_ms(LEASE_MS)
    times = iter([PLENTY_MS] * SHARDS)
    world.sweep.run("short", lambda: next(times, 0))
    assert not passed(world, crowd[0])
    world.sweep_once()
    assert passed(world, crowd[0])
    assert delivered_once(world, crowd)


def elsewhere_in_its_second(world: World, task: Task) -> Address:
    """Another entry of the task, in another slice of its own second."""
    while (entry := world.entry_writer.put(task, task.due_ms)).shard == task.home.shard:
        world.tasks.delete_entries([entry])
    return entry


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_lost", [False, True])
def test_an_entry_in_another_slice_of_the_second_is_found_or_replaced(
    world: World, crowd: list[Task], is_lost: bool
) -> None:
    task = crowd[0]
    entry = elsewhere_in_its_second(world, task)
    (state,) = world.tasks.home_states([task.home])[0].values()
    assert world.tasks.name_entry(state, entry)
    if is_lost:
        world.tasks.delete_entries([entry])
    make_sweepable(world)
    world.sweep_past(task.home.second)
    world.drain()
    assert delivered_once(world, crowd)


def stats(world: World, task: Task) -> Any:
    minute = task.home.second // 60
    return world.read_statistics("orders", StatsRequest(minute, minute))


def test_a_crowd_is_counted_once_it_has_been_swept(world: World, crowd: list[Task]) -> None:
    with patch.object(read_statistics, "HOMES_AHEAD_MAX", len(crowd) - 1):
        before = stats(world, crowd[0])
        assert before.counted_until_second <= crowd[0].home.second
        assert before.total.created == 0
        world.sweep_past(crowd[0].home.second)
        after = stats(world, crowd[0])
    assert after.counted_until_second > crowd[0].home.second
    assert after.total.created == after.total.delivered == len(crowd)


def met_twice(world: World, second: int) -> Task:
    """A task of an earlier second that has entries in two shards of this second, and ends here."""
    task = world.created(in_ms=second * 1000 - 10_000 - world.clock.now_ms())
    first = world.entry_writer.put(task, second * 1000)
    while (last := world.entry_writer.put(task, second * 1000)).shard == first.shard:
        world.tasks.delete_entries([last])
    (state,) = world.tasks.home_states([task.home])[0].values()
    assert world.tasks.name_entry(state, last)
    return task


def time_for_slices(world: World, number: int) -> Callable[[], int]:
    """The remaining time of a run that ends after the homes of `number` slices."""
    world.recorder.clear()

    def remaining_ms() -> int:
        calls = [call for call in world.recorder.calls if call.operation == "Query"]
        read = ["FilterExpression" not in call.request for call in calls]
        return PLENTY_MS if sum(read) < number else 0

    return remaining_ms


@pytest.mark.parametrize("first", quick_first([1, None, 2], pytest.mark.exhaustive))
def test_a_second_that_takes_many_runs_is_counted_once_wherever_sweepers_die(
    world: World, first: int | None
) -> None:
    """Each run has time for the homes of two slices; each dies after some write, or none does."""
    second = (world.clock.now_ms() + 60_000) // 1000
    world.headers.raise_to(second, SHARDS)
    world.reserve_shards.known.keep({second: SHARDS})
    tasks = world.created_many([world.new(in_ms=60_000) for _ in range(3 * SHARDS)])
    tasks.append(met_twice(world, second))
    world.dispatch_until(second)
    world.drain()
    world.sweep_once()
    world.dispatch_until(second + 300)
    reasons = set()
    for number in range(100):
        run = partial(world.sweep.run, f"short-{number}", time_for_slices(world, 2))
        at = (number * 5 + (first or 0)) % 8
        died = world.dies(run, at, "after", is_write) if first else run()
        world.dispatch_until(world.clock.now_ms() // 1000 + 30)
        reasons.update(places(world))
        if not died and not places(world) and world.swept_second >= second:
            break
    assert (second, Why.NOT_COUNTED) in reasons, "it did take several runs"
    assert places(world) == []
    assert world.entries_elsewhere() == []
    minutes_of = StatsRequest((second - 10) // 60, second // 60)
    total = world.read_statistics("orders", minutes_of).total
    assert (total.created, total.delivered) == (len(tasks), len(tasks))


def enter_later_slice(world: World, task: Task, first: Address, second: int) -> Address:
    """The task names an entry that the sweep of this second reads after `first`."""
    while (last := world.entry_writer.put(task, second * 1000)).shard <= first.shard:
        world.tasks.delete_entries([last])
    (state,) = world.tasks.home_states([task.home])[0].values()
    assert world.tasks.name_entry(state, last)
    return last


def in_shards(world: World, in_ms: int = 60_000) -> int:
    """A future second that is written in several shards from now on."""
    second = (world.clock.now_ms() + in_ms) // 1000
    world.headers.raise_to(second, SHARDS)
    world.reserve_shards.known.keep({second: SHARDS})
    return second


def sweep_while_it_ends(world: World, last: Address) -> None:
    """The page of `last` is called just before the sweep of its second reads its slice."""
    world.dispatch_until(last.second)
    make_sweepable(world)
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)

    def deliver(call: Call) -> None:
        if call.operation == "Query" and last.slot(world.settings.buckets) in str(call.request):
            world.recorder.before = None
            message = PageMessage(last.second, last.shard, page="0")
            deadline_ms = world.clock.now_ms() + LAMBDA_MS
            with conflicts(of_keys):  # so that the sweep releases the keys
                world.loop.run_until_complete(world.deliver(message, "late", deadline_ms))

    world.recorder.before = deliver
    world.sweep_once()
    assert world.recorder.before is None
    assert places(world) == []


def counted(world: World, second: int) -> tuple[int, int]:
    minutes_of = StatsRequest((second - 10) // 60, second // 60)
    total = world.read_statistics("orders", minutes_of).total
    return total.created, total.delivered


@pytest.mark.parametrize("is_home_in_it", [True, False])
def test_a_task_that_ends_in_a_later_slice_while_its_second_is_swept_is_counted(
    world: World, is_home_in_it: bool
) -> None:
    """The sweep read its home, or another entry of it, in an earlier slice, when the task was
    pending."""
    second = in_shards(world)
    task = world.created(in_ms=60_000 if is_home_in_it else 50_000)
    first = task.home if is_home_in_it else world.entry_writer.put(task, second * 1000)
    last = enter_later_slice(world, task, first, second)
    sweep_while_it_ends(world, last)
    assert world.receiver.task_ids == [task.task_id]
    assert counted(world, second) == (1, 1)


def test_a_task_that_ends_in_a_later_slice_while_its_second_is_swept_releases_its_key(
    world: World,
) -> None:
    second = in_shards(world)
    task = world.created_by_key(world.new(key="order-17", in_ms=60_000)).task
    sweep_while_it_ends(world, enter_later_slice(world, task, task.home, second))
    (key,) = [item for item in world.items() if item["place"]["S"] == task.key]
    assert key["expires_at"] == {"N": str(world.read(task).expires_at)}


@pytest.mark.exhaustive
def test_an_open_slice_with_a_lost_task_leaves_no_other_task_uncounted(world: World) -> None:
    """The slice is read alone at last, and read again to be counted, since its task is rescued."""
    second = in_shards(world)
    tasks = world.created_many([world.new(in_ms=60_000) for _ in range(3 * SHARDS)])
    stuck = world.created_by_key(world.new(key="order-17")).task
    assert stuck.home.shard > 0
    lost = next(task for task in tasks if task.home.shard == stuck.home.shard)
    tasks.append(stuck)
    far, gone = (world.entry_writer.put(lost, at * 1000) for at in (second + 1_000, second))
    (state,) = world.tasks.home_states([lost.home])[0].values()
    assert world.tasks.name_entry(state, far)
    world.tasks.delete_entries([gone])
    world.dispatch_until(second)
    with conflicts(of_keys):
        world.drain()
        make_sweepable(world)
        world.sweep_once()
    world.drain()
    (open_place,) = world.pointer(pointers.SWEEP).open_places
    assert (open_place.second, open_place.shard) == (second, stuck.home.shard)
    (state,) = world.tasks.home_states([lost.home])[0].values()
    assert world.tasks.name_entry(state, gone)
    world.sweep_once()
    assert places(world) == []
    world.sweep_past(second + 600)
    world.drain()
    assert delivered_once(world, tasks)
    assert counted(world, second) == (len(tasks), len(tasks))


@pytest.mark.exhaustive
def test_a_second_that_finishes_during_the_count_of_another_is_counted(world: World) -> None:
    """Both are in one minute, so both are in one record."""
    second = in_shards(world, in_ms=70_000)
    tasks = world.created_many([world.new(in_ms=70_000) for _ in range(3 * SHARDS)])
    stuck = world.created_by_key(world.new(key="order-17", in_ms=69_000)).task
    assert stuck.home.second // 60 == second // 60
    world.dispatch_until(second)
    number = 0
    with conflicts(of_keys):
        world.drain()
        world.sweep_once()
        world.dispatch_until(second + 300)
        while (second, Why.NOT_COUNTED) not in places(world):
            number += 1
            world.sweep.run(f"short-{number}", time_for_slices(world, 2))
            world.dispatch_until(world.clock.now_ms() // 1000 + 30)
            assert number < 100
        assert (stuck.home.second, Why.FAILED) in places(world)
    world.sweep.run("both", time_for_slices(world, 3))
    assert places(world) == [(second, Why.NOT_COUNTED)], "the other is finished"
    world.dispatch_until(world.clock.now_ms() // 1000 + 30)
    world.sweep_once()
    assert places(world) == []
    assert counted(world, second) == (len(tasks) + 1, len(tasks) + 1)
