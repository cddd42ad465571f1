"""Cron expressions in both dialects: each form is read or refused."""

from datetime import UTC, datetime

import pytest

from duewheel.rules.timers.cron.fields import NotUnderstood
from duewheel.rules.timers.schedule import Dialect, Schedule, cron_of, seconds_from
from tests.support.cases import each_case

CRON, CRONEXPR = Dialect


def first_of(
    cron: str, after: str, count: int, dialect: Dialect = CRON, form: str = "%d %H:%M"
) -> list[str]:
    second = int(datetime.fromisoformat(after).replace(tzinfo=UTC).timestamp())
    found = seconds_from(Schedule(cron=cron, dialect=dialect), second, count)
    return [f"{datetime.fromtimestamp(second, UTC):{form}}" for second in found]


@each_case(
    ("cron", "expected"),
    [  # from Sunday, 1 March 2026, at midnight
        ("* * * * *", ["01 00:00", "01 00:01", "01 00:02"]),
        ("*/20 * * * *", ["01 00:00", "01 00:20", "01 00:40"]),
        ("50/4 * * * *", ["01 00:50", "01 00:54", "01 00:58"]),
        ("10-30/10 8 * * *", ["01 08:10", "01 08:20", "01 08:30"]),
        ("5,1,3,1 * * * *", ["01 00:01", "01 00:03", "01 00:05"]),
        ("05 08 * * *", ["01 08:05", "02 08:05", "03 08:05"]),
        ("0 22-23,0-1 * * *", ["01 00:00", "01 01:00", "01 22:00"]),
        ("7-7 3-3 * * *", ["01 03:07", "02 03:07", "03 03:07"]),
        (" \t 0  0 2 *\t* ", ["02 00:00", "02 00:00", "02 00:00"]),
        ("0 0 * * 0", ["01 00:00", "08 00:00", "15 00:00"]),
        ("0 0 * * 7", ["01 00:00", "08 00:00", "15 00:00"]),
        ("0 0 * * 7-7", ["01 00:00", "08 00:00", "15 00:00"]),
        ("0 0 * * sun", ["01 00:00", "08 00:00", "15 00:00"]),
        ("0 0 * * 1", ["02 00:00", "09 00:00", "16 00:00"]),
        ("0 0 * * 5-7", ["01 00:00", "06 00:00", "07 00:00"]),
        ("0 0 * * FRI-SUN", ["01 00:00", "06 00:00", "07 00:00"]),
        ("0 0 * * 0-7", ["01 00:00", "02 00:00", "03 00:00"]),
        ("0 0 * * Mon-Fri", ["02 00:00", "03 00:00", "04 00:00"]),
        ("0 0 * * 5/2", ["01 00:00", "06 00:00", "08 00:00"]),
        ("0 0 * * */3", ["01 00:00", "04 00:00", "07 00:00"]),
        ("0 0 1 JAN,Apr-jun *", ["01 00:00", "01 00:00", "01 00:00"]),
        ("0 0 31 * *", ["31 00:00", "31 00:00", "31 00:00"]),
        ("0 0 ? * ?", ["01 00:00", "02 00:00", "03 00:00"]),
        # Two restricted day fields: either one matches, unless one of them begins with an asterisk.
        ("0 0 13 * FRI", ["06 00:00", "13 00:00", "20 00:00"]),
        ("0 0 10 * 2", ["03 00:00", "10 00:00", "17 00:00"]),
        ("0 0 */2 * 2", ["03 00:00", "17 00:00", "31 00:00"]),
        ("0 0 1-31 * 2", ["01 00:00", "02 00:00", "03 00:00"]),
        ("0 0 ? * 2", ["03 00:00", "10 00:00", "17 00:00"]),
        # With seconds first, both day fields must match.
        ("0 0 0 13 * FRI", ["13 00:00", "13 00:00", "13 00:00"]),
        ("*/30 * * * * *", ["01 00:00", "01 00:00", "01 00:01"]),
        ("0 0 9-17 * * MON-FRI", ["02 09:00", "02 10:00", "02 11:00"]),
        ("0 15 10 ? * *", ["01 10:15", "02 10:15", "03 10:15"]),
        ("0 0 12 1/5 * ?", ["01 12:00", "06 12:00", "11 12:00"]),
    ],
)  # fmt: skip
def test_fields_are_read_as_cron_and_spring_read_them(cron: str, expected: list[str]) -> None:
    assert first_of(cron, "2026-03-01", len(expected)) == expected


