"""Items and messages of a newer release during an upgrade: this release leaves them alone, and the
newer one handles them."""

from typing import Any

import pytest

from duewheel.rules.bulk.operation import State
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.refusals import NewerItem, UnreadableItem
from duewheel.rules.sweep import horizon
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.queue_messages import PageMessage, decode, encode
from duewheel.stores import item_attributes, registry_keys
from duewheel.stores.tasks import codec, keys
from functions.notifier import app as notifier
from tests.functions.conftest import Context, wired  # noqa: F401
from tests.support import timers
from tests.support.clock import ManualClock
from tests.support.damage import edit, entry_key, key_of
from tests.support.minutes import minutes_pass
from tests.support.operations import ALL, as_it_is, asked_for
from tests.support.receiver import BUSY, OK
from tests.support.world import World

NEWER: dict[str, Any] = {"N": str(item_attributes.ITEM_VERSION + 1)}


def run_newer_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that reads items of the next version, and is otherwise the same."""
    monkeypatch.setattr(item_attributes, "ITEM_VERSION", item_attributes.ITEM_VERSION + 1)


def is_swept(world: World, task: Task) -> bool:
    return world.swept_second >= task.home.second


def test_a_newer_task_is_left_to_the_newer_release_and_the_other_tasks_are_called(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer, usual = world.created(in_ms=60_000), world.created(in_ms=60_001)
    edit(world, key_of(world, newer), v=NEWER)
    minutes_pass(world, 8)
    assert world.receiver.task_ids == [usual.task_id]
    assert not is_swept(world, newer)

    run_newer_release(monkeypatch)
    minutes_pass(world, 4)
    assert world.receiver.task_ids == [usual.task_id, newer.task_id]
    assert is_swept(world, newer)
    second = newer.home.second
    assert world.audit(AuditRequest(second - 60, second + 900)).findings == []


def test_a_newer_entry_is_left_to_the_newer_release(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.receiver.answer = lambda received: BUSY
    task = world.created(in_ms=60_000)
    world.dispatch_until(task.home.second)
    world.drain()
    world.receiver.answer = lambda received: OK
    task = world.read(task)
    assert not task.names_its_home
    edit(world, entry_key(world, task.entry), v=NEWER)
    minutes_pass(world, 8)
    assert world.swept_second < task.entry.second

    run_newer_release(monkeypatch)
    minutes_pass(world, 4)
    assert world.receiver.task_ids == [task.task_id] * 2
    assert world.read(task).status is Status.DELIVERED


def test_no_newer_task_is_changed_or_cancelled(world: World) -> None:
    task = world.created_by_key(world.new(3_600_000, key="order-17")).task
    edit(world, key_of(world, task), v=NEWER)
    before = world.items()
    with pytest.raises(NewerItem):
        world.cancel(task.task_id)
    with pytest.raises(NewerItem):
        world.change(task.task_id, Change(due_ms=task.due_ms + 1_000))
    edit(world, keys.key_of(task), v=NEWER)
    before = world.items()
    with pytest.raises(NewerItem):
        world.created_by_key(world.new(7_200_000, key="order-17"))
    assert world.items() == before


def test_a_version_that_was_edited_by_hand_does_not_hold_up_the_sweep_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert horizon.NEWER_WAIT_SECONDS == 3_600
    monkeypatch.setattr(horizon, "NEWER_WAIT_SECONDS", 480)
    task = world.created(in_ms=60_000)
    edit(world, key_of(world, task), v=NEWER)
    minutes_pass(world, 8)
    assert not is_swept(world, task)
    minutes_pass(world, 4)
    assert is_swept(world, task)
    second = task.home.second
    (finding,) = world.audit(AuditRequest(second, second)).findings
    assert (finding.wrong.value, finding.attribute) == ("unreadable", "v")


def test_an_invalid_version_counts_as_damage(world: World) -> None:
    nonsense: list[dict[str, Any]] = [{"S": "2"}, {"N": "-1"}, {"N": "1.5"}, {"NULL": True}]
    tasks = [world.created(in_ms=60_000) for _ in nonsense]
    for task, version in zip(tasks, nonsense, strict=True):
        edit(world, key_of(world, task), v=version)
    minutes_pass(world, 8)
    for task in tasks:
        assert is_swept(world, task)
        with pytest.raises(UnreadableItem) as refused:
            world.tasks.get(task.home)
        assert not isinstance(refused.value, NewerItem)


def test_a_task_with_a_newer_type_of_callback_has_the_version_of_that_type(
    world: World,
) -> None:
    """A release that does not know the type leaves the task alone. Otherwise it would treat the
    task as damaged, and the sweep would move past it."""
    later = StepFunctionsCallback("arn:aws:states:us-east-1:123456789012:stateMachine:m")
    newer, usual = world.created(callback=later), world.created()
    versions = {item["place"]["S"]: item["v"]["N"] for item in world.items()}
    assert versions == {newer.home.place: "2", usual.home.place: "1"}
    assert world.read(newer).callback == later
    changed = world.change(usual.task_id, Change(callback=later))
    assert {item["v"]["N"] for item in world.items()} == {"2"}
    assert world.read(changed).callback == later


def test_runs_that_step_records_name_are_left_by_the_release_before_and_called_by_this_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the stack goes back to a release that knows no step records, for less than an
    hour."""
    world.wire(run_index=False)
    timer = timers.made(world, 120, max_runs=4)
    world.drain()
    runs = timers.occurrences(world, timer)
    assert {task.occurrence.indexed for task in runs if task.occurrence} == {False}
    with monkeypatch.context() as before:
        before.setattr(item_attributes, "ITEM_VERSION", codec.UNINDEXED_VERSION - 1)
        minutes_pass(world, 8)
        assert world.receiver.task_ids == []
        assert not is_swept(world, runs[0])
    minutes_pass(world, 8)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in runs)
    second = runs[0].home.second
    assert world.audit(AuditRequest(second - 60, second + 900)).findings == []


