"""A business is shown as soon as there is a sign of it, with settings or without."""

from collections import Counter

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.access.grants import ALL, ANYTHING, Access, Grant, Right
from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.delivery.usage import RateUsage
from duewheel.rules.query_string import PageQuery
from duewheel.rules.refusals import UnknownBusiness
from duewheel.rules.sweep.minute_statistics import KEPT_DAYS
from duewheel.stores import registry_keys
from duewheel.stores.sweep.seen_businesses import SeenBusinesses
from duewheel.workflows.businesses.read import Seen
from duewheel.workflows.delivery.call_rate import LimitCallRate
from tests.support.damage import edit
from tests.support.limited_business import a_task
from tests.support.recorder import Call
from tests.support.timers import made
from tests.support.world import World

DAY_MS = 86_400_000


def swept(world: World, biz_type: str = "orders") -> int:
    """The minute in which a task of it fell due, which the sweep has counted."""
    task = world.created(biz_type=biz_type)
    world.come_up(task)
    assert world.sweep_second_once(task.due_ms // 1000)
    return task.due_ms // 60_000


def listed(world: World, limit: int = 100, access: Access = ANYTHING.access) -> list[Seen]:
    shown, cursor = [], None
    while True:
        page = world.read_businesses.page(PageQuery(limit=limit, cursor=cursor), access)
        shown += page.businesses
        cursor = page.cursor
        if cursor is None:
            return shown
        assert len(page.businesses) == limit


def names(world: World, limit: int = 100) -> list[str]:
    return [one.business.biz_type for one in listed(world, limit)]


def seen(world: World) -> SeenBusinesses:
    return world.read_businesses.signs.seen


def test_a_business_without_any_sign_is_unknown(world: World) -> None:
    with pytest.raises(UnknownBusiness):
        world.read_businesses.one("orders")
    assert names(world) == []


def test_a_business_with_a_task_that_is_not_due_yet_is_shown_and_not_listed(world: World) -> None:
    world.created()
    found = world.read_businesses.one("orders").seen
    assert (found.business.version, found.last_task_ms) == (0, None)
    assert names(world) == []


def test_without_the_list_index_a_task_that_is_not_due_yet_is_no_sign(world: World) -> None:
    world.wire(list_index=False)
    world.created()
    with pytest.raises(UnknownBusiness):
        world.read_businesses.one("orders")


def test_a_business_with_a_timer_is_shown(world: World) -> None:
    world.wire(list_index=False)
    made(world, enabled=False)
    assert world.read_businesses.one("orders").seen.business.version == 0


def test_a_business_with_an_open_breaker_is_shown_with_it(world: World) -> None:
    now_ms = world.clock.now_ms()
    breaker = Breaker(host="a.example", since_ms=now_ms, until_ms=now_ms + 9, owner_token="other")
    world.health_store.open("orders", breaker, BusinessHealth(), now_ms)
    assert world.read_businesses.one("orders").seen.business.health.breakers == (breaker,)


def test_a_business_that_only_had_tasks_is_listed_with_the_minute_of_the_last_one(
    world: World,
) -> None:
    swept(world)
    world.clock.advance_ms(3_600_000)
    last = swept(world)
    (found,) = listed(world)
    assert (found.business.biz_type, found.business.version) == ("orders", 0)
    assert found.last_task_ms == last * 60_000
    assert world.read_businesses.one("orders").seen == found


def test_all_businesses_are_listed_by_name_however_small_the_pages(world: World) -> None:
    for name in ("b", "d", "f"):
        swept(world, name)
    for name in ("a", "d", "g"):
        world.configured(name)
    for limit in (1, 2, 5, 100):
        assert names(world, limit) == ["a", "b", "d", "f", "g"]
    versions = [one.business.version for one in listed(world)]
    assert versions == [1, 0, 1, 0, 1]


def test_a_list_reads_on_while_one_of_its_two_parts_has_more(world: World) -> None:
    for number in range(5):
        world.configured(f"a{number}")
        seen(world).note(f"b{number}", world.clock.now_ms() // 60_000)
    seen(world).note("a2", world.clock.now_ms() // 60_000)
    expected = [f"a{n}" for n in range(5)] + [f"b{n}" for n in range(5)]
    assert names(world, 3) == expected


def test_a_caller_sees_only_businesses_within_its_reach(world: World) -> None:
    for name in ("mine", "other"):
        swept(world, name)
    me = Access("me", (Grant(Right.READ, "mine"),))
    assert [one.business.biz_type for one in listed(world, access=me)] == ["mine"]
    everyone = Access("all", (Grant(Right.READ, ALL),))
    assert len(listed(world, access=everyone)) == 2


def test_a_business_is_listed_for_as_long_as_its_statistics_are_kept(world: World) -> None:
    swept(world)
    world.clock.advance_ms(KEPT_DAYS * DAY_MS)
    assert names(world) == ["orders"]
    world.clock.advance_ms(2 * DAY_MS)
    assert names(world) == []


def test_a_process_notes_a_business_once_a_day(world: World) -> None:
    def writes() -> int:
        return sum("'seen'" in str(call.request) for call in world.recorder.calls)

    minute = world.clock.now_ms() // DAY_MS * 1_440
    store = seen(world)
    for later in (0, 1, 1_439):
        store.note("orders", minute + later)
    assert writes() == 1
    store.note("orders", minute + 1_440)
    store.note("orders", minute)  # a second that was open until then
    assert writes() == 2
    assert store.day_of("orders") == minute // 1_440 + 1
    assert world.recorder.operations()[-1] == "GetItem"


def test_an_earlier_day_does_not_replace_a_later_one(world: World) -> None:
    day = world.clock.now_ms() // DAY_MS
    seen(world).note("orders", day * 1_440)
    store = seen(world)
    another = SeenBusinesses(client=store.client, clock=store.clock, table=store.table)
    another.note("orders", (day - 1) * 1_440)
    assert store.day_of("orders") == day


def test_a_refused_note_delays_no_statistics_and_is_repeated(world: World) -> None:
    task = world.created()
    world.come_up(task)

    def refuse(call: Call) -> None:
        if "'seen'" in str(call.request):
            raise ClientError({"Error": {"Code": "InternalServerError"}}, call.operation)

    world.recorder.before = refuse
    assert world.sweep_second_once(task.due_ms // 1000)
    world.recorder.before = None
    assert names(world) == []
    minute = swept(world)
    (found,) = listed(world)
    assert found.last_task_ms == minute * 60_000


def test_a_damaged_record_of_settings_is_left_out_although_there_are_tasks(world: World) -> None:
    world.configured("orders")
    swept(world)
    edit(world, registry_keys.business("orders"), settings={"S": "{"})
    assert names(world) == []


def test_a_limited_business_shows_its_turns_and_its_line(world: World) -> None:
    world.configured("orders", calls_per_second=1.0, creates_per_second=10.0)
    business = world.business_cache.one("orders")
    rate = business.call_rate
    assert rate is not None
    usage = world.read_businesses.one("orders").usage
    assert (usage.calls, usage.creates) == (RateUsage(), RateUsage())
    now_us = world.clock.now_ms() * 1_000
    LimitCallRate(world.clock, world.turns)(
        [a_task(number, world.clock.now_ms()) for number in range(3)], business
    )
    world.turns.line_up("orders", rate, 5, now_us)
    for _ in range(4):
        world.created()
        world.create([world.new()])
    usage = world.read_businesses.one("orders").usage
    assert usage.calls == RateUsage(taken=3, free_in_ms=3_000, waiting=5)
    assert usage.creates is not None
    assert usage.creates.taken >= 4


def test_one_business_takes_a_bounded_number_of_requests(world: World) -> None:
    world.configured("orders", calls_per_second=1.0)
    swept(world)
    assert world.read_businesses.one("orders")
    world.recorder.clear()
    world.read_businesses.one("orders")
    assert Counter(world.recorder.operations()) == Counter(
        GetItem=4,  # settings, the sign, two pointers
        BatchGetItem=2,  # health, turns
        Query=1,  # the last minute
    )


def test_a_list_takes_a_query_for_each_business_that_had_tasks(world: World) -> None:
    for name in ("a", "b", "c"):
        swept(world, name)
    world.configured("d")
    listed(world)
    world.recorder.clear()
    listed(world)
    assert Counter(world.recorder.operations()) == Counter(Query=2 + 3, BatchGetItem=1)
