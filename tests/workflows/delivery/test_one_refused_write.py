"""One refused write among many concurrent writes does not delay a task by minutes."""

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.delivery.page_lease import PageFinished
from duewheel.rules.preconditions import Precondition
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.queue_messages import DirectMessage, decode
from tests.support.recorder import Call
from tests.support.world import CALLER, FAR_MS, World
from tests.workflows.delivery.test_pause import parked_items_of, pause

TIMES = 3


def refuse(world: World, is_wanted: Callable[[Call], bool], code: str, times: int = TIMES) -> None:
    left = iter(range(times))

    def answer(call: Call) -> None:
        if is_wanted(call) and next(left, None) is not None:
            raise ClientError({"Error": {"Code": code}}, "UpdateItem")  # type: ignore[arg-type]

    world.recorder.before = answer


def of_a_home(call: Call) -> bool:
    return "#entry" in call.request.get("ExpressionAttributeNames", {})


def of_turns(call: Call) -> bool:
    return "turns" in str(call.request.get("Key"))


def crowd(world: World, count: int = 6, **fields: object) -> list[Task]:
    due_ms = world.clock.now_ms() + FAR_MS
    made = world.created_many(
        world.new(due_ms - world.clock.now_ms(), **fields) for _ in range(count)
    )
    tasks = [task for task in made if isinstance(task, Task)]
    assert len(tasks) == count
    return tasks


def parked(world: World) -> list[Task]:
    tasks = crowd(world)
    pause(world)
    return tasks


def reschedule(world: World) -> list[Task]:
    world.configured("orders", calls_per_second=1.0)
    return crowd(world)


def expired(world: World) -> list[Task]:
    tasks = crowd(world, 2, expires_after_seconds=1.0)
    world.clock.set_ms(tasks[0].due_ms + 20_000)
    return tasks


def moved_away(world: World) -> list[Task]:
    """Moved to later without a new entry: the page works off the named entry."""
    tasks = crowd(world, 1)
    for task in tasks:
        world.change(task.task_id, Change(due_ms=task.due_ms + 3_600_000))
    return tasks


CASES = {
    "parked": (parked, of_a_home, lambda task: task.parked),
    "rescheduled": (
        reschedule,
        of_a_home,
        lambda task: task.entry != task.home or not task.is_live,
    ),
    "a turn": (reschedule, of_turns, lambda task: task.entry != task.home or not task.is_live),
    "expired": (expired, of_a_home, lambda task: task.status is Status.EXPIRED),
    "placed later": (moved_away, of_a_home, lambda task: task.entry.second > task.home.second),
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_finishes_in_one_run_although_the_table_refuses_some_writes(
    world: World, case: str
) -> None:
    prepare, is_wanted, is_done = CASES[case]
    tasks = prepare(world)
    world.dispatch_until(tasks[0].home.second)
    (message,) = world.receive()
    refuse(world, is_wanted, "ProvisionedThroughputExceededException")
    assert isinstance(world.handle(message), PageFinished)
    assert all(is_done(world.read(task)) for task in tasks)


def test_new_entries_are_announced_although_one_home_could_not_name_its_entry(world: World) -> None:
    """The new entry is near, so no slice read will see it."""
    tasks = crowd(world)
    now_ms = world.clock.now_ms()
    changes = [(task, lifecycle.postponed(task, now_ms + 500, now_ms)) for task in tasks]
    refuse(world, of_a_home, "InternalServerError", times=1)
    with pytest.raises(ClientError):
        world.reschedule.each(changes)
    world.recorder.before = None
    named = {world.read(task).entry.name for task in tasks} - {task.entry.name for task in tasks}
    assert len(named) == len(tasks) - 1
    world.clock.advance_ms(1_000)
    bodies = [decode(one["Body"]) for one in world.receive()]
    announced = {name for one in bodies if isinstance(one, DirectMessage) for name in one.entries}
    assert named <= announced


def test_a_release_finishes_although_the_table_refuses_some_writes(world: World) -> None:
    tasks = crowd(world)
    pause(world)
    world.dispatch_until(tasks[0].home.second)
    world.drain()
    assert len(parked_items_of(world)) == len(tasks)
    world.configure_business.pause("orders", Precondition(), paused=False, by=CALLER)
    (message,) = world.receive()
    refuse(world, of_a_home, "ProvisionedThroughputExceededException", times=8)
    assert isinstance(world.handle(message), PageFinished)
    assert parked_items_of(world) == []
