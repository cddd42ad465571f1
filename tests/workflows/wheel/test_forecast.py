"""What the wheel page says of the next hour."""

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.sharding import SAMPLED_ONE_IN, MinuteLoad
from tests.support.receiver import BUSY
from tests.support.recorder import Call
from tests.support.world import World


def forecast(world: World) -> list[MinuteLoad]:
    return world.read_wheel().forecast


def entries(world: World) -> float:
    return sum(load.entries for load in forecast(world))


def test_a_batch_is_in_the_forecast_by_its_seconds(world: World) -> None:
    now_ms = world.clock.now_ms()
    first = now_ms + 600_000
    world.created_many([world.new(in_ms=600_000 + n % 2 * 1_000) for n in range(80)])

    (load,) = forecast(world)
    assert load.minute == first // 60_000
    second = first // 1000 % 60
    assert load.by_second == {second: 40, second + 1: 40}


def test_the_forecast_ends_after_an_hour(world: World) -> None:
    world.created_many([world.new(in_ms=59 * 60_000) for _ in range(70)])
    world.created_many([world.new(in_ms=62 * 60_000) for _ in range(70)])
    assert entries(world) == 70
    world.clock.advance_ms(120_000)
    assert entries(world) == 140


def test_single_tasks_are_noted_by_chance(world: World) -> None:
    world.created(in_ms=600_000)
    assert forecast(world) == []
    world.random_unit = 0.001
    world.created(in_ms=600_000)
    assert entries(world) == SAMPLED_ONE_IN


def test_retries_and_moved_tasks_are_noted_like_new_ones(world: World) -> None:
    task = world.created(in_ms=60_000, retry=RetryPolicy(3, delays_seconds=(300.0,)))
    moved = world.created(in_ms=3_000_000)
    world.random_unit = 0.001
    world.change(moved.task_id, Change(due_ms=world.clock.now_ms() + 900_000))
    world.receiver.answer = lambda received: BUSY
    world.come_up(task)
    assert entries(world) == 2 * SAMPLED_ONE_IN


def test_an_estimate_that_cannot_be_noted_fails_no_create(world: World) -> None:
    def refuse(call: Call) -> None:
        if call.operation == "UpdateItem" and "load#" in str(call.request["Key"]):
            refused.append(call)
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "UpdateItem")

    refused: list[Call] = []
    world.recorder.before = refuse
    world.random_unit = 0.001
    task = world.created(in_ms=600_000)

    assert refused
    assert world.read(task) == task


@pytest.mark.exhaustive
def test_the_forecast_is_cheap_to_poll(world: World) -> None:
    minute = world.clock.now_ms() // 60_000
    every_second = dict.fromkeys(range(60), 100.0)
    world.loads.add(MinuteLoad(minute + n, every_second) for n in range(61))
    world.recorder.clear()
    assert entries(world) == 61 * 60 * 100
    reads = world.recorder.operations()
    assert len(reads) <= 4
    assert reads.count("Query") <= 2
