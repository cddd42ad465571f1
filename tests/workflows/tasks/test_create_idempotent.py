"""Creates under an idempotency key: the answers of repeats, and crashes in between.

Here the biz_type names a request: it distinguishes the tasks of requests in the wheel. The payload
of a task is its index.
"""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from duewheel.interface.tasks.task_view import batch_text
from duewheel.rules.ingest import message
from duewheel.rules.refusals import (
    CreatedBefore,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    InvalidField,
    KeyTaken,
    NotPermitted,
    Refusal,
    Unavailable,
)
from duewheel.rules.tasks.idempotency import (
    DELETED_EARLY_MS_MAX,
    LEASE_MS,
    REMEMBERED_SECONDS,
    idempotent_request,
)
from duewheel.rules.tasks.requests import batch_request, single_request
from duewheel.rules.tasks.task import Made, NewTask, Status, Task
from duewheel.stores.tasks import codec
from local.aws.patches.item_sizes import size_of
from tests.support.damage import delete, edit, key_of
from tests.support.recorder import Call
from tests.support.units import Meter
from tests.support.world import World

PATH = "/v1/tasks/batch"
THROTTLED = "ProvisionedThroughputExceededException"
OF_A_CALL, OF_A_MESSAGE = REMEMBERED_SECONDS, message.REMEMBERED_SECONDS
Settings = Callable[[list[NewTask | Refusal]], list[NewTask | Refusal]]
DELAYS: list[Any] = [0, 3, 20, 20, 70, {"key": "order-17"}, {"key": "order-18"}]
ALL_BUT_ONE = [201] * len(DELAYS) + [422]  # of `several`


def task(index: int, delay: Any = 600, **fields: Any) -> dict[str, Any]:
    more = {"delay_seconds": 20, **delay} if isinstance(delay, dict) else {"delay_seconds": delay}
    return {"payload": index, "callback": {"url": "https://example.com/"}, **more, **fields}


def several(**fields: Any) -> list[dict[str, Any]]:
    """Near and far tasks, with and without keys; one of them is invalid."""
    good = [task(index, delay) for index, delay in enumerate(DELAYS)]
    return [{**one, **fields} for one in [*good, {**task(99), "retry": 1}]]


def batch(
    world: World,
    tasks: list[dict[str, Any]],
    key: str = "k",
    caller: str = "me",
    remembered_seconds: int = OF_A_CALL,
    settings: Settings = lambda tasks: tasks,
) -> list[Made | Refusal]:
    body = json.dumps({"tasks": [{"biz_type": "orders", **one} for one in tasks]})
    request = idempotent_request(
        caller, key, PATH, body, is_single=False, remembered_seconds=remembered_seconds
    )
    return world.create_idempotent(request, lambda now_ms: settings(batch_request(body, now_ms)))


def single(world: World, one: dict[str, Any], key: str = "k") -> Made:
    body = json.dumps({"biz_type": "orders", **one})
    request = idempotent_request("me", key, "/v1/tasks", body, is_single=True)
    (result,) = world.create_idempotent(request, lambda now_ms: [single_request(body, now_ms)])
    if isinstance(result, Refusal):
        raise result
    return result


def statuses(results: list[Made | Refusal]) -> list[int]:
    return [r.status if isinstance(r, Refusal) else 201 if r.is_new else 200 for r in results]


def tasks_in_wheel(world: World) -> list[Task]:
    return [codec.task_from(item) for item in world.items() if "status" in item]


def created(world: World) -> Counter[tuple[str, str]]:
    """The number of tasks in the wheel for each index of each request."""
    return Counter((one.biz_type, str(one.payload)) for one in tasks_in_wheel(world))


def record_of(world: World) -> dict[str, Any]:
    (record,) = [
        item
        for item in world.dynamodb.scan(TableName=world.settings.registry_table)["Items"]
        if item["record"]["S"] == "request"
    ]
    return dict(record)


# Answers to repeats


def test_a_repeat_gets_the_first_answer_byte_for_byte_and_creates_nothing(world: World) -> None:
    tasks = [*several(), task(100, due_ms=1)]
    first = batch(world, tasks)
    assert statuses(first) == [201] * len(DELAYS) + [422, 422]
    stored = world.items()
    world.clock.advance_ms(3_600_000)

    assert batch_text(batch(world, tasks)) == batch_text(first)
    assert world.items() == stored


