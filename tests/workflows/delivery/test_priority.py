"""Where there is no room for all, tasks are called by their priority, and none is lost."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from duewheel.rules.delivery.priority import BACKLOG_MS, deferred_seconds
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.queue_messages import Lane, PageMessage, decode
from duewheel.stores.businesses.cache import KEPT_MS
from tests.support.receiver import OK, Outcome, Received
from tests.support.recorder import Death
from tests.support.world import FAR_MS, World

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
RISEN_MS = 20 * 60_000


def of_each(world: World, number: int = 1, **fields: Any) -> dict[Priority, list[Task]]:
    """Tasks of one instant, those of low priority first."""
    return {
        priority: [world.created(in_ms=FAR_MS, priority=priority, **fields) for _ in range(number)]
        for priority in (LOW, NORMAL, HIGH)
    }


def ids(tasks: Sequence[Task]) -> list[str]:
    return [task.task_id for task in tasks]


def called(world: World, tasks: dict[Priority, list[Task]]) -> list[Priority]:
    """The priorities of the calls, in their order."""
    priority_of = {task.task_id: priority for priority, some in tasks.items() for task in some}
    return [priority_of[task_id] for task_id in world.receiver.task_ids]


def businesses_called(world: World) -> list[str]:
    return [received.headers["duewheel-biz-type"] for received in world.receiver.received]


def takes_a_second(world: World) -> Any:
    def answer(_: Received) -> Outcome:
        world.clock.advance_ms(1_000)
        return OK

    return answer


def test_calls_that_wait_for_the_slots_of_a_process_are_made_by_priority(world: World) -> None:
    tasks = of_each(world, 2)
    world.deliver = world.notifier(call_slots=1)
    world.receiver.answer = takes_a_second(world)
    world.come_up(tasks[LOW][0])
    first, *others = called(world, tasks)
    assert sorted([first, *others]) == sorted([HIGH, HIGH, NORMAL, NORMAL, LOW, LOW])
    in_order = [HIGH, HIGH, NORMAL, NORMAL, LOW, LOW]
    in_order.remove(first)  # it found the slot free
    assert others == in_order


def test_a_business_of_high_priority_does_not_delay_another_one(world: World) -> None:
    """They fall due by turns, and are called by turns."""
    world.configured("loud", priority=HIGH)
    tasks = [
        world.created(in_ms=FAR_MS + number, biz_type=("loud", "quiet")[number % 2])
        for number in range(12)
    ]
    world.deliver = world.notifier(call_slots=1)
    world.receiver.answer = takes_a_second(world)
    late_page(world, {LOW: tasks}, late_ms=1_000)
    assert sorted(world.receiver.task_ids) == sorted(ids(tasks))
    assert businesses_called(world) == [task.biz_type for task in tasks]


def test_calls_of_low_priority_wait_for_those_of_other_businesses(world: World) -> None:
    world.configured("modest", priority=LOW)
    modest = [world.created(in_ms=FAR_MS, biz_type="modest") for _ in range(3)]
    others = [world.created(in_ms=FAR_MS + 1) for _ in range(3)]
    world.deliver = world.notifier(call_slots=1)
    world.receiver.answer = takes_a_second(world)
    late_page(world, {LOW: modest}, late_ms=1_000)
    _, *later = businesses_called(world)  # the first one found the slot free
    assert later == ["orders"] * (len(later) - 2) + ["modest"] * 2
    assert len(later) == len(modest) + len(others) - 1


def test_permits_for_calls_in_flight_are_taken_by_priority(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    tasks = of_each(world, 2)
    world.receiver.answer = takes_a_second(world)
    world.come_up(tasks[LOW][0])
    assert called(world, tasks) == [HIGH, HIGH, NORMAL, NORMAL, LOW, LOW]


def test_turns_of_a_rate_limit_are_taken_by_priority(world: World) -> None:
    world.configured("orders", calls_per_second=1.0)
    tasks = of_each(world, 3)
    world.come_up(tasks[LOW][0])
    for _ in range(20):
        world.clock.advance_ms(1_000)
        world.dispatch_until(world.clock.now_ms() // 1000)
        world.drain()
    assert called(world, tasks) == [*[HIGH] * 3, *[NORMAL] * 3, *[LOW] * 3]
    called_ms = [received.at_ms for received in world.receiver.received]
    assert all(later - ms >= 1_000 - 1 for ms, later in pairwise(called_ms))


def test_the_setting_of_the_business_holds_for_tasks_that_were_created_before(world: World) -> None:
    world.configured("orders", priority=HIGH)
    tasks = of_each(world)
    unset = world.created(in_ms=FAR_MS)
    world.configured("orders", priority=LOW)
    world.clock.advance_ms(KEPT_MS)
    late_page(world, tasks, BACKLOG_MS + 1)
    message = decode(passed_after(world, deferred_seconds(BACKLOG_MS + 1))["Body"])
    assert isinstance(message, PageMessage)
    assert set(message.places) == {unset.home.place, tasks[LOW][0].home.place}


def late_page(world: World, tasks: dict[Priority, list[Task]], late_ms: int) -> None:
    world.dispatch_until(tasks[LOW][0].due_ms // 1000)
    world.clock.set_ms(tasks[LOW][0].due_ms // 1000 * 1000 + late_ms)
    for message in world.receive():
        world.handle(message)


def passed_after(world: World, seconds: int) -> dict[str, Any]:
    world.clock.advance_ms(seconds * 1000 - 1)
    assert world.receive(Lane.SLOW) == []
    world.clock.advance_ms(1)
    (passed,) = world.receive(Lane.SLOW)
    return passed


def test_a_late_page_with_tasks_of_a_slow_business_passes_all_on_at_once(world: World) -> None:
    tasks = of_each(world)
    slow = world.created(in_ms=FAR_MS, biz_type="slow")
    world.found_slow("slow")
    late_page(world, tasks, BACKLOG_MS + 1)
    (passed,) = world.receive(Lane.SLOW)
    message = decode(passed["Body"])
    assert isinstance(message, PageMessage)
    assert set(message.places) == {slow.home.place, tasks[LOW][0].home.place}


def test_a_late_page_passes_tasks_of_low_priority_to_the_slow_lane(world: World) -> None:
    tasks = of_each(world)
    late_page(world, tasks, BACKLOG_MS + 1)
    assert Counter(called(world, tasks)) == Counter([HIGH, NORMAL])
    passed = passed_after(world, deferred_seconds(BACKLOG_MS + 1))
    message = decode(passed["Body"])
    assert isinstance(message, PageMessage)
    assert message.places == (tasks[LOW][0].home.place,)
    world.handle(passed)
    assert Counter(called(world, tasks)) == Counter([HIGH, NORMAL, LOW])


@pytest.mark.parametrize("late_ms", [0, BACKLOG_MS, RISEN_MS // 2])
def test_a_page_that_is_punctual_or_whose_tasks_have_risen_passes_none_on(
    world: World, late_ms: int
) -> None:
    tasks = of_each(world)
    late_page(world, tasks, late_ms)
    assert Counter(called(world, tasks)) == Counter([HIGH, NORMAL, LOW])
    assert world.receive(Lane.SLOW) == []


def test_a_paused_business_has_its_late_tasks_parked_and_not_passed_on(world: World) -> None:
    tasks = of_each(world)
    world.configured("orders", paused=True)
    late_page(world, tasks, BACKLOG_MS + 1)
    assert world.receive(Lane.SLOW) == []
    assert all(world.read(task).parked for some in tasks.values() for task in some)


@pytest.mark.parametrize("mark", ["#slow = :value", '"0s"'])
def test_a_late_page_that_dies_when_it_passes_tasks_on_loses_none(world: World, mark: str) -> None:
    tasks = of_each(world)
    operation = "UpdateItem" if mark.startswith("#") else "SendMessageBatch"
    world.dispatch_until(tasks[LOW][0].due_ms // 1000)
    world.clock.set_ms(tasks[LOW][0].due_ms + BACKLOG_MS + 1_000)
    (message,) = world.receive()
    world.recorder.die(operation, "after", of=mark)
    with pytest.raises(Death):
        world.handle(message)
    world.clock.advance_ms(world.settings.page_lease_ms + 16_000)
    world.drain()
    world.clock.advance_ms(60_000)
    world.drain()
    assert Counter(called(world, tasks)) == Counter([HIGH, NORMAL, LOW])


def test_low_priority_costs_no_request_where_there_is_room(world: World) -> None:
    operations: dict[Priority | None, Counter[str]] = {}
    for priority in (None, LOW):
        world.clock.advance_ms(60_000)
        task = world.created(in_ms=FAR_MS, priority=priority)
        message = world.dispatched(task)
        world.recorder.clear()
        world.handle(message)
        operations[priority] = Counter(world.recorder.operations())
    assert operations[None] == operations[LOW]
