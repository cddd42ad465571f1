"""Requests for statistics."""

import pytest

from duewheel.rules.refusals import InvalidField
from duewheel.rules.sweep.minute_statistics import MINUTES_MAX, StatsRequest, stats_request
from tests.support.cases import each_case

NOW_MS = 1_900_000_020_000  # 2030-03-17T17:47:00Z, the first of a minute
MINUTE = NOW_MS // 60_000


def test_the_default_range_is_the_last_hour() -> None:
    assert stats_request("", NOW_MS) == StatsRequest(MINUTE - 60, MINUTE)


def test_bounds_are_widened_to_whole_minutes_and_the_upper_one_is_exclusive() -> None:
    first = "from=2030-03-17T17:30:59.999Z"
    assert stats_request(f"{first}&to=2030-03-17T17:32:00Z", NOW_MS) == StatsRequest(
        MINUTE - 17, MINUTE - 16
    )
    assert stats_request(f"{first}&to=2030-03-17T17:32:00.001Z", NOW_MS).last_minute == MINUTE - 15


def test_an_instant_may_have_any_offset() -> None:
    request = stats_request("from=2030-03-17T18:30:00%2B01:00&to=2030-03-17T17:31:00Z", NOW_MS)
    assert request == StatsRequest(MINUTE - 17, MINUTE - 17)


def test_the_longest_range_is_a_day() -> None:
    day = "from=2030-03-16T17:47:00Z&to=2030-03-17T17:47:00Z"
    request = stats_request(day, NOW_MS)
    assert request.last_minute - request.first_minute + 1 == MINUTES_MAX
    with pytest.raises(InvalidField, match=r"from: .*1,440 minutes"):
        stats_request(day.replace("from=2030-03-16T17:47", "from=2030-03-16T17:46"), NOW_MS)


@each_case(
    ("query", "field"),
    [
        ("from=2030-03-17T17:47:00Z&to=2030-03-17T17:47:00Z", "from"),
        ("from=2030-03-17T17:48:00Z&to=2030-03-17T17:47:00Z", "from"),
        ("from=1969-12-31T23:59:00Z&to=1970-01-01T00:01:00Z", "from"),
        ("from=yesterday", "from"),
        ("to=2030-03-17T17:47:00", "to"),
        ("to=2030-03-17T17:47:00Z&to=2030-03-17T17:47:00Z", "to"),
        ("step=60", "step"),
    ],
)
def test_an_invalid_range_is_refused_by_its_parameter(query: str, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        stats_request(query, NOW_MS)
    assert refused.value.field == field
