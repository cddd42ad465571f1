"""Keys of callers: the result of each call in each state, and races."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.refusals import AlreadySettled, KeyTaken, TooLate, UnknownTask
from duewheel.rules.tasks.task import Made, NewTask, Status, Task
from duewheel.rules.wheel import timing
from tests.support.receiver import GONE, OK
from tests.support.world import World

KEY = "order-17:unpaid"


def new(world: World, in_ms: int = 60_000, digest: str = "same", **fields: Any) -> NewTask:
    return world.new(in_ms, key=KEY, digest=digest, **fields)


def make(world: World, **fields: Any) -> Task:
    made = world.created_by_key(new(world, **fields))
    assert made.is_new
    return made.task


def key_items(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if "task" in item]


# The state table. A state is set up by a function that returns the task, if there is one.


def no_task(world: World) -> None:
    return None


def live(world: World) -> Task:
    return make(world)


def past_cut_off(world: World) -> Task:
    task = make(world)
    world.clock.set_ms(timing.cut_off_ms(task.next_ms, world.settings.lead_ms))
    return task


def settled(world: World) -> Task:
    task = make(world, in_ms=0)
    world.drain()
    assert world.read(task).status is Status.DELIVERED
    return task


def cancelled(world: World) -> Task:
    task = make(world)
    world.keyed.cancel("orders", KEY)
    return task


def dead(world: World) -> Task:
    world.receiver.answer = lambda received: GONE
    task = make(world, in_ms=0)
    world.drain()
    world.receiver.answer = lambda received: OK
    assert world.read(task).status is Status.DEAD
    return task


def expired(world: World) -> Task:
    task = make(world, expires_after_seconds=1.0)
    world.dispatch_until(task.due_ms // 1000 + 5)
    world.drain()
    assert world.read(task).status is Status.EXPIRED
    return task


def post_same(world: World) -> Made:
    return world.created_by_key(new(world))


def post_other(world: World) -> Made:
    return world.created_by_key(new(world, digest="other"))


def put(world: World) -> Made:
    return world.keyed.upsert(new(world, in_ms=90_000))


def get(world: World) -> Task:
    return world.keyed.read("orders", KEY)


def delete(world: World) -> Task:
    return world.keyed.cancel("orders", KEY)


NEW, FOUND, CHANGED, READ, ENDED = "new", "found", "changed", "read", "cancelled"
TABLE: list[tuple[Callable[[World], Task | None], dict[Callable[[World], Any], Any]]] = [
    (no_task, {post_same: NEW, post_other: NEW, put: NEW, get: UnknownTask, delete: UnknownTask}),
    (live, {post_same: FOUND, post_other: KeyTaken, put: CHANGED, get: READ, delete: ENDED}),
    (
        past_cut_off,
        {post_same: FOUND, post_other: KeyTaken, put: TooLate, get: READ, delete: TooLate},
    ),
    (settled, {post_same: NEW, post_other: NEW, put: NEW, get: READ, delete: AlreadySettled}),
    (cancelled, {post_same: NEW, post_other: NEW, put: NEW, get: READ, delete: ENDED}),
    (dead, {post_same: NEW, post_other: NEW, put: NEW, get: READ, delete: AlreadySettled}),
    (expired, {post_same: NEW, post_other: NEW, put: NEW, get: READ, delete: AlreadySettled}),
]


@pytest.mark.parametrize(
    ("state", "call", "expected"),
    [
        pytest.param(state, call, expected, id=f"{state.__name__}-{call.__name__}")
        for state, row in TABLE
        for call, expected in row.items()
    ],
)
def test_each_call_has_its_result_in_each_state_of_a_key(
    world: World,
    state: Callable[[World], Task | None],
    call: Callable[[World], Any],
    expected: Any,
) -> None:
    task = state(world)
    before = world.items()
    if isinstance(expected, type):
        with pytest.raises(expected):
            call(world)
        assert world.items() == before
        return
    result = call(world)
    named = result.task if isinstance(result, Made) else result
    match expected:
        case "new":
            assert result.is_new
            assert task is None or named.home != task.home
            assert world.read(named).is_live
        case "found" | "changed":
            assert task is not None
            assert not result.is_new
            assert named.home == task.home
            assert (world.read(task).due_ms != task.due_ms) is (expected == "changed")
        case "read" | "cancelled":
            assert task is not None
            assert named == world.read(task)
            assert (named.status is Status.CANCELLED) is (
                expected == "cancelled" or state is cancelled
            )
    assert world.keyed.read("orders", KEY).home == named.home
    assert len(key_items(world)) == 1


def test_a_key_has_no_expiry_while_its_task_lives_and_the_expiry_of_its_task_afterwards(
    world: World,
) -> None:
    for state in (live, settled, cancelled, dead, expired):
        task = state(world)
        assert task is not None
        (item,) = key_items(world)
        stored = world.read(task)
        assert item.get("expires_at") == (None if stored.is_live else {"N": str(stored.expires_at)})
        if stored.is_live:
            world.keyed.cancel("orders", KEY)


def test_keys_of_two_businesses_are_independent(world: World) -> None:
    ours = make(world)
    theirs = world.created_by_key(new(world, biz_type="payments", digest="other")).task
    assert world.keyed.read("orders", KEY).home == ours.home
    assert world.keyed.read("payments", KEY).home == theirs.home


def test_an_expired_record_frees_its_key_before_ttl_deletes_it(world: World) -> None:
    task = settled(world)
    world.clock.advance_ms(world.settings.retention_seconds * 1000 + 1_000)
    with pytest.raises(UnknownTask):
        world.keyed.read("orders", KEY)
    assert world.created_by_key(new(world)).task.home != task.home


def test_a_redriven_task_keeps_its_key_and_its_key_does_not_expire(world: World) -> None:
    task = dead(world)
    world.redrive(task.task_id)
    (item,) = key_items(world)
    assert "expires_at" not in item
    assert not world.created_by_key(new(world)).is_new
    with pytest.raises(KeyTaken):
        post_other(world)


def test_a_late_release_does_not_let_a_redriven_tasks_key_expire(world: World) -> None:
    task = dead(world)
    as_it_died = world.read(task)
    world.redrive(task.task_id)
    world.keys.release([as_it_died])
    (item,) = key_items(world)
    assert "expires_at" not in item


@pytest.mark.parametrize("number", [1, 2], ids=["claim", "task"])
def test_a_create_whose_answer_was_lost_recognises_its_own_task(world: World, number: int) -> None:
    world.recorder.lose_answer(world.dynamodb, "PutItem", at=number)
    assert world.created_by_key(new(world)).is_new
    assert len([item for item in world.items() if "status" in item]) == 1


def test_a_beat_is_one_write_and_a_watchdog_without_beats_fires_once(world: World) -> None:
    world.wire(list_index=False)
    made = world.keyed.upsert(new(world, in_ms=30_000))
    start_ms = world.clock.now_ms()
    for seconds in range(5, 40, 5):
        world.dispatch_until(start_ms // 1000 + seconds)
        world.drain()
        world.recorder.clear()
        world.keyed.upsert(new(world, in_ms=30_000))
        writes = [
            o
            for o in world.recorder.operations()
            if o not in ("GetItem", "BatchGetItem", "SendMessageBatch")
        ]
        assert writes == ["UpdateItem"]
    last_due_ms = world.keyed.read("orders", KEY).due_ms
    assert world.receiver.received == []
    for second in (last_due_ms // 1000 - 1, last_due_ms // 1000):
        world.dispatch_until(second)
        world.drain()

    assert [(r.task_id, r.at_ms) for r in world.receiver.received] == [
        (made.task.task_id, last_due_ms)
    ]


def test_beats_do_not_move_a_watchdog_beyond_the_bound_that_it_was_created_with(
    world: World,
) -> None:
    bound_ms = world.clock.now_ms() + 45_000
    first = world.keyed.upsert(new(world, in_ms=30_000, max_due_ms=bound_ms)).task
    assert first.due_ms < bound_ms
    world.clock.advance_ms(20_000)
    later_bound_ms = bound_ms + 3_600_000
    beaten = world.keyed.upsert(new(world, in_ms=30_000, max_due_ms=later_bound_ms)).task

    assert beaten.due_ms == beaten.next_ms == bound_ms
    clamped = replace(new(world, in_ms=90_000), key="another", max_due_ms=bound_ms)
    assert world.keyed.upsert(clamped).task.due_ms == bound_ms


def test_an_upsert_replaces_all_fields_of_the_caller(world: World) -> None:
    task = make(world, payload="1", expires_after_seconds=5.0)
    changed = world.keyed.upsert(new(world, payload=None, digest="newer")).task
    assert (changed.payload, changed.expires_after_seconds, changed.digest) == (None, None, "newer")
    assert world.created_by_key(new(world, digest="newer")).task.home == task.home


def test_near_keyed_tasks_are_announced(world: World) -> None:
    task = make(world, in_ms=0)
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


def test_a_beat_whose_entry_is_in_the_past_names_a_new_one(world: World) -> None:
    """Its message was lost: without a new entry, a beat before each rescue would prevent all
    rescues."""
    task = make(world)
    world.keyed.upsert(new(world, in_ms=600_000))
    assert world.read(task).entry == task.entry, "moved to later, without another write"
    world.clock.set_ms((task.entry.second + 4) * 1000)
    beaten = world.keyed.upsert(new(world, in_ms=600_000)).task

    assert beaten.entry.second == beaten.next_ms // 1000
    assert world.read(task).entry == beaten.entry
    again = world.keyed.upsert(new(world, in_ms=660_000)).task
    assert again.entry == beaten.entry, "a single write again"
