"""A key is claimed before its task is put; what others do with a claim that has no task."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from random import Random
from threading import Barrier, Event
from typing import Any

import pytest

from duewheel.rules.refusals import (
    KeyTaken,
    NotRedrivable,
    Refusal,
    TooManyWrites,
    Unavailable,
    UnknownTask,
)
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.task import Made, Task
from duewheel.stores.tasks import codec
from tests.support.bounds import quick_first
from tests.support.damage import delete, key_of
from tests.support.minutes import minutes_pass
from tests.support.receiver import GONE, OK
from tests.support.recorder import Call
from tests.support.stories import Story, interleavings
from tests.support.world import World

KEY = "order-17"
DAY_MS = 86_400_000
PENDING = {"S": "pending"}


def create(world: World, digest: str = "same", in_ms: int = 60_000) -> Made | Refusal:
    """Like the API: a task whose home was buried gets another place."""
    (result,) = world.create([world.new(in_ms, key=KEY, digest=digest)])
    return result


def made(world: World, **fields: Any) -> Task:
    result = create(world, **fields)
    assert isinstance(result, Made)
    return result.task


def homes(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if "status" in item]


def tombstones(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if codec.is_reentry(item)]


def key_item(world: World) -> dict[str, Any]:
    (item,) = [item for item in world.items() if "task" in item]
    return item


def is_put_of_task(call: Call) -> bool:
    return call.operation == "PutItem" and "status" in call.request["Item"]


def is_claim(call: Call) -> bool:
    return call.operation == "PutItem" and "task" in call.request["Item"]


def crash_after_the_claim(world: World, in_ms: int = 60_000) -> dict[str, Any]:
    """Returns the put of the task, which was not made."""
    put = world.dies(lambda: create(world, in_ms=in_ms), counted=is_put_of_task)
    assert put is not None
    return put.request


def dead(world: World) -> Task:
    world.receiver.answer = lambda received: GONE
    task = made(world, in_ms=0)
    world.drain()
    world.receiver.answer = lambda received: OK
    return task


@contextmanager
def before_the_put(world: World, happens: Callable[[], object]) -> Iterator[None]:
    """Runs `happens` once, between the claim and the put of its task."""

    def hook(call: Call) -> None:
        if is_put_of_task(call):
            world.recorder.before = None
            happens()

    world.recorder.before = hook
    yield
    world.recorder.before = None


def test_a_claim_whose_creator_crashed_names_no_task(world: World) -> None:
    crash_after_the_claim(world)
    with pytest.raises(UnknownTask):
        world.keyed.read("orders", KEY)
    with pytest.raises(UnknownTask):
        world.keyed.cancel("orders", KEY)
    assert not homes(world)


@pytest.mark.parametrize("by", ["create", "upsert"])
def test_the_key_of_a_crashed_creator_is_taken_and_its_late_put_fails(
    world: World, by: str
) -> None:
    late = crash_after_the_claim(world)
    if by == "create":
        task = made(world)
    else:
        task = world.keyed.upsert(world.new(60_000, key=KEY, digest="same")).task
    with pytest.raises(world.unrecorded.exceptions.ConditionalCheckFailedException):
        world.unrecorded.put_item(**late)
    assert [codec.address_of(item) for item in homes(world)] == [task.home]
    assert world.keyed.read("orders", KEY) == task


def test_a_create_whose_home_was_buried_finds_the_task_of_the_other(world: World) -> None:
    other: list[Task] = []
    with before_the_put(world, lambda: other.append(made(world))):
        found = create(world)
    assert found == Made(other[0], is_new=False)
    assert len(homes(world)) == 1


def test_a_create_whose_home_was_buried_is_refused_if_a_task_with_another_body_has_the_key(
    world: World,
) -> None:
    with before_the_put(world, lambda: made(world, digest="another")):
        assert isinstance(create(world), KeyTaken)


def test_a_create_whose_home_was_buried_by_a_crashed_one_creates_at_another_place(
    world: World,
) -> None:
    """The other dies after it has written the tombstone, before it has the key."""

    def dies_as_it_claims() -> None:
        assert world.dies(lambda: create(world), counted=is_claim)

    with before_the_put(world, dies_as_it_claims):
        task = made(world)
    (tombstone,) = tombstones(world)
    assert codec.address_of(tombstone) != task.home
    assert world.keyed.read("orders", KEY) == task


def test_an_upsert_whose_home_was_buried_changes_the_task_of_the_other(world: World) -> None:
    other: list[Task] = []
    with before_the_put(world, lambda: other.append(made(world))):
        changed = world.keyed.upsert(world.new(90_000, key=KEY, digest="upsert"))
    assert not changed.is_new
    assert changed.task.home == other[0].home


def test_a_creator_waits_for_one_that_is_about_to_put_its_task(world: World) -> None:
    """The task's home is not buried."""
    late = crash_after_the_claim(world)
    sleep = world.clock.sleep

    def put_meanwhile(seconds: float) -> None:
        world.clock.sleep = sleep  # type: ignore[method-assign]
        world.unrecorded.put_item(**late)

    world.clock.sleep = put_meanwhile  # type: ignore[method-assign]
    found = create(world)
    assert isinstance(found, Made)
    assert not found.is_new
    assert not tombstones(world)


