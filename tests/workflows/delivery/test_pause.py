"""Pause and resume: no task is called during a pause, none is lost, and all are called in order
afterwards."""

from collections import Counter
from typing import Any

import pytest

from duewheel.rules.businesses.requests import DeleteQuery
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import TasksPending, TooLate, UnreadableItem
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.lifecycle import Decision, decide
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.queue_messages import decode
from duewheel.stores import registry_keys
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.delivery import parked_items
from duewheel.stores.wheel import pointers
from tests.support.damage import delete, edit, key_of
from tests.support.receiver import BUSY, OK
from tests.support.recorder import Call
from tests.support.world import CALLER, World

FORGOTTEN_MS = KEPT_MS + 1_000


def pause(world: World, biz_type: str = "orders") -> Business:
    paused = world.configure_business.pause(biz_type, Precondition(), paused=True, by=CALLER)
    world.clock.advance_ms(FORGOTTEN_MS)
    return paused


def resume(world: World, biz_type: str = "orders") -> None:
    world.configure_business.pause(biz_type, Precondition(), paused=False, by=CALLER)
    world.drain()


def parked(world: World, **fields: object) -> Task:
    """A task that fell due during a pause."""
    pause(world)
    task = world.created(in_ms=60_000, **fields)
    fall_due(world, task)
    return world.read(task)


def fall_due(world: World, *tasks: Task) -> None:
    """Dispatch and deliver second by second, so that each task falls due in its own second."""
    for second in sorted({task.entry.second for task in tasks}):
        world.dispatch_until(second)
        world.drain()


def parked_items_of(world: World) -> list[str]:
    return [i["slot"]["S"] for i in world.items() if i["slot"]["S"].startswith("parked#")]


def is_audited_clean(world: World, *tasks: Task) -> bool:
    seconds = {task.home.second for task in tasks}
    return not any(world.audit(AuditRequest(one, one)).findings for one in seconds)


def test_tasks_that_fall_due_during_a_pause_are_called_once_after_it_in_due_order(
    world: World,
) -> None:
    tasks = [world.created(in_ms=60_000 + 130 * n) for n in (5, 3, 11, 0, 7, 2)]
    pause(world)
    tasks += [world.created(in_ms=70_000 - 700 * n) for n in range(6)]
    fall_due(world, *tasks)
    assert world.receiver.received == []
    assert all(world.read(task).parked for task in tasks)

    resume(world)
    assert world.receiver.received == []  # they get new entries a few seconds ahead
    world.let_pass(15)
    in_due_order = sorted(tasks, key=lambda task: task.due_ms)
    assert world.receiver.task_ids == [task.task_id for task in in_due_order]
    settled = [world.read(task) for task in tasks]
    assert {(task.status, task.parked) for task in settled} == {(Status.DELIVERED, False)}
    assert parked_items_of(world) == []


def test_a_parked_task_never_fires_from_its_old_entry(world: World) -> None:
    task = parked(world)
    assert task.next_ms == task.due_ms
    assert decide(task.entry, task, world.clock.now_ms()) is Decision.DROP
    assert is_audited_clean(world, task)


def test_other_businesses_are_called_while_one_is_paused(world: World) -> None:
    pause(world)
    held, other = world.created(), world.created(biz_type="invoices")
    fall_due(world, held, other)
    assert world.receiver.task_ids == [other.task_id]


def test_a_pause_takes_effect_within_seconds(world: World) -> None:
    world.cache_with_health.one("orders")  # this process has just read it
    pause(world)
    held = world.created(in_ms=0)
    world.drain()
    assert world.read(held).parked
    assert world.receiver.received == []


@pytest.mark.exhaustive
def test_a_pause_of_days_loses_no_task_while_the_sweep_moves_on(world: World) -> None:
    held = parked(world)
    for _ in range(3):
        world.clock.advance_ms(86_400_000)
        now = world.clock.now_ms() // 1000
        world.pointers.skip_to(pointers.TIME, world.origin, now - 1)
        world.dispatch_until(now)
        world.sweep_once()
        world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
        world.pointers.skip_to(pointers.SWEEP, world.origin, now - 1)
        world.sweep_once()
        world.drain()
        assert world.read(held).parked
        assert is_audited_clean(world, held)
    resume(world)
    world.let_pass(10)
    called = world.read(held)
    assert called.status is Status.DELIVERED
    assert called.lateness_ms is not None
    assert called.lateness_ms > 3 * 86_400_000
    assert called.history[-1].lateness_ms < 1_000  # counted from the instant of its release


