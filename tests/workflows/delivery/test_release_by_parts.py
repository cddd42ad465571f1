"""Many parked tasks are released by sixteen messages side by side: rate, order, and
interruptions."""

from collections import Counter
from itertools import count
from typing import Any

import pytest

from duewheel.rules.delivery import parked_tasks
from duewheel.rules.preconditions import Precondition
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import PARKED_SLOTS, list_partition
from duewheel.rules.wheel.queue_messages import ReleaseMessage, decode
from duewheel.stores import registry_keys
from duewheel.workflows.delivery import park_tasks
from duewheel.workflows.delivery.park_tasks import BLOCK
from duewheel.workflows.tasks.reschedule import WRITERS
from tests.support.damage import edit
from tests.support.stories import End, Interruption, Story
from tests.support.world import CALLER, World
from tests.workflows.delivery.test_pause import fall_due, parked_items_of, pause, resume

REQUEST_MS = 10  # duration of each request, in the count below
SMALL_REQUEST_CPU_MS = 1.4  # of an UpdateItem by boto3, as measured by `make bench-cpu`
PROCESSOR = 512 / 1_769  # the notifier's share of a processor, by its memory
PER_SECOND = 2_000


@pytest.fixture(autouse=True)
def few_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked_tasks, "BLOCKS_IN_LINE", 1)


def parked(world: World, tasks: list[Task]) -> list[Task]:
    pause(world)
    world.create.store(tasks)
    fall_due(world, *tasks)
    assert len(parked_items_of(world)) == len(tasks)
    world.clock.advance_ms(1_000)  # all of them are due
    return tasks


def many(world: World, number: int) -> list[Task]:
    return parked(world, [world.placed(world.new(60_000 + n)) for n in range(number)])


def of_part(world: World, part: int, number: int) -> list[Task]:
    placed = (world.placed(world.new(60_000 + n)) for n in count())
    found = (task for task in placed if list_partition(task.home) == part)
    return parked(world, [next(found) for _ in range(number)])


def end_pause(world: World) -> None:
    world.configure_business.pause("orders", Precondition(), paused=False, by=CALLER)


def handle_pages(world: World, messages: list[dict[str, Any]]) -> None:
    """Handle the messages of released tasks, which come between those of releases."""
    for message in messages:
        if not isinstance(decode(message["Body"]), ReleaseMessage):
            world.handle(message)


def work_off_parts(world: World) -> None:
    """The messages become visible a second apart."""
    for _ in range(PARKED_SLOTS):
        world.drain()
        world.clock.advance_ms(1_000)


@pytest.mark.exhaustive
def test_a_release_of_many_tasks_sends_one_message_for_each_slot(world: World) -> None:
    tasks = many(world, 230)
    end_pause(world)
    (message,) = world.receive()
    world.handle(message)
    assert len(parked_items_of(world)) == 130
    messages: list[ReleaseMessage] = []
    received: list[dict[str, Any]] = []
    for _ in range(PARKED_SLOTS):
        received += (visible := world.receive())
        batch = [decode(one["Body"]) for one in visible]
        of_parts = [m for m in batch if isinstance(m, ReleaseMessage) and m.part is not None]
        assert len(of_parts) == 1, (
            "one message of a part at a time, so that another notifier gets the next"
        )
        messages += of_parts
        world.clock.advance_ms(1_000)
    parts = [message.part for message in messages]
    assert parts == list(range(PARKED_SLOTS))
    for part in parts:
        world.release(ReleaseMessage("orders", part), "me", world.clock.now_ms() + 60_000)
    assert parked_items_of(world) == []
    handle_pages(world, received)
    world.let_pass(12)
    assert Counter(world.receiver.task_ids) == Counter(task.task_id for task in tasks)


