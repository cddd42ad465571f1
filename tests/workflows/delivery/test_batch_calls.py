"""Tasks of one callback go in one request. Each is settled, retried and ended by itself."""

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from duewheel.rules.callbacks.batch import Batch
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, RetryPolicy, Told
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.requests import TimerChange
from duewheel.rules.timers.timer import Timer
from duewheel.targets.http.connection import Reply
from tests.support.receiver import Received
from tests.support.recorder import Call as RecordedCall
from tests.support.recorder import Death
from tests.support.timers import fates, made, now, occurrences, patched
from tests.support.world import CALLER, FAR_MS, World

THROTTLED = ClientError(
    {"Error": {"Code": "ThrottlingException", "Message": ""}},
    "UpdateItem",
)
LOST = Outcome(Verdict.RETRY, "no whole reply within 10 s")


@pytest.fixture
def batched(world: World) -> World:
    world.configured("orders", batch=Batch(100))
    return world


def created(world: World, count: int, in_ms: int = FAR_MS, **fields: Any) -> list[Task]:
    news = [world.new(in_ms + number, **fields) for number in range(count)]
    return [task for task in world.created_many(news) if isinstance(task, Task)]


def statuses(world: World, tasks: list[Task]) -> list[Status]:
    return [world.read(task).status for task in tasks]


def lists(*failed: dict[str, Any]) -> Any:
    body = json.dumps({"failed": failed}).encode()
    return lambda received: Reply(200, {}, body)


