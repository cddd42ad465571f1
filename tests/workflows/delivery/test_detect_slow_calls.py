"""Slow calls put their business into the slow lane for all notifiers, until the calls are quick
again."""

import asyncio
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from duewheel.rules.businesses.lanes import CALLS_MIN, SLOW_FOR_MS, BusinessLane
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.delivery.page_lease import LEASE_MS
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.wiring import businesses as wired
from duewheel.workflows.delivery.slow_lane import DetectSlowCalls
from tests.simulation.virtual_time import VirtualLoop
from tests.support.clock import NOON_MS
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


def page_of(world: World, number: int = CALLS_MIN, other: str | None = "other") -> list[Task]:
    """Dispatch and deliver a page of the business `slow`, and one task of another."""
    tasks = [world.created(in_ms=10_000, biz_type="slow") for _ in range(number)]
    if other is not None:
        world.created(in_ms=10_000, biz_type=other)
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


def test_a_business_that_is_alone_in_the_service_stays_in_the_main_lane(world: World) -> None:
    world.record_statistics.seen.note("slow", world.clock.now_ms() // 60_000)
    each_call_takes(world, SLOW_MS)
    page_of(world, other=None)
    assert slow_writes(world) == 0
    assert lane_of(world) is BusinessLane.MAIN


def test_a_business_that_another_process_serves_counts_as_another(world: World) -> None:
    world.record_statistics.seen.note("seldom", world.clock.now_ms() // 60_000)
    each_call_takes(world, SLOW_MS)
    page_of(world, other=None)
    assert lane_of(world) is BusinessLane.SLOW


def test_a_business_counts_as_another_if_businesses_cannot_be_listed(world: World) -> None:
    def refuse(call: Call) -> None:
        if call.operation == "Query" and "seen" in str(call.request):
            raise ConnectionClosedError(endpoint_url="https://dynamodb.example")

    each_call_takes(world, SLOW_MS)
    world.recorder.before = refuse
    page_of(world, other=None)
    assert lane_of(world) is BusinessLane.SLOW


class LoopClock:
    """Of a loop whose time passes by what its callbacks take."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop

    def now_ms(self) -> int:
        return NOON_MS + round(self.loop.time() * 1000)


async def answered(after_seconds: float) -> Any:
    """A connection is made and a request sent in some turns of the loop, and a reply read."""
    for _ in range(4):
        await asyncio.sleep(0)
    await asyncio.sleep(after_seconds)
    for _ in range(4):
        await asyncio.sleep(0)
    return OK


@pytest.mark.parametrize(
    ("loaded_seconds", "receiver_seconds", "lane"),
    [
        (60.0, 0.01, BusinessLane.MAIN),
        (0.0, 2.5, BusinessLane.SLOW),
        (1.0, 3.5, BusinessLane.SLOW),
        (60.0, 3.5, BusinessLane.MAIN),  # nothing is known of its receiver
    ],
)
def test_the_lateness_of_the_event_loop_is_not_taken_for_slow_calls(
    world: World, loaded_seconds: float, receiver_seconds: float, lane: BusinessLane
) -> None:
    loop = VirtualLoop()
    detect = DetectSlowCalls(
        clock=LoopClock(loop),  # type: ignore[arg-type]
        known=world.cache_with_health,
        seen=wired.seen_businesses(),
        health_store=world.health_store,
    )

    async def other_work() -> None:
        while loop.time() < loaded_seconds:
            loop.virtual_seconds += 0.3
            await asyncio.sleep(0)

    async def calls() -> None:
        load = asyncio.create_task(other_work())
        await asyncio.gather(
            *(detect.timed("slow", answered(receiver_seconds)) for _ in range(CALLS_MIN))
        )
        load.cancel()

    loop.run_until_complete(calls())
    assert loop.time() > 2, "by the clock all of these calls took long"
    loop.close()
    world.cache_with_health.one("other")
    world.loop.run_until_complete(detect.publish("slow", NOON_MS + 600_000))
    assert lane_of(world) is lane