@pytest.mark.exhaustive
def test_sixteen_parts_release_two_thousand_tasks_a_second(world: World) -> None:
    """Counts the requests that a slot's release makes one after the other, and all its requests.
    Each takes ten milliseconds, and its share of the notifier's processor, without overlap."""
    blocks = 2
    of_part(world, 3, blocks * BLOCK)
    end_pause(world)
    world.receive()
    before = len(world.recorder.calls)
    world.release(ReleaseMessage("orders", 3), "me", world.clock.now_ms() + 60_000)
    operations = Counter(world.recorder.operations()[before:])
    assert parked_items_of(world) == []
    named = operations.pop("UpdateItem")
    in_a_row = operations.total() + -(-named // WRITERS)
    waits_ms = in_a_row * REQUEST_MS
    works_ms = (operations.total() + named) * SMALL_REQUEST_CPU_MS / PROCESSOR
    per_second = PARKED_SLOTS * blocks * BLOCK * 1_000 / (waits_ms + works_ms)
    assert per_second >= PER_SECOND, f"{in_a_row} in a row, {named} updates: {per_second:.0f}"
    assert 1_000 / parked_tasks.PART_APART_MS * PARKED_SLOTS >= PER_SECOND


@pytest.mark.exhaustive
def test_tasks_of_a_slot_are_released_in_the_order_of_falling_due(world: World) -> None:
    tasks = many(world, 250)
    end_pause(world)
    work_off_parts(world)
    by_part: dict[int, list[int]] = {}
    for task in sorted(tasks, key=lambda task: task.entry.place):
        by_part.setdefault(list_partition(task.home), []).append(world.read(task).next_ms)
    assert len(by_part) == PARKED_SLOTS
    for instants in by_part.values():
        assert instants == sorted(set(instants))


@pytest.mark.exhaustive
def test_no_second_gets_more_tasks_of_a_slot_than_a_shard_holds(world: World) -> None:
    tasks = of_part(world, 5, 300)
    end_pause(world)
    world.receive()
    world.release(ReleaseMessage("orders", 5), "me", world.clock.now_ms() + 60_000)
    by_second = Counter(world.read(task).entry.second for task in tasks)
    assert max(by_second.values()) <= 250


@pytest.fixture
def small_block(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(park_tasks, "BLOCK", 20)
    return 20


def test_with_a_limit_of_calls_one_message_releases_all_tasks(
    world: World, small_block: int
) -> None:
    world.configured("orders", calls_per_second=100.0)
    tasks = many(world, small_block + 5)
    end_pause(world)
    (message,) = world.receive()
    world.handle(message)
    assert parked_items_of(world) == []
    instants = [world.read(task).next_ms for task in tasks]
    assert instants == sorted(set(instants))


def test_only_one_of_two_releases_of_a_slot_works_at_a_time(world: World) -> None:
    of_part(world, 2, 3)
    end_pause(world)
    world.receive()
    now_ms = world.clock.now_ms()
    lease_ms = world.release.lease_ms
    assert world.parking_records.take("orders", "another", now_ms, lease_ms, 2)
    world.release(ReleaseMessage("orders", 2), "me", now_ms + 60_000)
    assert len(parked_items_of(world)) == 3
    world.clock.advance_ms(lease_ms + 1)
    world.release(ReleaseMessage("orders", 2), "me", world.clock.now_ms() + 60_000)
    assert parked_items_of(world) == []


def test_a_slot_with_a_damaged_lease_is_released_after_the_next_pause(world: World) -> None:
    of_part(world, 2, 3)
    end_pause(world)
    world.receive()
    edit(world, registry_keys.parking("orders"), until_ms_2={"N": str(10**14)})
    world.release(ReleaseMessage("orders", 2), "me", world.clock.now_ms() + 60_000)
    assert len(parked_items_of(world)) == 3
    world.parking_records.mark("orders", "another")
    world.release(ReleaseMessage("orders", 2), "me", world.clock.now_ms() + 60_000)
    assert parked_items_of(world) == []


def test_a_pause_stops_each_slot_between_two_blocks(world: World, small_block: int) -> None:
    of_part(world, 2, small_block + 5)
    end_pause(world)
    world.receive()

    world.recorder.once(
        "BatchGetItem",
        lambda: world.configure_business.pause("orders", Precondition(), paused=True, by=CALLER),
    )
    world.release(ReleaseMessage("orders", 2), "me", world.clock.now_ms() + 60_000)
    assert len(parked_items_of(world)) == 5
    resume(world)
    work_off_parts(world)
    assert parked_items_of(world) == []


@pytest.mark.exhaustive
def test_lost_messages_of_slots_are_sent_again_by_the_sweeper(world: World) -> None:
    tasks = many(world, 230)
    end_pause(world)
    (message,) = world.receive()
    world.handle(message)
    world.clock.advance_ms(60_000)
    for _ in range(2):
        messages = world.receive()
        assert any(isinstance(decode(one["Body"]), ReleaseMessage) for one in messages), "lost"
        handle_pages(world, messages)
    world.send_releases()
    work_off_parts(world)
    assert parked_items_of(world) == []
    world.let_pass(12)
    assert Counter(world.receiver.task_ids) == Counter(task.task_id for task in tasks)


@pytest.mark.exhaustive
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_death_at_any_call_of_a_slots_release_loses_nothing_and_calls_nothing_twice(
    world: World, moment: str
) -> None:
    happened = 0
    for number in count(1):
        story = Story(world)
        for n in range(3):
            story.create(9_000 + n)
        story.pause()
        world.dispatch_until(world.clock.now_ms() // 1000 + 9)
        story.deliver()
        parts = {slot.rpartition("#")[2] for slot in parked_items_of(world)}
        part = int(min(parts))
        world.clock.advance_ms(1_000)
        story.resume()

        def step(part: int = part) -> None:
            deadline_ms = world.clock.now_ms() + 60_000
            world.release(ReleaseMessage("orders", part), "me", deadline_ms)

        did = story.interrupted(step, Interruption(number, End.DEATH, moment))
        story.settle_all()
        story.check()
        assert {len(outcomes) for outcomes in story.outcomes.values()} == {1}
        if not did:
            break
        happened += 1
    assert happened > 5
