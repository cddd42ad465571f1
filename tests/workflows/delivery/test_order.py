"""The tasks of a flow key in order are called one after the other."""

import asyncio
from typing import Any

import pytest

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.tasks.task import InLine, Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.dynamodb import Throttled
from tests.support.in_order import keep_in_order, leave_order, switch_to_order
from tests.support.receiver import BUSY, GONE, OK, Received
from tests.support.recorder import Call
from tests.support.stories import refused
from tests.support.timers import made, occurrences, patched
from tests.support.units import Meter
from tests.support.world import FAR_MS, World
from tests.test_budgets import dispatch_second

KEY = "customer-7"
RETRY = RetryPolicy(attempts_max=5, delays_seconds=(30.0,))


@pytest.fixture(autouse=True)
def _in_order(world: World) -> None:
    keep_in_order(world)


def created(world: World, in_ms: int, **fields: Any) -> Task:
    return world.created(in_ms, **{"flow_key": KEY, "retry": RETRY, **fields})


def called(world: World) -> list[str]:
    return world.receiver.task_ids


def items(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if item["slot"]["S"].startswith("order#")]


def pass_time(world: World, seconds: int) -> None:
    """Deliver all that falls due."""
    for _ in range(seconds):
        world.clock.advance_ms(1_000)
        world.lead_once()
        world.drain()


def test_tasks_of_one_page_are_called_one_after_the_other(world: World) -> None:
    tasks = [created(world, FAR_MS + ms) for ms in (300, 100, 200)]
    world.come_up(tasks[0])
    first, second, third = tasks[1], tasks[2], tasks[0]
    assert called(world) == [first.task_id, second.task_id, third.task_id]
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert not items(world)


def answers(world: World, *by_turn: Any) -> None:
    """The first calls get these answers, all others OK."""
    left = list(by_turn)

    def answer(_: Received) -> Any:
        return left.pop(0) if left else OK

    world.receiver.answer = answer


def in_turn(world: World, *by_turn: Any) -> tuple[Task, Task]:
    """Two tasks, a second apart, of which the first one has been called."""
    answers(world, *by_turn)
    first, second = created(world, FAR_MS), created(world, FAR_MS + 20_000)
    world.come_up(first)
    assert called(world) == [first.task_id]
    return first, second


def test_a_task_waits_while_an_earlier_one_waits_for_its_retry(world: World) -> None:
    first, second = in_turn(world, BUSY)
    world.come_up(second)
    assert called(world) == [first.task_id]
    waiting = world.read(second)
    assert waiting.attempts == 0
    assert waiting.in_line == InLine(waiting.next_ms, second.due_ms)
    assert waiting.next_ms > world.read(first).next_ms
    pass_time(world, 12)  # its own instant is 18 s ahead
    assert called(world) == [first.task_id, first.task_id, second.task_id]
    assert world.read(second).status is Status.DELIVERED
    assert not items(world)


def test_a_task_is_called_when_an_earlier_one_is_dead(world: World) -> None:
    first, second = in_turn(world, GONE)
    assert world.read(first).status is Status.DEAD
    world.come_up(second)
    assert called(world) == [first.task_id, second.task_id]


def test_a_task_that_waits_is_called_at_once_when_an_earlier_one_is_cancelled(world: World) -> None:
    first, second = in_turn(world, BUSY)
    world.come_up(second)
    world.cancel(first.task_id)
    world.drain()
    assert called(world) == [first.task_id, second.task_id]
    assert not items(world)


def test_a_task_that_waits_is_called_at_once_when_an_earlier_run_of_a_timer_is_cancelled(
    world: World,
) -> None:
    """The task of a run has no key of its own."""
    answers(world, BUSY)
    retry = RetryPolicy(attempts_max=2, delays_seconds=(3_600.0,))
    timer = made(world, 10, flow_key=KEY, retry=retry, max_runs=1)
    world.drain()
    (run,) = occurrences(world, timer)
    world.come_up(run)
    second = created(world, FAR_MS)
    world.come_up(second)
    assert called(world) == [run.task_id]
    world.cancel(run.task_id)
    world.drain()
    assert called(world) == [run.task_id, second.task_id]
    assert not items(world)