def test_the_first_answer_is_replayed_after_the_task_was_delivered_or_cancelled(
    world: World,
) -> None:
    tasks = [task(0, 30), task(1, 3_600)]
    first = batch(world, tasks)
    later = first[1]
    assert isinstance(later, Made)
    world.cancel.at(later.task.home)
    world.dispatch_until(world.clock.now_ms() // 1000 + 31)
    world.drain()
    assert {one.status for one in tasks_in_wheel(world)} == {Status.DELIVERED, Status.CANCELLED}

    assert batch_text(batch(world, tasks)) == batch_text(first)
    assert len(world.receiver.received) == 1


def test_a_replay_does_not_depend_on_settings_that_changed_since(world: World) -> None:
    first = batch(world, [task(0, 6)])
    world.wire(lead_ms=2_000, list_index=False)
    assert batch_text(batch(world, [task(0, 6)])) == batch_text(first)


def test_a_batch_whose_tasks_are_all_refused_is_remembered(world: World) -> None:
    tasks = [task(0, retry=1), task(1, due_ms=10**15)]
    first = batch(world, tasks)
    world.clock.advance_ms(60_000)
    assert batch_text(batch(world, tasks)) == batch_text(first)
    assert world.items() == []


def test_another_body_or_another_call_under_the_same_key_is_refused(world: World) -> None:
    single(world, task(0))
    stored = world.items()
    for repeat in (
        lambda: single(world, task(1)),
        lambda: batch(world, [task(0)]),
        lambda: single(world, {**task(0), "biz_type": "mail"}),
    ):
        with pytest.raises(IdempotencyKeyReused):
            repeat()
    assert world.items() == stored


def test_idempotency_keys_of_two_callers_are_independent(world: World) -> None:
    mine = batch(world, [task(0)], caller="me")
    theirs = batch(world, [task(1)], caller="you")
    assert statuses([*mine, *theirs]) == [201, 201]
    assert created(world) == {("orders", "0"): 1, ("orders", "1"): 1}


def test_a_request_is_remembered_for_twenty_four_hours(world: World) -> None:
    first = single(world, task(0))
    world.clock.advance_ms(REMEMBERED_SECONDS * 1000 - 1)
    assert single(world, task(0)) == first
    world.clock.advance_ms(1)
    assert single(world, task(1)).task.home != first.task.home
    assert created(world) == {("orders", "0"): 1, ("orders", "1"): 1}


def test_a_request_that_is_refused_as_a_whole_is_not_remembered(world: World) -> None:
    with pytest.raises(InvalidField):
        single(world, task(0, due_ms=1))
    assert single(world, task(0)).is_new


# Keys of tasks


def test_a_single_create_whose_task_key_is_taken_is_not_remembered(world: World) -> None:
    world.created_by_key(world.new(key="order-17", digest="other"))
    with pytest.raises(KeyTaken):
        single(world, task(0, key="order-17"))
    assert single(world, task(1)).is_new, "the same idempotency key, with another body"


def test_a_task_of_a_batch_stays_refused_when_its_key_becomes_free(world: World) -> None:
    world.created_by_key(world.new(key="order-17", digest="other"))
    tasks = [task(0), task(1, key="order-17")]
    first = batch(world, tasks)
    assert statuses(first) == [201, 422]
    world.keyed.cancel("orders", "order-17")

    assert batch_text(batch(world, tasks)) == batch_text(first)
    assert batch_text(batch(world, tasks)) == batch_text(first)


def test_a_replay_shows_an_existing_task_of_the_key_in_its_current_state(world: World) -> None:
    tasks = [task(0, {"key": "order-17"})]
    batch(world, tasks, key="another")
    assert statuses(batch(world, tasks)) == [200]
    world.keyed.cancel("orders", "order-17")
    (replayed,) = batch(world, tasks)

    assert isinstance(replayed, Made)
    assert (replayed.is_new, replayed.task.status) == (False, Status.CANCELLED)


def test_a_replay_for_an_existing_task_that_was_deleted_is_unknown(world: World) -> None:
    tasks = [task(0, {"key": "order-17"})]
    (made,) = batch(world, tasks, key="another")
    batch(world, tasks)
    assert isinstance(made, Made)
    delete_item(world, made)
    assert statuses(batch(world, tasks)) == [404]


# Deaths


def died(
    world: World, number: int, moment: str, create: Callable[..., object], *given: Any, **more: Any
) -> Call | None:
    """Die at the call of this number, counted from 0. Returns that call."""
    world.entry_writer.placement()  # reads the time pointer first: the same calls each time
    world.business_cache.one("orders")  # caches this business, unless it belongs to another request
    return world.dies(lambda: create(world, *given, **more), number + 1, moment)


def check_died_at_a_write(call: Call | None) -> None:
    assert call
    assert call.operation == "BatchWriteItem"


def check_each_index_was_created_and_is_delivered_once(world: World, requests: set[str]) -> None:
    expected = {(name, str(index)): 1 for name in requests for index in range(len(DELAYS))}
    assert created(world) == expected
    world.sweep_past(world.clock.now_ms() // 1000 + max(d for d in DELAYS if isinstance(d, int)))
    world.drain()

    assert {one.status for one in tasks_in_wheel(world)} == {Status.DELIVERED}
    assert created(world) == expected
    calls = Counter(
        (call.headers["duewheel-biz-type"], (call.body or b"").decode())
        for call in world.receiver.received
    )
    assert calls == expected


def check_is_finished_by_a_repeat(world: World, name: str, **kept: Any) -> None:
    repeated = batch(world, several(biz_type=name), name, **kept)
    assert statuses(repeated) == ALL_BUT_ONE
    assert batch_text(batch(world, several(biz_type=name), name, **kept)) == batch_text(repeated)


def in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duewheel.stores.dynamodb.WRITES_PER_BATCH", 2)


def pass_the_lease(world: World) -> None:
    world.clock.advance_ms(LEASE_MS)


def pass_the_sweep(world: World) -> None:
    world.sweep_past(world.clock.now_ms() // 1000 + 21)


@pytest.mark.exhaustive
@pytest.mark.parametrize("remembered", [OF_A_CALL, OF_A_MESSAGE])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("time_passes", [pass_the_lease, pass_the_sweep])
def test_a_request_that_died_at_any_call_is_finished_by_its_repeat(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    time_passes: Callable[[World], None],
    remembered: int,
) -> None:
    in_small_batches(monkeypatch)
    died_at: list[str] = []
    for number in count():
        name = f"request-{number}"
        new, kept = several(biz_type=name), {"remembered_seconds": remembered}
        call = died(world, number, moment, batch, new, name, **kept)
        if call is None:
            break
        died_at.append(call.operation)
    assert died_at[:5] == ["BatchGetItem", "PutItem", *["BatchWriteItem"] * 3]
    assert {"SendMessageBatch", "GetItem"} <= set(died_at)
    time_passes(world)

    requests = {f"request-{number}" for number in range(len(died_at) + 1)}
    for name in requests:
        check_is_finished_by_a_repeat(world, name, remembered_seconds=remembered)
    check_each_index_was_created_and_is_delivered_once(world, requests)


@pytest.mark.exhaustive
def test_a_request_that_died_at_any_call_is_finished_under_another_tolerance_of_its_business(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_batches(monkeypatch)
    names = [f"request-{number}" for number in range(20)]
    for number, name in enumerate(names):
        world.configured(name, tolerance_seconds=60)
        died(world, number, "after", batch, several(biz_type=name), name)
    for name in names:
        world.configured(name, tolerance_seconds=300)
    pass_the_lease(world)

    for name in names:
        check_is_finished_by_a_repeat(world, name)
    world.sweep_past(world.clock.now_ms() // 1000 + 400)
    check_each_index_was_created_and_is_delivered_once(world, set(names))


@pytest.mark.exhaustive
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_repeat_that_died_at_any_call_is_finished_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    in_small_batches(monkeypatch)
    names = [f"request-{number}" for number in range(20)]
    for name in names:
        check_died_at_a_write(died(world, 4, "before", batch, several(biz_type=name), name))
    pass_the_lease(world)
    finished = 0
    for number, name in enumerate(names):
        finished += died(world, number, moment, batch, several(biz_type=name), name) is None
    assert finished, "the repeats died at each of their calls"
    pass_the_lease(world)

    for name in names:
        check_is_finished_by_a_repeat(world, name)
    check_each_index_was_created_and_is_delivered_once(world, set(names))


@pytest.mark.exhaustive
def test_a_single_create_that_died_at_any_call_is_finished_by_its_repeat(world: World) -> None:
    first_ms = world.clock.now_ms()
    unfinished: list[tuple[str, dict[str, Any]]] = []
    world.business_cache.many(f"request-{number}" for number in range(6))
    for delay in (0, 5, 30, 300):
        for own_key in ({}, {"key": f"order-{delay}"}):
            for number in range(6):
                one = task(delay, delay, biz_type=f"request-{number}", **own_key)
                key = f"{delay}-{len(own_key)}-{number}"
                if died(world, number, "after", single, one, key):
                    unfinished.append((key, one))
    plain = 2  # claim and put
    near, keyed = 1, 2  # a message; a read of the key, and its claim
    announced = 1  # the page of the tasks thirty seconds ahead, once
    assert len(unfinished) == 4 * (plain + plain + keyed) + 4 * near + announced
    pass_the_sweep(world)

    for key, one in unfinished:
        made = single(world, one, key)
        assert made.is_new
        due_ms = first_ms + one["delay_seconds"] * 1000
        assert made.task.due_ms == due_ms, "counted from the first request"
        assert made == single(world, one, key)
    stored = len(tasks_in_wheel(world))
    assert stored == 4 * 2 * 6
    world.sweep_past(world.clock.now_ms() // 1000 + 150)
    assert {one.status for one in tasks_in_wheel(world)} == {Status.DELIVERED}
    assert len(world.receiver.received) == len(tasks_in_wheel(world)) == stored


def test_a_request_in_work_is_not_repeated_until_its_lease_ends(world: World) -> None:
    check_died_at_a_write(died(world, 1, "before", batch, several()))
    world.clock.advance_ms(LEASE_MS - 1)
    with pytest.raises(IdempotencyKeyInUse):
        batch(world, several())
    with pytest.raises(IdempotencyKeyReused):
        batch(world, [task(0)])
    world.clock.advance_ms(1)
    assert statuses(batch(world, several())) == ALL_BUT_ONE


def test_a_request_that_created_all_its_tasks_is_answered_within_its_lease(world: World) -> None:
    """No task is missing, so the repeat does not wait, although the owner may be at work."""
    tasks = several()
    world.recorder.once("PutItem", partial(check_in_use, world, tasks), at=3)
    first = batch(world, tasks)
    stored, record = world.items(), record_of(world)
    assert record["state"] == {"S": "running"}

    assert batch_text(batch(world, tasks)) == batch_text(first)
    assert (world.items(), record_of(world)) == (stored, record), "a repeat writes nothing"


def check_in_use(world: World, tasks: list[dict[str, Any]]) -> None:
    with pytest.raises(IdempotencyKeyInUse):
        batch(world, tasks)


# Missing tasks


def delete_item(world: World, made: Made | Refusal) -> None:
    assert isinstance(made, Made)
    delete(world, key_of(world, made.task))


def test_a_task_that_ttl_may_have_deleted_is_not_created_again(world: World) -> None:
    """The task may have been cancelled immediately, by a clock that is behind, and kept for a
    day."""
    (made,) = batch(world, [task(0)])
    world.clock.advance_ms(REMEMBERED_SECONDS * 1000 - DELETED_EARLY_MS_MAX)
    assert batch(world, [task(0)]) == [made]
    delete_item(world, made)
    check_in_use(world, [task(0)])
    world.clock.advance_ms(DELETED_EARLY_MS_MAX)
    assert statuses(batch(world, [task(1)])) == [201], "the key is free again"
    assert created(world) == {("orders", "1"): 1}


def test_a_message_whose_tasks_were_deleted_does_not_create_them_again(world: World) -> None:
    tasks = [task(0), task(1)]
    first = batch(world, tasks, remembered_seconds=OF_A_MESSAGE)
    for made in first:
        delete_item(world, made)
    world.clock.advance_ms(OF_A_MESSAGE * 1000 - 1)
    repeated = batch(world, tasks, remembered_seconds=OF_A_MESSAGE)
    assert batch_text(repeated) == batch_text(first)
    assert created(world) == {}


def test_the_repeat_of_a_message_that_died_records_its_end(world: World) -> None:
    died(world, 2, "before", batch, [task(0)], remembered_seconds=OF_A_MESSAGE)
    pass_the_lease(world)
    (made,) = batch(world, [task(0)], remembered_seconds=OF_A_MESSAGE)
    delete_item(world, made)
    world.clock.advance_ms(2 * REMEMBERED_SECONDS * 1000)
    assert batch(world, [task(0)], remembered_seconds=OF_A_MESSAGE) == [made]
    assert created(world) == {}


def test_a_damaged_task_is_not_created_again(world: World) -> None:
    first = batch(world, [task(0), task(1)])
    made = first[0]
    assert isinstance(made, Made)
    edit(world, key_of(world, made.task), payload={"N": "1"})
    stored = world.items()
    pass_the_lease(world)
    assert batch_text(batch(world, [task(0), task(1)])) == batch_text(first)
    assert world.items() == stored


# Settings that have changed since


def refuse_second(tasks: list[NewTask | Refusal]) -> list[NewTask | Refusal]:
    """The second task is refused now."""
    allowed, refused, *rest = tasks
    assert isinstance(refused, NewTask)
    refusal = NotPermitted("Not any more.")
    refusal.window = refused.window
    return [allowed, refusal, *rest]


def test_a_created_task_that_settings_refuse_now_is_reported_as_created_before(
    world: World,
) -> None:
    tasks = [task(0), task(1), task(2)]
    first = batch(world, tasks)
    for _ in range(2):
        repeated = batch(world, tasks, settings=refuse_second)
        assert [repeated[0], repeated[2]] == [first[0], first[2]]
        assert isinstance(repeated[1], CreatedBefore)
        pass_the_lease(world)
    assert batch(world, tasks) == first


def test_the_repeat_of_a_request_that_died_looks_for_tasks_that_settings_refuse_now(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duewheel.stores.dynamodb.WRITES_PER_BATCH", 1)
    tasks = [task(0), task(1), task(2)]
    check_died_at_a_write(died(world, 2, "before", batch, tasks, "without-the-second"))
    check_died_at_a_write(died(world, 3, "before", batch, tasks, "with-the-second"))
    with pytest.raises(IdempotencyKeyInUse):
        batch(world, tasks, "with-the-second", settings=refuse_second)
    pass_the_lease(world)
    without = batch(world, tasks, "without-the-second", settings=refuse_second)
    with_it = batch(world, tasks, "with-the-second", settings=refuse_second)
    assert statuses(without) == statuses(with_it) == [201, 403, 201]
    assert isinstance(with_it[1], CreatedBefore)
    assert not isinstance(without[1], CreatedBefore)
    for key in ("without-the-second", "with-the-second"):
        assert statuses(batch(world, tasks, key)) == [201] * 3
    assert created(world) == {("orders", str(index)): 2 for index in range(3)}


# Items that DynamoDB left unprocessed


@contextmanager
def leaving_unprocessed(world: World, number: int) -> Any:
    """DynamoDB leaves the last `number` writes of each batch unprocessed."""
    original = world.dynamodb.batch_write_item

    def partly(RequestItems: dict[str, list[object]]) -> dict[str, object]:
        ((table, requests),) = RequestItems.items()
        taken, left = requests[:-number], requests[-number:]
        if taken:
            original(RequestItems={table: taken})
        return {"UnprocessedItems": {table: left}}

    world.dynamodb.batch_write_item = partly  # type: ignore[method-assign]
    yield
    world.dynamodb.batch_write_item = original  # type: ignore[method-assign]


@pytest.mark.exhaustive
def test_a_repeat_writes_unprocessed_tasks_immediately(world: World) -> None:
    with leaving_unprocessed(world, 2):
        first = batch(world, several())
    assert statuses(first) == [201, 201, 201, 503, 503, 201, 201, 422]
    second = batch(world, several())

    assert statuses(second) == ALL_BUT_ONE
    for before, after in zip(first, second, strict=True):
        if isinstance(before, Made):
            assert before == after
    assert batch_text(batch(world, several())) == batch_text(second)
    check_each_index_was_created_and_is_delivered_once(world, {"orders"})


@pytest.mark.exhaustive
def test_a_request_may_stay_unfinished_any_number_of_times(world: World) -> None:
    tasks = [task(index) for index in range(12)]
    sizes = []
    for left in [*range(11, 4, -1), *[4] * 20]:
        with leaving_unprocessed(world, left):
            results = batch(world, tasks)
        assert statuses(results).count(503) == left
        sizes.append(size_of(record_of(world)))
    assert sizes[-1] == sizes[-2] < 2_000, "claims under which no task was created are dropped"
    assert statuses(batch(world, tasks)) == [201] * 12
    assert created(world) == {("orders", str(index)): 1 for index in range(12)}


def test_a_refused_task_stays_refused_when_a_repeat_creates_the_others(world: World) -> None:
    world.created_by_key(world.new(key="order-17", digest="other", payload='"theirs"'))
    tasks = [task(0), task(1), task(2), task(3, {"key": "order-17"})]
    with leaving_unprocessed(world, 2):
        assert statuses(batch(world, tasks)) == [201, 503, 503, 422]
    world.keyed.cancel("orders", "order-17")
    assert statuses(batch(world, tasks)) == [201, 201, 201, 422]


def throttle_tasks(world: World, times: int) -> None:
    table = world.settings.wheel_table
    world.recorder.refuse("PutItem", code=THROTTLED, times=times, of=table)


def test_a_throttled_single_create_is_claimed_again_at_another_place(world: World) -> None:
    single(world, task(0), key="first")
    throttle_tasks(world, 1)
    made = single(world, task(1))

    assert made.is_new
    assert made.task.home.second in world.headers.read([made.task.home.second])
    assert single(world, task(1)) == made
    assert created(world) == {("orders", "0"): 1, ("orders", "1"): 1}


def test_a_create_that_is_throttled_again_can_be_repeated_immediately(world: World) -> None:
    single(world, task(0), key="first")
    throttle_tasks(world, 2)
    with pytest.raises(Unavailable):
        single(world, task(1))
    world.recorder.before = None
    assert single(world, task(1)).is_new
    assert created(world) == {("orders", "0"): 1, ("orders", "1"): 1}


def test_no_task_is_created_while_the_registry_refuses_writes(world: World) -> None:
    single(world, task(0), key="first")
    world.recorder.refuse("PutItem", code=THROTTLED)
    with pytest.raises(Unavailable):
        batch(world, [task(1)])
    world.recorder.before = None
    assert created(world) == {("orders", "0"): 1}
    assert statuses(batch(world, [task(1)])) == [201]


def test_a_result_that_could_not_be_recorded_is_not_answered(world: World) -> None:
    """Otherwise the next answer could be different."""
    world.created_by_key(world.new(key="order-17", digest="other", payload='"theirs"'))

    def throttle_what_is_recorded(call: Call) -> None:
        if call.request.get("Item", {}).get("state") == {"S": "done"}:
            raise ClientError({"Error": {"Code": THROTTLED}}, call.operation)

    tasks = [task(0), task(1), task(2, key="order-17")]
    world.recorder.before = throttle_what_is_recorded
    with pytest.raises(Unavailable):
        batch(world, tasks)
    world.recorder.before = None
    pass_the_lease(world)
    assert statuses(batch(world, tasks)) == [201, 201, 422]
    world.keyed.cancel("orders", "order-17")
    assert statuses(batch(world, tasks)) == [201, 201, 422]
    assert created(world)[("orders", "0")] == created(world)[("orders", "1")] == 1


# Concurrent requests


def test_only_one_of_two_concurrent_requests_creates(world: World) -> None:
    first: list[list[Made | Refusal]] = []
    world.recorder.once("PutItem", lambda: first.append(batch(world, several())))
    second = batch(world, several())

    assert batch_text(second) == batch_text(first[0])
    assert sum(created(world).values()) == len(DELAYS)


def test_a_request_while_another_writes_is_refused_as_in_use(world: World) -> None:
    def repeat() -> None:
        with pytest.raises(IdempotencyKeyInUse):
            batch(world, several())

    world.recorder.once("BatchWriteItem", repeat)
    assert statuses(batch(world, several())) == ALL_BUT_ONE
    assert sum(created(world).values()) == len(DELAYS)


def test_only_one_of_two_concurrent_repeats_takes_a_request_over(world: World) -> None:
    died(world, 1, "before", batch, several())
    pass_the_lease(world)
    first: list[list[Made | Refusal]] = []
    world.recorder.once("PutItem", lambda: first.append(batch(world, several())), at=2)
    with pytest.raises(IdempotencyKeyInUse):
        batch(world, several())

    assert batch_text(batch(world, several())) == batch_text(first[0])
    assert sum(created(world).values()) == len(DELAYS)


def test_a_repeat_that_read_before_another_took_over_creates_nothing(world: World) -> None:
    died(world, 1, "before", batch, several())
    pass_the_lease(world)

    def take_over_and_die() -> None:
        assert died(world, 4, "before", batch, several())
        assert sum(created(world).values()) > 0

    world.recorder.once("PutItem", take_over_and_die, at=2)
    with pytest.raises(IdempotencyKeyInUse):
        batch(world, several())
    pass_the_lease(world)
    assert statuses(batch(world, several())) == ALL_BUT_ONE
    assert created(world) == {("orders", str(index)): 1 for index in range(len(DELAYS))}


def test_a_request_whose_end_was_recorded_late_is_not_taken_over(world: World) -> None:
    late = died(world, 2, "before", batch, [task(0)], remembered_seconds=OF_A_MESSAGE)
    pass_the_lease(world)
    assert late
    assert late.request["Item"]["state"] == {"S": "done"}
    recorded = partial(world.dynamodb._make_api_call, late.operation, late.request)
    world.recorder.once("PutItem", recorded, at=2)
    with pytest.raises(IdempotencyKeyInUse):
        batch(world, [task(0)], remembered_seconds=OF_A_MESSAGE)
    assert record_of(world) == late.request["Item"]


def test_a_request_that_was_taken_over_does_not_answer(world: World) -> None:
    """It cannot live that long; if a clock is that wrong, the answers are the same nevertheless."""
    taken_over: list[list[Made | Refusal]] = []

    def outlive_the_lease() -> None:
        pass_the_lease(world)
        taken_over.append(batch(world, [task(0)]))

    world.recorder.once("PutItem", outlive_the_lease, at=2)
    with pytest.raises(IdempotencyKeyInUse):
        batch(world, [task(0)])
    assert batch_text(batch(world, [task(0)])) == batch_text(taken_over[0])


@pytest.mark.parametrize("number", range(8))
def test_a_lost_answer_of_dynamodb_changes_nothing(world: World, number: int) -> None:
    """The SDK sends the write again, which finds the result of the first try."""
    died(world, 3, "after", single, task(0, {"key": "order-17"}), "left")
    pass_the_lease(world)
    world.recorder.lose_answer(world.dynamodb, "PutItem", "UpdateItem", at=number + 1)
    results = [
        single(world, task(0, {"key": "order-17"}), key="left"),
        single(world, task(1, {"key": "order-18"}), key="new"),
    ]
    world.recorder.before = None
    assert [result.is_new for result in results] == [True, True]
    assert created(world) == {("orders", "0"): 1, ("orders", "1"): 1}


# Costs


@pytest.mark.parametrize(("remembered", "more"), [(OF_A_CALL, 1), (OF_A_MESSAGE, 2)])
def test_a_call_under_an_idempotency_key_costs_one_write_unit_more_and_a_message_two(
    world: World, remembered: int, more: int
) -> None:
    world.created()
    meter = Meter(world.settings.registry_table)
    world.recorder.after = meter
    results = batch(world, [task(index) for index in range(100)], remembered_seconds=remembered)
    world.recorder.after = None

    assert statuses(results) == [201] * 100
    by_forecast = 1  # written by any batch, with or without a key
    writes = more + by_forecast
    assert (meter.dynamodb_requests, meter.write_units, meter.read_units) == (writes, writes, 0)
    assert size_of(record_of(world)) <= 1024
