import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.instants import NoInstant, ms_from_rfc3339, rfc3339
from tests.support.cases import each_case

LATEST_MS = 253_402_300_799_999  # the last millisecond of the year 9999


@each_case(
    ("text", "instant_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("2030-01-31T08:00:00Z", 1_896_076_800_000),
        ("2030-01-31T08:00:00.25Z", 1_896_076_800_250),
        ("2030-01-31T08:00:00+02:00", 1_896_069_600_000),
        ("2030-01-31T08:00:00-00:30", 1_896_078_600_000),
        ("2030-01-31T08:00:00-00:00", 1_896_076_800_000),
        ("2028-02-29T00:00:00Z", 1_835_395_200_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-02T00:00:00+23:59", -62_135_596_740_000),
    ],
)
def test_instants_of_rfc_3339_are_read(text: str, instant_ms: int) -> None:
    assert ms_from_rfc3339(text) == instant_ms


@each_case(
    ("fraction", "ms"),
    [
        ("0", 0),
        ("001", 1),
        ("0010000", 1),
        ("0010001", 2),
        ("9990001", 1000),
        ("0" * 5000 + "1", 1),
        ("1" * 5000, 112),
    ],
)
def test_finer_fractions_are_rounded_up_so_that_nothing_is_early(fraction: str, ms: int) -> None:
    assert ms_from_rfc3339(f"1970-01-01T00:00:00.{fraction}Z") == ms


@each_case(
    "text",
    [
        "",
        "tomorrow",
        "2030-01-31",
        "2030-01-31T08:00:00",
        "2030-01-31 08:00:00Z",
        "2030-01-31T08:00Z",
        "2030-01-31T08:00:00,5Z",
        "2030-01-31T08:00:00.Z",
        "2030-01-31T08:00:00+0200",
        "2030-01-31T08:00:00+02",
        "2030-01-31T08:00:00+24:00",
        "2030-01-31T08:00:00+02:60",
        "2030-02-30T08:00:00Z",
        "2029-02-29T08:00:00Z",
        "2030-13-01T08:00:00Z",
        "2030-00-01T08:00:00Z",
        "0000-01-01T00:00:00Z",
        "2030-01-31T24:00:00Z",
        "2030-01-31T08:60:00Z",
        "2030-01-31T08:00:61Z",
        "2030-01-31T08:00:00Z\n",
        " 2030-01-31T08:00:00Z",
        "+2030-01-31T08:00:00Z",
        "２030-01-31T08:00:00Z",
        "20300-01-31T08:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59.9991Z",
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_an_invalid_instant_is_refused(text: str) -> None:
    with pytest.raises(NoInstant):
        ms_from_rfc3339(text)


def test_a_leap_second_is_refused_as_such() -> None:
    with pytest.raises(NoInstant, match="leap second"):
        ms_from_rfc3339("2016-12-31T23:59:60Z")


def test_an_instant_is_written_in_utc_with_milliseconds() -> None:
    assert rfc3339(1_896_076_800_005) == "2030-01-31T08:00:00.005Z"
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"


@given(st.integers(0, LATEST_MS))
def test_a_written_instant_is_read_as_the_same_instant(instant_ms: int) -> None:
    assert ms_from_rfc3339(rfc3339(instant_ms)) == instant_ms
