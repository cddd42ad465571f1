"""Local times that a day lacks or has twice, zone by zone.

Expected instants are written as the zone's clocks show them, with their offset from UTC.
"""

import sys
from datetime import UTC, datetime
from pkgutil import get_data

import pytest

from duewheel.rules.timers.schedule import (
    DstGap,
    DstOverlap,
    Schedule,
    contains,
    next_second,
    seconds_from,
)
from duewheel.rules.timers.time_zones import UnknownZone, offset_at, zone_named
from tests.support.cases import each_case

SKIP, SHIFT = DstGap
FIRST, LAST, BOTH = DstOverlap


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def shown(schedule: Schedule, day: str, until: str) -> list[str]:
    """The occurrences of these days of its zone."""
    zone = zone_named(schedule.timezone)
    first, end = (
        int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) for text in (day, until)
    )
    seconds = seconds_from(schedule, first, 100_000, until=end - 1)
    assert [second for second in seconds if not contains(schedule, second)] == []
    return [
        f"{datetime.fromtimestamp(second, UTC).astimezone(zone):%dT%H:%M%z}" for second in seconds
    ]


@each_case(
    ("timezone", "cron", "day", "until", "gap", "expected"),
    [
        # At 2:00, New York continues at 3:00.
        ("America/New_York", "30 2 * * *", "2026-03-07", "2026-03-10", SHIFT,
         ["07T02:30-0500", "08T03:00-0400", "09T02:30-0400"]),
        ("America/New_York", "30 2 * * *", "2026-03-07", "2026-03-10", SKIP,
         ["07T02:30-0500", "09T02:30-0400"]),
        ("America/New_York", "*/30 1-3 * * *", "2026-03-08", "2026-03-09", SHIFT,
         ["08T01:00-0500", "08T01:30-0500", "08T03:00-0400", "08T03:30-0400"]),
        ("America/New_York", "15,45 1-3 * * *", "2026-03-08", "2026-03-09", SHIFT,
         ["08T01:15-0500", "08T01:45-0500", "08T03:00-0400", "08T03:15-0400", "08T03:45-0400"]),
        ("America/New_York", "15,45 1-3 * * *", "2026-03-08", "2026-03-09", SKIP,
         ["08T01:15-0500", "08T01:45-0500", "08T03:15-0400", "08T03:45-0400"]),
        # At 1:00, London continues at 2:00.
        ("Europe/London", "0 1 * * *", "2026-03-28", "2026-03-31", SHIFT,
         ["28T01:00+0000", "29T02:00+0100", "30T01:00+0100"]),
        ("Europe/London", "0 1 * * *", "2026-03-28", "2026-03-31", SKIP,
         ["28T01:00+0000", "30T01:00+0100"]),
        # At midnight, Cairo continues at 1:00: its day begins with a gap.
        ("Africa/Cairo", "0 0 * * *", "2026-04-23", "2026-04-26", SHIFT,
         ["23T00:00+0200", "24T01:00+0300", "25T00:00+0300"]),
        ("Africa/Cairo", "0 0 * * *", "2026-04-23", "2026-04-26", SKIP,
         ["23T00:00+0200", "25T00:00+0300"]),
        ("Africa/Cairo", "0 0 * * FRI", "2026-04-20", "2026-05-04", SHIFT,
         ["24T01:00+0300", "01T00:00+0300"]),
        ("Africa/Cairo", "59 23 * * *", "2026-04-23", "2026-04-25", SHIFT,
         ["23T23:59+0200", "24T23:59+0300"]),
        # At 2:00, Lord Howe continues at 2:30.
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03", "2026-10-06", SHIFT,
         ["03T02:15+1030", "04T02:30+1100", "05T02:15+1100"]),
        ("Australia/Lord_Howe", "*/15 2 * * *", "2026-10-04", "2026-10-05", SKIP,
         ["04T02:30+1100", "04T02:45+1100"]),
        # Kathmandu's offset has three quarters of an hour, and its clocks are not set.
        ("Asia/Kathmandu", "0 6 * * *", "2026-03-28", "2026-03-30", SHIFT,
         ["28T06:00+0545", "29T06:00+0545"]),
        ("Asia/Kathmandu", "5 0 * * *", "1985-12-31", "1986-01-03", SHIFT,
         ["31T00:05+0530", "01T00:15+0545", "02T00:05+0545"]),
        # Apia left out the 30th of December 2011.
        ("Pacific/Apia", "0 12 * * *", "2011-12-29", "2012-01-01", SHIFT,
         ["29T12:00-1000", "31T00:00+1400", "31T12:00+1400"]),
        ("Pacific/Apia", "0 12 * * *", "2011-12-29", "2012-01-01", SKIP,
         ["29T12:00-1000", "31T12:00+1400"]),
    ],
)  # fmt: skip
def test_a_time_in_a_gap_is_shifted_to_its_end_or_skipped(
    timezone: str, cron: str, day: str, until: str, gap: DstGap, expected: list[str]
) -> None:
    assert shown(Schedule(cron=cron, timezone=timezone, dst_gap=gap), day, until) == expected