def test_a_create_does_not_wait_for_a_task_that_has_ended_and_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = world.cancel(made(world).task_id)
    delete(world, key_of(world, ended))
    monkeypatch.setattr(world.clock, "sleep", lambda seconds: pytest.fail("it waits"))
    assert made(world).is_live


def test_a_create_whose_homes_are_all_buried_is_refused_for_load(world: World) -> None:
    def bury(call: Call) -> None:
        if is_put_of_task(call):
            world.recorder.before = None
            world.tasks.bury(codec.address_of(call.request["Item"]))
            world.recorder.before = bury

    world.recorder.before = bury
    assert isinstance(create(world), TooManyWrites)
    world.recorder.before = None
    assert made(world).is_live


def test_a_redrive_takes_the_key_of_a_crashed_creator(world: World) -> None:
    task = dead(world)
    late = crash_after_the_claim(world)
    assert world.redrive(task.task_id).is_live
    with pytest.raises(world.unrecorded.exceptions.ConditionalCheckFailedException):
        world.unrecorded.put_item(**late)
    assert world.keyed.read("orders", KEY).home == task.home
    assert "expires_at" not in key_item(world)


def test_a_redrive_between_claim_and_put_has_the_key(world: World) -> None:
    task = dead(world)
    with before_the_put(world, lambda: world.redrive(task.task_id)):
        found = create(world)
    assert isinstance(found, Made)
    assert (found.task.home, found.is_new) == (task.home, False)


def test_a_redrive_does_not_take_the_key_of_a_task_that_was_put_meanwhile(world: World) -> None:
    task = dead(world)
    late = crash_after_the_claim(world)

    def put_before_the_burial(call: Call) -> None:
        if call.operation == "PutItem" and "expires_at" in call.request["Item"]:
            world.recorder.before = None
            world.unrecorded.put_item(**late)

    world.recorder.before = put_before_the_burial
    with pytest.raises(NotRedrivable):
        world.redrive(task.task_id)
    assert world.keyed.read("orders", KEY).is_live


# Tombstones


