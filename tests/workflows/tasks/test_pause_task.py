"""A single task is paused and resumed. Paused, it is not called; nothing else waits for it, but the
tasks behind it in order."""

import pytest

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.delivery.waiting import Reason, Wait
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import AlreadySettled, OfATimer, TooLate, UnknownTask
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.pause import PAUSE_MS_MAX
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel import timing
from tests.support import timers
from tests.support.in_order import keep_in_order
from tests.support.minutes import minutes_pass
from tests.support.receiver import BUSY, OK, WORKS_ON
from tests.support.world import CALLER, FAR_MS, World

HOUR_MS = 3_600_000
SOON = RetryPolicy(attempts_max=3, delays_seconds=(60.0,))


def pause(world: World, task: Task, in_ms: int | None = None) -> Task:
    until_ms = None if in_ms is None else world.clock.now_ms() + in_ms
    return world.pause_task(task.task_id, until_ms, CALLER)


def resume(world: World, task: Task) -> Task:
    return world.pause_task.resume(task.task_id)


def writes(world: World) -> list[str]:
    return [name for name in world.recorder.operations() if name not in ("GetItem", "Query")]


def check(world: World, *tasks: Task) -> None:
    """Every task was called once, and the wheel is consistent."""
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    now = world.clock.now_ms() // 1000
    assert world.audit(AuditRequest(now - 3_600, now)).findings == []


