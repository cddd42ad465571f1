"""Slow calls put their business into the slow lane for all notifiers, until the calls are quick
again."""

from typing import Any

from botocore.exceptions import ConnectionClosedError

from duewheel.rules.businesses.lanes import CALLS_MIN, SLOW_FOR_MS, BusinessLane
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.delivery.page_lease import LEASE_MS
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.queue_messages import Lane
from tests.support.receiver import OK, Received
from tests.support.recorder import Call
from tests.support.world import World

SLOW_MS = 5_000


def each_call_takes(world: World, ms: int) -> None:
    """Each call takes `ms`; here, the calls of a page are made one after the other."""

    def answer(_: Received) -> Outcome:
        world.clock.advance_ms(ms)
        return OK

    world.receiver.answer = answer


def page_of(world: World, number: int = CALLS_MIN) -> list[Task]:
    """Dispatch and deliver a page of the business `slow`."""
    tasks = [world.created(in_ms=10_000, biz_type="slow") for _ in range(number)]
    world.come_up(tasks[0])
    return tasks


def lane_of(world: World) -> BusinessLane:
    world.clock.advance_ms(6_000)  # the cache reads it again
    return world.cache_with_health.one("slow").lane_at(world.clock.now_ms())


def slow_writes(world: World) -> int:
    return sum(
        ":slow" in call.request.get("ExpressionAttributeValues", {})
        and call.request["TableName"] == world.settings.registry_table
        for call in world.recorder.calls
    )


def test_a_business_with_slow_calls_is_moved_to_the_slow_lane(world: World) -> None:
    each_call_takes(world, SLOW_MS)
    page_of(world)
    assert lane_of(world) is BusinessLane.SLOW

    tasks = [world.created(in_ms=10_000, biz_type="slow") for _ in range(3)]
    world.dispatch_until(tasks[0].due_ms // 1000)
    world.drain(Lane.MAIN)
    assert not {task.task_id for task in tasks} & set(world.receiver.task_ids)
    world.drain()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}


def test_quick_calls_and_few_slow_calls_leave_the_lane_unchanged(world: World) -> None:
    each_call_takes(world, 1_000)
    page_of(world, 10)
    each_call_takes(world, SLOW_MS)
    world.clock.advance_ms(120_000)
    page_of(world, CALLS_MIN - 1)
    assert slow_writes(world) == 0
    assert lane_of(world) is BusinessLane.MAIN


def test_a_business_returns_to_the_main_lane_when_its_calls_are_quick_again(world: World) -> None:
    each_call_takes(world, SLOW_MS)
    page_of(world)
    each_call_takes(world, 0)
    world.clock.advance_ms(SLOW_FOR_MS - 60_000)
    page_of(world)
    world.clock.advance_ms(60_000)
    assert lane_of(world) is BusinessLane.MAIN


def test_slow_calls_in_the_slow_lane_keep_the_business_there(world: World) -> None:
    each_call_takes(world, SLOW_MS)
    for _ in range(4):
        page_of(world)
        world.clock.advance_ms(SLOW_FOR_MS - 120_000)
        assert lane_of(world) is BusinessLane.SLOW


def test_slowness_is_published_once_a_minute_at_most(world: World) -> None:
    each_call_takes(world, 2_500)
    for _ in range(3):
        page_of(world, CALLS_MIN)
    assert slow_writes(world) == 1


def test_a_page_is_delivered_when_publishing_slowness_fails(world: World) -> None:
    each_call_takes(world, SLOW_MS)

    def refuse(call: Call) -> None:
        values: Any = call.request.get("ExpressionAttributeValues", {})
        if ":slow" in values:
            raise ConnectionClosedError(endpoint_url="https://dynamodb.example")

    world.recorder.before = refuse
    tasks = page_of(world)
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    world.clock.advance_ms(LEASE_MS + 2_000)
    world.drain()  # the second message, of the tasks' writer
    assert world.messages_waiting() == 0
