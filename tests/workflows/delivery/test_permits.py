"""Calls in flight of a business: by permits of one record, however many notifiers there are."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.rate_limit import US_PER_MS
from duewheel.rules.delivery import permits as rules
from duewheel.rules.delivery.permits import Holding, Permits, Wanted
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Reservation, Status, Task
from duewheel.stores import registry_keys
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.businesses.rate_limits import CALLS
from duewheel.workflows.delivery.permits import Pool, SlotState, Taken
from tests.support.receiver import OK
from tests.support.recorder import Call
from tests.support.world import FAR_MS, World


@pytest.fixture
def store(world: World) -> PermitStore:
    return PermitStore(world.dynamodb, world.settings.registry_table)


def hold(store: PermitStore, count: int, until_ms: int, scope: str = "orders") -> None:
    """Another notifier holds permits."""

    def plan(permits: Permits) -> Permits:
        return replace(permits, version=permits.version + 1, held={"x": Holding(count, until_ms)})

    store.change(scope, plan)


def fall_due(world: World, task: Task) -> Task:
    world.dispatch_until(task.next_ms // 1000)
    world.clock.set_ms(max(world.clock.now_ms(), task.next_ms))
    for message in world.receive():
        world.handle(message)
    return world.read(task)


def permit_calls(world: World) -> list[str]:
    return [
        call.operation
        for call in world.recorder.calls
        if call.request.get("Key", {}).get("record") == {"S": "permits"}
    ]


def test_a_page_takes_permits_and_gives_them_back(world: World, store: PermitStore) -> None:
    world.configured("orders", calls_in_flight=3)
    tasks = [world.created(FAR_MS) for _ in range(3)]
    assert fall_due(world, tasks[0]).status is Status.DELIVERED
    assert store.read("orders").held == {}
    assert permit_calls(world).count("UpdateItem") == 2


def test_a_business_without_a_limit_makes_no_request(world: World) -> None:
    world.configured("orders", calls_in_flight=None)
    assert fall_due(world, world.created(FAR_MS)).status is Status.DELIVERED
    assert permit_calls(world) == []


def test_a_task_without_a_permit_is_rescheduled_without_an_attempt_and_called_when_one_is_free(
    world: World, store: PermitStore
) -> None:
    world.configured("orders", calls_in_flight=2)
    task = world.created(FAR_MS)
    hold(store, 2, task.next_ms + 60_000)
    waiting = fall_due(world, task)
    assert (waiting.status, waiting.attempts, waiting.history) == (Status.PENDING, 0, ())
    assert rules.is_placed(waiting)
    assert waiting.next_ms >= task.next_ms
    late = fall_due(world, waiting)
    assert late.reservation is not None
    assert late.reservation.is_late
    hold(store, 0, 0)
    called = fall_due(world, late)
    assert (called.status, called.attempts) == (Status.DELIVERED, 1)


def test_a_task_behind_a_line_lines_up_before_it_takes_a_turn(
    world: World, store: PermitStore
) -> None:
    world.configured("orders", calls_in_flight=2, calls_per_second=10.0)
    task = world.created(FAR_MS)
    store.line_up("orders", 10, task.next_ms + 9_000, 100_000, is_late=False)
    waiting = fall_due(world, task)
    assert waiting.next_ms == task.next_ms + 10_000
    turns = [
        call
        for call in world.recorder.calls
        if call.request.get("Key", {}).get("record") == {"S": "calls"}
    ]
    assert turns == []


def test_no_call_begins_while_the_permits_cannot_be_written(
    world: World, store: PermitStore
) -> None:
    world.configured("orders", calls_in_flight=2)
    task = world.created(FAR_MS)
    error = {"Error": {"Code": "InternalServerError", "Message": ""}}

    def refuse(call: Call) -> None:
        is_permits = call.request.get("Key", {}).get("record") == {"S": "permits"}
        if call.operation == "UpdateItem" and is_permits and "held" in str(call.request):
            raise ClientError(error, call.operation)  # type: ignore[arg-type]

    world.recorder.before = refuse
    waiting = fall_due(world, task)
    assert (waiting.status, waiting.attempts) == (Status.PENDING, 0)
    assert world.receiver.received == []
    world.recorder.before = None
    assert fall_due(world, waiting).status is Status.DELIVERED


def test_permits_whose_taking_was_not_answered_are_given_back(
    world: World, store: PermitStore
) -> None:
    world.configured("orders", calls_in_flight=2)
    task = world.created(FAR_MS)
    lost = {"number": 1}
    error = {"Error": {"Code": "InternalServerError", "Message": ""}}

    def lose(call: Call) -> None:
        if call.operation == "UpdateItem" and "'held'" in str(call.request) and lost["number"]:
            lost["number"] -= 1
            raise ClientError(error, call.operation)  # type: ignore[arg-type]

    world.recorder.after = lose
    assert fall_due(world, task).status is Status.DELIVERED
    assert lost["number"] == 0
    assert store.read("orders").held == {}


def test_a_higher_limit_holds_for_a_task_that_waits(world: World, store: PermitStore) -> None:
    world.configured("orders", calls_in_flight=1)
    task = world.created(FAR_MS)
    hold(store, 1, task.next_ms + 60_000)
    waiting = fall_due(world, task)
    assert waiting.status is Status.PENDING
    world.configured("orders", calls_in_flight=2)
    world.clock.advance_ms(KEPT_MS)
    assert fall_due(world, waiting).status is Status.DELIVERED


def of_keys(world: World, calls_in_flight: int = 1, **limits: Any) -> None:
    flow = Flow(FlowLimits(calls_in_flight=calls_in_flight))
    world.configured("orders", flow=flow, **limits)


def test_each_flow_key_has_permits_of_its_own(world: World, store: PermitStore) -> None:
    of_keys(world)
    held, free = (world.created(FAR_MS, flow_key=key) for key in ("held", "free"))
    hold(store, 1, held.next_ms + 60_000, "orders#held")
    fall_due(world, held)
    assert world.read(free).status is Status.DELIVERED
    waiting = world.read(held)
    assert (waiting.status, waiting.attempts) == (Status.PENDING, 0)
    assert rules.is_placed(waiting)
    hold(store, 0, 0, "orders#held")
    assert fall_due(world, waiting).status is Status.DELIVERED


def test_a_task_takes_a_permit_of_its_key_and_one_of_its_business(
    world: World, store: PermitStore
) -> None:
    of_keys(world, calls_in_flight=2)
    world.configured("orders", calls_in_flight=1)
    task = world.created(FAR_MS, flow_key="key")
    hold(store, 1, task.next_ms + 60_000)
    assert fall_due(world, task).status is Status.PENDING
    assert store.read("orders#key").held == {}  # given back
    hold(store, 0, 0)
    assert fall_due(world, world.read(task)).status is Status.DELIVERED
    assert store.read("orders").held == {}


def test_a_task_without_a_key_or_of_a_key_in_order_takes_no_permit_of_a_key(world: World) -> None:
    flow = Flow(prefixes={"a": FlowLimits(in_order=True, calls_in_flight=1)})
    world.configured("orders", flow=flow)
    tasks = [world.created(FAR_MS), world.created(FAR_MS, flow_key="a")]
    fall_due(world, tasks[0])
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert permit_calls(world) == []


def test_the_line_advances_by_the_duration_of_the_calls(world: World, store: PermitStore) -> None:
    world.configured("orders", calls_in_flight=1)

    def takes(received: Any) -> Any:
        world.clock.advance_ms(2_000)
        return OK

    world.receiver.answer = takes
    for _ in range(3):
        fall_due(world, world.created(FAR_MS))
    call_us = store.read("orders").call_us
    assert rules.CALL_US_FIRST < call_us < 2_000 * US_PER_MS


def test_a_pool_that_was_not_used_makes_no_request(world: World) -> None:
    def change(wanted: Wanted) -> Taken:
        raise AssertionError

    asyncio.run(Pool(world.clock, change, "a").close())


def test_who_waits_for_a_permit_until_the_run_ends_is_too_late(world: World) -> None:
    task, latest_ms = world.created(FAR_MS), world.clock.now_ms() + 20_000

    def change(wanted: Wanted) -> Taken:
        until_ms = world.clock.now_ms() + 1_000 + rules.BEGIN_MS
        return Taken(Holding(min(1, wanted.count), until_ms), 1)

    async def lived() -> None:
        pool = Pool(world.clock, change, "a")
        assert (await pool.acquire(task, task.due_ms, latest_ms, 1_000)).state is SlotState.FREE
        waiting = asyncio.create_task(pool.acquire(task, task.due_ms, latest_ms, 1_000))
        await asyncio.sleep(0)
        world.clock.set_ms(latest_ms)
        assert (await waiting).state is SlotState.TOO_LATE
        pool.begins()
        pool.release(100)
        await pool.close()

    asyncio.run(lived())


def all_wanted(wanted: Wanted) -> Taken:
    return Taken(Holding(wanted.count, wanted.until_ms), wanted.count)


def test_a_permit_is_renewed_until_its_call_begins(world: World) -> None:
    """A call may wait for a permit of its business long after it has one of its key."""
    task, latest_ms = world.created(FAR_MS), world.clock.now_ms() + 60_000

    async def lived() -> None:
        pool = Pool(world.clock, all_wanted, "a")
        grant = await pool.acquire(task, task.due_ms, latest_ms, 1_000)
        for _ in range(10):
            world.clock.advance_ms(rules.BEGIN_MS - rules.SURE_MS)
            await asyncio.sleep(0.05)
            assert pool.is_sure(grant, 1_000)
        pool.begins()
        pool.release(100)
        await pool.close()

    asyncio.run(lived())


def test_no_call_begins_by_a_permit_that_has_expired_and_was_taken_again(world: World) -> None:
    task, latest_ms = world.created(FAR_MS), world.clock.now_ms() + 60_000

    async def lived() -> None:
        pool = Pool(world.clock, all_wanted, "a")
        first = await pool.acquire(task, task.due_ms, latest_ms, 1_000)
        world.clock.advance_ms(30_000)  # it freezes
        second = await pool.acquire(task, task.due_ms, latest_ms, 1_000)
        assert (pool.is_sure(first, 1_000), pool.is_sure(second, 1_000)) == (False, True)
        for _ in range(2):
            pool.release(None)
        await pool.close()

    asyncio.run(lived())


def test_a_task_that_comes_from_the_line_of_a_rate_does_not_line_up_for_permits(
    world: World, store: PermitStore
) -> None:
    world.configured("orders", calls_in_flight=2, calls_per_second=10.0)
    task = world.created(FAR_MS)
    place = Reservation(task.next_ms, world.clock.now_ms())
    waiting = lifecycle.rescheduled(task, place, world.clock.now_ms())
    assert world.tasks.change(task, waiting)
    store.line_up("orders", 10, task.next_ms + 9_000, 100_000, is_late=False)
    assert fall_due(world, waiting).status is Status.DELIVERED


@pytest.mark.parametrize("limit", ["calls_in_flight", "calls_per_second"])
def test_a_damaged_record_of_a_limit_stops_its_business_alone(world: World, limit: str) -> None:
    world.configured("orders", **{limit: 2})
    limited, other = world.created(FAR_MS), world.created(FAR_MS, biz_type="mails")
    is_rate = limit == "calls_per_second"
    key = registry_keys.turns(CALLS, "orders") if is_rate else registry_keys.permits("orders")
    table, damaged = world.settings.registry_table, {"version": {"S": "one"}}
    world.dynamodb.put_item(TableName=table, Item={**key, **damaged})
    with suppress(UnreadableItem):
        world.handle(world.dispatched(limited))
    assert world.receiver.task_ids == [other.task_id]

    world.dynamodb.delete_item(TableName=table, Key=key)
    world.sweep_past(limited.home.second)
    assert sorted(world.receiver.task_ids) == sorted([limited.task_id, other.task_id])
