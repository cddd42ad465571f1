"""The stored form of step records: short, and the same when it is read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import decode, encode

from duewheel.rules.tasks.task import Sizes
from duewheel.rules.timers.planning import OCCURRENCES_MAX
from duewheel.rules.timers.step_records import StepRecord
from duewheel.stores.timers.step_records import _record_from, _row_of, _StepRow
from tests.support.cases import each_case

TIMER_ID = "4503599627370497"
BEGIN = 1_800_000_000

seconds = st.integers(BEGIN, BEGIN + 3_600)
delays = st.sampled_from([0, 0, 0, 1, 50, 86_399])
shards = st.dictionaries(seconds, st.sampled_from([2, 8, 1_024]), max_size=8)


def record(runs: list[tuple[int, int]], by_second: dict[int, int] | None = None) -> StepRecord:
    return StepRecord(TIMER_ID, tuple(runs), Sizes(runs[-1][0] + 1, by_second or {}))


@given(st.dictionaries(seconds, delays, min_size=1, max_size=200), shards)
def test_a_record_is_read_as_it_was_written(
    drawn: dict[int, int], by_second: dict[int, int]
) -> None:
    written = record([(second, second + drawn[second]) for second in sorted(drawn)], by_second)
    text = encode(_row_of(written))
    assert _record_from(decode(text, type=_StepRow), TIMER_ID) == written


@each_case(
    ("every", "count", "jitter", "most"),
    [(1, 1_000, 0, 60), (60, 120, 0, 60), (60, 120, 59, 600), (3, 1_000, 2, 3_000)],
)
def test_a_record_is_short(every: int, count: int, jitter: int, most: int) -> None:
    runs = [(BEGIN + every * n, BEGIN + every * n + n * 7_919 % (jitter + 1)) for n in range(count)]
    assert len(encode(_row_of(record(runs)))) <= most


@each_case(
    "row",
    [
        _StepRow(BEGIN, [1], [0], [0]),  # of two seconds only one delay
        _StepRow(BEGIN, [-1], [0, 0], [0]),  # nothing to repeat
        _StepRow(BEGIN, [1, -OCCURRENCES_MAX], [0, -OCCURRENCES_MAX], [0]),
        _StepRow(BEGIN, [10**12], [0, 0], [0]),
        _StepRow(BEGIN, [], [0], [0, 7]),
    ],
)
def test_a_damaged_record_is_refused(row: _StepRow) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        _record_from(row, TIMER_ID)