@each_case(
    ("timezone", "cron", "day", "until", "overlap", "expected"),
    [
        # At 2:00, New York goes back to 1:00.
        ("America/New_York", "30 1 * * *", "2026-10-31", "2026-11-03", FIRST,
         ["31T01:30-0400", "01T01:30-0400", "02T01:30-0500"]),
        ("America/New_York", "30 1 * * *", "2026-10-31", "2026-11-03", LAST,
         ["31T01:30-0400", "01T01:30-0500", "02T01:30-0500"]),
        ("America/New_York", "30 1 * * *", "2026-10-31", "2026-11-03", BOTH,
         ["31T01:30-0400", "01T01:30-0400", "01T01:30-0500", "02T01:30-0500"]),
        ("America/New_York", "*/30 0-2 * * *", "2026-11-01", "2026-11-02", BOTH,
         ["01T00:00-0400", "01T00:30-0400", "01T01:00-0400", "01T01:30-0400",
          "01T01:00-0500", "01T01:30-0500", "01T02:00-0500", "01T02:30-0500"]),
        ("America/New_York", "*/30 0-2 * * *", "2026-11-01", "2026-11-02", LAST,
         ["01T00:00-0400", "01T00:30-0400", "01T01:00-0500", "01T01:30-0500",
          "01T02:00-0500", "01T02:30-0500"]),
        # At 2:00, London goes back to 1:00, which it has twice; it has 2:00 once.
        ("Europe/London", "0 1,2 * * *", "2026-10-25", "2026-10-26", FIRST,
         ["25T01:00+0100", "25T02:00+0000"]),
        ("Europe/London", "0 1,2 * * *", "2026-10-25", "2026-10-26", BOTH,
         ["25T01:00+0100", "25T01:00+0000", "25T02:00+0000"]),
        # At midnight, Cairo goes back to 23:00 of the day that has just ended.
        ("Africa/Cairo", "30 23 * * *", "2026-10-29", "2026-10-31", FIRST,
         ["29T23:30+0300", "30T23:30+0200"]),
        ("Africa/Cairo", "30 23 * * *", "2026-10-29", "2026-10-31", LAST,
         ["29T23:30+0200", "30T23:30+0200"]),
        ("Africa/Cairo", "0 0,23 * * *", "2026-10-29", "2026-10-31", BOTH,
         ["29T00:00+0300", "29T23:00+0300", "29T23:00+0200", "30T00:00+0200", "30T23:00+0200"]),
        # At 2:00, Lord Howe goes back to 1:30.
        ("Australia/Lord_Howe", "*/30 1 * * *", "2026-04-05", "2026-04-06", FIRST,
         ["05T01:00+1100", "05T01:30+1100"]),
        ("Australia/Lord_Howe", "*/30 1 * * *", "2026-04-05", "2026-04-06", LAST,
         ["05T01:00+1100", "05T01:30+1030"]),
        ("Australia/Lord_Howe", "*/30 1 * * *", "2026-04-05", "2026-04-06", BOTH,
         ["05T01:00+1100", "05T01:30+1100", "05T01:30+1030"]),
        ("Asia/Kathmandu", "0 6 * * *", "2026-10-25", "2026-10-27", BOTH,
         ["25T06:00+0545", "26T06:00+0545"]),
        # At a minute past midnight, St John's went back to the evening before.
        ("America/St_Johns", "0 0 * * *", "2006-10-28", "2006-10-30", BOTH,
         ["28T00:00-0230", "29T00:00-0230", "29T00:00-0330"]),
    ],
)  # fmt: skip
def test_the_first_the_last_or_both_of_a_repeated_time_count(
    timezone: str, cron: str, day: str, until: str, overlap: DstOverlap, expected: list[str]
) -> None:
    schedule = Schedule(cron=cron, timezone=timezone, dst_overlap=overlap)
    assert shown(schedule, day, until) == expected


@each_case(
    ("timezone", "day", "until", "hours"),
    [
        ("America/New_York", "2026-03-08", "2026-03-09", 23),
        ("America/New_York", "2026-11-01", "2026-11-02", 25),
        ("Africa/Cairo", "2026-04-24", "2026-04-25", 23),
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-06", 24.5),
        ("Australia/Lord_Howe", "2026-10-04", "2026-10-05", 23.5),
        ("Asia/Kathmandu", "2026-10-04", "2026-10-05", 24),
    ],
)
def test_an_interval_ignores_changes_of_the_clocks(
    timezone: str, day: str, until: str, hours: float
) -> None:
    schedule = Schedule(every_seconds=1800, timezone=timezone)
    assert len(shown(schedule, day, until)) == hours * 2
    seconds = seconds_from(schedule, at(f"{day}T00:00Z"), 200)
    assert [second % 1800 for second in seconds] == [0] * 200