def in_second(world: World, count: int, **fields: Any) -> list[Task]:
    """Due within one second, from its beginning."""
    begin_ms = -(-(world.clock.now_ms() + FAR_MS) // 1000) * 1000
    return created(world, count, begin_ms - world.clock.now_ms(), **fields)


def test_tasks_of_one_callback_go_in_one_request_when_the_last_is_due(batched: World) -> None:
    tasks = in_second(batched, 30)
    batched.come_up(tasks[0])
    (received,) = batched.receiver.received
    assert sorted(received.batch_ids) == sorted(task.task_id for task in tasks)
    assert received.at_ms == max(task.due_ms for task in tasks)
    assert received.headers["duewheel-batch"] == "30"
    assert set(statuses(batched, tasks)) == {Status.DELIVERED}
    (attempt,) = batched.read(tasks[0]).history
    assert attempt.note == f"{received.task_id} of 30"


def test_no_task_of_a_batch_is_called_before_its_instant(world: World) -> None:
    world.configured("orders", batch=Batch(4))
    tasks = in_second(world, 10)
    world.come_up(tasks[0])
    due_ms = {task.task_id: task.due_ms for task in tasks}
    assert [len(one.batch) for one in world.receiver.received] == [4, 4, 2]
    for one in world.receiver.received:
        assert one.at_ms >= max(due_ms[task_id] for task_id in one.batch_ids)


def test_without_the_setting_each_task_has_its_own_request(world: World) -> None:
    tasks = in_second(world, 5)
    world.come_up(tasks[0])
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
    assert not any("duewheel-batch" in one.headers for one in world.receiver.received)


def test_the_setting_holds_for_tasks_that_exist_already(world: World) -> None:
    tasks = in_second(world, 5)
    world.configured("orders", batch=Batch(100))
    world.come_up(tasks[0])
    assert [len(one.batch) for one in world.receiver.received] == [5]


def test_a_listed_task_is_retried_or_ends_and_the_others_are_delivered(batched: World) -> None:
    tasks = in_second(batched, 5)
    first, second, *others = tasks
    batched.receiver.answer_to_batch = lists(
        {"task_id": first.task_id, "retry_after_seconds": 100, "note": "locked"},
        {"task_id": second.task_id, "outcome": "stop", "note": "no such order"},
        {"task_id": "unheard-of"},
    )
    batched.come_up(first)
    assert statuses(batched, others) == [Status.DELIVERED] * 3
    ended = batched.read(second)
    assert (ended.status, ended.reason) == (Status.DEAD, "stopped")
    retried = batched.read(first)
    assert (retried.status, retried.attempts) == (Status.PENDING, 1)
    assert retried.next_ms == batched.clock.now_ms() + 100_000
    assert str(retried.last_error).endswith("of 5: locked")
    batched.receiver.answer_to_batch = lambda received: Reply(200, {}, b"")
    batched.dispatch_until(retried.next_ms // 1000 + 1)
    batched.drain()
    assert batched.receiver.received[-1].batch == [
        {**batched.receiver.received[0].batch[0], "attempt": 2, "completion_token": ANY}
    ]
    assert batched.read(first).status is Status.DELIVERED


def test_a_failed_request_is_an_attempt_of_each_task(batched: World) -> None:
    tasks = in_second(batched, 5, retry=RetryPolicy(attempts_max=1))
    batched.receiver.answer_to_batch = lambda received: LOST
    batched.come_up(tasks[0])
    assert statuses(batched, tasks) == [Status.DEAD] * 5
    assert {batched.read(task).attempts for task in tasks} == {1}


def test_the_status_lists_of_the_business_hold_for_all_tasks_of_a_batch(world: World) -> None:
    world.configured("orders", batch=Batch(100), retry_statuses=(410,))
    tasks = in_second(world, 3)
    world.receiver.answer_to_batch = lambda received: Reply(410, {}, b"")
    world.come_up(tasks[0])
    assert statuses(world, tasks) == [Status.PENDING] * 3
    assert {world.read(task).attempts for task in tasks} == {1}


def test_a_cancelled_task_is_not_in_the_batch(batched: World) -> None:
    tasks = in_second(batched, 4)
    batched.cancel(tasks[1].task_id)
    batched.come_up(tasks[0])
    (received,) = batched.receiver.received
    assert sorted(received.batch_ids) == sorted(
        task.task_id for task in tasks if task is not tasks[1]
    )


def test_a_batch_takes_one_turn_of_the_rate_limit_and_one_call_slot(world: World) -> None:
    world.configured("orders", batch=Batch(10), calls_per_second=1.0, calls_in_flight=1)
    tasks = in_second(world, 30)
    world.come_up(tasks[0])
    assert len(world.receiver.received) == 3  # as many turns as there are within two seconds
    assert set(statuses(world, tasks)) == {Status.DELIVERED}


def test_all_tasks_of_a_batch_wait_if_its_turn_is_put_off(world: World) -> None:
    world.configured("orders", batch=Batch(10), calls_per_second=0.1)
    tasks = in_second(world, 20)
    world.come_up(tasks[0])
    assert [len(one.batch) for one in world.receiver.received] == [10]
    waiting = [task for task in tasks if world.read(task).status is Status.PENDING]
    assert len({world.read(task).next_ms for task in waiting}) == 1
    assert {world.read(task).attempts for task in waiting} == {0}
    world.dispatch_until(world.read(waiting[0]).next_ms // 1000 + 1)
    world.drain()
    assert [len(one.batch) for one in world.receiver.received] == [10, 10]
    assert set(statuses(world, tasks)) == {Status.DELIVERED}


def slow(world: World, then: Callable[[], object] = lambda: None) -> None:
    """Each request takes five seconds, and there is one at a time."""
    world.configured("orders", batch=Batch(10), calls_in_flight=1)

    def answer(received: Received) -> Reply:
        then()
        world.clock.advance_ms(5_000)
        return Reply(200, {}, b"")

    world.receiver.answer_to_batch = answer


def test_tasks_of_a_business_that_was_paused_while_a_batch_waited_are_parked(world: World) -> None:
    slow(world, lambda: world.configured("orders", paused=True))
    tasks = in_second(world, 20)
    world.come_up(tasks[0])
    assert len(world.receiver.received) == 1
    assert [world.read(task).parked for task in tasks].count(True) == 10
    assert statuses(world, tasks).count(Status.DELIVERED) == 10


def test_a_task_whose_grace_ended_while_the_batch_waited_drops_out(world: World) -> None:
    slow(world)
    first = in_second(world, 10)
    second = in_second(world, 1)
    second += [world.created(second[0].due_ms - world.clock.now_ms() + 20)]
    short = world.created(second[0].due_ms - world.clock.now_ms() + 20, expires_after_seconds=0.5)
    last = world.created(short.due_ms - world.clock.now_ms())
    tasks = [*first, *second, last]
    world.come_up(first[0])
    ids = [task_id for one in world.receiver.received for task_id in one.batch_ids]
    assert sorted(ids) == sorted(task.task_id for task in tasks)
    assert set(statuses(world, tasks)) == {Status.DELIVERED}
    assert (world.read(short).status, world.read(short).attempts) == (Status.EXPIRED, 0)


def test_a_crash_before_the_answer_is_written_repeats_the_same_batch(batched: World) -> None:
    tasks = in_second(batched, 10)
    message = batched.dispatched(tasks[0])
    batched.clock.set_ms(tasks[0].due_ms)

    def die() -> None:
        raise Death

    batched.recorder.once("BatchWriteItem", die)
    with pytest.raises(Death):
        batched.handle(message)
    batched.clock.set_ms(batched.clock.now_ms() + 20_000)
    batched.drain()
    first, second = batched.receiver.received
    assert first.task_id == second.task_id
    assert first.batch == second.batch
    assert set(statuses(batched, tasks)) == {Status.DELIVERED}


def test_a_slot_is_free_only_when_all_deliveries_of_its_batch_are_written(world: World) -> None:
    world.configured("orders", batch=Batch(30))
    tasks = in_second(world, 60)
    message = world.dispatched(tasks[0])
    world.clock.set_ms(tasks[0].due_ms)
    settled_before: list[int] = []

    def answer(received: Received) -> Reply:
        settled_before.append(statuses(world, tasks).count(Status.DELIVERED))
        return Reply(200, {}, b"")

    world.receiver.answer_to_batch = answer
    world.handle(message, world.notifier(call_slots=1))
    assert settled_before == [0, 30]
    assert [len(one.batch) for one in world.receiver.received] == [30, 30]
    assert set(statuses(world, tasks)) == {Status.DELIVERED}


def test_a_lone_task_is_a_batch_of_one(batched: World) -> None:
    task = batched.created(FAR_MS, key="order-17")
    batched.come_up(task)
    (received,) = batched.receiver.received
    assert [(one["task_id"], one["key"]) for one in received.batch] == [(task.task_id, "order-17")]


def test_a_callback_that_takes_no_document_is_called_for_each_task(batched: World) -> None:
    got = HttpCallback("https://receiver.example/paid", "GET")
    tasks = in_second(batched, 3, callback=got)
    batched.come_up(tasks[0])
    assert sorted(batched.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_batch_is_one_call_to_the_circuit_breaker(batched: World) -> None:
    tasks = in_second(batched, 60)
    batched.receiver.answer_to_batch = lambda received: Reply(503, {}, b"")
    batched.come_up(tasks[0])
    (health,) = (batched.cache_with_health.health_of("orders"),)
    assert health.breakers == ()


def test_the_notice_of_a_death_goes_alone(world: World) -> None:
    ops = HttpCallback("https://ops.example/dead")
    world.configured("orders", batch=Batch(100), on_outcome=OnOutcome((Told.DEAD,), ops))
    tasks = in_second(world, 3, retry=RetryPolicy(attempts_max=1))
    world.receiver.answer_to_batch = lambda received: LOST
    world.come_up(tasks[0])
    world.clock.set_ms(world.clock.now_ms() + 1_000)
    world.drain()
    notices = [one for one in world.receiver.received if one.url == ops.url]
    assert len(notices) == 3
    assert not any("duewheel-batch" in one.headers for one in notices)


def test_the_batches_of_two_pages_have_different_ids(batched: World) -> None:
    tasks = [*in_second(batched, 3), *in_second(batched, 3)]
    batched.come_up(tasks[0])
    batched.come_up(replace(tasks[-1], due_ms=tasks[-1].due_ms + 1_000))
    ids = [one.task_id for one in batched.receiver.received]
    assert len(set(ids)) == len(ids)


def timers_of_one_second(world: World, count: int) -> list[Timer]:
    made_ones = [made(world, 600, max_runs=1) for _ in range(count)]
    world.drain()
    return made_ones


def come_to(world: World, second: int) -> None:
    world.dispatch_until(second - 60)
    world.clock.set_ms(second * 1000)
    world.drain()


def test_occurrences_of_one_second_go_in_one_request_with_the_payloads_of_their_timers(
    batched: World,
) -> None:
    begun = now(batched)
    timers = timers_of_one_second(batched, 3)
    batched.receiver.received.clear()
    batched.change_timer(timers[1].timer_id, TimerChange({}, enabled=False), by=CALLER)
    come_to(batched, begun + 600)
    (received,) = batched.receiver.received
    assert [task["payload"] for task in received.batch] == [{"n": "1"}] * 2
    assert fates(batched, timers[0]) == {"delivered": 1}
    assert fates(batched, timers[1]) == {"timer disabled": 1}


def test_an_occurrence_whose_timer_changed_while_it_waited_is_called_by_itself(
    world: World,
) -> None:
    begun = now(world)
    timers = timers_of_one_second(world, 4)
    world.receiver.received.clear()
    elsewhere = HttpCallback("https://elsewhere.example/")
    world.configured("orders", batch=Batch(2), calls_in_flight=1)
    waiting: list[Timer] = []

    def answer(received: Received) -> Reply:
        if not waiting:
            ids = {task_id: timer for timer in timers for task_id in ids_of(world, timer)}
            called = {ids[task_id].timer_id for task_id in received.batch_ids}
            waiting.extend(timer for timer in timers if timer.timer_id not in called)
            patched(world, waiting[0], callback=elsewhere)
        world.clock.advance_ms(2_000)
        return Reply(200, {}, b"")

    world.receiver.answer_to_batch = answer
    come_to(world, begun + 600)
    for _ in range(12):  # it falls due some seconds later
        world.clock.advance_ms(1_000)
        world.drain()
    assert [len(one.batch) for one in world.receiver.received] == [2, 1, 1]
    urls = {one.url for one in world.receiver.received}
    assert urls == {"https://receiver.example/closing", elsewhere.url}
    assert [fates(world, timer) for timer in timers] == [{"delivered": 1}] * 4
    assert {task.attempts for timer in timers for task in occurrences(world, timer)} == {1}


def ids_of(world: World, timer: Timer) -> list[str]:
    return [task.task_id for task in occurrences(world, timer)]


def test_a_batch_is_served_as_the_first_of_its_tasks(batched: World) -> None:
    def two(path: str, *priorities: Priority) -> list[Task]:
        to = HttpCallback(f"https://receiver.example/{path}", "POST")
        return [batched.created(FAR_MS, callback=to, priority=one) for one in priorities]

    begun = two("begun", Priority.HIGH, Priority.HIGH)
    two("low", Priority.LOW, Priority.LOW)
    two("mixed", Priority.HIGH, Priority.LOW)
    message = batched.dispatched(begun[0])
    batched.clock.set_ms(begun[0].due_ms)
    batched.handle(message, batched.notifier(call_slots=1))
    paths = [one.url.rpartition("/")[2] for one in batched.receiver.received]
    assert sorted(paths[:2]) == ["begun", "mixed"]
    assert paths[2] == "low"


def test_a_throttled_end_of_one_task_delays_no_call_of_the_others(world: World) -> None:
    slow(world)
    first = in_second(world, 10)
    second = in_second(world, 1)
    short = world.created(second[0].due_ms - world.clock.now_ms() + 20, expires_after_seconds=0.5)
    last = world.created(short.due_ms - world.clock.now_ms())
    throttled_ms: list[int] = []

    def throttle(call: RecordedCall) -> None:
        if "'expired'" in str(call.request) and len(throttled_ms) < 5:
            throttled_ms.append(world.clock.now_ms())
            raise THROTTLED

    world.recorder.before = throttle
    world.come_up(first[0])
    assert len(throttled_ms) == 5
    assert world.receiver.received[-1].at_ms <= throttled_ms[0]
    assert set(statuses(world, [*first, *second, last])) == {Status.DELIVERED}
    assert world.read(short).status is Status.EXPIRED