def test_the_sweep_passes_a_second_whose_tasks_are_parked(world: World) -> None:
    held = parked(world)
    world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
    assert world.sweep_second_once(held.home.second) is True
    assert world.read(held) == held


@pytest.mark.exhaustive
def test_a_limit_of_calls_holds_in_a_release_and_keeps_the_order(world: World) -> None:
    world.configured("orders", calls_per_second=5.0)
    pause(world)
    tasks = [world.created(in_ms=60_000 + 10 * n) for n in range(40)]
    fall_due(world, *tasks)
    resume(world)
    world.let_pass(25)
    assert world.receiver.task_ids == [task.task_id for task in tasks]
    by_second = Counter(one.at_ms // 1000 for one in world.receiver.received)
    assert max(by_second.values()) <= 5
    assert len(by_second) <= 9


def test_a_release_that_runs_out_of_time_continues_in_another_message(world: World) -> None:
    pause(world)
    tasks = [world.placed(world.new(60_000 + n)) for n in range(105)]
    world.create.store(tasks)
    fall_due(world, *tasks)
    world.configure_business.pause("orders", Precondition(), paused=False, by=CALLER)
    (message,) = world.receive()
    reads = 0

    def slowly(call: Call) -> None:
        nonlocal reads
        reads += call.operation == "BatchGetItem"
        if call.operation == "BatchWriteItem" and reads == 1:
            world.clock.advance_ms(10_000)

    world.recorder.clear()
    world.recorder.before = slowly
    world.handle(message, lambda_ms=40_000)
    world.recorder.before = None
    assert 0 < len(parked_items_of(world)) < 105
    sent = [call for call in world.recorder.calls if call.operation == "SendMessageBatch"]
    bodies = [decode(one["MessageBody"]) for call in sent for one in call.request["Entries"]]
    assert decode(message["Body"]) in bodies, "the message is sent again for the rest"
    world.drain()
    assert parked_items_of(world) == []


def test_a_release_is_requested_again_when_no_cache_contains_the_pause_any_more(
    world: World,
) -> None:
    pause(world)
    late = world.created(in_ms=20_000)
    world.clock.set_ms(late.due_ms - 500)
    world.cache_with_health.one("orders")  # read just before the end of the pause
    resume_elsewhere(world)
    fall_due(world, late)
    assert world.read(late).parked
    world.let_pass(20, stride=5)
    assert world.read(late).status is Status.DELIVERED


def resume_elsewhere(world: World) -> None:
    """Resume in a process that shares no cache with the notifiers."""
    known = world.cache_with_health.one("orders")
    world.configure_business.pause("orders", Precondition(), paused=False, by=CALLER)
    world.cache_with_health._keep({"orders": known}, world.clock.now_ms())
    world.drain()


def test_a_near_task_is_not_changed_while_a_copy_of_its_message_may_be_in_work(
    world: World,
) -> None:
    pause(world)
    near, far = world.created(in_ms=1_000), world.created(in_ms=60_000)
    world.drain()
    assert (world.read(near).entry.direct, world.read(near).parked) == (True, True)
    with pytest.raises(TooLate):
        world.cancel(near.task_id)
    assert world.read(near).is_live
    fall_due(world, far)
    assert world.cancel(far.task_id).status is Status.CANCELLED
    world.clock.advance_ms(60_000)
    assert world.cancel(near.task_id).status is Status.CANCELLED


# Requests of callers during a pause


def test_a_cancel_of_a_parked_task_is_never_too_late_and_is_counted(world: World) -> None:
    held = parked(world)
    world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
    assert world.sweep_second_once(held.home.second) is True
    cancelled = world.cancel(held.task_id)
    assert (cancelled.status, cancelled.parked) == (Status.CANCELLED, False)
    assert is_audited_clean(world, held)
    world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000 + 1_000)
    assert world.sweep_second_once(cancelled.entry.second) is True
    sheet = (held.biz_type, held.home.second // 60)
    tally = world.statistics.read(sheet).stats.tally
    assert (tally.created, tally.cancelled, tally.pending) == (1, 1, 0)

    resume(world)
    world.let_pass(12)
    assert world.receiver.received == []
    assert parked_items_of(world) == []


def test_a_changed_task_stays_parked_and_is_called_at_its_new_instant(world: World) -> None:
    held = parked(world)
    due_ms = world.clock.now_ms() + 30_000
    changed = world.change(held.task_id, Change(due_ms=due_ms, sets_payload=True, payload="18"))
    assert (changed.parked, changed.next_ms, changed.entry) == (True, due_ms, held.entry)
    assert is_audited_clean(world, held)
    resume(world)
    world.let_pass(35)
    (call,) = world.receiver.received
    assert (call.at_ms, call.body) == (due_ms, b"18")


@pytest.mark.exhaustive
def test_a_parked_task_that_is_run_stays_parked_until_the_pause_is_over(world: World) -> None:
    held = parked(world)
    assert world.change.run(held.task_id).parked
    world.let_pass(10)
    assert world.receiver.received == []
    resume(world)
    world.let_pass(10)
    assert world.receiver.task_ids == [held.task_id]


@pytest.mark.exhaustive
def test_a_beat_of_a_parked_watchdog_moves_it_to_later(world: World) -> None:
    pause(world)
    made = world.keyed.upsert(world.new(in_ms=60_000, key="dog", digest="d")).task
    fall_due(world, made)
    assert world.read(made).parked
    beaten = world.keyed.upsert(world.new(in_ms=60_000, key="dog", digest="d")).task
    assert (beaten.task_id, beaten.parked) == (made.task_id, True)
    assert is_audited_clean(world, made)
    resume(world)
    world.let_pass(65)
    assert [one.at_ms for one in world.receiver.received] == [beaten.next_ms]


def test_the_key_of_a_cancelled_parked_task_is_free(world: World) -> None:
    pause(world)
    made = world.created_by_key(world.new(in_ms=60_000, key="order-17", digest="d")).task
    fall_due(world, made)
    world.keyed.cancel("orders", "order-17")
    assert world.created_by_key(world.new(key="order-17", digest="d")).is_new


@pytest.mark.exhaustive
def test_a_parked_task_whose_grace_ran_out_expires_after_the_pause_and_takes_no_turn(
    world: World,
) -> None:
    world.configured("orders", calls_per_second=0.01)
    held = parked(world, expires_after_seconds=30.0)
    world.clock.advance_ms(60_000)
    resume(world)
    world.let_pass(8)
    assert world.read(held).status is Status.EXPIRED
    assert world.receiver.received == []


def test_a_retry_that_falls_due_during_a_pause_is_parked_and_keeps_its_attempts(
    world: World,
) -> None:
    world.receiver.answer = lambda received: BUSY
    task = world.created(retry=RetryPolicy(attempts_max=5, delays_seconds=(30.0,)))
    fall_due(world, task)
    pause(world)
    retried = world.read(task)
    fall_due(world, retried)
    held = world.read(task)
    assert (held.parked, held.attempts) == (True, 1)
    world.receiver.answer = lambda received: OK
    resume(world)
    world.let_pass(10)
    assert (world.read(task).status, world.read(task).attempts) == (Status.DELIVERED, 2)


def test_a_redriven_task_of_a_paused_business_waits_for_the_end_of_the_pause(world: World) -> None:
    world.receiver.answer = lambda received: BUSY
    task = world.created(in_ms=0, retry=RetryPolicy(attempts_max=1))
    world.drain()
    pause(world)
    world.receiver.answer = lambda received: OK
    world.redrive(task.task_id)
    world.drain()
    assert world.read(task).parked
    resume(world)
    world.let_pass(10)
    assert world.read(task).status is Status.DELIVERED


# The record of parked tasks


def records(world: World) -> list[str]:
    return world.parking_records.scopes()


def test_the_parking_record_is_deleted_when_no_task_is_parked_and_no_cache_contains_the_pause(
    world: World,
) -> None:
    held = parked(world)
    resume(world)
    assert records(world) == ["orders"]
    gone_ms = KEPT_MS + world.settings.notifier_lives_ms + 2_000
    world.clock.advance_ms(gone_ms - 1_000)
    world.send_releases()
    world.drain()
    assert records(world) == ["orders"]
    world.clock.advance_ms(1_000)
    world.send_releases()
    world.drain()
    assert records(world) == []
    world.dispatch_until(world.clock.now_ms() // 1000)
    world.drain()
    assert world.read(held).status is Status.DELIVERED


def test_a_new_pause_keeps_the_parking_record_that_was_about_to_be_deleted(world: World) -> None:
    pause(world)
    resume(world)
    world.clock.advance_ms(120_000)
    world.send_releases()

    def pausing(call: Call) -> None:
        if call.operation == "DeleteItem" and "kind" in call.request["Key"]:
            world.recorder.before = None
            world.configure_business.pause("orders", Precondition(), paused=True, by=CALLER)

    world.recorder.before = pausing
    world.drain()
    assert world.recorder.before is None
    assert records(world) == ["orders"]


def test_the_sweeper_requests_no_release_of_a_paused_business(world: World) -> None:
    parked(world)
    world.send_releases()
    assert world.messages_waiting() == 0


def test_only_one_of_two_releases_works_at_a_time(world: World) -> None:
    held = parked(world)
    assert world.parking_records.take("orders", "another", world.clock.now_ms(), 75_000)
    world.configure_business.pause(
        "orders", Precondition(), paused=True, by=CALLER
    )  # already paused: the record is not marked
    world.configured("orders", paused=None)
    # The end of the pause ends the lease of another release, whose read of the business is out of
    # date.
    assert world.parking_records.take("orders", "another", world.clock.now_ms(), 75_000)
    world.drain()
    assert world.read(held).parked
    world.clock.advance_ms(75_001)
    world.send_releases()
    world.drain()
    assert not world.read(held).parked


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("mark", {"N": "1"}),
        ("unpaused_ms", {"S": "soon"}),
        ("unpaused_ms", {"N": str(10**14)}),
        ("until_ms", {"NULL": True}),
        ("until_ms", {"N": str(10**14)}),
    ],
)
def test_a_damaged_parking_record_releases_nothing_until_the_next_pause_writes_it_anew(
    world: World, caplog: pytest.LogCaptureFixture, attribute: str, value: dict[str, Any]
) -> None:
    held = parked(world)
    world.configured("orders", paused=None)
    edit(world, registry_keys.parking("orders"), **{attribute: value})
    world.drain()
    world.clock.advance_ms(120_000)
    world.send_releases()
    world.drain()
    assert world.read(held).parked
    met = {(r.slot, r.place, r.wrong) for r in caplog.records if r.action == "unreadable"}  # type: ignore[attr-defined]
    assert met == {("parking", "orders", attribute)}

    pause(world)
    resume(world)
    world.let_pass(20)
    assert world.read(held).status is Status.DELIVERED


