"""Counts of a process are taken once, and become lines from which CloudWatch makes metrics."""

import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from duewheel.metrics import (
    DEAD,
    DELIVERED,
    LATENESS,
    METRICS,
    SWEEP_LAG,
    VALUES_PER_LINE,
    Counted,
    Counts,
    Metric,
    Source,
    metric_lines,
)

NOW_MS = 1_800_000_000_250
SOURCE = Source("timers", "1.2.3")
UNITS = {"Count", "Milliseconds", "Seconds"}  # a part of those of CloudWatch
LONGEST_LINE_BYTES = 256 * 1024


def lines_of(counted: Counted) -> list[dict[str, Any]]:
    return [json.loads(line) for line in metric_lines(counted, SOURCE, NOW_MS)]


def metrics_in(lines: list[dict[str, Any]]) -> tuple[Counter[str], dict[str, list[int]]]:
    """According to the format: the directive names a metric, and its value is a member of the
    line."""
    counts: Counter[str] = Counter()
    values: dict[str, list[int]] = {}
    for line in lines:
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]:
            value = line[metric["Name"]]
            if isinstance(value, list):
                values.setdefault(metric["Name"], []).extend(value)
            else:
                counts[metric["Name"]] += value
    return counts, values


def by_name(of: Mapping[Metric, Any]) -> dict[str, Any]:
    return {metric.name: value for metric, value in of.items()}


def test_a_line_names_its_stack_and_has_no_dimensions() -> None:
    (line,) = lines_of(Counted({DELIVERED: 2}, {LATENESS: [3, 5]}))
    assert line == {
        "level": "INFO",
        "timestamp": "2027-01-15T08:00:00.250Z",
        "action": "metrics",
        "version": "1.2.3",
        "_aws": {
            "Timestamp": NOW_MS,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Duewheel/timers",
                    "Dimensions": [[]],
                    "Metrics": [
                        {"Name": "Delivered", "Unit": "Count"},
                        {"Name": "Lateness", "Unit": "Milliseconds"},
                    ],
                }
            ],
        },
        "Delivered": 2,
        "Lateness": [3, 5],
    }


def test_no_count_makes_no_line() -> None:
    assert lines_of(Counted()) == []


def test_values_that_exceed_a_line_continue_in_others_and_counts_are_not_repeated() -> None:
    lines = lines_of(Counted({DELIVERED: 201}, {LATENESS: list(range(201)), SWEEP_LAG: [7]}))
    assert [len(line["Lateness"]) for line in lines] == [100, 100, 1]
    assert ["Delivered" in line for line in lines] == [True, False, False]
    assert ["SweepLag" in line for line in lines] == [True, False, False]


@given(
    st.dictionaries(st.sampled_from(METRICS), st.integers(1, 10**12)),
    st.dictionaries(
        st.sampled_from((LATENESS, SWEEP_LAG)),
        st.lists(st.integers(0, 10**12), min_size=1, max_size=450),
    ),
)
def test_lines_contain_each_count_once_within_the_bounds_of_the_format(
    counts: dict[Metric, int], values: dict[Metric, list[int]]
) -> None:
    counts = {metric: n for metric, n in counts.items() if metric not in values}
    lines = lines_of(Counted(counts, values))
    assert metrics_in(lines) == (by_name(counts), by_name(values))
    for line in lines:
        lists = [value for value in line.values() if isinstance(value, list)]
        assert all(0 < len(some) <= VALUES_PER_LINE for some in lists)
        assert len(json.dumps(line)) < LONGEST_LINE_BYTES


def test_every_metric_has_a_name_of_its_own_and_a_unit_that_cloudwatch_knows() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert {metric.unit for metric in METRICS} <= UNITS
    assert DEAD in METRICS


def test_counts_begin_at_zero_after_they_are_taken() -> None:
    counts = Counts()
    counts.add(DELIVERED, 2)
    counts.add(DELIVERED)
    counts.add(DEAD, 0)
    counts.measured(LATENESS, 0)
    taken = counts.take()
    assert (dict(taken.counts), dict(taken.values)) == ({DELIVERED: 3}, {LATENESS: [0]})
    again = counts.take()
    assert (dict(again.counts), dict(again.values)) == ({}, {})


def test_counts_are_neither_lost_nor_doubled_when_threads_count_and_take() -> None:
    counts = Counts()

    def work(_: int) -> int:
        for _ in range(200):
            counts.add(DELIVERED)
            counts.measured(LATENESS, 1)
        return counts.take().counts.get(DELIVERED, 0)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(40))) == 40 * 200
