"""How many shards, and which of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.wheel.addresses import SHARDS_MAX, address_of_task
from duewheel.rules.wheel.sharding import (
    LOOKED_AT_ONE_IN,
    SLICE_ENTRIES,
    Placement,
    is_looked_at,
    shard_for,
    shards_for,
)
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000


@each_case(
    ("expected", "shards"),
    [
        (0, 1),
        (SLICE_ENTRIES, 1),
        (SLICE_ENTRIES + 1, 2),
        (2 * SLICE_ENTRIES, 2),
        (20_000, 128),
        (1_000_000, SHARDS_MAX),
    ],
)
def test_a_second_gets_a_power_of_two(expected: float, shards: int) -> None:
    assert shards_for(expected) == shards


@given(st.floats(0, 10**7))
def test_no_slice_is_expected_to_hold_more_than_it_should(expected: float) -> None:
    shards = shards_for(expected)
    assert expected <= shards * SLICE_ENTRIES or shards == SHARDS_MAX
    assert shards == 1 or expected > shards / 2 * SLICE_ENTRIES


@each_case("step", [1, 256, 2**32, 128 * 2**16])
def test_skewed_bytes_are_spread_evenly(step: int) -> None:
    taken = Counter(shard_for((n * step).to_bytes(8, "big"), 16) for n in range(3_200))
    assert set(taken) == set(range(16))
    assert max(taken.values()) < 280  # six standard deviations above 200


@given(st.binary(min_size=8, max_size=8), st.integers(1, SHARDS_MAX))
def test_an_entry_finds_its_shard_again(random_bytes: bytes, shards: int) -> None:
    placement = Placement(
        now_ms=NOW_MS,
        lead_ms=500,
        shards={NOW_MS // 1000 + 60: shards},
    )
    entry = placement.address(NOW_MS + 60_000, random_bytes)

    assert entry == placement.address(NOW_MS + 60_000, random_bytes)
    assert entry.shard == shard_for(random_bytes, shards) < shards
    assert address_of_task(entry.task_id) == entry
    assert placement.address(NOW_MS + 61_000, random_bytes).shard == 0


def test_a_direct_entry_takes_a_shard_too() -> None:
    placement = Placement(now_ms=NOW_MS, lead_ms=500, shards={NOW_MS // 1000: 64})
    entries = [placement.address(0, bytes([n] * 8)) for n in range(64)]
    assert all(entry.direct for entry in entries)
    assert len({entry.shard for entry in entries}) > 16


def test_a_header_is_looked_at_once_in_so_many_entries() -> None:
    for entries, looked in ((1, 1), (4, 4), (LOOKED_AT_ONE_IN, LOOKED_AT_ONE_IN)):
        chances = [n / LOOKED_AT_ONE_IN for n in range(LOOKED_AT_ONE_IN)]
        assert sum(is_looked_at(entries, lambda c=chance: c) for chance in chances) == looked
