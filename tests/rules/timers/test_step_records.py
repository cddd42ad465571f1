"""The step records of planned occurrences: which homes they name, and in which order these are
found."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.tasks.task import Occurrence, Sizes
from duewheel.rules.timers import step_records
from duewheel.rules.timers.planning import OCCURRENCES_MAX, occurrence_task
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.step_records import (
    RECORDED_MIN,
    SPAN_SECONDS,
    Search,
    StepRecord,
    merged,
    records_of,
)
from duewheel.rules.timers.timer import Rules, Timer
from duewheel.rules.wheel.addresses import Address, address_at, header_place, second_range

NOW = 1_800_000_000
TIMER_ID = "4503599627370497"

seconds = st.integers(NOW, NOW + 3 * SPAN_SECONDS)
jitters = st.sampled_from([0, 0, 5, 600, 86_399])
shard_counts = st.dictionaries(seconds, st.sampled_from([1, 2, 8]), max_size=20)


def timer(jitter_seconds: int = 0) -> Timer:
    rules = Rules("closing", Schedule(every_seconds=1), jitter_seconds=jitter_seconds)
    return Timer(
        timer_id=TIMER_ID,
        biz_type="orders",
        rules=rules,
        enabled=True,
        version=1,
        created_ms=0,
        updated_ms=0,
    )


def occurrences_at(nominal: Sequence[int]) -> list[Occurrence]:
    return [Occurrence(TIMER_ID, second, n) for n, second in enumerate(sorted(nominal), 1)]


def homes_of(record: StepRecord) -> set[Address]:
    return {record.home_of(second, due) for second, due in record.runs}


@given(st.sets(seconds, min_size=1, max_size=60), jitters, shard_counts)
def test_the_records_of_a_step_name_the_homes_of_all_occurrences_that_are_not_alone(
    nominal: set[int], jitter: int, shards: dict[int, int]
) -> None:
    of, sizes = timer(jitter), Sizes(NOW + 10**6, shards)
    planned = occurrences_at(list(nominal))
    records = records_of(of, planned, sizes)
    recorded = {second for record in records for second, _ in record.runs}
    expected = {
        occurrence_task(of, one, NOW * 1000, sizes).home
        for one in planned
        if one.second in recorded
    }
    assert set().union(*map(homes_of, records)) == expected
    assert sum(len(record.runs) for record in records) == len(recorded)
    for record in records:
        assert len(record.runs) >= RECORDED_MIN
        assert list(record.runs) == sorted(record.runs)
        assert record.last_due - record.first_due < SPAN_SECONDS


def test_a_usual_step_is_one_record() -> None:
    for every, count in ((1, OCCURRENCES_MAX), (7, 1_000), (60, 120), (600, 12), (1_800, 4)):
        planned = occurrences_at([NOW + every * n for n in range(count)])
        assert len(records_of(timer(), planned, Sizes())) == 1
        if every >= 60:
            assert len(records_of(timer(every // 2), planned, Sizes())) == 1


def test_one_occurrence_alone_has_no_record() -> None:
    assert records_of(timer(), occurrences_at([NOW]), Sizes()) == []
    assert records_of(timer(), occurrences_at([NOW, NOW + SPAN_SECONDS]), Sizes()) == []


def test_a_step_after_a_long_outage_is_split_by_its_span() -> None:
    days = 30
    planned = occurrences_at([NOW + 3_600 * n for n in range(24 * days)])
    records = records_of(timer(), planned, Sizes())
    assert len(records) == 24 * days * 3_600 // SPAN_SECONDS
    named = {second for record in records for second, _ in record.runs}
    assert named == {one.second for one in planned}


# Search


def found(
    records: Sequence[StepRecord], newest_first: bool, behind: str | None, limit: int, batch: int
) -> tuple[list[Address], bool]:
    """As the store reads them: in the order of their beginnings, a batch at a time."""
    search = Search(newest_first=newest_first, behind=behind)
    low, high = search.begins
    wanted = sorted(
        (record for record in records if low <= record.first_due <= high),
        key=lambda record: record.first_due,
        reverse=newest_first,
    )
    homes: list[Address] = []
    for start in range(0, max(len(wanted), 1), batch):
        for record in wanted[start : start + batch]:
            search.add(record)
        is_last = start + batch >= len(wanted)
        homes, goes_on = search.page(
            limit, None if is_last else wanted[start + batch - 1].first_due
        )
        if len(homes) == limit or not goes_on:
            return homes, goes_on
    return homes, False


steps = st.lists(
    st.tuples(st.sets(seconds, min_size=2, max_size=12), jitters, shard_counts), max_size=8
)


@given(steps, st.booleans(), st.none() | seconds, st.integers(0, 30), st.integers(1, 6), st.data())
def test_a_page_has_the_next_homes_behind_a_place_in_order(
    drawn: list[tuple[set[int], int, dict[int, int]]],
    newest_first: bool,
    second: int | None,
    limit: int,
    batch: int,
    data: st.DataObject,
) -> None:
    records = [
        record
        for nominal, jitter, shards in drawn
        for record in records_of(timer(jitter), occurrences_at(list(nominal)), Sizes(0, shards))
    ]
    homes = sorted(
        set().union(*map(homes_of, records)), key=lambda home: home.place, reverse=newest_first
    )
    places = [home.place for home in homes]
    if second is None:
        behind = data.draw(st.none() | st.sampled_from(places)) if places else None
    else:
        behind = second_range(second)[1] if newest_first else header_place(second)
    expected = [
        home
        for home in homes
        if behind is None or (home.place < behind if newest_first else home.place > behind)
    ]
    page, goes_on = found(records, newest_first, behind, limit + 1, batch)
    assert [home.place for home in page] == [home.place for home in expected[: limit + 1]]
    if not goes_on:
        assert len(page) == len(expected)


def test_the_last_seconds_of_a_long_record_are_found_behind_shorter_ones() -> None:
    """It begins long before them, so a reader has to read on."""
    long = [NOW, NOW + SPAN_SECONDS - 1]
    short = [[NOW + n, NOW + n + 1] for n in range(100, 200, 2)]
    records = [
        record
        for nominal in (long, *short)
        for record in records_of(timer(), occurrences_at(nominal), Sizes())
    ]
    (home,), goes_on = found(records, True, None, 1, 10)
    assert (home.second, goes_on) == (NOW + SPAN_SECONDS - 1, True)


places = st.lists(st.integers(0, 40), max_size=20, unique=True)


def at(number: int) -> Address:
    return address_at((NOW + number) * 1000, bytes(8))


@given(places, places, st.integers(1, 12), st.booleans())
def test_two_lists_are_read_page_by_page_as_one(
    one: list[int], other: list[int], limit: int, newest_first: bool
) -> None:
    lists = [sorted(numbers, reverse=newest_first) for numbers in (one, other)]
    expected = sorted({*one, *other}, reverse=newest_first)
    read: list[int] = []
    goes_on = True
    while goes_on:
        last = read[-1] if read else None
        rests = [
            [n for n in numbers if last is None or (n < last if newest_first else n > last)]
            for numbers in lists
        ]
        pages = [(list(map(at, rest[:limit])), len(rest) > limit) for rest in rests]
        page, goes_on = merged(pages, limit, newest_first=newest_first)
        assert len(page) == min(limit, len(expected) - len(read))
        read += [home.second - NOW for home in page]
    assert read == expected


def test_the_limits_that_readers_rely_on() -> None:
    """A step is two hours at most, unless it is late; two hours and a usual jitter fit."""
    assert step_records.SPAN_SECONDS >= 7_200 + 3_600
