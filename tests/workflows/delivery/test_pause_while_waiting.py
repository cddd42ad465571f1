"""A pause that begins while tasks wait in a notifier, for a call slot or for a turn, applies to
them."""

from collections.abc import Callable

import pytest

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.preconditions import Precondition
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.businesses.cache import KEPT_MS
from tests.support.receiver import OK, Received
from tests.support.world import CALLER, World
from tests.workflows.delivery.test_pause import (
    fall_due,
    is_audited_clean,
    parked_items_of,
    resume,
)

CALL_MS = 3_000
TASKS = 8


def crowd(world: World, count: int = TASKS, **fields: object) -> list[Task]:
    due_ms = world.clock.now_ms() + 60_000
    made = world.created_many(
        world.new(due_ms - world.clock.now_ms(), **fields) for _ in range(count)
    )
    return [task for task in made if isinstance(task, Task)]


def pause_now(world: World) -> None:
    world.configure_business.pause("orders", Precondition(), paused=True, by=CALLER)


def slow_calls(world: World, at_first_call: Callable[[World], object]) -> list[int]:
    """Each call takes three seconds; `at_first_call` runs during the first. Returns a list that
    will contain the instant of that."""
    done: list[int] = []

    def answer(_: Received) -> Outcome:
        if not done:
            at_first_call(world)
            done.append(world.clock.now_ms())
        world.clock.advance_ms(CALL_MS)
        return OK

    world.receiver.answer = answer
    return done


def registry_reads(world: World, before: int) -> int:
    return sum(
        call.operation == "BatchGetItem"
        and world.settings.registry_table in call.request["RequestItems"]
        for call in world.recorder.calls[before:]
    )


@pytest.mark.exhaustive
def test_no_waiting_call_begins_later_than_five_seconds_after_a_pause(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    tasks = crowd(world)
    paused_at = slow_calls(world, pause_now)
    fall_due(world, *tasks)
    world.let_pass(30)
    (paused_ms,) = paused_at
    assert max(one.at_ms for one in world.receiver.received) <= paused_ms + KEPT_MS
    called = set(world.receiver.task_ids)
    held = [world.read(task) for task in tasks if task.task_id not in called]
    assert len(held) >= TASKS - 3
    assert all(task.parked for task in held)
    assert len(parked_items_of(world)) == len(held)
    assert is_audited_clean(world, *tasks)
    resume(world)
    world.let_pass(60)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_task_with_a_later_turn_is_not_called_during_a_pause(world: World) -> None:
    """Tasks with late messages are called at turns up to seconds ahead."""
    world.configured("orders", calls_per_second=1.0)
    tasks = crowd(world, 3)
    world.dispatch_until(tasks[0].due_ms // 1000)
    world.clock.advance_ms(20_000)
    paused_at = slow_calls(world, pause_now)
    world.drain()
    world.let_pass(10)
    assert max(one.at_ms for one in world.receiver.received) <= paused_at[0] + KEPT_MS


def test_waiting_calls_read_their_business_once_in_five_seconds_and_others_never(
    world: World,
) -> None:
    world.configured("orders", calls_in_flight=1)
    tasks = crowd(world)
    slow_calls(world, lambda _: None)
    before = len(world.recorder.calls)
    fall_due(world, *tasks)
    assert len(world.receiver.received) == TASKS
    took_ms = world.clock.now_ms() - tasks[0].due_ms
    assert registry_reads(world, before) <= 2 + took_ms // KEPT_MS

    world.receiver.answer = lambda _: OK
    world.configured("orders", calls_in_flight=None)
    tasks = crowd(world, 3)
    before = len(world.recorder.calls)
    fall_due(world, *tasks)
    assert registry_reads(world, before) == 1


def test_waiting_tasks_whose_business_is_deleted_are_rescheduled_and_checked_again(
    world: World,
) -> None:
    world.configured(
        "orders", calls_in_flight=1, callback=HttpCallback("https://receiver.example/")
    )
    tasks = crowd(world, callback=None)

    def delete(world: World) -> None:
        business = world.business_cache.one("orders")
        assert world.businesses.delete(business, CALLER)

    slow_calls(world, delete)
    fall_due(world, *tasks)
    assert len(world.receiver.received) <= 2
    world.receiver.answer = lambda _: OK
    world.let_pass(90, stride=10)
    statuses = {world.read(task).status for task in tasks}
    assert statuses == {Status.DELIVERED, Status.DEAD}
    assert len(world.receiver.received) <= 2
