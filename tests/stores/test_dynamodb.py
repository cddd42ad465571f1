"""Batches that are carried out in part: they continue while there is progress, and fail after a few
tries without any."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.stores.dynamodb import (
    PAUSES_SECONDS,
    Throttled,
    get_batch,
    write_batch,
    write_while_taken,
)
from tests.support.clock import ManualClock

KEYS = [{"k": {"N": str(number)}} for number in range(100)]
TRIES = len(PAUSES_SECONDS) + 1


class Table:
    """`parts`: how much it carries out of each request; the last part is that of all further
    requests."""

    def __init__(self, *parts: int, missing: Sequence[Any] = ()) -> None:
        self._parts = list(parts)
        self._missing = missing
        self.requests = 0

    def batch_get_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:
        keys = RequestItems["t"]["Keys"]
        part = self._next()
        left = {"t": {"Keys": keys[part:]}} if keys[part:] else {}
        items = [key for key in keys[:part] if key not in self._missing]
        return {"Responses": {"t": items}, "UnprocessedKeys": left}

    def batch_write_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:
        left = RequestItems["t"][self._next() :]
        return {"UnprocessedItems": {"t": left} if left else {}}

    def _next(self) -> int:
        self.requests += 1
        return self._parts.pop(0) if len(self._parts) > 1 else self._parts[0]


def read(table: Table, clock: ManualClock, keys: list[Any] = KEYS) -> list[Any]:
    return get_batch(table, clock, "t", keys)  # type: ignore[arg-type]


def test_a_read_continues_after_every_answer_with_an_item(clock: ManualClock) -> None:
    table, began_ms = Table(1), clock.now_ms()
    assert read(table, clock) == KEYS
    assert table.requests == len(KEYS)
    assert clock.now_ms() == began_ms


def test_missing_items_count_as_progress(clock: ManualClock) -> None:
    table = Table(1, missing=KEYS)
    assert read(table, clock) == []
    assert table.requests == len(KEYS)


def test_answers_without_progress_cause_pauses_and_then_a_failure(clock: ManualClock) -> None:
    table, began_ms = Table(0), clock.now_ms()
    with pytest.raises(Throttled, match="100 keys"):
        read(table, clock)
    assert table.requests == TRIES
    assert clock.now_ms() - began_ms == pytest.approx(sum(PAUSES_SECONDS) * 1000, abs=1)


def test_progress_resets_the_number_of_tries(clock: ManualClock) -> None:
    table = Table(*([0] * (TRIES - 1) + [30]) * 4)
    assert read(table, clock) == KEYS


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_writes_fail_only_after_several_answers_without_progress(parts: list[int]) -> None:
    table = Table(*parts, 0)
    left = write_batch(table, ManualClock(), "t", KEYS[:25])  # type: ignore[arg-type]

    done, nothing_in_a_row = 0, 0
    for part in [*parts, *[0] * TRIES]:
        nothing_in_a_row = 0 if part else nothing_in_a_row + 1
        done += part
        if done >= 25 or nothing_in_a_row == TRIES:
            break
    assert left == KEYS[:25][done:]


def test_write_while_taken_returns_the_rest_without_a_pause() -> None:
    table = Table(7, 5, 0)
    assert write_while_taken(table, "t", KEYS[:25]) == KEYS[12:25]  # type: ignore[arg-type]
    assert table.requests == 3
