"""Where entries stand: the sort order of a slice, the ranges over it, and the task id."""

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.refusals import MalformedTaskId
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import (
    SECOND_MAX,
    SHARD_MAX,
    TOKEN_BYTES,
    Address,
    address_at,
    address_from,
    address_named,
    address_of_task,
)
from tests.support.cases import each_case

ID_CHARACTERS = string.ascii_letters + string.digits + "-_"

seconds = st.integers(0, SECOND_MAX) | st.integers(0, 20)
shards = st.integers(0, SHARD_MAX)
buckets = st.integers(1, 10_000_000)
random_bytes = st.binary(min_size=TOKEN_BYTES, max_size=TOKEN_BYTES) | st.sampled_from(
    [b"\xfb" * TOKEN_BYTES, b"\xff" * TOKEN_BYTES, b"\0" * TOKEN_BYTES]
)
pages = (
    st.integers(0, 10_000)
    .map(str)
    .flatmap(lambda page: st.integers(0, 4).map(lambda rests: page + "r" * rests))
)
all_addresses = st.builds(
    lambda second, ms, token, shard, direct: address_at(
        second * 1000 + ms, token, shard=shard, direct=direct
    ),
    seconds,
    st.integers(0, 999),
    random_bytes,
    shards,
    st.booleans(),
)


def places_of(second: int, address: Address, page: str) -> list[str]:
    """One place of each kind in a second, in the order in which they must stand."""
    entry = replace(address, second=second, direct=False)
    return [
        addresses.header_place(second),
        entry.place,
        replace(entry, direct=True).place,
        addresses.lease_place(second, page),
    ]


def is_in(place: str, bounds: tuple[str, str]) -> bool:
    """BETWEEN, as DynamoDB compares: both ends included, by bytes."""
    low, high = (bound.encode() for bound in bounds)
    return low <= place.encode() <= high


# The task id


@given(all_addresses)
def test_a_task_id_leads_back_to_its_home(home: Address) -> None:
    assert address_of_task(home.task_id) == home


@given(all_addresses)
def test_a_task_id_can_stand_in_a_url_as_it_is(home: Address) -> None:
    assert set(home.task_id) <= set(ID_CHARACTERS)


@given(all_addresses, all_addresses)
def test_two_homes_never_share_a_task_id(one: Address, other: Address) -> None:
    assert (one.task_id == other.task_id) == (one == other)


@given(all_addresses, st.data())
def test_a_task_id_with_one_character_changed_is_refused(
    home: Address, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(home.task_id) - 1))
    wrong = data.draw(st.characters(exclude_characters=home.task_id[at]))
    with pytest.raises(MalformedTaskId):
        address_of_task(home.task_id[:at] + wrong + home.task_id[at + 1 :])


@given(all_addresses)
def test_two_neighbouring_characters_of_a_task_id_cannot_change_places(home: Address) -> None:
    text = home.task_id
    for at in range(len(text) - 1):
        swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        if swapped != text:
            with pytest.raises(MalformedTaskId):
                address_of_task(swapped)


@given(all_addresses, st.text(alphabet=ID_CHARACTERS + "=+/ \n", min_size=1, max_size=8))
def test_a_task_id_with_something_added_or_missing_is_refused(home: Address, more: str) -> None:
    for text in (home.task_id + more, more + home.task_id, home.task_id[len(more) :]):
        with pytest.raises(MalformedTaskId):
            address_of_task(text)


@given(st.text(max_size=60) | st.text(alphabet=ID_CHARACTERS, min_size=28, max_size=28))
def test_what_this_service_did_not_make_is_no_task_id(text: str) -> None:
    with pytest.raises(MalformedTaskId) as refused:
        address_of_task(text)
    assert refused.value.field == "task_id"


@each_case("count", [0, TOKEN_BYTES - 1, TOKEN_BYTES + 1])
def test_an_address_takes_exactly_its_random_bytes(count: int) -> None:
    with pytest.raises(ValueError, match="random bytes"):
        address_at(0, bytes(count))


# Names and places


@given(all_addresses)
def test_an_entry_is_found_again_by_its_name_and_by_its_slot_and_place(entry: Address) -> None:
    assert address_named(entry.name) == entry
    assert address_from(entry.shard, entry.place) == entry


@given(all_addresses, buckets)
def test_slot_and_place_tell_an_entry_from_any_other(entry: Address, count: int) -> None:
    shard = addresses.shard_of(entry.slot(count))
    assert address_from(shard, entry.place) == entry


@given(seconds, shards, buckets)
def test_a_slot_is_the_bucket_of_the_second_and_the_shard(
    second: int, shard: int, count: int
) -> None:
    slot = addresses.slot(second, shard, count)
    assert slot == addresses.slot(second % count, shard, count)
    assert addresses.shard_of(slot) == shard


@given(seconds, seconds, shards, shards, buckets)
def test_only_seconds_of_one_bucket_and_one_shard_share_a_slot(
    one: int, other: int, shard: int, other_shard: int, count: int
) -> None:
    same_slot = addresses.slot(one, shard, count) == addresses.slot(other, other_shard, count)
    assert same_slot == ((one - other) % count == 0 and shard == other_shard)


@given(all_addresses)
def test_an_instant_is_kept_to_the_millisecond(entry: Address) -> None:
    assert divmod(entry.instant_ms, 1000) == (entry.second, entry.ms)


