"""Pages of a list, from an index that sorted lists simulate, one for each partition."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules import cursors
from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.listing import (
    Found,
    Listed,
    ListQuery,
    Order,
    Stretch,
    merged,
    position_from,
    question_of,
    stretches,
    written_position,
)
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import (
    LIST_PARTITIONS,
    Address,
    address_at,
    partition_of_business,
)
from tests.support.cases import each_case

SECRET = b"a secret of the deployment"
ORDERS = ListQuery("orders")
PAGES_MAX = 400


def cursor_at(last: Listed, query: ListQuery, secret: bytes) -> str:
    return cursors.sealed(written_position(last), question_of(query), secret)


def position_of(cursor: str, query: ListQuery, secret: bytes) -> Listed:
    return position_from(cursors.opened(cursor, question_of(query), secret))


def listed(due_ms: int, number: int) -> Listed:
    return Listed(due_ms, address_at(1_000_000, number.to_bytes(8, "big")))


def index_order(key: Listed) -> tuple[int, bytes]:
    """By due instant; the index itself decides between equals."""
    return key.due_ms, sha256(key.home.name.encode()).digest()


def first_keys(stretch: Stretch, index: Iterable[Listed], count: int) -> Found:
    def is_behind(key: Listed) -> bool:
        if stretch.after is None:
            return True
        is_later = index_order(key) > index_order(stretch.after)
        return is_later if stretch.is_ascending else index_order(key) < index_order(stretch.after)

    keys = [
        key
        for key in sorted(index, key=index_order, reverse=not stretch.is_ascending)
        if partition_of_business("orders", key.home) == stretch.partition
        and stretch.low_ms <= key.due_ms <= stretch.high_ms
        and is_behind(key)
    ]
    return Found(keys[:count], goes_on=len(keys) >= count)


@dataclass(frozen=True)
class Size:
    """How many keys are read from each partition, and how many make a page."""

    read: int = 1_000
    limit: int = 1_000


def page(query: ListQuery, index: Iterable[Listed], size: Size, cursor: str | None) -> Found:
    after = None if cursor is None else position_of(cursor, query, SECRET)
    found = [first_keys(stretch, index, size.read) for stretch in stretches(query, after)]
    keys = merged(found, query.order)
    return Found(keys.keys[: size.limit], keys.goes_on or len(keys.keys) > size.limit)


def walk(
    query: ListQuery,
    index: set[Listed],
    size: Size,
    between_pages: Callable[[Listed], None] = lambda last: None,
) -> list[Listed]:
    walked: list[Listed] = []
    cursor = None
    for _ in range(PAGES_MAX):
        found = page(query, index, size, cursor)
        walked += found.keys
        if not found.goes_on:
            return walked
        assert found.keys, "a page that is not the last is not empty"
        cursor = cursor_at(found.keys[-1], query, SECRET)
        between_pages(found.keys[-1])
    raise AssertionError("the listing has no end")


# Few instants, so that many tasks have the same one, and enough tasks for all partitions.
dues = st.lists(st.integers(100, 105), min_size=8, max_size=60)
indexes = st.builds(
    lambda dues, first: {listed(due_ms, first + n) for n, due_ms in enumerate(dues)},
    dues,
    st.integers(0, 2**60),
)
orders = st.sampled_from(Order)
sizes = st.builds(Size, st.integers(1, 4), st.integers(1, 70)) | st.builds(
    Size, st.integers(8, 70), st.integers(1, 8)
)
bounds = st.none() | st.integers(99, 107)


@given(indexes, orders, sizes, bounds, bounds)
def test_all_pages_together_contain_each_matching_task_once_in_order(
    index: set[Listed], order: Order, size: Size, low: int | None, high: int | None
) -> None:
    query = ListQuery("orders", due_from_ms=low, due_to_ms=high, order=order)
    walked = walk(query, index, size)

    assert len(walked) == len(set(walked))
    assert set(walked) == {
        key
        for key in index
        if (low is None or low <= key.due_ms) and (high is None or key.due_ms < high)
    }
    dues = [key.due_ms for key in walked]
    assert dues == sorted(dues, reverse=order is Order.DESC)


@given(indexes, orders, sizes, st.randoms(use_true_random=False))
def test_tasks_that_are_added_or_removed_between_pages_do_not_move_others(
    index: set[Listed], order: Order, size: Size, random: Random
) -> None:
    untouched = set(index)
    numbers = iter(range(1, 10_000))

    def add_and_remove_others(last: Listed) -> None:
        for key in sorted(index, key=index_order):
            if random.random() < 0.1:
                index.discard(key)
                untouched.discard(key)
        index.discard(last)  # the task at which the cursor points
        index.add(listed(random.randrange(100, 106), 2**64 - next(numbers)))

    walked = walk(ListQuery("orders", order=order), index, size, add_and_remove_others)

    assert len(walked) == len(set(walked))
    assert untouched <= set(walked)


@given(indexes, orders, sizes)
def test_the_size_may_differ_from_page_to_page(
    index: set[Listed], order: Order, size: Size
) -> None:
    query = ListQuery("orders", order=order)
    first = page(query, index, size, None)
    if not first.goes_on:
        return
    rest = page(query, index, Size(), cursor_at(first.keys[-1], query, SECRET))
    assert [*first.keys, *rest.keys] == walk(query, index, Size())


def test_a_new_list_reads_every_partition_and_an_ended_one_reads_none() -> None:
    assert len(stretches(ORDERS, None)) == LIST_PARTITIONS
    last = listed(5_000, 1)
    ended = stretches(replace(ORDERS, due_to_ms=5_001), last)
    assert {stretch.low_ms for stretch in ended} == {5_000}
    assert stretches(replace(ORDERS, due_to_ms=5_000), last) == []


# Cursors

POSITION = Listed(1_800_000_000_123, address_at(1_700_000_000_456, b"12345678", direct=True))
QUERY = ListQuery(
    "orders", Status.PENDING, due_from_ms=1, due_to_ms=2_000_000_000_000, order=Order.DESC
)


@given(st.integers(0, 10**13), st.integers(0, 10**13), st.binary(min_size=8, max_size=8))
def test_a_cursor_is_read_as_its_position(due_ms: int, home_ms: int, token: bytes) -> None:
    position = Listed(due_ms, address_at(home_ms, token))
    assert position_of(cursor_at(position, QUERY, SECRET), QUERY, SECRET) == position


@each_case(
    "other",
    [
        replace(QUERY, biz_type="mail"),
        replace(QUERY, status=None),
        replace(QUERY, status=Status.DEAD),
        replace(QUERY, due_from_ms=2),
        replace(QUERY, due_from_ms=None),
        replace(QUERY, due_to_ms=2_000_000_000_001),
        replace(QUERY, order=Order.ASC),
    ],
)
def test_a_cursor_of_another_query_is_refused(other: ListQuery) -> None:
    with pytest.raises(InvalidField) as refused:
        position_of(cursor_at(POSITION, QUERY, SECRET), other, SECRET)
    assert refused.value.field == "cursor"


def test_a_cursor_of_another_deployment_is_refused() -> None:
    with pytest.raises(InvalidField):
        position_of(cursor_at(POSITION, QUERY, b"another secret"), QUERY, SECRET)


def test_a_cursor_with_any_altered_character_is_refused() -> None:
    cursor = cursor_at(POSITION, QUERY, SECRET)
    for index, character in enumerate(cursor):
        altered = cursor[:index] + ("A" if character != "A" else "B") + cursor[index + 1 :]
        with pytest.raises(InvalidField):
            position_of(altered, QUERY, SECRET)


@each_case("extra", ["=", "==", "A", "AAAA", "\n", " ", "%", "é", "\ud800"])
def test_a_cursor_with_anything_added_is_refused(extra: str) -> None:
    cursor = cursor_at(POSITION, QUERY, SECRET)
    for altered in (cursor + extra, extra + cursor, cursor[:9] + extra + cursor[9:]):
        with pytest.raises(InvalidField):
            position_of(altered, QUERY, SECRET)


@given(st.text(max_size=200))
def test_an_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidField):
        position_of(text, QUERY, SECRET)


def test_a_cursor_contains_only_a_position() -> None:
    home: Address = POSITION.home
    assert len(cursor_at(POSITION, QUERY, SECRET)) < 120
    assert home.task_id not in cursor_at(POSITION, QUERY, SECRET)