def test_an_interval_counts_from_its_anchor_and_has_nothing_before_it() -> None:
    schedule = Schedule(every_seconds=100, anchor_second=1_000_030)
    assert seconds_from(schedule, 0, 3) == [1_000_030, 1_000_130, 1_000_230]
    assert next_second(schedule, 1_000_130) == 1_000_230
    assert seconds_from(schedule, 1_000_131, 2, until=1_000_329) == [1_000_230]
    assert contains(schedule, 1_000_230)
    assert not contains(schedule, 999_930)
    assert not contains(schedule, 1_000_231)


def test_start_and_end_are_the_first_and_the_last_possible_second() -> None:
    noon = at("2030-06-01T12:00Z")
    schedule = Schedule(cron="0 * * * *", start_second=noon, end_second=noon + 7200)
    assert seconds_from(schedule, 0, 10) == [noon, noon + 3600, noon + 7200]
    assert next_second(schedule, noon + 7200) is None
    assert not contains(schedule, noon - 3600)
    assert not contains(schedule, noon + 10_800)
    interval = Schedule(every_seconds=1800, start_second=noon + 1, end_second=noon + 3600)
    assert seconds_from(interval, 0, 10) == [noon + 1800, noon + 3600]
    assert not contains(interval, noon)


def test_excluded_dates_are_local_dates_of_the_zone() -> None:
    schedule = Schedule(
        cron="0 1,23 * * *", timezone="America/New_York", exclude=("2026-12-25", "2026-12-26")
    )
    assert shown(schedule, "2026-12-24", "2026-12-28") == [
        "24T01:00-0500", "24T23:00-0500", "27T01:00-0500", "27T23:00-0500",
    ]  # fmt: skip
    assert not contains(schedule, at("2026-12-25T23:00-05:00"))


def test_an_interval_continues_after_an_excluded_date_as_without_it() -> None:
    every_7h = Schedule(every_seconds=7 * 3600, timezone="Asia/Kathmandu", exclude=("2026-12-25",))
    plain = Schedule(every_seconds=7 * 3600, timezone="Asia/Kathmandu")
    days = shown(plain, "2026-12-23", "2026-12-28")
    assert shown(every_7h, "2026-12-23", "2026-12-28") == [
        text for text in days if not text.startswith("25")
    ]
    missing = at("2026-12-25T00:00+05:45")
    assert not any(contains(every_7h, second) for second in seconds_from(plain, missing, 3))


@each_case(
    ("exclude", "expected"),
    [
        ("2026-04-24", ["23T00:00+0200", "25T00:00+0300"]),
        ("2026-04-23", ["24T01:00+0300", "25T00:00+0300"]),
    ],
)
def test_a_shifted_time_is_excluded_by_its_original_date(exclude: str, expected: list[str]) -> None:
    schedule = Schedule(cron="0 0 * * *", timezone="Africa/Cairo", exclude=(exclude,))
    assert shown(schedule, "2026-04-23", "2026-04-26") == expected
    # All of Apia's 30th is shifted to the 31st, which is not excluded.
    apia = Schedule(cron="0 12 * * *", timezone="Pacific/Apia", exclude=("2011-12-30",))
    assert shown(apia, "2011-12-29", "2012-01-01") == ["29T12:00-1000", "31T12:00+1400"]
    apia = Schedule(cron="0 12 * * *", timezone="Pacific/Apia", exclude=("2011-12-31",))
    assert shown(apia, "2011-12-29", "2012-01-01") == ["29T12:00-1000", "31T00:00+1400"]


def test_seconds_after_any_second_around_a_change_are_the_same() -> None:
    schedule = Schedule(cron="*/5 * * * *", timezone="America/New_York", dst_overlap=BOTH)
    first = at("2026-11-01T00:55:00-04:00")
    whole = seconds_from(schedule, first, 40)
    assert whole == list(range(first, first + 40 * 300, 300))
    assert [next_second(schedule, second - 1) for second in whole] == whole


def test_every_zone_of_the_packaged_database_is_known_and_no_other() -> None:
    names = (get_data("tzdata", "zones") or b"").decode().split()
    assert len(names) > 500
    for name in names:
        assert zone_named(name).key == name
        assert abs(offset_at(zone_named(name), at("2026-06-01T00:00Z"))) <= 14 * 3600
    for name in ("localtime", "posix/Europe/London", "right/UTC", "Europe", "zone.tab"):
        with pytest.raises(UnknownZone):
            zone_named(name)


def test_planning_an_hour_needs_no_croniter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "croniter", None)
    schedule = Schedule(cron="*/5 * LW * *", timezone="Europe/London")
    first = at("2026-07-31T12:00Z")
    assert len(seconds_from(schedule, first, 100, until=first + 3_599)) == 12
    assert seconds_from(schedule, first - 86_400, 100, until=first - 80_000) == []
    assert contains(schedule, first)
    with pytest.raises(ImportError):
        next_second(schedule, first + 86_400)