# Additions within a version


def test_an_unknown_attribute_is_kept_in_changes_and_retries(world: World) -> None:
    """The attribute is missing after the delivery, which writes the whole item; it is not needed
    then."""
    added = {"S": "of a newer release"}
    task = world.created(in_ms=60_000)
    edit(world, key_of(world, task), added=added)
    world.change(task.task_id, Change(due_ms=task.due_ms + 60_000))
    world.receiver.answer = lambda received: BUSY
    minutes_pass(world, 3)
    (item,) = [item for item in world.items() if "status" in item]
    assert item["added"] == added
    assert world.read(task).attempts > 0

    world.receiver.answer = lambda received: OK
    minutes_pass(world, 10)
    assert world.read(task).status is Status.DELIVERED


def test_a_message_of_a_newer_version_is_left_in_the_queue_for_the_newer_release(
    world: World,
    wired: ManualClock,  # noqa: F811
) -> None:
    body = encode(PageMessage(wired.now_ms() // 1000 + 1, 0)).replace('"v":1', '"v":2')
    record = {"messageId": "newer", "receiptHandle": "handle", "body": body}
    answer = notifier.handler({"Records": [record]}, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "newer"}]}


def test_an_operation_with_an_action_of_a_newer_release_is_left_to_it(world: World) -> None:
    (task,) = [world.created(in_ms=3_600_000)]
    newer = asked_for(world, "cancel", filter=ALL)
    usual = asked_for(world, "cancel", filter=ALL)
    key = registry_keys.operation(newer.biz_type, newer.mark)
    values = {":wish": {"S": '{"action":"archive","more":1}'}}
    table = world.settings.registry_table
    update = {"UpdateExpression": "SET wish = :wish", "ExpressionAttributeValues": values}
    world.unrecorded.update_item(TableName=table, Key=key, **update)
    before = world.unrecorded.get_item(TableName=table, Key=key)["Item"]
    world.run_operations.run(lambda: 900_000)
    assert world.unrecorded.get_item(TableName=table, Key=key)["Item"] == before
    assert as_it_is(world, usual).state is State.DONE
    assert world.read(task).status is Status.CANCELLED
    assert world.operations.read(newer.biz_type, newer.mark) is None
    assert world.operations.open_ones().ended == []


def test_an_unknown_member_of_a_message_is_ignored() -> None:
    message = PageMessage(1_800_000_000, 3, page="2", after="01800000000.500#abcdefghijk")
    assert decode(encode(message).replace('"v":1', '"v":1,"added":[1]')) == message


def test_tasks_of_a_business_with_an_unknown_setting_are_not_called(
    world: World,
) -> None:
    """The newer release calls its tasks: they have attempts left."""
    world.configured("orders", timeout_seconds=5)
    key = registry_keys.business("orders")
    table = world.settings.registry_table
    kept = world.unrecorded.get_item(TableName=table, Key=key)["Item"]
    added = {"S": kept["settings"]["S"][:-1] + ',"added":true}'}
    world.unrecorded.put_item(TableName=table, Item=kept | {"settings": added})
    world.clock.advance_ms(10_000)
    task = world.created(in_ms=60_000)
    world.dispatch_until(task.home.second)
    world.drain()
    assert world.receiver.received == []
    assert world.read(task).status is Status.PENDING

    world.unrecorded.put_item(TableName=table, Item=kept)
    minutes_pass(world, 4)
    assert world.receiver.task_ids == [task.task_id]