@pytest.mark.parametrize("in_ms", [60_000, FAR_MS, 2_000_000])
def test_a_paused_task_is_not_called_until_it_is_resumed(world: World, in_ms: int) -> None:
    task, other = world.created(in_ms), world.created(in_ms)
    pause(world, task)
    minutes_pass(world, in_ms // 60_000 + 10)
    assert world.receiver.task_ids == [other.task_id]
    assert world.read(task).status is Status.PENDING
    resumed = resume(world, task)
    assert resumed.next_ms == world.clock.now_ms()
    minutes_pass(world, 6)
    check(world, task, other)


def test_a_task_that_is_resumed_before_its_instant_is_called_at_that(world: World) -> None:
    task = world.created(10 * 60_000)
    pause(world, task)
    world.clock.advance_ms(60_000)
    assert resume(world, task).next_ms == task.due_ms
    minutes_pass(world, 14)
    check(world, task)
    (received,) = world.receiver.received
    assert received.at_ms == task.due_ms


def test_a_pause_costs_one_write_and_so_does_its_end_before_the_instant(world: World) -> None:
    task = world.created(HOUR_MS)
    for step in (pause, resume):
        world.recorder.clear()
        step(world, task)
        assert writes(world) == ["UpdateItem"]


def test_a_task_without_a_pause_costs_nothing_more(world: World) -> None:
    task = world.created(HOUR_MS)
    (item,) = [item for item in world.items() if "status" in item]
    assert "paused" not in item
    world.recorder.clear()
    assert resume(world, task) == world.read(task)
    assert writes(world) == []


def test_at_the_end_of_the_pause_it_is_called(world: World) -> None:
    task = world.created(120_000)
    paused = pause(world, task, 20 * 60_000)
    minutes_pass(world, 15)
    assert world.receiver.received == []
    assert world.why_waiting(world.read(task)) == Wait(
        reason=Reason.PAUSED,
        expected_ms=paused.next_ms,
        since_ms=paused.updated_ms,
        until_ms=paused.next_ms,
    )
    minutes_pass(world, 12)
    check(world, task)
    assert world.receiver.received[0].at_ms == paused.next_ms
    assert world.read(task).paused is None


def test_a_pause_lasts_a_year_behind_the_instant_where_no_end_is_said(world: World) -> None:
    task = world.created(HOUR_MS)
    assert pause(world, task).next_ms == task.due_ms + PAUSE_MS_MAX


def test_a_request_that_is_repeated_changes_nothing(world: World) -> None:
    task = world.created(HOUR_MS)
    paused = pause(world, task, HOUR_MS * 2)
    world.clock.advance_ms(5_000)
    world.recorder.clear()
    assert pause(world, task) == paused
    assert writes(world) == []
    longer = pause(world, task, HOUR_MS * 3)
    assert longer.paused is not None
    assert longer.paused.since_ms == paused.updated_ms
    assert longer.next_ms == paused.next_ms + HOUR_MS + 5_000


def test_a_paused_task_says_why_it_waits_without_a_request(world: World) -> None:
    task = world.created(HOUR_MS)
    paused = pause(world, task)
    world.recorder.clear()
    wait = world.why_waiting(paused)
    assert wait is not None
    assert (wait.reason, wait.since_ms, wait.until_ms) == (
        Reason.PAUSED, paused.updated_ms, paused.next_ms,
    )  # fmt: skip
    assert world.recorder.operations() == []


def test_a_task_whose_call_may_be_under_way_is_not_paused(world: World) -> None:
    task = world.created(60_000)
    world.clock.set_ms(timing.cut_off_ms(task.next_ms, world.settings.lead_ms))
    with pytest.raises(TooLate):
        pause(world, task)
    assert world.read(task) == task
    assert resume(world, task) == task  # it is not paused: there is nothing to do


def test_a_task_that_waits_for_a_retry_is_resumed_at_the_instant_of_that(world: World) -> None:
    task = world.created(retry=SOON)
    world.receiver.answer = lambda _: BUSY
    world.come_up(task)
    waiting = world.read(task)
    pause(world, task)
    world.clock.advance_ms(10_000)
    resumed = resume(world, task)
    assert (resumed.next_ms, resumed.attempts) == (waiting.next_ms, 1)
    world.receiver.answer = lambda _: OK
    minutes_pass(world, 5)
    assert world.read(task).status is Status.DELIVERED
    assert len(world.receiver.received) == 2


def test_running_work_is_not_paused(world: World) -> None:
    task = world.created(60_000)
    world.receiver.answer = lambda _: WORKS_ON
    world.come_up(task)
    running = world.read(task)
    assert running.running is not None
    with pytest.raises(TooLate):
        pause(world, task)
    assert resume(world, task) == running


def test_a_run_is_not_paused_and_its_timer_is_named(world: World) -> None:
    timer = timers.made(world, 200)
    world.drain()
    run = timers.occurrences(world, timer)[0]
    with pytest.raises(OfATimer, match=timer.timer_id):
        pause(world, run)
    assert world.read(run).paused is None


def test_a_task_that_has_ended_is_neither_paused_nor_resumed(world: World) -> None:
    task = world.created(HOUR_MS)
    pause(world, task)
    world.cancel(task.task_id)
    for step in (pause, resume):
        with pytest.raises(AlreadySettled):
            step(world, task)


def test_an_unknown_task_is_not_paused(world: World) -> None:
    task = world.placed(world.new(HOUR_MS))
    for step in (pause, resume):
        with pytest.raises(UnknownTask):
            step(world, task)


def test_a_cancel_of_a_paused_task_is_counted_where_the_sweep_looks_next(world: World) -> None:
    task = world.created(120_000)
    pause(world, task)
    minutes_pass(world, 10)
    assert world.read(task).entry.instant_ms > world.clock.now_ms() + HOUR_MS
    cancelled = world.cancel(task.task_id)
    assert (cancelled.status, cancelled.paused) == (Status.CANCELLED, None)
    assert cancelled.entry.second <= world.clock.now_ms() // 1000 + 1
    minutes_pass(world, 6)
    assert world.receiver.received == []
    assert world.read(task).status is Status.CANCELLED


def test_a_run_of_a_paused_task_calls_it_now(world: World) -> None:
    task = world.created(HOUR_MS)
    pause(world, task)
    run = world.change.run(task.task_id)
    assert (run.paused, run.next_ms) == (None, world.clock.now_ms())
    minutes_pass(world, 5)
    check(world, task)


def test_a_move_of_a_paused_task_keeps_the_pause(world: World) -> None:
    task = world.created(HOUR_MS)
    pause(world, task, 2 * HOUR_MS)
    due_ms = world.clock.now_ms() + 10 * 60_000
    moved = world.change(task.task_id, Change(due_ms=due_ms))
    assert moved.paused is not None
    minutes_pass(world, 15)
    assert world.receiver.received == []
    resume(world, task)
    minutes_pass(world, 6)
    check(world, task)


def test_a_heartbeat_of_a_paused_watchdog_keeps_the_pause(world: World) -> None:
    new = world.new(120_000, key="order-17", digest="a")
    task = world.created_by_key(new).task
    pause(world, task, HOUR_MS)
    beaten = world.keyed.upsert(world.new(300_000, key="order-17", digest="a")).task
    assert beaten.paused is not None
    minutes_pass(world, 10)
    assert world.receiver.received == []
    resume(world, task)
    minutes_pass(world, 5)
    check(world, task)


def test_a_task_that_is_paused_while_it_is_parked_is_left_by_the_release(world: World) -> None:
    tasks = [world.created(FAR_MS) for _ in range(2)]
    business = world.configure_business
    business.pause("orders", Precondition(), paused=True, by=CALLER)
    minutes_pass(world, FAR_MS // 60_000 + 3)
    assert all(world.read(task).parked for task in tasks)
    paused = pause(world, tasks[0])
    assert not paused.parked
    business.pause("orders", Precondition(), paused=False, by=CALLER)
    minutes_pass(world, 8)
    assert world.receiver.task_ids == [tasks[1].task_id]
    resume(world, tasks[0])
    minutes_pass(world, 6)
    check(world, *tasks)


def test_a_task_that_is_resumed_while_its_business_is_paused_is_parked(world: World) -> None:
    task = world.created(120_000)
    pause(world, task)
    world.configure_business.pause("orders", Precondition(), paused=True, by=CALLER)
    resume(world, task)
    minutes_pass(world, 6)
    assert world.read(task).parked
    world.configure_business.pause("orders", Precondition(), paused=False, by=CALLER)
    minutes_pass(world, 8)
    check(world, task)


def test_the_tasks_behind_a_paused_one_in_order_wait_for_it(world: World) -> None:
    keep_in_order(world)
    tasks = [world.created(FAR_MS + n * 1_000, flow_key="customer-7") for n in range(3)]
    pause(world, tasks[0])
    minutes_pass(world, FAR_MS // 60_000 + 15)
    assert world.receiver.received == []
    for task in tasks[1:]:
        assert world.read(task).next_ms <= world.clock.now_ms() + 2 * HOUR_MS
    resume(world, tasks[0])
    minutes_pass(world, 8)
    assert world.receiver.task_ids == [task.task_id for task in tasks]


def test_the_end_of_a_paused_task_wakes_those_behind_it(world: World) -> None:
    keep_in_order(world)
    tasks = [world.created(FAR_MS + n * 1_000, flow_key="customer-7") for n in range(2)]
    pause(world, tasks[0])
    minutes_pass(world, FAR_MS // 60_000 + 5)
    world.cancel(tasks[0].task_id)
    minutes_pass(world, 4)
    assert world.receiver.task_ids == [tasks[1].task_id]


def test_a_grace_that_ends_during_the_pause_ends_the_task_when_it_is_resumed(world: World) -> None:
    task = world.created(120_000, expires_after_seconds=60.0)
    pause(world, task)
    minutes_pass(world, 8)
    assert world.read(task).status is Status.PENDING
    resume(world, task)
    minutes_pass(world, 5)
    assert world.read(task).status is Status.EXPIRED
    assert world.receiver.received == []


def test_a_message_that_was_lost_does_not_call_a_paused_task(world: World) -> None:
    """The sweep gives it an entry at the end of the pause."""
    task = world.created(FAR_MS)
    pause(world, task)
    world.dispatch_until(task.home.second)
    world.receive()  # and nobody handles it
    minutes_pass(world, 12)
    assert world.receiver.received == []
    resume(world, task)
    minutes_pass(world, 6)
    check(world, task)
