"""Lists by status and by key prefix read first where matching tasks are, and leave none out."""

from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.tasks import listing
from duewheel.rules.tasks.listing import ListQuery, ListRequest, Order
from duewheel.rules.tasks.task import Status, Task
from duewheel.workflows.tasks.list_tasks import Page
from tests.support.operations import done, numbers, retire_all
from tests.support.recorder import Call
from tests.support.world import World

PENDING = ListQuery("orders", Status.PENDING)
DEAD = ListQuery("orders", Status.DEAD)
BY_KEY = replace(PENDING, key_prefix="order-")
ENDED = 300
HOUR_MS = 3_600_000


def listed(world: World, query: ListQuery, limit: int = 100) -> list[Page]:
    pages = [world.list_tasks(ListRequest(query, limit))]
    while (cursor := pages[-1].cursor) is not None:
        pages.append(world.list_tasks(ListRequest(query, limit, cursor)))
    return pages


def tasks_of(pages: list[Page]) -> list[Task]:
    return [task for page in pages for task in page.tasks]


def ended(world: World, task: Task, status: Status = Status.DELIVERED) -> Task:
    now_ms = world.clock.now_ms()
    after = replace(
        task,
        status=status,
        settled_ms=now_ms,
        updated_ms=now_ms,
        expires_at=now_ms // 1000 + 30 * 86_400,
        version=task.version + 1,
    )
    assert world.tasks.change(task, after)
    world.keys.release([after])
    return after


def with_ended_ones(world: World, number: int = ENDED) -> None:
    """Tasks that were due a second apart up to now, and have ended."""
    news = [world.new(n * 1_000 + 1, key=f"order-ended-{n}") for n in range(number)]
    for task in world.created_many(news):
        assert isinstance(task, Task)
        ended(world, task)
    world.clock.advance_ms(number * 1_000)


def records_read(calls: list[Call]) -> int:
    """Read units of the table for small tasks, a unit each."""
    of_batches = [
        call.request["RequestItems"] for call in calls if call.operation == "BatchGetItem"
    ]
    return sum(len(some["Keys"]) for request in of_batches for some in request.values())


def test_few_pending_tasks_beside_many_ended_ones_are_on_the_first_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "KEYS_MAX", 50)
    with_ended_ones(world)
    waiting = [world.created(HOUR_MS + n) for n in range(3)]
    world.recorder.clear()
    first, *rest = listed(world, PENDING)
    assert [task.task_id for task in first.tasks] == [task.task_id for task in waiting]
    assert tasks_of(rest) == []
    assert first.looked_at is not None
    assert first.looked_at.records <= 50
    calls = world.recorder.calls
    begun = [call.operation for call in calls].index("BatchGetItem")
    assert records_read(calls[: begun + 1]) == 3, "the live ones alone are read for the first"


def test_a_page_says_which_instant_it_has_reached(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "KEYS_MAX", 50)
    with_ended_ones(world, 120)
    now_ms = world.clock.now_ms()
    reached = [page.looked_at and page.looked_at.reached_ms for page in listed(world, PENDING)]
    assert reached == [now_ms - 50_000 + 1, now_ms - 100_000 + 1, None]


def test_dead_tasks_are_found_by_their_deaths_and_no_others_are_read(world: World) -> None:
    with_ended_ones(world)
    dead = []
    for n in range(3):
        dead.append(ended(world, world.created(HOUR_MS - n), Status.DEAD).task_id)
        world.clock.advance_ms(1_000)
    for order, expected in ((Order.ASC, dead), (Order.DESC, dead[::-1])):
        for limit in (1, 100):
            world.recorder.clear()
            pages = listed(world, replace(DEAD, order=order), limit)
            assert [task.task_id for task in tasks_of(pages)] == expected
            assert records_read(world.recorder.calls) <= 3 * len(pages)


def test_pending_tasks_under_a_key_prefix_are_found_by_their_keys(world: World) -> None:
    with_ended_ones(world)
    keys = [f"order-{n}" for n in range(3)]
    for key in (*keys, "invoice-1"):
        world.created_by_key(world.new(HOUR_MS, key=key))
    world.recorder.clear()
    assert [task.key for task in tasks_of(listed(world, BY_KEY))] == keys
    assert records_read(world.recorder.calls) == 3
    assert {call.operation for call in world.recorder.calls} == {"Query", "BatchGetItem"}


@pytest.mark.parametrize("action", ["cancel", "pause"])
def test_a_dry_run_takes_the_same_way(world: World, action: str) -> None:
    world.wire(list_index=False)
    with_ended_ones(world, 40)
    world.created_by_key(world.new(HOUR_MS, key="order-1"))
    world.recorder.clear()
    chosen: dict[str, Any] = {"key_prefix": "order-"}
    operation = done(world, action, filter=chosen, dry_run=True)
    assert numbers(operation) == (1, 0, 0)
    of_tasks = [call for call in world.recorder.calls if world.settings.wheel_table in str(call)]
    assert records_read(of_tasks) == 1


def test_an_overdue_task_is_pending_as_well(world: World) -> None:
    with_ended_ones(world, 10)
    overdue, coming = world.created(1_000), world.created(HOUR_MS)
    world.clock.advance_ms(60_000)
    found = [task.task_id for task in tasks_of(listed(world, PENDING, 1))]
    assert found == [coming.task_id, overdue.task_id]
    from_the_past = replace(PENDING, due_from_ms=0)
    assert [task.task_id for task in tasks_of(listed(world, from_the_past, 1))] == found[::-1]


happenings = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from(("ends", "dies", "time passes"))), max_size=8
)


@pytest.mark.parametrize(
    "query",
    [PENDING, replace(PENDING, order=Order.DESC), BY_KEY, DEAD],
    ids=["live", "latest", "keys", "dead"],
)
@settings(
    max_examples=settings.default.max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.integers(1, 4),
    st.lists(st.sampled_from(("past", "past", "future", "dead")), min_size=1, max_size=12),
    happenings,
)
def test_no_task_is_left_out_or_repeated_while_others_settle(
    world: World, query: ListQuery, limit: int, kinds: list[str], happen: list[tuple[int, str]]
) -> None:
    retire_all(world)
    tasks = []
    for n, kind in enumerate(kinds):
        in_ms = 1_000 + n // 2 if kind == "past" else HOUR_MS + n // 2
        tasks.append(world.created_by_key(world.new(in_ms, key=f"order-{n}")).task)
        if kind == "dead":
            ended(world, tasks[-1], Status.DEAD)
    world.clock.advance_ms(60_000)
    settled: set[str] = set()

    def one_happens() -> None:
        number, what = happen.pop(0)
        if what == "time passes":
            world.clock.advance_ms(number * 100_000)
            return
        task = world.read(tasks[number % len(tasks)])
        if task.is_live:
            event(f"one {what} between pages")
            ended(world, task, Status.DEAD if what == "dies" else Status.DELIVERED)
            settled.add(task.task_id)

    meant = {t.task_id for t in tasks if query.takes(world.read(t))}
    found: list[str] = []
    page = world.list_tasks(ListRequest(query, limit))
    while True:
        found += [task.task_id for task in page.tasks]
        if page.cursor is None:
            break
        if happen:
            one_happens()
        page = world.list_tasks(ListRequest(query, limit, page.cursor))
    assert len(set(found)) == len(found), "none is repeated"
    left_out = meant - set(found)
    assert left_out <= settled, "none is left out"
    if query is DEAD:
        assert not left_out