@each_case(
    "place",
    [
        "00000000007#",
        "00000000007~0",
        "00000000007~0000#AAAAAAAAAAA",
        "00000000007.000~AAAAAAAAAAA",
    ],
)
def test_a_header_or_a_lease_is_no_entry(place: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        address_from(0, place)


@given(seconds, all_addresses, pages)
def test_each_kind_of_place_is_told_apart(second: int, address: Address, page: str) -> None:
    header, entry, direct, lease = places_of(second, address, page)
    for place in (header, entry, direct, lease):
        assert addresses.is_header(place) == (place == header)
        assert addresses.is_lease(place) == (place == lease)


@given(seconds, pages)
def test_a_lease_knows_its_second_and_its_page(second: int, page: str) -> None:
    place = addresses.lease_place(second, page)
    assert (addresses.second_of(place), addresses.lease_page(place)) == (second, page)


# The order within a slot


@given(seconds, all_addresses, pages)
def test_a_second_sorts_as_header_entries_direct_entries_leases(
    second: int, address: Address, page: str
) -> None:
    places = places_of(second, address, page)
    assert sorted(places, key=str.encode) == places


@given(seconds, seconds, all_addresses, all_addresses, pages)
def test_all_of_an_earlier_second_sorts_before_all_of_a_later_one(
    one: int, other: int, address: Address, other_address: Address, page: str
) -> None:
    assume(one != other)
    earlier = places_of(min(one, other), address, page)
    later = places_of(max(one, other), other_address, page)
    assert max(earlier, key=str.encode) < min(later, key=str.encode)


@given(st.lists(all_addresses.map(lambda entry: replace(entry, second=7, direct=False))))
def test_entries_of_a_second_sort_by_millisecond(entries: list[Address]) -> None:
    in_order = sorted(entries, key=lambda entry: entry.place.encode())
    assert [entry.ms for entry in in_order] == sorted(entry.ms for entry in entries)


# The ranges


@given(seconds, all_addresses, pages)
def test_ranges_cover_what_they_say(second: int, address: Address, page: str) -> None:
    header, entry, direct, lease = places_of(second, address, page)
    covered = {
        name: [place for place in (header, entry, direct, lease) if is_in(place, bounds)]
        for name, bounds in (
            ("entries", addresses.entries_range(second)),
            ("probe", addresses.probe_range(second)),
            ("second", addresses.second_range(second)),
        )
    }
    assert covered == {
        "entries": [entry],
        "probe": [header, entry],
        "second": [header, entry, direct, lease],
    }


@given(seconds, seconds | st.just(-1), all_addresses, pages, st.booleans())
def test_no_range_meets_anything_of_another_second(
    second: int, other: int, address: Address, page: str, is_neighbour: bool
) -> None:
    other = min(second + 1, SECOND_MAX) if is_neighbour else max(other, second - 1, 0)
    assume(other != second)
    for place in places_of(other, address, page):
        assert not is_in(place, addresses.entries_range(second))
        assert not is_in(place, addresses.probe_range(second))
        assert not is_in(place, addresses.second_range(second))


# Pages


@given(st.integers(0, 1000))
def test_the_pages_of_a_slice_are_all_different(count: int) -> None:
    page = addresses.first_page()
    chain = [page]
    for _ in range(min(count, 50)):
        page = addresses.next_page(page)
        chain.append(page)
    rests = [addresses.rest_page(page) for page in chain]
    rests_of_rests = [addresses.rest_page(rest) for rest in rests]
    everything = chain + rests + rests_of_rests
    assert len(set(everything)) == len(everything)
    assert not any(addresses.is_passed_on(page) for page in chain)
    assert all(addresses.is_passed_on(page) for page in rests + rests_of_rests)


@given(st.integers(0, 10**6), st.integers(0, 5), st.integers(0, 5))
def test_a_page_says_its_lane_and_whatever_it_passes_on_stays_there(
    number: int, rests: int, slow_rests: int
) -> None:
    for first in (str(number), addresses.direct_page([f"0:{number}"])):
        page = first
        for _ in range(0 if addresses.is_direct_page(first) else rests):
            page = addresses.rest_page(page)
            assert not addresses.is_slow_page(page)
        page = addresses.slow_page(page)
        for _ in range(slow_rests + 1):
            assert addresses.is_page(page)
            assert addresses.is_passed_on(page)
            assert addresses.is_slow_page(page)
            page = addresses.rest_page(page)


@each_case("first", ["0", "0s", "0rrs", addresses.direct_page(["0:0"]) + "s"])
def test_a_chain_of_rest_pages_ends_with_a_page_that_a_message_may_name(first: str) -> None:
    page = first
    for _ in range(99):
        page = addresses.rest_page(page)
    assert addresses.is_page(page)
    assert not addresses.has_rest_page(page)


def test_a_direct_page_is_the_same_for_the_same_entries_and_no_message_brings_it() -> None:
    page = addresses.direct_page(["0:b", "0:a"])
    assert page == addresses.direct_page(["0:a", "0:b"])
    assert page != addresses.direct_page(["0:a"])
    assert addresses.is_direct_page(page)
    assert not addresses.is_page(page)


@each_case("page", ["0ss", "0srs", "s", "dr", "d0123456789abcdefr", "0d", "ds", ""])
def test_a_page_that_nobody_would_make_is_none(page: str) -> None:
    assert not addresses.is_page(page)


# The list index


@given(all_addresses)
def test_a_task_is_listed_in_one_of_sixteen_partitions_of_its_business(home: Address) -> None:
    possible = {f"orders#{number}" for number in range(16)}
    assert addresses.partition_of_business("orders", home) in possible


def test_the_tasks_of_a_business_spread_over_all_its_partitions() -> None:
    homes = [address_at(0, number.to_bytes(TOKEN_BYTES, "big")) for number in range(1_600)]
    found = [addresses.partition_of_business("orders", home) for home in homes]
    per_partition = [found.count(f"orders#{number}") for number in range(16)]
    assert min(per_partition) > 50
    assert sum(per_partition) == len(homes)
