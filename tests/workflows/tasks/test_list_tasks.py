"""Lists of a business's tasks, from the index and from the records."""

import pytest

from duewheel.rules.refusals import Unavailable
from duewheel.rules.tasks import listing
from duewheel.rules.tasks.listing import ListQuery, ListRequest, Order
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.workflows.tasks.list_tasks import LookedAt, Page
from tests.support.receiver import OK
from tests.support.recorder import Call
from tests.support.world import World

ORDERS = ListQuery("orders")
PAGES_MAX = 50


def page(
    world: World, query: ListQuery = ORDERS, limit: int = 100, cursor: str | None = None
) -> Page:
    return world.list_tasks(ListRequest(query, limit, cursor))


def walk(world: World, query: ListQuery = ORDERS, limit: int = 100) -> list[Task]:
    tasks: list[Task] = []
    cursor = None
    for _ in range(PAGES_MAX):
        found = page(world, query, limit, cursor)
        tasks += found.tasks
        if (cursor := found.cursor) is None:
            return tasks
    raise AssertionError("the listing has no end")


def created_many(world: World, count: int, **fields: object) -> list[Task]:
    """Three tasks at each instant, so that pages end between equals; not created in due order."""
    news = [world.new(60_000 + number * 7 % count // 3 * 500, **fields) for number in range(count)]
    tasks = [task for task in world.created_many(news) if isinstance(task, Task)]
    assert len(tasks) == count
    return tasks


def ids(tasks: list[Task]) -> list[str]:
    return [task.task_id for task in tasks]


@pytest.mark.parametrize("order", Order)
def test_all_pages_together_are_the_tasks_of_the_business_once_in_due_order(
    world: World, order: Order
) -> None:
    created = created_many(world, 15)
    world.created(biz_type="mail")
    query = ListQuery("orders", order=order)
    listed = walk(world, query, limit=1)

    assert sorted(ids(listed)) == sorted(ids(created))
    dues = [task.due_ms for task in listed]
    assert dues == sorted(dues, reverse=order is Order.DESC)
    assert {task.task_id: task for task in listed} == {task.task_id: task for task in created}
    assert walk(world, query, limit=4) == walk(world, query, limit=100) == listed


def test_from_is_inclusive_and_to_is_exclusive(world: World) -> None:
    at = world.clock.now_ms()
    tasks = [world.created(in_ms=60_000 + ms) for ms in (0, 1, 2, 3)]
    query = ListQuery("orders", due_from_ms=at + 60_001, due_to_ms=at + 60_003)

    assert ids(walk(world, query)) == ids(tasks[1:3])


def test_a_cursor_stays_valid_when_tasks_before_it_change(world: World) -> None:
    world.receiver.answer = lambda received: OK
    created = created_many(world, 12)
    first = page(world, limit=6)
    assert first.cursor is not None

    world.cancel(first.tasks[5].task_id)  # the task at which the cursor points
    world.cancel(first.tasks[0].task_id)
    world.created(in_ms=30_000)
    world.dispatch_until(first.tasks[4].due_ms // 1000 + 1)
    world.drain()
    rest = page(world, cursor=first.cursor)

    assert world.receiver.received
    assert rest.cursor is None
    assert sorted(ids(first.tasks + rest.tasks)) == sorted(ids(created))


def test_a_task_that_is_created_ahead_of_the_cursor_is_listed(world: World) -> None:
    created_many(world, 6)
    first = page(world, limit=3)
    later = world.created(in_ms=600_000)

    assert later.task_id in ids(page(world, cursor=first.cursor).tasks)


def test_a_filter_by_status_uses_the_current_record(world: World) -> None:
    tasks = [world.created(in_ms=60_000 + number) for number in range(4)]
    world.cancel(tasks[1].task_id)
    world.come_up(tasks[0])
    waiting = world.created()

    def with_status(status: Status) -> list[str]:
        return ids(walk(world, ListQuery("orders", status)))

    assert with_status(Status.PENDING) == [waiting.task_id]
    assert with_status(Status.CANCELLED) == [tasks[1].task_id]
    assert with_status(Status.DELIVERED) == ids([tasks[0], *tasks[2:]])
    assert with_status(Status.DEAD) == []


def test_one_request_reads_a_bounded_number_of_tasks_and_may_return_an_empty_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "KEYS_MAX", 10)
    tasks = sorted(created_many(world, 24), key=lambda task: task.due_ms)
    world.cancel(tasks[-1].task_id)
    query = ListQuery("orders", Status.CANCELLED)

    first = page(world, query)
    assert (first.tasks, first.looked_at) == ([], LookedAt(10, reached_ms=tasks[9].due_ms))
    second = page(world, query, cursor=first.cursor)
    assert second.tasks == []
    third = page(world, query, cursor=second.cursor)
    assert (ids(third.tasks), third.cursor) == ([tasks[-1].task_id], None)


@pytest.mark.parametrize(
    ("query", "limit", "keys_at_once"),
    [(ORDERS, 5, 5), (ListQuery("orders", Status.PENDING), 5, 100)],
)
def test_a_page_costs_a_query_of_each_partition_and_a_read_of_its_tasks(
    world: World, query: ListQuery, limit: int, keys_at_once: int
) -> None:
    created_many(world, 12)
    world.recorder.clear()
    assert len(page(world, query, limit).tasks) == limit

    calls = world.recorder.calls
    queries = [call.request for call in calls if call.operation == "Query"]
    assert len(queries) == 16
    assert {request["Limit"] for request in queries} == {keys_at_once}
    assert [call.operation for call in calls if call.operation != "Query"] == ["BatchGetItem"]


def test_an_empty_business_has_one_empty_page(world: World) -> None:
    assert page(world) == Page([], None, LookedAt(0))


def test_a_page_of_large_payloads_is_cut_short(world: World) -> None:
    payload = '"' + "x" * 60_000 + '"'
    created = created_many(world, 30, payload=payload)
    first = page(world)

    assert 20 < len(first.tasks) < 30
    rest = page(world, cursor=first.cursor)
    assert sorted(ids(first.tasks + rest.tasks)) == sorted(ids(created))


# The index lags: between its answer and the read of the records, a task is changed


def when_records_are_read(world: World, task: Task, change: Change) -> None:
    world.recorder.once("BatchGetItem", lambda: world.change(task.task_id, change))


def test_a_task_that_has_moved_ahead_is_listed_at_its_new_instant_only(world: World) -> None:
    tasks = [world.created(in_ms=60_000 + number * 10_000) for number in range(4)]
    when_records_are_read(world, tasks[0], Change(due_ms=tasks[3].due_ms + 1))
    listed = walk(world, limit=2)

    assert ids(listed) == ids([*tasks[1:], tasks[0]])


def test_a_task_that_has_moved_within_the_page_is_shown_once_where_it_is_due(world: World) -> None:
    tasks = [world.created(in_ms=60_000 + number * 10_000) for number in range(3)]
    when_records_are_read(world, tasks[0], Change(due_ms=tasks[1].due_ms + 1))

    assert ids(walk(world)) == ids([tasks[1], tasks[0], tasks[2]])


def test_a_task_that_has_moved_back_before_the_cursor_is_still_shown(world: World) -> None:
    tasks = [world.created(in_ms=60_000 + number * 10_000) for number in range(3)]
    first = page(world, limit=1)
    when_records_are_read(world, tasks[1], Change(due_ms=tasks[0].due_ms - 5_000))

    assert ids(page(world, cursor=first.cursor).tasks) == ids(tasks[1:])


def test_a_task_that_has_moved_out_of_the_range_is_left_out(world: World) -> None:
    task = world.created()
    query = ListQuery("orders", due_to_ms=task.due_ms + 1)
    when_records_are_read(world, task, Change(due_ms=task.due_ms + 1))

    assert page(world, query) == Page([], None, LookedAt(1))


def test_a_record_past_its_expiry_is_not_listed_even_before_ttl_deletes_it(world: World) -> None:
    world.cancel(world.created().task_id)
    world.clock.advance_ms(world.settings.retention_seconds * 1000 + 1_000)

    assert page(world) == Page([], None, LookedAt(1))


# Refusals


def test_reads_that_dynamodb_leaves_unprocessed_are_refused_for_load(world: World) -> None:
    created_many(world, 3)

    def leave_undone(call: Call) -> None:
        if call.operation == "BatchGetItem" and call.response:
            call.response["Responses"] = {}
            call.response["UnprocessedKeys"] = call.request["RequestItems"]

    world.recorder.after = leave_undone
    with pytest.raises(Unavailable):
        page(world)
