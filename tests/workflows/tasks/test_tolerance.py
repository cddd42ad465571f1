"""Tasks with a tolerance share seconds: at create, change, heartbeat, retry and redrive, and in
repeats of idempotent creates."""

import json
from collections import Counter
from typing import Any

from msgspec.structs import replace

from duewheel.interface.tasks.task_view import batch_text
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.idempotency import LEASE_MS, idempotent_request
from duewheel.rules.tasks.requests import batch_request
from duewheel.rules.tasks.task import Made, NewTask, Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.tolerance import Window, shared_ms
from duewheel.rules.wheel.sharding import SLICE_ENTRIES
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.tasks import codec
from tests.support.damage import delete, key_of
from tests.support.receiver import BUSY, OK
from tests.support.world import FAR_MS, World

KEY = "order-17:unpaid"
QUICK = RetryPolicy(attempts_max=3, delays_seconds=(10.0,))


def create(world: World, *news: NewTask) -> list[Task]:
    """As by a call, so that the tolerance of the business counts."""
    results = world.create(news)
    return [made.task for made in results if isinstance(made, Made)]


def shared(due_ms: int, tolerance: int, biz_type: str = "orders") -> int:
    return shared_ms(Window(due_ms, biz_type), tolerance)


def set_tolerance(world: World, seconds: int | None) -> None:
    world.configured("orders", tolerance_seconds=seconds)
    world.clock.advance_ms(KEPT_MS)


# Create


def test_tasks_of_a_minute_share_a_page_and_are_called_in_their_tolerance(world: World) -> None:
    tasks = create(world, *(world.new(FAR_MS + 1_001 * n, tolerance_seconds=60) for n in range(50)))
    seconds = Counter(task.home.second for task in tasks)
    assert len(seconds) <= 2
    world.recorder.clear()
    for second in sorted(seconds):
        world.dispatch_until(second)
        world.drain()
    called = {one.headers["webhook-id"]: one for one in world.receiver.received}
    for task in tasks:
        assert task.due_at_ms <= called[task.task_id].at_ms <= task.due_at_ms + 60_000
        assert world.read(task).lateness_ms == 0, "counted from the second it was given"
    leases = [call for call in world.recorder.calls if "~" in str(call.request.get("Key", ""))]
    assert len({str(call.request["Key"]) for call in leases}) <= len(seconds)


def test_a_callback_says_the_due_instant_that_was_requested(world: World) -> None:
    (task,) = create(world, world.new(60_123, tolerance_seconds=60))
    assert task.requested_ms == task.due_at_ms != task.due_ms
    world.come_up(task)
    (received,) = world.receiver.received
    assert received.at_ms == task.due_ms
    assert received.headers["duewheel-due-at"].endswith(f".{task.due_at_ms % 1000:03d}Z")
    assert world.read(task).due_at_ms == task.due_at_ms


def test_a_task_without_tolerance_has_no_new_attribute(world: World) -> None:
    (task,) = create(world, world.new())
    (item,) = [item for item in world.items() if "status" in item]
    assert "tolerance" not in item
    assert task.due_ms == task.due_at_ms


def test_the_tolerance_of_a_business_is_for_tasks_that_say_none(world: World) -> None:
    set_tolerance(world, 60)
    usual, exact, own, other = create(
        world,
        world.new(),
        world.new(tolerance_seconds=0),
        world.new(tolerance_seconds=5),
        world.new(biz_type="bills"),
    )
    assert usual.due_ms == shared(usual.due_at_ms, 60)
    assert usual.tolerance_seconds is None, "the setting is no field of the task"
    assert exact.due_ms == exact.due_at_ms
    assert own.due_ms == shared(own.due_at_ms, 5)
    assert other.due_ms == other.due_at_ms
    for task in (usual, exact, own, other):
        assert world.read(task) == task


def test_grace_counts_from_the_shared_second(world: World) -> None:
    (task,) = create(world, world.new(FAR_MS, tolerance_seconds=3_600, expires_after_seconds=1.0))
    world.come_up(task)
    assert world.read(task).status is Status.DELIVERED


# Change


def test_a_moved_task_gets_a_shared_second_of_its_new_instant(world: World) -> None:
    (task,) = create(world, world.new(FAR_MS, tolerance_seconds=60))
    for due_ms in (task.due_at_ms + 3_600_123, task.due_at_ms - 60_001):
        moved = world.change(task.task_id, Change(due_ms=due_ms))
        assert (moved.due_at_ms, moved.due_ms) == (due_ms, shared(due_ms, 60))
        assert moved.next_ms == moved.due_ms
        assert world.read(task) == moved


def test_a_moved_task_takes_the_tolerance_that_its_business_has_now(world: World) -> None:
    (task,) = create(world, world.new(FAR_MS + 1))
    set_tolerance(world, 300)
    moved = world.change(task.task_id, Change(due_ms=task.due_at_ms + 1))
    assert moved.due_ms == shared(task.due_at_ms + 1, 300)
    set_tolerance(world, None)
    exact = world.change(task.task_id, Change(due_ms=task.due_at_ms))
    assert (exact.due_ms, exact.requested_ms) == (task.due_at_ms, None)


