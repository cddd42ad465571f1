"""The overview: what is wrong and what became of the last hour's tasks, of all businesses within
reach, by a bounded number of requests."""

from collections import Counter
from typing import Any

import pytest

from duewheel.rules.access.grants import ANYTHING, Access, Grant, Right
from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.delivery.usage import Usage
from duewheel.rules.query_string import PageQuery
from duewheel.rules.sweep.minute_statistics import NOTHING
from duewheel.stores import registry_keys
from duewheel.stores.businesses.rate_limits import CALLS, CREATES
from duewheel.workflows.sweep.read_overview import (
    DEATHS_MAX,
    DEATHS_MS,
    DEATHS_OF_MAX,
    BusinessNow,
    Overview,
)
from tests.support.damage import edit
from tests.support.world import World

ONCE = RetryPolicy(attempts_max=1)
HOUR_MS = 3_600_000


def overview(
    world: World, *, limit: int = 50, cursor: str | None = None, access: Access = ANYTHING.access
) -> Overview:
    return world.read_overview(PageQuery(limit=limit, cursor=cursor), access)


def shown(world: World) -> dict[str, BusinessNow]:
    return {one.business.biz_type: one for one in overview(world).businesses}


def failing(*statuses: int) -> Any:
    """Of the tasks in the order of their calls."""
    left = list(statuses)

    def answer(_: Any) -> Outcome:
        return Outcome(Verdict.RETRY, "", status_code=left.pop(0) if left else 503)

    return answer


