"""Permits of work that goes on after its call: held until it ends, by each task for itself."""

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.delivery.permits import Holding, Permits, held_by_work, is_placed
from duewheel.rules.names import scope_of
from duewheel.rules.tasks.task import Status, Task
from duewheel.wiring import businesses
from duewheel.wiring.long_work import work_permits
from tests.support.damage import edit, key_of
from tests.support.receiver import OK
from tests.support.recorder import Call, Death
from tests.support.world import FAR_MS, World
from tests.workflows.delivery.test_long_work import (
    accepted,
    begun,
    complete,
    fail,
    progress,
    reach,
)


def held(scope: str = "orders") -> dict[str, Holding]:
    return dict(businesses.permits().read(scope).held)


def name_of(task: Task) -> str:
    return f"task:{task.task_id}"


def put(name: str, holding: Holding) -> None:
    def plan(permits: Permits) -> Permits:
        return replace(permits, version=permits.version + 1, held={**permits.held, name: holding})

    businesses.permits().change("orders", plan)


def kept(world: World, **fields: object) -> Task:
    """Work that has ended, and whose permit is still held: the process died before it gave that
    back."""
    task = begun(world, **fields)
    world.recorder.die("GetItem", of="permits")
    with pytest.raises(Death):
        complete(task)
    world.recorder.before = None
    world.receiver.answer = lambda received: OK
    assert world.read(task).status is Status.DELIVERED
    assert name_of(task) in held()
    return task


def running(world: World, tasks: list[Task]) -> list[Task]:
    return [one for one in map(world.read, tasks) if one.running is not None]