def test_another_tolerance_alone_places_a_task_again_from_its_due_instant(world: World) -> None:
    (task,) = create(world, world.new(FAR_MS + 1, tolerance_seconds=900))
    for seconds in (60, 0, 3_600):
        changed = world.change(task.task_id, Change(tolerance_seconds=seconds))
        assert changed.due_at_ms == task.due_at_ms
        assert changed.due_ms == changed.next_ms == shared(task.due_at_ms, seconds)
    exact = world.change(task.task_id, Change(tolerance_seconds=0))
    world.dispatch_until(exact.due_ms // 1000)
    world.drain()
    (received,) = world.receiver.received
    assert received.at_ms // 1000 == task.due_at_ms // 1000


def test_another_tolerance_does_not_move_a_retry(world: World) -> None:
    (task,) = create(world, world.new(retry=RetryPolicy(3, delays_seconds=(600.0,))))
    world.receiver.answer = lambda received: BUSY
    world.come_up(task)
    waiting = world.read(task)
    changed = world.change(task.task_id, Change(tolerance_seconds=60))
    assert (changed.next_ms, changed.due_ms) == (waiting.next_ms, task.due_ms)
    assert changed.tolerance_seconds == 60


def test_each_beat_of_a_watchdog_places_it_again_and_its_bound_holds_for_the_due_instant(
    world: World,
) -> None:
    bound_ms = world.clock.now_ms() + FAR_MS + 100_500
    first_ms = world.clock.now_ms() + FAR_MS

    def beat(due_ms: int) -> Task:
        new = world.new(key=KEY, digest="d", max_due_ms=bound_ms, tolerance_seconds=60)
        return world.keyed.upsert(replace(new, due_ms=due_ms)).task

    for due_ms in (first_ms, first_ms + 90_000, bound_ms + 500_000):
        task = beat(due_ms)
        assert task.due_at_ms == min(due_ms, bound_ms)
        assert task.due_ms == shared(task.due_at_ms, 60)
    assert task.due_ms > bound_ms
    exact = world.keyed.upsert(world.new(FAR_MS, key=KEY, digest="e", tolerance_seconds=0)).task
    assert exact.due_ms == exact.due_at_ms


# Retry


def test_a_retry_waits_for_a_shared_second_after_its_delay(world: World) -> None:
    (task,) = create(world, world.new(retry=QUICK, tolerance_seconds=60))
    world.receiver.answer = lambda received: BUSY
    world.come_up(task)
    waiting = world.read(task)
    assert waiting.next_ms == shared(waiting.updated_ms + 10_000, 60)
    assert (waiting.due_ms, waiting.due_at_ms) == (task.due_ms, task.due_at_ms)
    world.receiver.answer = lambda received: OK
    assert world.settle(task).status is Status.DELIVERED
    assert [one.at_ms for one in world.receiver.received] == [task.due_ms, waiting.next_ms]


def test_a_retry_takes_the_tolerance_that_its_business_has_now(world: World) -> None:
    (task,) = create(world, world.new(retry=QUICK))
    set_tolerance(world, 30)
    world.receiver.answer = lambda received: BUSY
    world.come_up(task)
    waiting = world.read(task)
    assert waiting.next_ms == shared(waiting.updated_ms + 10_000, 30)


def test_no_tolerance_ends_a_task_that_could_be_called_without(world: World) -> None:
    aged = RetryPolicy(attempts_max=3, delays_seconds=(10.0,), max_age_seconds=15.0)
    tasks = create(
        world,
        world.new(FAR_MS, retry=QUICK, tolerance_seconds=60, expires_after_seconds=15.0),
        world.new(FAR_MS, retry=aged, tolerance_seconds=60),
    )
    world.receiver.answer = lambda received: (
        OK if received.headers["duewheel-attempt"] == "2" else BUSY
    )
    world.come_up(tasks[0])
    for waiting in map(world.read, tasks):
        assert waiting.next_ms == waiting.updated_ms + 10_000
    for task in tasks:
        assert world.settle(task).status is Status.DELIVERED


def test_a_redrive_is_called_at_once(world: World) -> None:
    (task,) = create(world, world.new(retry=RetryPolicy(1), tolerance_seconds=3_600))
    world.receiver.answer = lambda received: BUSY
    dead = world.settle(task)
    assert dead.status is Status.DEAD
    world.receiver.answer = lambda received: OK
    world.redrive(task.task_id)
    world.drain()
    assert world.read(task).status is Status.DELIVERED
    assert world.receiver.received[-1].at_ms == world.clock.now_ms()


# A crowd


def test_a_crowd_is_spread_over_the_tolerance_with_as_many_requests_as_without(
    world: World,
) -> None:
    def requests(**fields: Any) -> tuple[list[Task], Counter[str]]:
        for _ in range(2):
            world.recorder.clear()
            news = [world.new(FAR_MS, **fields) for _ in range(SLICE_ENTRIES + 1)]
            tasks = create(world, *news)
        return tasks, Counter(world.recorder.operations())

    spread, with_tolerance = requests(tolerance_seconds=60)
    crowded, without = requests(biz_type="bills")
    assert with_tolerance["GetItem"] + with_tolerance["BatchGetItem"] <= (
        without["GetItem"] + without["BatchGetItem"]
    )
    assert len({task.home.second for task in crowded}) == 1
    seconds = {task.home.second for task in spread}
    assert 2 <= len(seconds) <= 12
    for task in spread:
        assert task.due_at_ms <= task.due_ms <= task.due_at_ms + 60_000
        shards = world.headers.read([task.home.second]).get(task.home.second, 1)
        assert task.home.shard < shards


def test_the_load_of_a_crowd_is_counted_in_the_seconds_over_which_it_is_spread(
    world: World,
) -> None:
    world.random_unit = 0.0  # each counts for 64
    tasks = [create(world, world.new(FAR_MS, tolerance_seconds=60))[0] for _ in range(30)]
    used = Counter(task.home.second for task in tasks)
    minutes = [second // 60 for second in used]
    expected = {
        load.minute * 60 + second: number
        for load in world.loads.between(min(minutes), max(minutes))
        for second, number in load.by_second.items()
    }
    assert len(used) > 2
    # The last one that the crowd is noticed by goes elsewhere than it was counted.
    assert sum(abs(expected.get(s, 0) - 64 * used[s]) for s in {*used, *expected}) <= 2 * 64


def test_spread_tasks_use_the_shards_of_the_seconds_that_they_get(world: World) -> None:
    first = (world.clock.now_ms() + FAR_MS) // 1000
    seconds = range(first, first + 61)
    world.reserve_shards.known.keep({s: world.headers.raise_to(s, 2) or 1 for s in seconds})
    tasks = create(world, *(world.new(FAR_MS, tolerance_seconds=60) for _ in range(64)))
    placed = Counter((task.home.second, task.home.shard) for task in tasks)
    used = {second for second, _ in placed}
    assert len(used) > 1
    assert placed.keys() == {(second, shard) for second in used for shard in (0, 1)}


def test_every_task_of_a_spread_crowd_is_called_once(world: World) -> None:
    tasks = [
        task
        for _ in range(3)
        for task in create(world, *(world.new(FAR_MS, tolerance_seconds=5) for _ in range(130)))
    ]
    last = max(task.home.second for task in tasks)
    for second in sorted({task.home.second for task in tasks}):
        world.dispatch_until(second)
        world.drain()
    assert Counter(world.receiver.task_ids) == Counter(task.task_id for task in tasks)
    world.sweep_past(last)
    assert world.audit(AuditRequest(last - 300, last + 60)).findings == []
    assert len(world.receiver.received) == len(tasks)


# Repeats under an idempotency key


def request_batch(world: World, number: int = 3, key: str = "k", **fields: Any) -> list[Made | Any]:
    tasks = [
        {
            "biz_type": "orders",
            "delay_seconds": 300 + n,
            "callback": {"url": "https://example.com/"},
            **fields,
        }
        for n in range(number)
    ]
    body = json.dumps({"tasks": tasks})
    request = idempotent_request("me", key, "/v1/tasks/batch", body, is_single=False)
    return world.create_idempotent(request, lambda now_ms: batch_request(body, now_ms))


def stored(world: World) -> list[Task]:
    return [codec.task_from(item) for item in world.items() if "status" in item]


def test_a_repeat_gets_the_same_answer_when_the_tolerance_of_the_business_has_changed(
    world: World,
) -> None:
    for before, after in ((60, 3_600), (3_600, None), (None, 60)):
        set_tolerance(world, before)
        first = request_batch(world, key=f"{before}")
        number = len(stored(world))
        set_tolerance(world, after)
        assert batch_text(request_batch(world, key=f"{before}")) == batch_text(first)
        assert len(stored(world)) == number
        tasks = [made.task for made in first if isinstance(made, Made)]
        assert {(task.due_ms == task.due_at_ms) for task in tasks} == {before is None}


def test_a_repeat_of_a_spread_crowd_finds_its_tasks(world: World) -> None:
    first = request_batch(world, SLICE_ENTRIES + 1, tolerance_seconds=60)
    seconds = {made.task.home.second for made in first}
    assert len(seconds) > 2, "more than the two grid seconds of five minutes"
    world.reserve_shards.known._shards.clear()
    assert batch_text(request_batch(world, SLICE_ENTRIES + 1, tolerance_seconds=60)) == batch_text(
        first
    )
    assert len(stored(world)) == SLICE_ENTRIES + 1


def test_a_takeover_under_another_tolerance_creates_only_what_is_missing(world: World) -> None:
    set_tolerance(world, 60)
    first = request_batch(world)
    missing = first[1].task
    delete(world, key_of(world, missing))
    set_tolerance(world, 900)
    world.clock.advance_ms(LEASE_MS)
    again = request_batch(world)
    kept = [made.task.home for n, made in enumerate(first) if n != 1]
    assert [made.task.home for n, made in enumerate(again) if n != 1] == kept
    assert again[1].task.due_ms == shared(again[1].task.due_at_ms, 900)
    assert len(stored(world)) == 3
    assert batch_text(request_batch(world)) == batch_text(again)
