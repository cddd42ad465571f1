"""Lists over all businesses: each within reach once, by bounded work, however many there are."""

from collections import Counter
from collections.abc import Iterator

import pytest

from duewheel.rules.access.grants import ANYTHING, Access, Grant, Right
from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.listing import ListQuery, ListRequest, Order
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.requests import NewTimer, TimersQuery
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Rules
from duewheel.wiring import api
from duewheel.workflows.businesses.all_businesses import BUSINESSES_AT_ONCE
from duewheel.workflows.tasks.list_tasks import LookedAt, Page
from tests.support.recorder import Call
from tests.support.timers import CALLBACK
from tests.support.world import CALLER, World

ALL = ListQuery()
MANY = 50


def access_to(*businesses: str) -> Access:
    return Access("me", tuple(Grant(Right.READ, one) for one in businesses))


def pages(
    world: World,
    query: ListQuery = ALL,
    limit: int = 100,
    access: Access = ANYTHING.access,
) -> Iterator[Page]:
    cursor = None
    while True:
        page = world.list_tasks.everywhere(ListRequest(query, limit, cursor), access)
        yield page
        cursor = page.cursor
        if cursor is None:
            return


def walk(
    world: World,
    query: ListQuery = ALL,
    limit: int = 100,
    access: Access = ANYTHING.access,
) -> list[Task]:
    return [task for page in pages(world, query, limit, access) for task in page.tasks]


def created(world: World, biz_type: str, count: int = 1, **fields: object) -> list[Task]:
    """Of a business that is known by its settings, in due order."""
    world.configured(biz_type)
    return [
        world.created(in_ms=60_000 + 1_000 * number, biz_type=biz_type, **fields)
        for number in range(count)
    ]


def requests_of(calls: list[Call]) -> Counter[str]:
    return Counter(call.operation for call in calls)


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_all_pages_together_have_each_task_once_by_business_and_due_instant(
    world: World, limit: int
) -> None:
    mail, orders = created(world, "mail", 3), created(world, "orders", 2)
    world.configured("empty")
    assert walk(world, limit=limit) == [*mail, *orders]
    newest_first = ListQuery(order=Order.DESC)
    assert walk(world, newest_first, limit) == [*reversed(mail), *reversed(orders)]


def test_filters_apply_to_each_business(world: World) -> None:
    labels = (("team", "billing"),)
    mail, orders = created(world, "mail", 3), created(world, "orders", 2, labels=labels)
    world.cancel(mail[0].task_id)
    assert [task.task_id for task in walk(world, ListQuery(status=Status.CANCELLED))] == [
        mail[0].task_id
    ]
    assert walk(world, ListQuery(labels=labels)) == orders
    assert walk(world, ListQuery(due_from_ms=mail[2].due_ms)) == [mail[2]]


def test_a_caller_gets_the_tasks_of_businesses_within_its_reach(world: World) -> None:
    made = {name: created(world, name) for name in ("mail", "orders", "orders-eu", "others")}
    assert walk(world, access=access_to("orders")) == made["orders"]
    assert walk(world, access=access_to("orders-*", "mail")) == [*made["mail"], *made["orders-eu"]]
    assert walk(world, access=access_to("orders*"), limit=1) == [
        *made["orders"],
        *made["orders-eu"],
    ]
    assert walk(world, access=access_to("nowhere-*")) == []


