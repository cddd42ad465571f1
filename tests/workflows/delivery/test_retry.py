"""Retries, deaths and races after an attempt that did not deliver."""

import contextlib
import itertools

import pytest

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.tasks.task import Status
from tests.support.receiver import BUSY, OK, Received
from tests.support.recorder import Call
from tests.support.world import World

POLICY = RetryPolicy(attempts_max=4, delays_seconds=(10.0, 60.0, 600.0))


def test_each_retry_waits_for_the_next_delay_of_the_policy(world: World) -> None:
    task = world.created(in_ms=60_000, retry=POLICY)
    world.receiver.answer = lambda received: (
        OK if received.headers["duewheel-attempt"] == "4" else BUSY
    )
    settled = world.settle(task)

    at = [received.at_ms - task.due_ms for received in world.receiver.received]
    assert [round((b - a) / 1000) for a, b in itertools.pairwise(at)] == [10, 60, 600]
    assert settled.status is Status.DELIVERED
    assert [attempt.outcome for attempt in settled.history] == ["retry"] * 3 + ["delivered"]
    assert settled.lateness_ms == at[-1]


def test_a_task_whose_attempts_all_failed_is_dead_with_a_reason(world: World) -> None:
    task = world.created(in_ms=60_000, retry=POLICY)
    world.receiver.answer = lambda received: BUSY
    settled = world.settle(task)

    assert settled.status is Status.DEAD
    assert settled.attempts == len(world.receiver.received) == 4
    assert settled.last_error == "503"
    assert settled.expires_at is not None
    (item,) = [item for item in world.items() if "dead_biz" in item]
    assert item["dead_biz"]["S"].startswith("orders#")


def test_retry_after_moves_the_next_attempt_to_later(world: World) -> None:
    task = world.created(in_ms=60_000, retry=POLICY)
    busy_for_long = Outcome(Verdict.RETRY, "429", status_code=429, retry_after_seconds=300)
    world.receiver.answer = lambda received: busy_for_long
    world.come_up(task)

    assert world.read(task).next_ms == task.due_ms + 300_000


def test_a_task_expires_when_its_next_retry_would_be_past_its_grace(world: World) -> None:
    task = world.created(in_ms=60_000, retry=POLICY, expires_after_seconds=30.0)
    world.receiver.answer = lambda received: BUSY
    settled = world.settle(task)

    assert settled.status is Status.EXPIRED
    assert settled.attempts == 2


def test_a_repeated_write_of_a_failed_attempt_does_not_undo_a_cancel(world: World) -> None:
    """The SDK sends the write again after the task was cancelled in between."""
    task = world.created(in_ms=60_000, retry=POLICY)
    world.receiver.answer = lambda received: BUSY
    records: list[Call] = []

    def keep(call: Call) -> None:
        if call.operation == "UpdateItem" and "history" in str(call.request):
            records.append(call)

    world.recorder.after = keep
    world.come_up(task)
    world.recorder.after = None
    world.cancel(task.task_id)
    (record,) = records
    with contextlib.suppress(world.dynamodb.exceptions.ConditionalCheckFailedException):
        world.dynamodb.update_item(**record.request)

    assert world.read(task).status is Status.CANCELLED
    world.dispatch_until(world.clock.now_ms() // 1000 + 700)
    world.drain()
    assert len(world.receiver.received) == 1


def test_a_write_of_a_failed_attempt_whose_answer_was_lost_counts_as_written(world: World) -> None:
    task = world.created(in_ms=60_000, retry=POLICY)
    world.receiver.answer = lambda received: BUSY
    world.recorder.lose_answer(world.dynamodb, "UpdateItem", of="history")
    world.come_up(task)
    assert world.recorder.before is None
    named = world.read(task).entry

    assert named != task.home
    assert [item["place"]["S"] for item in world.items() if "home" in item] == [named.place]


def test_the_entry_that_the_loser_of_a_race_wrote_never_fires(world: World) -> None:
    task = world.created(in_ms=60_000, retry=POLICY)

    def cancelled_during_the_call(received: Received) -> Outcome:
        item_key = {"slot": {"S": task.home.slot(world.settings.buckets)}}
        world.dynamodb.update_item(
            TableName=world.settings.wheel_table,
            Key={**item_key, "place": {"S": task.home.place}},
            UpdateExpression="SET #s = :c, version = version + :one",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":c": {"S": "cancelled"}, ":one": {"N": "1"}},
        )
        return BUSY

    world.receiver.answer = cancelled_during_the_call
    world.come_up(task)

    world.sweep_past(world.clock.now_ms() // 1000 + 60)
    assert world.read(task).status is Status.CANCELLED
    assert world.receiver.task_ids == [task.task_id]
    assert world.entries_elsewhere() == []


@pytest.mark.exhaustive
def test_history_keeps_the_last_ten_attempts(world: World) -> None:
    policy = RetryPolicy(attempts_max=13, delays_seconds=(10.0,))
    task = world.created(in_ms=60_000, retry=policy)
    world.receiver.answer = lambda received: BUSY
    settled = world.settle(task)

    assert settled.attempts == 13
    assert len(settled.history) == 10
    assert settled.history[-1].at_ms == world.receiver.received[-1].at_ms
