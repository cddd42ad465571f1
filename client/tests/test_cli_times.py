"""Times as people write them: texts that are accepted, and texts that are refused."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.cli.times import WEEKDAYS, NotATime, due, instant, span

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)  # a Sunday
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 2h", timedelta(hours=2)),
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("2w 3 days", timedelta(days=17)),
        ("500ms", timedelta(seconds=0.5)),
        ("now", timedelta()),
        ("2h ago", timedelta(hours=-2)),
    ],
)
def test_a_span_stays_a_span(text: str, expected: timedelta) -> None:
    assert due(text, NOW, BERLIN) == expected
    assert instant(text, NOW, BERLIN) == NOW + expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01T09:00Z", "2026-12-01T09:00:00+00:00"),
        ("2026-12-01t09:00:07.25z", "2026-12-01T09:00:07.250000+00:00"),
        ("2026-12-01T09:00+08:00", "2026-12-01T09:00:00+08:00"),
        ("2026-12-01 09:00", "2026-12-01T09:00:00+01:00"),
        ("2026-07-01 09:00", "2026-07-01T09:00:00+02:00"),
        ("tomorrow 9:00 Asia/Shanghai", "2026-11-23T09:00:00+08:00"),
        ("Tomorrow at 9:30pm", "2026-11-23T21:30:00+01:00"),
        ("today 6pm", "2026-11-22T18:00:00+01:00"),
        ("friday 18:00", "2026-11-27T18:00:00+01:00"),
        ("saturday 18:00 UTC", "2026-11-28T18:00:00+00:00"),
        ("2027-10-31T02:30+01:00", "2027-10-31T02:30:00+01:00"),
    ],
)
def test_an_instant_is_read_in_its_zone(text: str, expected: str) -> None:
    assert instant(text, NOW, BERLIN).isoformat() == expected


def test_tomorrow_is_counted_in_the_named_zone() -> None:
    late = datetime(2026, 11, 22, 22, 0, tzinfo=UTC)  # already the 23rd in Shanghai
    assert instant("tomorrow 9:00 Asia/Shanghai", late, BERLIN).day == 24
    assert instant("tomorrow 9:00", late, BERLIN).day == 23


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no time"),
        ("soon", "is no time"),
        ("90", "of what"),
        ("in 3 months", "differ in length"),
        ("2h 1d", "is no time"),
        ("9:00", "on which day"),
        ("9am", "on which day"),
        ("friday", "at what time"),
        ("2026-12-01", "at what time"),
        ("tomorrow 9", "morning or evening"),
        ("tomorrow 12am", "two ways"),
        ("sunday 18:00", "today is sunday"),
        ("next friday 18:00", "two ways"),
        ("01/02/2027 9:00", "which is the month"),
        ("tomorrow 9:00 CST", "is no zone"),
        ("tomorrow 9:00 Europe/Atlantis", "is no zone"),
        ("2027-03-28 02:30", "no such time"),
        ("2027-10-31 02:30", r"twice. Say 2027-10-31T02:30\+02:00 or 2027-10-31T02:30\+01:00"),
        ("2026-02-30 9:00", "no such day"),
        ("tomorrow 25:00", "no such time of day"),
        ("in 999999999999d", "longer than calendars"),
        ("9999-12-31 23:59 -10:00", "further than calendars"),
    ],
)
def test_ambiguous_and_invalid_texts_are_refused(text: str, why: str) -> None:
    with pytest.raises(NotATime, match=why):
        instant(text, NOW, BERLIN)


def test_skipped_and_repeated_times_of_the_machines_zone_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        assert instant("2026-07-01 09:00", NOW).isoformat() == "2026-07-01T09:00:00+02:00"
        for skipped_or_twice in ("2027-03-28 02:30", "2027-10-31 02:30"):
            with pytest.raises(NotATime):
                instant(skipped_or_twice, NOW)
    time.tzset()


nows = st.datetimes(datetime(2000, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))
zones = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"])
tokens = """today tomorrow next in ago at now 9:00 09:30:59 9pm 12am 2026-12-01 2026-12-01T09:00 T Z
    +08:00 Asia/Shanghai CST / 2h 30 m ms 1.5d 0w -1h \u0663h \u0130"""
words = st.sampled_from((*WEEKDAYS, *tokens.split()))


@given(st.text() | st.lists(words).map(" ".join) | st.lists(words).map("".join), nows, zones)
def test_any_text_is_an_aware_instant_or_refused(text: str, now: datetime, zone: str) -> None:
    try:
        read = instant(text, now, ZoneInfo(zone))
    except NotATime:
        return
    assert read.tzinfo is not None
    read.astimezone(UTC)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)), nows, zones)
def test_a_local_time_is_read_as_an_instant_that_shows_it(
    local_time: datetime, now: datetime, zone: str
) -> None:
    """Or it is refused, if the zone's clocks skip it or show it twice."""
    text = local_time.isoformat(" ", "seconds")
    meant = local_time.replace(microsecond=0, tzinfo=ZoneInfo(zone))
    shown = meant.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    is_twice = meant.utcoffset() != meant.replace(fold=1).utcoffset()
    if shown != local_time.replace(microsecond=0) or is_twice:
        with pytest.raises(NotATime):
            instant(text, now, ZoneInfo(zone))
    else:
        assert instant(f"{text} {zone}", now, BERLIN) == meant
        assert instant(text, now, ZoneInfo(zone)) == meant


@given(st.timedeltas(timedelta(), timedelta(days=5000)))
def test_a_span_reads_back(length: timedelta) -> None:
    seconds, milliseconds = length.days * 86400 + length.seconds, length.microseconds // 1000
    hours, rest = divmod(seconds, 3600)
    text = f"{hours // 24}d {hours % 24} hours {rest // 60}m{rest % 60}s {milliseconds}ms"
    assert span(text) == timedelta(seconds=seconds, milliseconds=milliseconds)
