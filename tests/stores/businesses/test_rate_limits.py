"""Turns are reserved by one write, also concurrently, and never given twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duewheel.rules.businesses.rate_limit import RateLimit, RateLimited, ReservedTurns
from duewheel.rules.refusals import UnreadableItem
from duewheel.stores import registry_keys
from duewheel.stores.businesses.rate_limits import CALLS, CREATES, RateLimitStore
from tests.support.world import World

NOW_US = 1_760_000_000_000_000
NO_LIMIT_AHEAD_US = 10**15  # some thirty years
FIFTY = RateLimit(50, version=1)


@pytest.fixture
def store(world: World) -> RateLimitStore:
    return RateLimitStore(world.dynamodb, world.settings.registry_table)


def take(
    store: RateLimitStore, rate: RateLimit = FIFTY, count: int = 1, **given: Any
) -> ReservedTurns | RateLimited:
    wanted = {"now_us": NOW_US, "ahead_us": NO_LIMIT_AHEAD_US, **given}
    return store.reserve("orders", rate, count, **wanted)


def first_of(result: ReservedTurns | RateLimited) -> int:
    assert isinstance(result, ReservedTurns)
    return result.first_us - NOW_US


def test_the_first_turn_is_now_and_later_ones_follow_at_the_interval(store: RateLimitStore) -> None:
    assert first_of(take(store, count=100)) == 0
    assert first_of(take(store, count=10)) == 2_000_000
    assert first_of(take(store, count=1)) == 2_200_000


def test_unused_turns_are_not_saved(store: RateLimitStore) -> None:
    take(store, count=100)
    hour_us = 3_600_000_000
    assert first_of(take(store, count=1, now_us=NOW_US + hour_us)) == hour_us
    assert first_of(take(store, count=1, now_us=NOW_US + hour_us)) == hour_us + 20_000


def test_a_clock_that_is_behind_gets_turns_after_those_of_others(store: RateLimitStore) -> None:
    take(store, count=50)
    assert first_of(take(store, now_us=NOW_US - 2_000_000)) == 1_000_000


def test_businesses_and_limits_have_separate_turns(store: RateLimitStore) -> None:
    take(store, count=100)
    of_another = store.reserve("mails", FIFTY, 1, NOW_US, NO_LIMIT_AHEAD_US)
    assert first_of(of_another) == 0
    assert store.read("orders", FIFTY).free_us == 0  # of its calls


def test_turns_beyond_the_horizon_are_not_reserved(store: RateLimitStore) -> None:
    second = {"ahead_us": 1_000_000}
    assert first_of(take(store, count=40, **second)) == 0
    assert take(store, count=11, **second) == RateLimited(free=10, wait_us=20_000)
    assert first_of(take(store, count=10, **second)) == 800_000
    assert take(store, **second) == RateLimited(free=0, wait_us=20_000)
    assert first_of(take(store, now_us=NOW_US + 20_000, **second)) == 1_000_000


def test_more_turns_than_the_horizon_allows_are_refused_with_the_free_number(
    store: RateLimitStore,
) -> None:
    assert take(store, count=51, ahead_us=1_000_000) == RateLimited(free=50, wait_us=20_000)
    assert first_of(take(store, count=50, ahead_us=1_000_000)) == 0


def test_changed_settings_start_a_new_cursor_that_older_settings_respect(
    store: RateLimitStore,
) -> None:
    take(store, count=5_000)
    faster = RateLimit(500, version=2)
    assert first_of(take(store, faster, count=10)) == 0
    stale = take(store, FIFTY, count=10)
    assert stale == ReservedTurns(NOW_US + 20_000, 2_000, 10, version=2)
    assert first_of(take(store, faster)) == 40_000


def test_a_reservation_is_one_write_and_two_after_a_pause(
    world: World, store: RateLimitStore
) -> None:
    def writes() -> Iterator[int]:
        for now_us in (NOW_US, NOW_US, NOW_US, NOW_US + 60_000_000):
            before = len(world.recorder.calls)
            take(store, count=100, now_us=now_us)
            yield len(world.recorder.calls) - before

    assert list(writes()) == [2, 1, 1, 2]


def test_concurrent_reservations_get_different_turns(store: RateLimitStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda _: take(store, count=3), range(24)))
    firsts = sorted(first_of(turns) for turns in taken)
    assert firsts == [number * 60_000 for number in range(24)]


@pytest.mark.exhaustive
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 3_000_000)), max_size=12))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_turns_never_overlap_in_any_sequence_of_reservations(
    store: RateLimitStore, story: list[tuple[int, int]]
) -> None:
    name = f"biz-{len(story)}-{sum(count for count, _ in story)}-{sum(us for _, us in story)}"
    now_us, ends_us = NOW_US, 0
    for count, pause_us in story:
        now_us += pause_us
        turns = store.reserve(name, FIFTY, count, now_us, NO_LIMIT_AHEAD_US)
        assert isinstance(turns, ReservedTurns)
        assert turns.first_us >= max(now_us, ends_us) or ends_us == 0
        ends_us = turns.first_us + count * turns.interval_us


@pytest.mark.parametrize("value", [None, {"N": "-1"}, {"N": "9" * 30}])
@pytest.mark.parametrize(
    ("limit", "attribute"),
    [*((CALLS, name) for name in ("free_us", "interval_us", "version")), (CREATES, "free_us")],
)
def test_a_damaged_record_is_reported_and_gives_no_turn(
    limit: str,
    attribute: str,
    value: dict[str, str] | None,
    world: World,
    store: RateLimitStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def use() -> object:
        if limit == CREATES:
            return take(store)
        return store.line_up("orders", FIFTY, 1, NOW_US)

    use()
    table, key = world.settings.registry_table, registry_keys.turns(limit, "orders")
    item = world.dynamodb.get_item(TableName=table, Key=key)["Item"]
    del item[attribute]
    damaged = item if value is None else {**item, attribute: value}
    world.dynamodb.put_item(TableName=table, Item=damaged)
    with pytest.raises(UnreadableItem):
        use()
    assert {record.__dict__["action"] for record in caplog.records} == {"unreadable"}