def test_work_holds_a_permit_until_it_ends(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    assert list(held()) == [name_of(task)]
    other = world.created(FAR_MS)
    world.handle(world.dispatched(other))
    assert len(world.receiver.received) == 1  # it waits
    moved = progress(task)
    assert held()[name_of(task)].until_ms == moved.next_ms
    complete(task)
    assert held() == {}
    world.receiver.answer = lambda received: OK
    reach(world, world.read(other).next_ms)
    assert world.read(other).status is Status.DELIVERED


ENDS: list[Callable[[World, Task], object]] = [
    lambda world, task: fail(task),
    lambda world, task: world.cancel(task.task_id),
    lambda world, task: reach(world, task.next_ms),
]


@pytest.mark.parametrize("end", ENDS, ids=["fail", "cancel", "silence"])
def test_any_end_of_work_gives_its_permit_back(
    world: World, end: Callable[[World, Task], object]
) -> None:
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    end(world, task)
    assert held() == {}


def test_work_that_ends_before_its_permit_is_put_holds_none(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    complete(task)
    work_permits().hold(task)  # the notifier wrote that it runs, and then the report came
    assert held() == {}


def test_a_permit_that_ended_work_has_kept_comes_back_by_the_task_that_waits_for_it(
    world: World,
) -> None:
    world.configured("orders", calls_in_flight=1)
    task = kept(world)
    other = world.created(FAR_MS)
    world.handle(world.dispatched(other))
    reach(world, world.read(other).next_ms)
    assert world.read(other).status is Status.DELIVERED
    assert world.clock.now_ms() < task.next_ms - 60_000


def test_a_task_that_waits_leaves_permits_to_work_that_goes_on(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    before = held()
    other = world.created(FAR_MS)
    world.handle(world.dispatched(other))
    assert is_placed(world.read(other))
    assert held()[name_of(task)] == before[name_of(task)]


def test_a_permit_that_is_put_anew_is_not_given_back_by_what_was_seen_before(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The work has ended, and the task runs again, while a task that waits looks at it."""
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    seen = businesses.permits().read("orders")
    complete(task)
    anew = partial(held_by_work, task_id=task.task_id, until_ms=task.next_ms + 1)
    world.recorder.once(
        "BatchGetItem", lambda: businesses.permits().change("orders", anew), "after"
    )
    after = work_permits().give_back_over("orders", seen)
    assert after.held[name_of(task)].until_ms == task.next_ms + 1
    assert after.held == held()
    assert "permits of ended work given back" not in caplog.text


@pytest.mark.parametrize("limit", [1, 2])
def test_the_limit_holds_for_tasks_of_one_page_that_all_work_on(world: World, limit: int) -> None:
    world.configured("orders", calls_in_flight=limit)
    tasks = [world.created(FAR_MS) for _ in range(3 * limit)]
    world.receiver.answer = lambda received: accepted()
    world.handle(world.dispatched(tasks[0]))
    assert set(held()) == {name_of(task) for task in running(world, tasks)}
    assert len(held()) == limit


def test_the_end_of_an_attempt_leaves_the_permit_of_the_next_one(world: World) -> None:
    """The write that gives the permit back comes when the next attempt works."""
    world.configured("orders", calls_in_flight=1)
    task = begun(world, retry=RetryPolicy(delays_seconds=(4.0,)))

    def run_again() -> None:
        world.receiver.answer = lambda received: accepted()
        reach(world, world.read(task).next_ms)

    world.recorder.once("UpdateItem", run_again, of="permits")
    fail(task)
    assert [one.attempts for one in running(world, [task])] == [1]
    assert name_of(task) in held()


def test_a_slow_report_of_progress_leaves_the_later_deadline_of_another(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    world.clock.advance_ms(1_000)
    world.recorder.once("GetItem", lambda: progress(task, seconds=6_000), of="permits")
    progress(task, seconds=700)
    assert held()[name_of(task)].until_ms == world.read(task).next_ms


@pytest.mark.parametrize(
    "fields", [{}, {"priority": "high"}, {"flow_key": "ada"}], ids=["plain", "high", "in order"]
)
def test_any_task_that_waits_gets_back_what_ended_work_has_kept(
    world: World, fields: dict[str, object]
) -> None:
    world.configured("orders", calls_in_flight=1, flow=Flow(FlowLimits(in_order=True), {}))
    task = kept(world)
    other = world.created(FAR_MS, **fields)
    world.handle(world.dispatched(other))
    assert name_of(task) not in held()


def test_a_permit_of_a_flow_key_that_a_running_task_has_left_comes_back(world: World) -> None:
    """Its timer was changed between two attempts."""
    world.configured("orders", flow=Flow(FlowLimits(calls_in_flight=1), {}))
    task = begun(world, flow_key="bob")
    left = scope_of("orders", "ada")
    stale = partial(held_by_work, task_id=task.task_id, until_ms=task.next_ms - 7)
    seen = businesses.permits().change(left, stale)
    assert work_permits().give_back_over(left, seen).held == {}
    assert name_of(task) in held(scope_of("orders", "bob"))


def test_a_name_that_is_no_task_keeps_its_permit_and_stops_no_other(world: World) -> None:
    world.configured("orders", calls_in_flight=2)
    task = kept(world)
    put("task:damaged", Holding(2, task.next_ms))
    other = world.created(FAR_MS)
    world.handle(world.dispatched(other))
    assert is_placed(world.read(other))
    assert list(held()) == ["task:damaged"]


def test_a_damaged_task_keeps_its_permit(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    edit(world, key_of(world, task), running={"S": "x"})
    seen = businesses.permits().read("orders")
    assert name_of(task) in work_permits().give_back_over("orders", seen).held


CODES = ["ServiceUnavailable", "ProvisionedThroughputExceededException"]


@pytest.mark.parametrize("code", CODES)
def test_a_task_gets_its_place_though_those_that_work_cannot_be_read(
    world: World, code: str
) -> None:
    world.configured("orders", calls_in_flight=1)
    task = begun(world)
    other = world.created(FAR_MS)
    message = world.dispatched(other)
    world.recorder.refuse("BatchGetItem", code=code, of=task.home.token)
    world.handle(message)
    assert is_placed(world.read(other))


@pytest.mark.parametrize("code", CODES)
def test_a_task_gets_its_place_though_a_kept_permit_cannot_be_given_back(
    world: World, code: str
) -> None:
    world.configured("orders", calls_in_flight=1)
    task = kept(world)
    other = world.created(FAR_MS)
    message = world.dispatched(other)

    def refuse_when_looked_at(call: Call) -> None:
        if call.operation == "BatchGetItem" and task.home.token in str(call.request):
            world.recorder.refuse("UpdateItem", code=code, of="#held")

    world.recorder.after = refuse_when_looked_at
    world.handle(message)
    world.recorder.before = world.recorder.after = None
    assert is_placed(world.read(other))
    assert name_of(task) in held()


def test_a_task_that_waits_for_calls_alone_reads_no_other_tasks(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    other = world.created(FAR_MS)
    put("run", Holding(1, other.next_ms + 600_000))
    message = world.dispatched(other)
    world.recorder.clear()
    world.handle(message)
    assert is_placed(world.read(other))
    wheel = world.settings.wheel_table
    reads = [one for one in world.recorder.calls if one.operation == "BatchGetItem"]
    homes = [one for one in reads if wheel in one.request["RequestItems"]]
    assert len(homes) <= 1, "of the page alone"