def test_unreadable_settings_release_nothing_and_delay_no_other_business(world: World) -> None:
    held = parked(world)
    resume_message = "orders"
    edit_settings(world, "{")
    world.send_releases()
    assert world.messages_waiting() == 0
    world.pausing.request_release(resume_message)
    world.drain()
    assert world.read(held).parked


def edit_settings(world: World, text: str) -> None:
    edit(world, registry_keys.business("orders"), settings={"S": text})


@pytest.mark.exhaustive
def test_a_damaged_parked_item_is_reported_and_delays_no_other_task(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    pause(world)
    tasks = [world.created(in_ms=60_000 + n) for n in range(5)]
    fall_due(world, *tasks)
    edit(world, parked_items.key_of(world.read(tasks[0])), task={"S": "nowhere"})
    edit(world, key_of(world, tasks[1]), next_ms={"S": "then"})
    resume(world)
    world.let_pass(20)
    assert world.receiver.task_ids == [task.task_id for task in tasks[2:]]
    assert world.read(tasks[0]).parked
    with pytest.raises(UnreadableItem):
        world.read(tasks[1])
    assert len(parked_items_of(world)) == 2


# Businesses


def test_ending_a_pause_by_put_releases_the_tasks(world: World) -> None:
    held = parked(world)
    world.configured("orders", paused=False)
    world.drain()
    world.let_pass(10)
    assert world.read(held).status is Status.DELIVERED


def test_the_parked_tasks_of_a_deleted_business_are_cancelled_with_it(world: World) -> None:
    held = parked(world)
    delete_business = world.delete_business
    with pytest.raises(TasksPending):
        delete_business("orders", DeleteQuery(), Precondition(), by=CALLER)
    assert delete_business(
        "orders", DeleteQuery(cancel_pending="true"), Precondition(), by=CALLER
    ).done
    world.let_pass(15)
    assert world.read(held).status is Status.CANCELLED
    assert (parked_items_of(world), world.receiver.received) == ([], [])


def test_parked_tasks_of_a_business_without_settings_are_released(world: World) -> None:
    held = parked(world)
    delete(world, registry_keys.business("orders"))
    world.send_releases()
    world.drain()
    world.let_pass(10)
    assert world.read(held).status is Status.DELIVERED
