"""The health of a business: written in parts, and read together with its settings."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from duewheel.rules.businesses.health import (
    BREAKERS_MAX,
    KEPT_SECONDS,
    UNUSED_MS,
    Breaker,
    BusinessHealth,
    damaged_breaker,
)
from duewheel.stores import registry_keys
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.businesses.health import HealthStore, HealthUnavailable
from duewheel.stores.item_attributes import INSTANT_MS_MAX
from tests.support.clock import NOON_MS
from tests.support.damage import edit
from tests.support.recorder import Call
from tests.support.world import World

UNTIL_MS = NOON_MS + 10_000


def breaker(
    host: str = "dead.example", owner_token: str = "me", until_ms: int = UNTIL_MS
) -> Breaker:
    return Breaker(host=host, since_ms=NOON_MS, until_ms=until_ms, owner_token=owner_token)


@pytest.fixture
def store(world: World) -> HealthStore:
    return world.health_store


def opened(store: HealthStore, *breakers: Breaker, now_ms: int = NOON_MS) -> BusinessHealth:
    health = BusinessHealth()
    for one in breakers:
        health = store.open("orders", one, health, now_ms)
    return health


def record_of(world: World) -> dict[str, Any]:
    key = registry_keys.health("orders")
    found = world.unrecorded.get_item(TableName=world.settings.registry_table, Key=key)
    item: dict[str, Any] = found["Item"]
    return item


def test_a_business_without_a_record_has_default_health(store: HealthStore) -> None:
    assert store.read("orders") == BusinessHealth()


def test_breakers_of_several_hosts_are_independent(store: HealthStore) -> None:
    one, other = breaker("a.example"), breaker("b.example:8443")
    opened(store, one, other)
    assert store.read("orders").breakers == (one, other)
    after = replace(one, until_ms=UNTIL_MS + 1, owner_token="you", probes_failed=1)
    assert store.move("orders", one, after).breakers == (after, other)
    assert store.close("orders", other).breakers == (after,)
    assert store.close("orders", after) == store.read("orders") == BusinessHealth(openings=2)
    assert store.read("invoices") == BusinessHealth()


def test_of_two_writers_of_a_breaker_one_wins_and_the_other_gets_its_state(
    store: HealthStore,
) -> None:
    mine, yours = breaker(owner_token="me"), breaker(owner_token="you")
    opened(store, mine)
    assert store.open("orders", yours, BusinessHealth(), NOON_MS).breakers == (mine,)
    assert store.move("orders", mine, replace(mine, until_ms=0)).breakers[0].until_ms == 0
    assert store.move("orders", mine, yours).breakers[0].until_ms == 0
    assert store.close("orders", mine).breakers[0].until_ms == 0


def test_a_write_that_the_sdk_repeated_succeeds_once(world: World, store: HealthStore) -> None:
    """Both tries end with the breaker in the wanted state."""
    mine = opened(store, breaker()).breakers[0]
    assert store.open("orders", mine, BusinessHealth(), NOON_MS).breaker_of(mine.host) == mine
    after = replace(mine, owner_token="again")
    for _ in range(2):
        assert store.move("orders", mine, after).breaker_of(mine.host) == after
    for _ in range(2):
        assert store.close("orders", after).breaker_of(mine.host) is None


def test_the_number_of_open_breakers_is_bounded_under_concurrent_writes(store: HealthStore) -> None:
    many = [breaker(f"host-{number}.example") for number in range(BREAKERS_MAX + 10)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda one: store.open("orders", one, BusinessHealth(), NOON_MS), many))
    known = store.read("orders")
    for one in many:
        known = store.open("orders", one, known, NOON_MS)
    assert len(store.read("orders").breakers) == BREAKERS_MAX


def test_breakers_unused_for_an_hour_are_replaced(store: HealthStore) -> None:
    later_ms = UNTIL_MS + UNUSED_MS + 1
    opened(store, *(breaker(f"host-{number}.example") for number in range(BREAKERS_MAX)))
    new = breaker("new.example", until_ms=later_ms + 10_000)
    store.open("orders", new, store.read("orders"), later_ms)
    assert store.read("orders").breakers == (new,)


def test_a_business_is_slow_until_the_latest_instant(store: HealthStore) -> None:
    opened(store, breaker())
    assert store.note_slow("orders", UNTIL_MS).slow_until_ms == UNTIL_MS
    assert store.note_slow("orders", UNTIL_MS - 1).slow_until_ms == UNTIL_MS
    assert store.note_slow("orders", UNTIL_MS + 1).slow_until_ms == UNTIL_MS + 1
    assert store.read("orders").breakers == (breaker(),)


def test_the_record_has_a_time_to_live_after_its_last_instant(world: World) -> None:
    for write in (
        lambda: opened(world.health_store, breaker()),
        lambda: world.health_store.note_slow("orders", UNTIL_MS),
    ):
        write()
        assert int(record_of(world)["expires_at"]["N"]) == UNTIL_MS // 1000 + KEPT_SECONDS


DAMAGED = BusinessHealth(breakers=(damaged_breaker("dead.example"), breaker("well.example")))


@pytest.mark.parametrize(
    ("attribute", "value", "bounds"),
    [
        ("slow_until_ms", {"S": "soon"}, BusinessHealth(INSTANT_MS_MAX, DAMAGED.breakers[1:], 1)),
        ("openings", {"N": "-1"}, BusinessHealth(breakers=DAMAGED.breakers[1:])),
        *(
            ("host#dead.example", value, replace(DAMAGED, openings=1))
            for value in (
                {"S": "[1,2]"},
                {"S": '["now",1,"me",0]'},
                {"S": '[1,1,"",0]'},
                {"N": "1"},
                {"S": "open"},
            )
        ),
    ],
)
def test_a_damaged_attribute_is_reported_and_still_bounds_calls(
    world: World,
    caplog: pytest.LogCaptureFixture,
    attribute: str,
    value: dict[str, Any],
    bounds: BusinessHealth,
) -> None:
    opened(world.health_store, breaker("well.example"))
    edit(world, registry_keys.health("orders"), **{attribute: value})
    assert world.health_store.read("orders") == bounds
    assert world.cache_with_health.one("orders").health == bounds
    met = {(r.action, r.slot, r.wrong) for r in caplog.records}  # type: ignore[attr-defined]
    assert met == {("unreadable", "standing#orders", attribute)}


def test_no_breaker_replaces_a_damaged_one(world: World, store: HealthStore) -> None:
    opened(store, breaker("dead.example"))
    edit(world, registry_keys.health("orders"), **{"host#dead.example": {"S": "?"}})
    store.open("orders", breaker("new.example"), store.read("orders"), NOON_MS)
    hosts = [one.host for one in store.read("orders").breakers]
    assert hosts == ["dead.example", "new.example"]


def test_health_is_read_together_with_settings(world: World) -> None:
    world.configured("orders", retention_days=3)
    opened(world.health_store, breaker())
    world.health_store.note_slow("mails", UNTIL_MS)
    world.recorder.clear()
    known = world.cache_with_health.many(["orders", "mails", "invoices"])
    assert world.recorder.operations() == ["BatchGetItem"]
    assert known["orders"].retention_days == 3
    assert known["orders"].health.breakers == (breaker(),)
    assert (known["mails"].version, known["mails"].health.slow_until_ms) == (0, UNTIL_MS)
    assert known["invoices"].health == BusinessHealth()
    assert world.business_cache.one("orders").health == BusinessHealth()


def test_health_put_into_the_cache_is_valid_until_the_next_read(world: World) -> None:
    assert world.cache_with_health.health_of("orders") == BusinessHealth()
    world.cache_with_health.one("orders")
    health = opened(world.health_store, breaker())
    world.cache_with_health.put_health("orders", health)
    world.recorder.clear()
    assert world.cache_with_health.one("orders").health == health
    assert world.cache_with_health.health_of("orders") == health
    assert world.recorder.calls == []
    world.health_store.close("orders", breaker())
    world.clock.advance_ms(KEPT_MS)
    assert world.cache_with_health.health_of("orders") == health
    assert world.cache_with_health.one("orders").health.breakers == ()


def test_a_failed_health_write_raises_its_own_error(world: World) -> None:
    def refuse(call: Call) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, call.operation)

    world.recorder.before = refuse
    with pytest.raises(HealthUnavailable, match="InternalServerError"):
        world.health_store.note_slow("orders", UNTIL_MS)