def test_a_task_that_waits_is_called_at_once_when_an_earlier_one_is_moved(world: World) -> None:
    first, second = in_turn(world, BUSY)
    world.come_up(second)
    world.change(first.task_id, Change(due_ms=world.clock.now_ms() + 60_000))
    world.drain()
    assert called(world) == [first.task_id, second.task_id]
    pass_time(world, 60)
    assert called(world) == [first.task_id, second.task_id, first.task_id]
    assert not items(world)


def test_a_task_that_is_run_now_goes_before_those_that_are_due_later(world: World) -> None:
    first, second = created(world, FAR_MS), created(world, FAR_MS + 100_000, retry=None)
    world.change.run(second.task_id)
    world.drain()
    world.come_up(first)
    assert called(world) == [second.task_id, first.task_id]
    assert not items(world)


def test_a_redriven_task_goes_before_a_later_one_that_waits_for_its_retry(world: World) -> None:
    first, second = in_turn(world, GONE, BUSY)
    world.come_up(second)
    world.redrive(first.task_id)
    world.drain()
    pass_time(world, 31)
    assert called(world) == [first.task_id, second.task_id, first.task_id, second.task_id]
    assert not items(world)


def test_tasks_of_another_key_and_without_a_key_are_not_delayed(world: World) -> None:
    first = created(world, FAR_MS)
    other = created(world, FAR_MS + 1, flow_key="customer-8")
    keyless = created(world, FAR_MS + 2, flow_key=None)
    waits = created(world, FAR_MS + 3)
    answers(world, BUSY)
    world.come_up(first)
    assert called(world)[0] == first.task_id
    assert sorted(called(world)[1:]) == sorted([other.task_id, keyless.task_id])
    assert world.read(waits).status is Status.PENDING


def test_a_business_without_order_makes_no_request_for_it(world: World) -> None:
    leave_order(world)
    world.recorder.clear()
    task = created(world, FAR_MS)
    world.come_up(task)
    assert world.read(task).status is Status.DELIVERED
    assert not any("order#" in repr(call.request) for call in world.recorder.calls)


def test_tasks_of_one_batch_that_are_due_at_once_are_called_in_their_order(world: World) -> None:
    news = [world.new(-ms, flow_key=KEY) for ms in (0, 300, 200, 100)]
    made = [task for task in world.created_many(news) if isinstance(task, Task)]
    assert not any("overtakes" in item for item in items(world))
    world.drain()
    pass_time(world, 10)
    assert called(world) == [made[n].task_id for n in (1, 2, 3, 0)]


def test_a_task_that_overtakes_one_whose_call_is_under_way_waits_for_its_end(world: World) -> None:
    overtaking: list[Task] = []

    def answer(_: Received) -> Any:
        if not overtaking:
            overtaking.append(created(world, -5_000))
            assert world.keep_order.blocked(overtaking[0]) is not None
        return OK

    world.receiver.answer = answer
    first = created(world, FAR_MS)
    world.come_up(first)
    world.drain()
    assert called(world) == [first.task_id, overtaking[0].task_id]
    assert not items(world)


def test_a_task_waits_for_one_whose_creator_crashed_no_longer_than_a_creator_lives(
    world: World,
) -> None:
    never = world.placed(world.new(FAR_MS, flow_key=KEY))
    world.clock.set_ms(never.due_ms - 1_000)
    assert not world.keep_order.reserve([never])
    task = created(world, 1_000)
    world.come_up(task)
    pass_time(world, 10)
    assert not called(world)
    pass_time(world, 100)
    assert called(world) == [task.task_id]
    assert not items(world)


def test_tasks_from_before_the_setting_are_in_order_from_when_they_fall_due(world: World) -> None:
    leave_order(world)
    first, second = created(world, FAR_MS), created(world, FAR_MS + 20_000)
    assert not items(world)
    switch_to_order(world)
    answers(world, BUSY)
    world.come_up(first)
    world.come_up(second)
    assert called(world) == [first.task_id]
    pass_time(world, 31)
    assert called(world) == [first.task_id, first.task_id, second.task_id]
    assert not items(world)


