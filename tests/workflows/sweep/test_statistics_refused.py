"""When the statistics of one business cannot be written, the sweep goes on with everything else."""

import logging
from typing import Any

import pytest

from duewheel.log import logger
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.sweep.minute_statistics import StatsRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.open_places import Why
from duewheel.stores.wheel import pointers
from tests.support.bounds import quick_first
from tests.support.damage import edit
from tests.support.receiver import BUSY, OK
from tests.support.world import World
from tests.workflows.sweep.test_open_places import lose_all_messages, minutes, places

STATISTICS = "statistics#orders#"


def total(world: World, task: Task) -> Any:
    minute = task.home.second // 60
    return world.read_statistics(task.biz_type, StatsRequest(minute, minute)).total


@pytest.mark.parametrize(
    "operation", quick_first(["BatchGetItem", "PutItem"], pytest.mark.exhaustive)
)
def test_seconds_whose_statistics_are_throttled_are_counted_once_later_while_the_sweep_goes_on(
    world: World, operation: str
) -> None:
    tasks = [world.created(in_ms=60_000 + n * 1_000) for n in range(3)]
    other = world.created(in_ms=60_000, biz_type="others")
    world.dispatch_until(tasks[-1].home.second)
    world.drain()
    lost = world.created(in_ms=70_000, biz_type="others")
    world.recorder.refuse(operation, code="ThrottlingException", of=STATISTICS)
    minutes(world, 1)
    lose_all_messages(world)
    minutes(world, 6)

    assert world.read(lost).status is Status.DELIVERED
    assert world.pointer(pointers.SWEEP).position > lost.home.second
    assert places(world) == [(task.home.second, Why.NOT_COUNTED) for task in tasks]
    world.recorder.before = None
    assert total(world, tasks[0]).delivered == 3, "counted from the wheel"
    minutes(world, 1)
    assert places(world) == []
    assert (total(world, tasks[0]).created, total(world, tasks[0]).delivered) == (3, 3)
    assert (total(world, other).created, total(world, other).delivered) == (1, 1)


def test_while_re_entries_cannot_be_deleted_the_sweep_goes_on_and_counts_once(world: World) -> None:
    retry = RetryPolicy(attempts_max=2, delays_seconds=(5.0,))
    task = world.created(in_ms=60_000, retry=retry)
    world.receiver.answer = lambda received: BUSY
    world.dispatch_until(task.home.second + 10)
    world.drain()
    assert world.entries_elsewhere() != []
    world.recorder.refuse("BatchWriteItem", code="ThrottlingException", of="DeleteRequest")
    minutes(world, 6)
    assert {why for _, why in places(world)} == {Why.NOT_COUNTED}
    world.recorder.before = None
    minutes(world, 1)
    assert places(world) == []
    assert world.entries_elsewhere() == []
    assert (total(world, task).created, total(world, task).dead) == (1, 1)


DAMAGE = {
    "delivered": {"S": "many"},
    "lateness_classes": {"S": "1,2"},
    "up_to": {"N": "1e40"},
    "lacks": {"S": "{"},
    "biz_type": {"N": "7"},
}


@pytest.mark.parametrize("attribute", quick_first(DAMAGE, pytest.mark.exhaustive))
def test_damaged_statistics_are_reported_once_and_replaced_while_the_sweep_goes_on(
    world: World, attribute: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger.name)
    task = world.created(in_ms=60_000, retry=RetryPolicy(attempts_max=2, delays_seconds=(600.0,)))
    world.receiver.answer = lambda received: BUSY
    world.dispatch_until(task.home.second)
    world.drain()
    world.receiver.answer = lambda received: OK
    minutes(world, 5)
    assert (total(world, task).created, total(world, task).pending) == (1, 1)
    damage(world, task, attribute)
    assert total(world, task).created == 0, "left out, and not answered with an error"
    caplog.clear()
    minutes(world, 12)
    assert [record.__dict__["action"] for record in caplog.records].count("unreadable") == 1
    assert places(world) == []
    assert world.swept_second > world.read(task).entry.second > task.home.second
    assert total(world, task).delivered == 1
    assert total(world, task).created == 0, "what was counted before the damage is lost"


def damage(world: World, task: Task, attribute: str) -> None:
    day, minute = task.home.second // 86_400, task.home.second // 60
    key = {"kind": {"S": f"{STATISTICS}{day}"}, "record": {"S": f"{minute:010d}"}}
    edit(world, key, **{attribute: DAMAGE[attribute]})
