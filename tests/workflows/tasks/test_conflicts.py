"""Writes that a transaction blocks are retried, and then refused as throttled; no delivery depends
on a key."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.requests import DeleteQuery
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, RetryPolicy, Told
from duewheel.rules.delivery.page_lease import PageFinished, PageLease
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Refusal, TooManyWrites, Unavailable
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.addresses import direct_page
from duewheel.stores import aws_clients
from duewheel.stores.dynamodb import Conflict, Throttled, is_for_load
from duewheel.stores.tasks import codec
from duewheel.stores.wheel import pointers
from local.chaos.aws_faults import Fault
from tests.support.conflicts import (
    A_MOMENT,
    Wanted,
    conflicts,
    of_claims,
    of_homes,
    of_keys,
    of_transactions,
)
from tests.support.damage import edit, entry_key
from tests.support.receiver import BUSY, GONE, OK
from tests.support.recorder import Call
from tests.support.timers import chain_of, fates, made, occurrences, patched
from tests.support.world import CALLER, FAR_MS, World

TRIES = 5  # the first try, and one after each pause
ONCE = RetryPolicy(1, 5.0)
DEAD_HOOK = HttpCallback("https://receiver.example/dead")


def keyed(world: World, key: str = "order-17", **fields: Any) -> Task:
    return world.created_by_key(world.new(key=key, **fields)).task


def key_of(world: World, task: Task) -> dict[str, Any]:
    (item,) = [i for i in world.items() if i["place"]["S"] == task.key]
    return item


def sweep_second_of(world: World, task: Task) -> None:
    world.sweep_past(world.read(task).entry.second)


# The client


@pytest.mark.parametrize("wanted", [of_homes, of_claims], ids=["task", "key"])
def test_a_write_that_a_transaction_blocks_for_a_moment_is_carried_out(
    world: World, wanted: Wanted
) -> None:
    with conflicts(wanted, times=A_MOMENT) as met:
        task = keyed(world)
        world.cancel(task.task_id)
    assert met.refused == A_MOMENT
    assert 0 < met.paused_seconds < 0.2
    assert world.read(task).status is Status.CANCELLED


def test_the_dynamodb_client_of_the_functions_retries_a_write_that_a_transaction_blocks(
    world: World,
) -> None:
    task = world.created()
    with conflicts(lambda operation, _: operation == "UpdateItem", times=A_MOMENT) as met:
        aws_clients.dynamodb_client().update_item(
            TableName=world.settings.wheel_table,
            Key=codec.key(task.home, world.settings.buckets),
            UpdateExpression="SET attempts = :two",
            ExpressionAttributeValues={":two": {"N": "2"}},
        )
    assert met.refused == A_MOMENT
    assert world.read(task).attempts == 2


@pytest.mark.parametrize("wanted", [of_homes, of_transactions], ids=["single", "transaction"])
def test_a_write_that_transactions_keep_blocking_counts_as_throttled(
    world: World, wanted: Wanted
) -> None:
    task = world.created()
    other = replace(task, version=task.version + 1)
    notice = world.placed(world.new())
    writes: dict[Wanted, Callable[[], object]] = {
        of_homes: lambda: world.tasks.change(task, other),
        of_transactions: lambda: world.tasks.change_along(
            task, other, {"Put": world.tasks.put_request(notice)}
        ),
    }
    with conflicts(wanted) as met, pytest.raises(Throttled) as raised:
        writes[wanted]()
    assert met.refused == TRIES
    assert isinstance(raised.value, Conflict)
    assert is_for_load(raised.value)
    assert world.read(task) == task


def test_a_transaction_of_which_an_earlier_try_is_under_way_counts_as_throttled(
    world: World,
) -> None:
    world.receiver.answer = lambda received: GONE
    dead = keyed(world, in_ms=0)
    world.drain()
    with conflicts(of_transactions, fault=Fault.IN_PROGRESS), pytest.raises(Unavailable) as refused:
        world.redrive(dead.task_id)
    throttled = refused.value.__cause__
    assert isinstance(throttled, Throttled)
    assert not isinstance(throttled, Conflict), "it may be carried out"


@pytest.mark.parametrize(
    "write",
    [
        lambda world: world.parking_records.mark("orders", "a"),
        lambda world: world.pages.record_direct(
            PageLease(17, 0, page=direct_page(["a"])), (), 0, 1
        ),
    ],
    ids=["a pause", "a direct page"],
)
def test_a_write_without_a_condition_is_retried_and_then_throttled(
    world: World, write: Callable[[World], object]
) -> None:
    with conflicts(lambda operation, _: operation in ("UpdateItem", "PutItem"), times=A_MOMENT):
        write(world)
    with (
        conflicts(lambda operation, _: operation in ("UpdateItem", "PutItem")),
        pytest.raises(Throttled),
    ):
        write(world)


# Keys


def test_a_page_finishes_although_the_keys_of_its_tasks_cannot_be_released(world: World) -> None:
    task, other = keyed(world), world.created()
    world.dispatch_until(task.due_ms // 1000)
    message, *_ = world.receive()
    with conflicts(of_keys):
        assert isinstance(world.handle(message), PageFinished)
    assert {world.read(one).status for one in (task, other)} == {Status.DELIVERED}
    assert "expires_at" not in key_of(world, task)

    sweep_second_of(world, task)
    assert key_of(world, task)["expires_at"] == {"N": str(world.read(task).expires_at)}
    assert world.receiver.task_ids.count(task.task_id) == 1


def test_a_rest_page_is_passed_on_although_the_keys_of_the_page_cannot_be_released(
    world: World,
) -> None:
    task = keyed(world, in_ms=FAR_MS)
    later = world.created(in_ms=FAR_MS + 900, callback=HttpCallback("https://slow.example/"))
    message = world.dispatched(task)

    def answer(received: Any) -> Any:
        world.clock.advance_ms(50_000)  # no time is left for the other task
        return OK

    world.receiver.answer = answer
    with conflicts(of_keys):
        assert isinstance(world.handle(message), PageFinished)
    world.receiver.answer = lambda received: OK
    world.drain()
    assert {world.read(one).status for one in (task, later)} == {Status.DELIVERED}


@pytest.mark.exhaustive
@pytest.mark.parametrize("ending", ["dead", "expired"])
def test_a_task_ends_undelivered_although_its_key_cannot_be_released(
    world: World, ending: str
) -> None:
    world.receiver.answer = lambda received: GONE
    fields = {"expires_after_seconds": 1.0} if ending == "expired" else {}
    task = keyed(world, **fields)
    world.dispatch_until(task.due_ms // 1000 + (5 if ending == "expired" else 0))
    messages = world.receive()
    with conflicts(of_keys):
        assert all(isinstance(world.handle(message), PageFinished) for message in messages)
    assert world.read(task).status.value == ending
    assert "expires_at" not in key_of(world, task)

    sweep_second_of(world, task)
    assert key_of(world, task)["expires_at"] == {"N": str(world.read(task).expires_at)}


def test_a_written_cancel_is_answered_although_the_key_cannot_be_released(world: World) -> None:
    task = keyed(world)
    with conflicts(of_keys):
        assert world.cancel(task.task_id).status is Status.CANCELLED
    assert "expires_at" not in key_of(world, task)

    world.sweep_past(task.entry.second)
    assert key_of(world, task)["expires_at"] == {"N": str(world.read(task).expires_at)}


def test_the_sweep_releases_the_key_of_a_task_whose_notifier_died_before_the_release(
    world: World,
) -> None:
    task = keyed(world, in_ms=FAR_MS)
    message = world.dispatched(task)

    def is_release(call: Call) -> bool:
        return of_keys(call.operation, call.request)

    assert world.dies(lambda: world.handle(message), counted=is_release)
    assert "expires_at" not in key_of(world, task)

    sweep_second_of(world, task)
    assert key_of(world, task)["expires_at"] == {"N": str(world.read(task).expires_at)}


def test_the_sweep_leaves_a_key_that_another_task_has_taken(world: World) -> None:
    task = keyed(world)
    with conflicts(of_keys):
        world.come_up(task)
    standby = keyed(world, in_ms=4_000_000)
    sweep_second_of(world, task)
    assert key_of(world, task)["task"] == {"S": standby.home.name}
    assert "expires_at" not in key_of(world, task)


def test_the_sweep_writes_no_key_that_was_released(world: World) -> None:
    task = keyed(world)
    world.come_up(task)
    world.recorder.clear()
    sweep_second_of(world, task)
    written = [call for call in world.recorder.calls if of_keys(call.operation, call.request)]
    assert written == []


def test_a_key_of_an_ended_task_without_ttl_leaves_no_place_open(world: World) -> None:
    task = keyed(world)
    with conflicts(of_keys):
        world.come_up(task)
    edit(world, entry_key(world, task.home), expires_at=None)
    sweep_second_of(world, task)
    assert not world.pointer(pointers.SWEEP).open_places


def test_a_key_that_the_sweep_cannot_release_is_released_by_a_later_run(world: World) -> None:
    task = keyed(world)
    with conflicts(of_keys):
        world.come_up(task)
        for _ in range(5):
            world.dispatch_until(world.clock.now_ms() // 1000 + 60)
            world.sweep_once()
        assert "expires_at" not in key_of(world, task)
        sweep = world.pointer(pointers.SWEEP)
        second = world.read(task).entry.second
        assert sweep.position > second, "it does not hold up the sweep"
        assert [place.second for place in sweep.open_places] == [second]
    for _ in range(3):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        world.sweep_once()
    assert key_of(world, task)["expires_at"] == {"N": str(world.read(task).expires_at)}
    assert not world.pointer(pointers.SWEEP).open_places


def test_taking_a_key_during_a_transaction_succeeds_or_is_refused_for_load(world: World) -> None:
    """The transaction of a redrive blocks the key at this moment."""
    task = keyed(world)
    world.come_up(task)
    with conflicts(of_claims), pytest.raises(TooManyWrites):
        keyed(world, in_ms=90_000)
    with conflicts(of_claims, times=A_MOMENT):
        standby = keyed(world, in_ms=90_000)
    assert world.keyed.read("orders", "order-17").home == standby.home


def test_a_task_settles_while_its_key_is_being_taken_again(world: World) -> None:
    """The transaction of a redrive blocks the key when it is released."""
    task = keyed(world, in_ms=FAR_MS)
    message = world.dispatched(task)
    with conflicts(of_keys, times=A_MOMENT) as met:
        assert isinstance(world.handle(message), PageFinished)
    assert met.refused == A_MOMENT
    assert key_of(world, task)["expires_at"] == {"N": str(world.read(task).expires_at)}


# Changes


def test_a_cancel_that_cannot_be_written_is_refused_for_load_and_changes_nothing(
    world: World,
) -> None:
    task = keyed(world)
    with conflicts(of_homes), pytest.raises(Unavailable):
        world.cancel(task.task_id)
    assert world.read(task) == task
    world.come_up(task)
    assert world.receiver.task_ids == [task.task_id]


def test_a_change_and_a_redrive_that_cannot_be_written_are_refused_for_load(world: World) -> None:
    task = world.created()
    change = Change(due_ms=task.due_ms + 60_000)
    with conflicts(of_homes), pytest.raises(Unavailable):
        world.change(task.task_id, change)
    world.receiver.answer = lambda received: GONE
    dead = keyed(world, in_ms=0)
    world.drain()
    with conflicts(of_transactions), pytest.raises(Unavailable):
        world.redrive(dead.task_id)
    assert world.read(dead).status is Status.DEAD
    assert world.redrive(dead.task_id).status is Status.PENDING


@pytest.mark.exhaustive
def test_a_death_during_a_transaction_is_one_death_with_one_notice(world: World) -> None:
    world.configured("orders", on_outcome=OnOutcome((Told.DEAD,), DEAD_HOOK), retry=ONCE)
    world.receiver.answer = lambda received: OK if "dead" in received.url else BUSY
    task = world.created(in_ms=FAR_MS)
    message = world.dispatched(task)
    with conflicts(of_transactions, times=3 * TRIES):  # it keeps trying
        assert isinstance(world.handle(message), PageFinished)
    world.clock.advance_ms(10_000)
    world.drain()
    assert world.read(task).status is Status.DEAD
    assert [received.url for received in world.receiver.received].count(DEAD_HOOK.url) == 1


# Timers


def test_a_timer_that_is_changed_while_its_chain_is_planned_is_planned_on(world: World) -> None:
    timer = made(world, 2, max_runs=4)
    with conflicts(of_homes, times=A_MOMENT) as met:
        world.dispatch_until(world.clock.now_ms() // 1000 + 10)
        world.drain()
    assert met.refused == A_MOMENT
    assert len(occurrences(world, timer)) == 4


@pytest.mark.parametrize("times", [A_MOMENT, 2 * TRIES])
def test_a_change_of_a_timer_during_its_planning_succeeds(world: World, times: int) -> None:
    timer = made(world, 60)
    with conflicts(of_transactions, times=times):
        after = patched(world, timer, name="other")
    assert world.timers.read(timer.timer_id) == after
    assert chain_of(world, timer) is not None


def test_requests_that_transactions_keep_blocking_are_refused_for_load(world: World) -> None:
    timer = made(world, 60)
    refused: list[Callable[[], object]] = [
        lambda: patched(world, timer, name="other"),
        lambda: world.change_timer.delete(timer.timer_id, by=CALLER),
        lambda: made(world, 5),
        lambda: keyed(world),
    ]
    with conflicts(lambda *of: of_transactions(*of) or of_claims(*of)):
        for act in refused:
            with pytest.raises(Refusal) as refusal:
                act()
            assert isinstance(refusal.value, Unavailable | TooManyWrites)
    assert world.timers.read(timer.timer_id) == timer
    assert fates(world, timer).total() == 0


def test_a_change_of_settings_during_another_succeeds_or_is_refused_for_load(world: World) -> None:
    before = world.configured("orders", retry=ONCE)
    with conflicts(of_transactions, times=A_MOMENT):
        after = world.configure_business.pause("orders", Precondition(), paused=True, by=CALLER)
    assert after.version == before.version + 1
    writes: list[Callable[[], object]] = [
        lambda: world.configure_business.pause("orders", Precondition(), paused=False, by=CALLER),
        lambda: world.delete_business("orders", DeleteQuery(), Precondition(), by=CALLER),
    ]
    for write in writes:
        with conflicts(of_transactions), pytest.raises(Unavailable):
            write()