@each_case(
    ("form", "same"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        (" @Monthly ", "0 0 1 * *"),
        ("@YEARLY", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_a_form_with_an_at_sign_stands_for_five_fields(form: str, same: str) -> None:
    assert cron_of(Schedule(cron=form)) == cron_of(Schedule(cron=same))


@each_case(
    ("cron", "expected"),
    [  # month by month from January 2026
        ("0 0 L * *", ["31.01", "28.02", "31.03", "30.04"]),
        ("0 0 L-3 * *", ["28.01", "25.02", "28.03", "27.04"]),
        ("0 0 l-30 * *", ["01.01", "01.03", "01.05", "01.07"]),
        ("0 0 LW * *", ["30.01", "27.02", "31.03", "30.04", "29.05"]),
        ("0 0 15W * *", ["15.01", "16.02", "16.03", "15.04", "15.05"]),
        ("0 0 1w * *", ["01.01", "02.02", "02.03", "01.04", "01.05", "01.06", "01.07", "03.08"]),
        ("0 0 31W * *", ["30.01", "31.03", "29.05", "31.07"]),
        ("0 0 30W * *", ["30.01", "30.03", "30.04", "29.05"]),
        ("0 0 29W * *", ["29.01", "30.03", "29.04"]),
        ("0 0 1,L * *", ["01.01", "31.01", "01.02", "28.02"]),
        ("0 0 1,10W,LW * *", ["01.01", "09.01", "30.01", "01.02", "10.02"]),
        ("0 0 * * 5L", ["30.01", "27.02", "27.03", "24.04"]),
        ("0 0 * * thuL", ["29.01", "26.02", "26.03", "30.04"]),
        ("0 0 * * 7L", ["25.01", "22.02", "29.03", "26.04"]),
        ("0 0 * * 5#2", ["09.01", "13.02", "13.03", "10.04"]),
        ("0 0 ? * MON#1", ["05.01", "02.02", "02.03", "06.04"]),
        ("0 0 * * 4#5", ["29.01", "30.04", "30.07"]),
        ("0 0 * * 1#1,5L", ["05.01", "30.01", "02.02", "27.02"]),
        ("0 0 * * 1#1,TUE", ["05.01", "06.01", "13.01", "20.01", "27.01", "02.02"]),
        # Either of two, and both of two.
        ("0 0 L * 5#2", ["09.01", "31.01", "13.02", "28.02"]),
        ("0 0 0 LW * FRI", ["30.01", "27.02", "29.05"]),
        ("0 0 0 L * 2L", ["31.03", "30.06"]),
        ("0 0 0 13 * 5#2", ["13.02", "13.03", "13.11"]),
    ],
)  # fmt: skip
def test_last_days_working_days_and_the_nth_of_a_weekday(cron: str, expected: list[str]) -> None:
    assert first_of(cron, "2026-01-01", len(expected), form="%d.%m") == expected


def test_the_rarest_dates_of_a_schedule_are_found() -> None:
    leap_mondays = first_of("0 0 0 29 2 MON", "2026-01-01", 3, form="%Y-%m-%d")
    assert leap_mondays == ["2044-02-29", "2072-02-29", "2112-02-29"]
    assert first_of("0 0 29 2 *", "2096-03-01", 2, form="%Y") == ["2104", "2108"]
    fifth = first_of("0 0 0 ? 2 1#5", "2072-03-01", 1, form="%Y-%m-%d")
    assert fifth == ["2112-02-29"]
    assert first_of("0 0 0 1 1 ? 2099", "2026-01-01", 1, CRONEXPR, "%Y") == ["2099"]


@each_case(
    ("cron", "reason"),
    [
        ("", "takes 5 fields, or 6 with seconds first; this has 0."),
        ("* * * *", "takes 5 fields, or 6 with seconds first; this has 4."),
        ("0 0 12 * * ? 2030", "takes 5 fields, or 6 with seconds first; this has 7."),
        ("@reboot", "is none of @hourly, @daily,"),
        ("@every 5m", "is none of @hourly, @daily,"),
        ("60 * * * *", "minute '60' is not from 0 to 59."),
        ("0 60 * * * *", "minute '60' is not from 0 to 59."),
        ("60 0 * * * *", "second '60' is not from 0 to 59."),
        ("0 24 * * *", "hour '24' is not from 0 to 23."),
        ("0 0 0 * *", "day of month '0' is not from 1 to 31."),
        ("0 0 32 * *", "day of month '32' is not from 1 to 31."),
        ("0 0 1 13 *", "month '13' is not from 1 to 12."),
        ("0 0 1 0 *", "month '0' is not from 1 to 12."),
        ("0 0 * * 8", "day of week '8' is not from 0 to 7."),
        ("*/0 * * * *", "minute '*/0' has a step that is not from 1 to 59."),
        ("*/90 * * * *", "minute '*/90' has a step that is not from 1 to 59."),
        ("0 */24 * * *", "hour '*/24' has a step that is not from 1 to 23."),
        ("30-10 * * * *", "minute '30-10' runs backwards; write it as two ranges, with a comma."),
        ("0 0 * * SAT-MON", "day of week 'sat-mon' runs backwards;"),
        ("0 0 1 NOV-FEB *", "month 'nov-feb' runs backwards;"),
        ("1,,2 * * * *", "minute '' is not understood."),
        ("-5 * * * *", "minute '-5' is not understood."),
        ("1.5 * * * *", "minute '1.5' is not understood."),
        ("٣ * * * *", "minute '٣' is not understood."),
        ("* * * January *", "month 'january' is not understood."),
        ("* * * * monday", "day of week 'monday' is not understood."),
        ("? * * * *", "minute '?' is not understood."),
        ("0 0 1,? * *", "day of month '?' is not understood."),
        # Only croniter has these.
        ("H * * * *", "minute 'h' is not understood."),
        ("H/15 * * * *", "minute 'h/15' is not understood."),
        ("R(0-30) * * * *", "minute 'r(0-30)' is not understood."),
        ("0 0 w15 * *", "day of month 'w15' is not understood."),
        ("0 0 * * L5", "day of week 'l5' is not understood."),
        ("0 0 * * 1-5#2", "day of week '1-5#2' is not understood."),
        # Only Quartz has these.
        ("0 0 0 ? * L", "day of week 'l' is not understood."),
        ("0 0 0 L-3W * ?", "day of month 'l-3w' is not understood."),
        ("0 0 5C * *", "day of month '5c' is not understood."),
        ("0 0 0W * *", "day of month '0w' is not from 1 to 31."),
        ("0 0 1-5W * *", "day of month '1-5w' is not understood."),
        ("0 0 L-31 * *", "day of month 'l-31' has no 1 to 30 after the L."),
        ("0 0 L-0 * *", "day of month 'l-0' has no 1 to 30 after the L."),
        ("0 0 * * 5#6", "day of week '5#6' has no 1 to 5 after the #."),
        ("0 0 * * 5#0", "day of week '5#0' has no 1 to 5 after the #."),
        ("0 0 * * 8L", "day of week '8l' is not from 0 to 7."),
        ("99999999999 * * * *", "minute '99999999999' is not understood."),
    ],
)
def test_an_invalid_expression_is_refused_with_a_reason(cron: str, reason: str) -> None:
    with pytest.raises(NotUnderstood) as refused:
        cron_of(Schedule(cron=cron))
    assert str(refused.value).startswith(reason)


@each_case(
    ("cron", "after", "expected"),
    [  # the cases of cronexpr's own tests
        ("*/9 * * * * * *", "2013-02-28T23:59:55", "2013-03-01 00:00:00"),
        ("*/5 * * * * * *", "2013-01-01T00:00:56", "2013-01-01 00:01:00"),
        ("17-43/5 * * * *", "2013-01-01T00:30:01", "2013-01-01 00:32:00"),
        ("15-30/4,55 * * * *", "2013-01-01T00:30:01", "2013-01-01 00:55:00"),
        ("0 0 * * MON", "2013-01-28T00:00:01", "2013-02-04 00:00:00"),
        ("0 0 * * friday", "2013-12-30T00:30", "2014-01-03 00:00:00"),
        ("0 0 * * 6,7", "2013-01-28", "2013-02-02 00:00:00"),
        ("0 0 * * 6#5", "2013-09-02", "2013-11-30 00:00:00"),
        ("0 0 14W * *", "2013-03-31", "2013-04-15 00:00:00"),
        ("0 0 14W * *", "2013-08-31", "2013-09-13 00:00:00"),
        ("0 0 30W * *", "2013-03-02", "2013-03-29 00:00:00"),
        ("0 0 30W * *", "2013-06-02", "2013-06-28 00:00:00"),
        ("0 0 L * *", "2016-02-15", "2016-02-29 00:00:00"),
        ("0 0 LW * *", "2013-11-02", "2013-11-29 00:00:00"),
        ("* * * * * 2050", "2013-08-31", "2050-01-01 00:00:00"),
        ("30 0 0 1-31/5 Oct-Dec * 2000,2006,2008,2013-2015", "2009-01-01", "2013-10-01 00:00:30"),
        ("0 0 0 * Feb-Nov/2 thu#3 2000-2050", "2026-03-01", "2026-04-16 00:00:00"),
        # How cronexpr counts fields, and its other peculiarities.
        ("30 8 1 1 * 2030", "2026-01-01", "2030-01-01 08:30:00"),
        ("15 30 8 1 1 * 2030", "2026-01-01", "2030-01-01 08:30:15"),
        ("0 30 8 * * * * whatever 99", "2026-01-01", "2026-01-01 08:30:00"),
        ("5,,7 ,1 * * *", "2026-01-01T01:05:01", "2026-01-01 01:07:00"),
        ("? ? * * *", "2026-01-01T00:00:01", "2026-01-01 00:01:00"),
        ("@daily", "2026-01-01T00:00:01", "2026-01-02 00:00:00"),
        ("@hourly", "2026-01-01T00:00:01", "2026-01-01 01:00:00"),
        ("@weekly", "2026-01-01", "2026-01-04 00:00:00"),
        ("@monthly", "2026-01-01T01:00", "2026-02-01 00:00:00"),
        ("@yearly", "2026-01-01T01:00", "2027-01-01 00:00:00"),
        (" @annually ", "2026-01-01T01:00", "2027-01-01 00:00:00"),
        ("0 0 * september-October *", "2026-01-01", "2026-09-01 00:00:00"),
        ("0 0 * * saturdayL", "2026-01-01", "2026-01-31 00:00:00"),
        ("0 0 * * 07", "2026-01-01", "2026-01-04 00:00:00"),
        # Here, a week ends with 6: this is Friday only, and no Sunday.
        ("0 0 * * 5/2", "2026-01-03", "2026-01-09 00:00:00"),
        # A field is restricted unless it has an asterisk; then either day matches.
        ("0 0 13 * fri", "2026-02-07", "2026-02-13 00:00:00"),
        ("0 0 */2 * fri", "2026-01-01T01:00", "2026-01-02 00:00:00"),
        ("0 0 */2 * fri", "2026-01-02T01:00", "2026-01-03 00:00:00"),
        ("0 0 0 13 * fri *", "2026-01-01", "2026-01-02 00:00:00"),
        ("0 0 13,* * fri", "2026-01-01", "2026-01-02 00:00:00"),
        ("0 0 ? * fri", "2026-01-03", "2026-01-09 00:00:00"),
    ],
)
def test_the_cronexpr_dialect_is_read_as_cronexpr_reads_it(
    cron: str, after: str, expected: str
) -> None:
    assert first_of(cron, after, 1, CRONEXPR, "%Y-%m-%d %H:%M:%S") == [expected]


@each_case(
    ("cron", "reason"),
    [
        ("* * * *", "takes 5, 6 or 7 fields; this has 4."),
        ("@Daily", "takes 5, 6 or 7 fields; this has 1."),
        ("@midnight", "takes 5, 6 or 7 fields; this has 1."),
        ("@reboot", "takes 5, 6 or 7 fields; this has 1."),
        ("*/60 * * * * *", "minute '*/60' has a step"),
        ("2-20/61 * * * * *", "minute '2-20/61' has a step"),
        ("0 0 * * */7", "day of week '*/7' has a step"),
        ("5,,7 , * * *", "hour ',' is not understood."),
        ("0 0 L-3 * *", "day of month 'l-3' is not understood."),
        ("0 0 * * L", "day of week 'l' is not understood."),
        ("0 0 * * 5#6", "day of week '5#6' has no 1 to 5"),
        ("* * * * * 1969", "year '1969' is not from 1970 to 2099."),
        ("* * * * * 2100", "year '2100' is not from 1970 to 2099."),
        # cronexpr accepts these and never fires.
        ("50-10 * * * *", "minute '50-10' runs backwards;"),
        ("0 0 * * 5-7", "day of week '5-7' runs backwards;"),
        ("0 0 * * fri-sun", "day of week 'fri-sun' runs backwards;"),
    ],
)
def test_the_cronexpr_dialect_refuses_expressions_that_cronexpr_refuses_or_never_fires(
    cron: str, reason: str
) -> None:
    with pytest.raises(NotUnderstood) as refused:
        cron_of(Schedule(cron=cron, dialect=CRONEXPR))
    assert str(refused.value).startswith(reason)