def test_a_task_that_waits_when_the_order_is_taken_back_is_called_at_its_own_next_instant(
    world: World,
) -> None:
    first, second = in_turn(world, *[BUSY] * 5)
    world.come_up(second)
    waiting = world.read(second)
    leave_order(world)
    assert world.read(second).next_ms == waiting.next_ms <= world.read(first).next_ms + 900_000
    pass_time(world, -(-(waiting.next_ms - world.clock.now_ms()) // 1000) + 1)
    at_ms = [one.at_ms for one in world.receiver.received if one.task_id == second.task_id]
    assert at_ms == [waiting.next_ms]
    assert world.read(first).status is Status.PENDING


def test_a_task_whose_turn_is_lost_by_a_crash_finds_it_by_itself(world: World) -> None:
    """The one before it is delivered, and its notifier dies before it removes the item."""
    first, second = in_turn(world, BUSY)
    world.come_up(second)

    def is_removal(call: Call) -> bool:
        return call.operation == "BatchWriteItem" and "DeleteRequest" in repr(call.request)

    assert world.dies(lambda: pass_time(world, 31), counted=is_removal)
    assert world.read(first).status is Status.DELIVERED
    assert len(items(world)) == 2
    pass_time(world, 60)
    assert called(world) == [first.task_id, first.task_id, second.task_id]
    assert not items(world)


def test_order_costs_a_task_two_write_units_and_two_read_units(world: World) -> None:
    """An item is put and removed; the line is read before the call, and after the end, when it is
    mostly empty."""
    meter = Meter(world.settings.wheel_table)
    homes: list[Call] = []

    def count(call: Call) -> None:
        if "order#" in repr(call.request):
            meter(call)
        elif call.operation == "BatchGetItem" and "slot" in repr(call.request):
            homes.append(call)

    world.recorder.after = count
    task = created(world, FAR_MS)
    dispatch_second(world, task.due_ms // 1000)
    world.drain()
    world.recorder.after = None
    assert world.read(task).status is Status.DELIVERED
    assert (meter.write_units, meter.read_units) == (2, 2)
    assert meter.requests == {"PutItem": 1, "BatchWriteItem": 1, "Query": 2}
    assert not homes


def test_the_runs_of_a_timer_with_a_flow_key_are_called_in_order(world: World) -> None:
    """Their items are put with them, though their tasks have no key of their own."""
    answers(world, BUSY)
    retry = RetryPolicy(attempts_max=5, delays_seconds=(25.0,))
    timer = made(world, 10, flow_key=KEY, retry=retry, max_runs=3)
    pass_time(world, 3)
    assert len(items(world)) + len(called(world)) >= 3
    pass_time(world, 50)
    runs = [run.task_id for run in occurrences(world, timer)]
    assert called(world) == [runs[0], *runs]
    assert not items(world)


def test_a_task_is_delivered_and_cancelled_though_its_item_cannot_be_removed(world: World) -> None:
    first, second = created(world, FAR_MS), created(world, FAR_MS + 60_000)

    def fail(call: Call) -> None:
        if "Delete" in repr(call) and "order#" in repr(call):
            refused(call)

    world.recorder.before = fail
    world.come_up(first)
    assert world.read(first).status is Status.DELIVERED
    assert world.cancel(second.task_id).status is Status.CANCELLED
    world.recorder.before = None
    third = created(world, 20_000)
    world.come_up(third)
    assert called(world) == [first.task_id, third.task_id]


def test_more_stale_items_than_one_look_reads_are_removed(world: World) -> None:
    """Left by tasks that ended while the order was switched off."""
    made_before = [created(world, FAR_MS + n) for n in range(25)]
    leave_order(world)
    world.clock.advance_ms(KEPT_MS)
    for one in made_before:
        world.cancel(one.task_id)
    assert len(items(world)) == 25
    switch_to_order(world)
    task = created(world, FAR_MS)
    world.come_up(task)
    assert called(world) == [task.task_id]
    assert not items(world)


def test_the_tasks_behind_a_probe_are_called_when_it_has_closed_the_breaker(world: World) -> None:
    tasks = [created(world, FAR_MS + ms) for ms in (100, 200, 300)]
    opened(world, "receiver.example", 1_000)
    world.come_up(tasks[0])
    assert called(world) == [task.task_id for task in tasks]
    assert {world.read(task).version for task in tasks} == {2}, "none was put aside"


def is_in_line_during_call(
    world: World, monkeypatch: pytest.MonkeyPatch, other: Task, task: Task
) -> bool:
    """Whether this task comes to wait in line before the call of the other one ends."""
    seen: list[bool] = []
    call = world.receiver.call

    async def slow(*arguments: Any) -> Any:
        outcome = await call(*arguments)
        if world.receiver.received[-1].task_id == other.task_id:
            for _ in range(100):
                await asyncio.sleep(0.02)
                if world.read(task).in_line is not None:
                    seen.append(True)
                    break
        return outcome

    monkeypatch.setattr(world.receiver, "call", slow)
    world.come_up(other)
    return bool(seen)


def test_a_task_behind_one_without_a_turn_is_in_line_while_other_calls_of_the_page_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow(default=FlowLimits(calls_per_second=0.1, in_order=True))
    world.configured("orders", flow=flow)
    world.clock.advance_ms(KEPT_MS)
    first, second, third = (created(world, FAR_MS + ms) for ms in (0, 10, 20))
    other = created(world, FAR_MS + 900, flow_key=None)
    assert is_in_line_during_call(world, monkeypatch, other, third)
    assert world.read(second).reservation is not None
    assert world.read(first).attempts == 1


def test_a_task_behind_one_whose_host_is_blocked_is_in_line_while_other_calls_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = HttpCallback("https://away.example/", "POST")
    first = created(world, FAR_MS, callback=away)
    second = created(world, FAR_MS + 10)
    other = created(world, FAR_MS + 900, flow_key=None)
    opened(world, "away.example", FAR_MS + 60_000)
    assert is_in_line_during_call(world, monkeypatch, other, second)
    assert world.read(first).in_line is None


def opened(world: World, host: str, wait_ms: int) -> None:
    """The breaker of a host, as another notifier opens it."""
    now_ms = world.clock.now_ms()
    breaker = Breaker(host=host, since_ms=now_ms, until_ms=now_ms + wait_ms, owner_token="another")
    world.health_store.open("orders", breaker, BusinessHealth(), now_ms)


def test_a_task_without_a_key_does_not_end_the_line_of_a_key_that_is_called_none(
    world: World,
) -> None:
    first, second = (created(world, FAR_MS + ms, flow_key="None") for ms in (500, 510))
    created(world, FAR_MS, flow_key=None)
    world.come_up(first)
    assert called(world)[1:] == [first.task_id, second.task_id]
    assert {world.read(task).version for task in (first, second)} == {2}, "none was put aside"


def test_a_run_whose_timer_gets_another_key_at_the_last_moment_waits_in_its_line(
    world: World,
) -> None:
    answers(world, BUSY)
    first = created(world, FAR_MS)
    world.come_up(first)
    world.configured("orders", calls_per_second=2)
    world.clock.advance_ms(KEPT_MS)
    timer = made(world, 10, flow_key="another", max_runs=1)
    world.drain()
    (run,) = occurrences(world, timer)
    before = created(world, run.due_ms - world.clock.now_ms(), flow_key=None)

    def answer(received: Received) -> Any:
        if received.task_id == before.task_id:
            patched(world, timer, flow_key=KEY)
        return OK

    world.receiver.answer = answer
    world.come_up(run)
    assert run.task_id not in called(world)


def test_a_task_that_is_put_aside_while_the_one_before_it_ends_is_woken(world: World) -> None:
    """The end finds it not put aside yet."""
    first, second = in_turn(world, BUSY)

    def cancel(call: Call) -> None:
        values = repr(call.request.get("ExpressionAttributeNames", {}))
        if call.operation == "UpdateItem" and "in_line" in values:
            world.recorder.before = None
            world.cancel(first.task_id)

    world.recorder.before = cancel
    world.come_up(second)
    assert world.recorder.before is None
    assert called(world) == [first.task_id, second.task_id]


def test_a_task_that_was_created_by_a_try_that_was_refused_for_load_keeps_its_item(
    world: World,
) -> None:
    """Its create finds it, and answers that it was made."""

    def throttle(call: Call) -> None:
        if call.operation == "PutItem" and "callback" in call.request["Item"]:
            world.recorder.after = None
            raise Throttled("carried out, all the same")

    world.recorder.after = throttle
    task = world.created_by_key(world.new(FAR_MS, flow_key=KEY)).task
    assert world.recorder.after is None
    assert world.read(task).status is Status.PENDING
    assert len(items(world)) == 1


def test_a_task_that_was_placed_anew_leaves_no_item_at_its_first_place(world: World) -> None:
    def throttle(call: Call) -> None:
        if call.operation == "PutItem" and "callback" in call.request["Item"]:
            world.recorder.before = None
            raise Throttled("not carried out")

    world.recorder.before = throttle
    world.created_by_key(world.new(FAR_MS, flow_key=KEY))
    assert world.recorder.before is None
    assert len(items(world)) == 1