def test_a_business_that_a_grant_names_need_not_be_known(world: World) -> None:
    task = world.created(biz_type="new")
    assert walk(world) == []
    assert walk(world, access=access_to("new")) == [task]
    world.come_up(task)
    assert world.sweep_second_once(task.due_ms // 1000)
    assert [task.task_id for task in walk(world)] == [task.task_id]


def test_a_cursor_of_another_caller_shows_nothing_out_of_reach(world: World) -> None:
    created(world, "mail", 2)
    orders = created(world, "orders")
    first = next(pages(world, limit=1))
    request = ListRequest(ALL, 100, first.cursor)
    assert world.list_tasks.everywhere(request, access_to("orders")).tasks == orders


def test_a_cursor_is_bound_to_its_query(world: World) -> None:
    created(world, "mail", 2)
    cursor = next(pages(world, limit=1)).cursor
    for other in (ListQuery("mail"), ListQuery(status=Status.DEAD)):
        with pytest.raises(InvalidField):
            world.list_tasks.everywhere(ListRequest(other, 100, cursor), ANYTHING.access)


def test_a_business_that_is_configured_behind_the_cursor_is_listed(world: World) -> None:
    mail = created(world, "mail", 2)
    first = next(pages(world, limit=1))
    orders = created(world, "orders")
    rest = world.list_tasks.everywhere(ListRequest(ALL, 100, first.cursor), ANYTHING.access)
    assert rest.tasks == [mail[1], *orders]


def test_a_page_looks_at_ten_businesses_at_most_and_says_so(world: World) -> None:
    for number in range(MANY):
        world.configured(f"b{number:02}")
    (task,) = created(world, f"b{MANY - 1}")
    world.recorder.clear()
    found = list(pages(world))
    calls = requests_of(world.recorder.calls)

    assert [page.tasks for page in found] == [[], [], [], [], [task]]
    assert [page.looked_at for page in found[:-1]] == [LookedAt(0, BUSINESSES_AT_ONCE)] * 4
    assert found[-1].looked_at == LookedAt(1, BUSINESSES_AT_ONCE)
    # Of each page: the two lists of names, and the sixteen partitions of ten businesses.
    assert calls == {"Query": 5 * (2 + 16 * BUSINESSES_AT_ONCE), "BatchGetItem": 1}


def test_a_page_looks_at_a_bounded_number_of_records_in_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duewheel.rules.tasks.listing.KEYS_MAX", 5)
    for name in ("a", "b", "c"):
        created(world, name, 3)
    found = list(pages(world, ListQuery(status=Status.EXPIRED)))
    assert [page.looked_at for page in found] == [LookedAt(5, 2), LookedAt(4, 2)]
    assert not any(page.tasks for page in found)


def test_payloads_of_all_businesses_together_bound_a_page(world: World) -> None:
    payload = '"' + "x" * 60_000 + '"'
    made = [task for name in ("a", "b", "c") for task in created(world, name, 10, payload=payload)]
    first, second = pages(world)
    assert 20 < len(first.tasks) < 30
    assert [*first.tasks, *second.tasks] == made


def test_a_caller_with_few_grants_pays_for_no_other_business(world: World) -> None:
    for number in range(MANY):
        world.configured(f"b{number:02}")
    world.recorder.clear()
    walk(world, access=access_to("b17"))
    assert requests_of(world.recorder.calls) == {"Query": 16}
    world.recorder.clear()
    walk(world, access=access_to("b4*"))
    assert requests_of(world.recorder.calls) == {"Query": 2 + 16 * 10}


def timer_names(query: str, access: Access = ANYTHING.access, limit: int = 100) -> list[str]:
    names, cursor = [], None
    while True:
        asked = TimersQuery(name_prefix=query, cursor=cursor, limit=limit)
        page = api.read_timers().everywhere(asked, access)
        names += [shown.timer.rules.name for shown in page.timers]
        cursor = page.cursor
        if cursor is None:
            return names


def test_timers_of_all_businesses_are_listed_by_business_and_name(world: World) -> None:
    for biz_type, name in (("mail", "b"), ("mail", "a"), ("orders", "a2"), ("others", "c")):
        world.configured(biz_type)
        schedule = Schedule(every_seconds=3_600, anchor_second=0)
        rules = Rules(name, schedule, callback=CALLBACK)
        world.create_timer(NewTimer(biz_type, rules, enabled=False), by=CALLER)
    for limit in (1, 100):
        assert timer_names("", limit=limit) == ["a", "b", "a2", "c"]
        assert timer_names("a", limit=limit) == ["a", "a2"]
        assert timer_names("", access_to("o*"), limit=limit) == ["a2", "c"]


def test_a_page_of_timers_costs_a_query_of_each_of_ten_businesses(world: World) -> None:
    for number in range(MANY):
        world.configured(f"b{number:02}")
    world.recorder.clear()
    assert timer_names("") == []
    assert requests_of(world.recorder.calls) == {"Query": 5 * (2 + BUSINESSES_AT_ONCE)}
