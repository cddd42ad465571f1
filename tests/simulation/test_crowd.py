"""A crowd on one second meets AWS's limits: right-sized slices, and the wall of a single shard.

What one partition takes in a second is what a single shard needs a second for; with shards the
table's limit alone decides. `make prove` does it with 20,000 tasks.
"""

import os
from unittest.mock import patch

import pytest

from bench.limits import NEW_TABLE_WRITE_UNITS, PARTITION_WRITE_UNITS, TABLE_WRITE_UNITS
from duewheel.rules.wheel import sharding
from tests.simulation.crowd import (
    Crowd,
    check_nothing_is_lost_or_repeated,
    crowded,
    one_fixed_shard,
)
from tests.support.bounds import quick_first

IS_PROOF = os.environ.get("HYPOTHESIS_PROFILE") == "prove"
TASKS = 20_000 if IS_PROOF else 1_500
WRITES_PER_TASK = 2.1  # created and settled, with its share of leases
SETTLING_STARTS_SECONDS = 1.0  # a page is waited for, read and called, and looked at by and by


@pytest.mark.exhaustive
@pytest.mark.parametrize("tasks", quick_first([260, TASKS], pytest.mark.soak))
def test_a_crowd_is_settled_in_the_time_that_its_table_takes(tasks: int) -> None:
    came = crowded(Crowd(tasks, TABLE_WRITE_UNITS.value))
    check_nothing_is_lost_or_repeated(came, tasks)
    assert max(came.by_shard.values()) <= 3 * sharding.SLICE_ENTRIES
    assert len(came.by_shard) >= tasks / sharding.SLICE_ENTRIES
    limit_seconds = tasks / TABLE_WRITE_UNITS.value
    assert came.created_seconds <= 2 + WRITES_PER_TASK * limit_seconds
    assert came.settled_seconds <= SETTLING_STARTS_SECONDS + 1 + WRITES_PER_TASK * limit_seconds
    assert came.repeated_creates == 0


@pytest.mark.soak
def test_with_one_fixed_shard_a_crowd_meets_the_wall_of_its_partition() -> None:
    tasks = 2 * TASKS if not IS_PROOF else TASKS
    with one_fixed_shard():
        came = crowded(Crowd(tasks, TABLE_WRITE_UNITS.value))
    check_nothing_is_lost_or_repeated(came, tasks)
    assert set(came.by_shard) == {0}
    wall_seconds = tasks / PARTITION_WRITE_UNITS.value - 1  # of the first second's credit
    assert came.created_seconds >= wall_seconds
    assert came.settled_seconds >= wall_seconds
    assert came.refused.total() > 0


def test_a_crowd_that_comes_one_by_one_grows_its_second() -> None:
    """Most of them are not noted, and some are created while others grow it."""
    singles, slice_entries = (4_000, sharding.SLICE_ENTRIES) if IS_PROOF else (120, 8)
    with patch.object(sharding, "SLICE_ENTRIES", slice_entries):
        crowd = Crowd(singles, TABLE_WRITE_UNITS.value, clients=32, singles=singles)
        came = crowded(crowd, seed=2)
    check_nothing_is_lost_or_repeated(came, singles)
    assert len(came.by_shard) > 1
    assert came.repeated_creates == 0


@pytest.mark.soak
@pytest.mark.parametrize(("tasks", "units"), [(600, 5.0), (1_200, 12.0)])
def test_a_table_that_takes_longer_than_a_notifier_lives_repeats_no_call(
    tasks: int, units: float
) -> None:
    """No notifier can write what it has called, nor that it passes it on."""
    came = crowded(Crowd(tasks, TABLE_WRITE_UNITS.value, settling_write_units=units))
    check_nothing_is_lost_or_repeated(came, tasks)
    assert came.settled_seconds > 90


@pytest.mark.skipif(not IS_PROOF, reason="`make prove` takes the time for it")
def test_on_a_new_table_a_crowd_is_as_quick_as_the_table() -> None:
    came = crowded(Crowd(TASKS, NEW_TABLE_WRITE_UNITS.value))
    check_nothing_is_lost_or_repeated(came, TASKS)
    limit_seconds = TASKS / NEW_TABLE_WRITE_UNITS.value
    assert came.settled_seconds <= 3 + 2 * limit_seconds
    assert came.created_seconds <= 5 + 3 * limit_seconds