def counted(world: World, *names: str, **fields: Any) -> None:
    """One task of each business falls due, and the sweep counts it with its whole minute."""
    tasks = [world.created(biz_type=name, retry=ONCE, **fields) for name in names]
    world.sweep_past(max(task.due_ms for task in tasks) // 1000 // 60 * 60 + 59)


def test_without_tasks_there_is_nothing_to_show(world: World) -> None:
    world.configured("orders")
    found = overview(world)
    assert (found.businesses, found.minutes, found.deaths.groups) == ([], [], [])
    assert (found.looked_at, found.cursor) == (1, None)


def test_the_minutes_are_of_all_businesses_together_up_to_the_sweep(world: World) -> None:
    counted(world, "orders", "bills")
    found = overview(world)
    (minute,) = found.minutes
    assert (minute.tally.created, minute.tally.delivered) == (2, 2)
    assert found.first_minute == found.last_minute - 59
    assert minute.minute <= found.last_minute < world.clock.now_ms() // 60_000
    assert {name: one.hour.delivered for name, one in shown(world).items()} == {
        "bills": 1,
        "orders": 1,
    }


def test_tasks_of_more_than_an_hour_ago_are_in_no_figure(world: World) -> None:
    counted(world, "orders")
    world.clock.advance_ms(2 * HOUR_MS)
    world.sweep_past(world.clock.now_ms() // 1000 - 300)
    assert overview(world).minutes == []
    assert shown(world) == {}


def test_what_holds_a_business_back_is_shown_without_tasks(world: World) -> None:
    world.configured("paused", paused=True)
    world.configured("flow", paused_flow_keys={"customer-1": True})
    world.found_slow("slow")
    world.configured("slow")
    world.configured("quiet", retention_days=7)
    world.configured("down")
    now_ms = world.clock.now_ms()
    breaker = Breaker(host="a.example", since_ms=now_ms, until_ms=now_ms + 9, owner_token="other")
    world.health_store.open("down", breaker, BusinessHealth(), now_ms)
    found = shown(world)
    assert list(found) == ["down", "flow", "paused", "slow"]
    assert found["down"].business.health.breakers == (breaker,)
    assert all(one.hour == NOTHING for one in found.values())


def test_limits_are_shown_with_their_use(world: World) -> None:
    world.configured("orders", calls_per_second=1.0, calls_in_flight=3)
    counted(world, "orders")
    rate = world.business_cache.one("orders").call_rate
    assert rate is not None
    world.turns.line_up("orders", rate, 5, world.clock.now_ms() * 1_000)
    usage = shown(world)["orders"].usage
    assert usage.calls is not None
    assert usage.calls.waiting == 5
    assert usage.permits is not None
    assert usage.permits.used == 0


def test_deaths_of_a_day_are_grouped_by_error_over_businesses(world: World) -> None:
    world.receiver.answer = failing(503, 503, 410)
    counted(world, "orders", "bills")
    world.clock.advance_ms(2 * HOUR_MS)
    counted(world, "orders")
    found = overview(world).deaths
    assert [(group.last_error, dict(group.businesses)) for group in found.groups] == [
        ("status 410", {"orders": 1}),
        ("status 503", {"bills": 1, "orders": 1}),
    ]
    assert (found.businesses, found.tasks, found.goes_on) == (2, 3, False)
    assert found.since_ms == world.clock.now_ms() - DEATHS_MS


def test_a_death_of_more_than_a_day_ago_is_not_shown(world: World) -> None:
    world.receiver.answer = failing()
    counted(world, "orders")
    world.clock.advance_ms(DEATHS_MS)
    assert overview(world).deaths.groups == []


def test_of_more_deaths_than_one_answer_has_the_latest_are_shown(world: World) -> None:
    world.receiver.answer = failing(*[403] * 10, *[404] * DEATHS_MAX)
    for number in range(10 + DEATHS_MAX):
        world.created(60_000 + number * 1_000, retry=ONCE)
    world.sweep_past(world.clock.now_ms() // 1000 + 120)
    found = overview(world).deaths
    assert (found.tasks, found.goes_on) == (DEATHS_MAX, True)
    assert [(group.last_error, group.count) for group in found.groups] == [
        ("status 404", DEATHS_MAX)
    ]


def test_deaths_are_looked_for_in_a_few_businesses_where_most_failed(world: World) -> None:
    names = [f"b{number:02d}" for number in range(DEATHS_OF_MAX + 2)]
    for name in names:
        world.read_businesses.signs.seen.note(name, world.clock.now_ms() // 60_000)
    world.receiver.answer = failing()
    counted(world, names[-1])
    found = overview(world).deaths
    assert found.businesses == DEATHS_OF_MAX
    assert found.goes_on
    assert [dict(group.businesses) for group in found.groups] == [{names[-1]: 1}]


def test_a_caller_sees_only_what_is_within_its_reach(world: World) -> None:
    world.receiver.answer = failing()
    counted(world, "mine", "other")
    found = overview(world, access=Access("me", (Grant(Right.READ, "mine"),)))
    assert [one.business.biz_type for one in found.businesses] == ["mine"]
    assert sum((minute.tally for minute in found.minutes), NOTHING).created == 1
    assert [dict(group.businesses) for group in found.deaths.groups] == [{"mine": 1}]
    assert found.looked_at == 1


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_its_pages_together_show_what_one_page_shows(world: World, limit: int) -> None:
    counted(world, "a", "b", "c", "d")
    whole = overview(world)
    pages = [overview(world, limit=limit)]
    while pages[-1].cursor is not None:
        pages.append(overview(world, limit=limit, cursor=pages[-1].cursor))
    assert [one for page in pages for one in page.businesses] == whole.businesses
    assert sum(page.looked_at for page in pages) == whole.looked_at == 4
    counts = [minute.tally for page in pages for minute in page.minutes]
    assert sum(counts, NOTHING) == sum((minute.tally for minute in whole.minutes), NOTHING)


def test_a_business_with_damaged_settings_is_left_out(world: World) -> None:
    world.configured("orders", paused=True)
    edit(world, registry_keys.business("orders"), settings={"S": "{"})
    assert (overview(world).businesses, overview(world).looked_at) == ([], 1)


@pytest.mark.parametrize("limit", ["calls_in_flight", "calls_per_second", "creates_per_second"])
def test_a_business_whose_limits_are_damaged_is_shown_without_their_use(
    world: World, limit: str
) -> None:
    world.configured("orders", **{limit: 2})
    counted(world, "orders", "mails")
    for key in (registry_keys.permits("orders"), *map(turns_of_orders, (CALLS, CREATES))):
        edit(world, key, version={"S": "one"})
    assert shown(world)["orders"].usage == Usage()
    assert world.read_businesses.one("orders").usage.calls is None
    assert shown(world).keys() == {"orders", "mails"}


def turns_of_orders(limit: str) -> dict[str, Any]:
    return registry_keys.turns(limit, "orders")


def test_it_takes_a_bounded_number_of_requests(world: World) -> None:
    names = [f"b{number:02d}" for number in range(DEATHS_OF_MAX + 2)]
    for name in names:
        world.configured(name, calls_per_second=1.0, calls_in_flight=3)
        world.read_businesses.signs.seen.note(name, world.clock.now_ms() // 60_000)
    overview(world)
    world.recorder.clear()
    found = overview(world)
    days = found.last_minute // 1_440 - found.first_minute // 1_440 + 1
    assert Counter(world.recorder.operations()) == Counter(
        Query=3 + days * len(names) + 16 * DEATHS_OF_MAX,
        BatchGetItem=1 + len(names),  # settings and health; the turns of each
        GetItem=1 + len(names),  # the sweep pointer; the permits of each
    )


def test_without_limits_and_tasks_a_business_costs_no_request_of_its_own(world: World) -> None:
    for number in range(5):
        world.configured(f"b{number}")
    overview(world)
    world.recorder.clear()
    overview(world)
    assert Counter(world.recorder.operations()) == Counter(Query=3, BatchGetItem=1, GetItem=1)


def test_a_business_whose_first_task_just_died_is_shown_at_once(world: World) -> None:
    world.receiver.answer = failing(503)
    task = world.created(biz_type="new", retry=ONCE)
    world.come_up(task)
    found = overview(world)
    assert [(one.business.biz_type, one.hour, one.died_since) for one in found.businesses] == [
        ("new", NOTHING, 1)
    ]
    assert [group.count for group in found.deaths.groups] == [1]
    (listed,) = world.read_businesses.page(PageQuery(), ANYTHING.access).businesses
    assert listed.business.biz_type == "new"
    world.sweep_past(task.due_ms // 1000 // 60 * 60 + 59)
    assert (shown(world)["new"].hour.dead, shown(world)["new"].died_since) == (1, 0)


def test_deaths_are_noted_by_one_write_a_day(world: World) -> None:
    world.receiver.answer = failing(503, 503, 503)
    tasks = [world.created(retry=ONCE) for _ in range(3)]
    world.recorder.clear()
    world.come_up(tasks[0])
    key = registry_keys.seen("orders")
    noted = [call for call in world.recorder.calls if call.request.get("Key") == key]
    assert [call.operation for call in noted] == ["UpdateItem"]