@pytest.mark.parametrize("in_ms", [60_000, 1_000], ids=["in a slice", "direct"])
def test_notifier_sweep_and_audit_ignore_a_tombstone_and_the_sweep_of_its_second_deletes_it(
    world: World, in_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    crash_after_the_claim(world, in_ms=in_ms)
    task = made(world, in_ms=in_ms)
    neighbour = world.created(in_ms=in_ms)
    (tombstone,) = tombstones(world)
    place = codec.address_of(tombstone)
    assert world.tasks.get(place) is None
    with pytest.raises(UnknownTask):
        world.cancel(place.task_id)
    caplog.clear()
    if place.direct:
        world.clock.set_ms(task.due_ms)
        world.drain()
    minutes_pass(world, 6)
    assert sorted(world.receiver.task_ids) == sorted([task.task_id, neighbour.task_id])
    assert not tombstones(world)
    actions = {record.__dict__.get("action") for record in caplog.records}
    assert actions.isdisjoint({"home-gone", "unreadable", "rescued", "resent"})
    second = place.second
    assert world.audit(AuditRequest(second - 60, second + 60)).findings == []


def test_the_audit_accepts_a_tombstone_of_a_future_second(world: World) -> None:
    crash_after_the_claim(world)
    task = made(world)
    second = task.home.second
    assert world.audit(AuditRequest(second - 60, second + 60)).findings == []


def test_a_tombstone_expires_after_a_week(world: World) -> None:
    crash_after_the_claim(world, in_ms=30 * DAY_MS)
    now_ms = world.clock.now_ms()
    made(world, in_ms=30 * DAY_MS)
    (tombstone,) = tombstones(world)
    left_seconds = int(tombstone["expires_at"]["N"]) - now_ms // 1000
    assert 7 * 86_400 <= left_seconds <= 7 * 86_400 + 2


# Concurrent requests


@pytest.mark.parametrize("seed", quick_first(range(8), pytest.mark.exhaustive))
def test_concurrent_creates_and_a_redrive_leave_one_live_task(world: World, seed: int) -> None:
    """The threads stop at any call. The clock does not make them wait for each other, so they bury
    each other's homes; a request that is answered 503 has created no task."""
    task = dead(world)
    random, at_once = Random(seed), Barrier(6)

    def stops(call: Call) -> None:
        Event().wait(random.random() / 50)

    def begins(act: Callable[[], Any]) -> Any:
        at_once.wait()
        try:
            return act()
        except NotRedrivable as refusal:
            return refusal

    world.recorder.before = stops
    acts = [lambda: world.redrive(task.task_id), *[lambda: create(world)] * 5]
    with ThreadPoolExecutor(6) as threads:
        begun = [threads.submit(begins, act) for act in acts]
        results = [one.result() for one in begun]
    world.recorder.before = None

    refused = [result for result in results if isinstance(result, Refusal)]
    assert all(isinstance(r, KeyTaken | NotRedrivable | Unavailable) for r in refused)
    answered = {result.task.home for result in results if isinstance(result, Made)}
    answered |= {result.home for result in results if isinstance(result, Task)}
    live = {codec.address_of(item) for item in homes(world) if item["status"] == PENDING}
    assert len(live) <= 1
    assert answered <= live
    last = create(world)
    assert isinstance(last, Made | KeyTaken)
    assert live <= {world.keyed.read("orders", KEY).home}


def create_keyed(story: Story) -> None:
    story.create_keyed(KEY, 10_000)


def upsert(story: Story) -> None:
    story.upsert(KEY, 10_000)


def crash_before(number: int, step: Callable[[Story], object]) -> Callable[[Story], object]:
    """The step, which dies before this call."""

    def crashing(story: Story) -> None:
        before = story.world.recorder.before
        story.unfinished += story.world.dies(partial(step, story), number) is not None
        story.world.recorder.before = before

    return crashing


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("first", [create_keyed, upsert])
def test_a_request_that_crashes_at_any_call_may_interrupt_another_at_any_call(
    world: World, number: int, first: Callable[[Story], object]
) -> None:
    """The promises are kept, and at most one task of the key is called."""
    for story in interleavings(
        world, lambda story: None, first, crash_before(number, create_keyed)
    ):
        lives = {task.home for task in story.results if isinstance(task, Task)}
        assert len(lives) <= 1
        assert len(story.world.receiver.received) == len(homes(world)) <= 1 + len(lives)
        refused = [result for result in story.results if isinstance(result, Refusal)]
        assert all(isinstance(result, KeyTaken | TooManyWrites) for result in refused)


@pytest.mark.exhaustive
def test_a_write_that_arrives_again_later_changes_nothing(world: World) -> None:
    """Each write of a create is repeated after the task has ended and another task has the key."""
    for number in range(2):
        world.recorder.clear()
        first = made(world)
        writes = [
            call
            for call in world.recorder.calls
            if call.operation in ("PutItem", "UpdateItem") and "slot" in str(call.request)
        ]
        assert len(writes) == 2
        world.cancel(first.task_id)
        other = made(world, digest=f"other-{number}")
        before = world.items()
        refused = world.unrecorded.exceptions.ConditionalCheckFailedException
        with pytest.raises(refused):
            world.unrecorded._make_api_call(writes[number].operation, writes[number].request)
        assert world.items() == before
        world.cancel(other.task_id)
