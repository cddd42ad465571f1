"""Refused schedules, with the field and the reason."""

from datetime import datetime

from duewheel.rules.timers.schedule import Dialect, DstGap, Schedule
from duewheel.rules.timers.schedule_validation import refusal_of
from tests.support.cases import each_case


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


NOW = at("2026-11-21T12:00Z")
PAST, LATER = at("2026-11-20T00:00Z"), at("2026-11-22T00:00Z")
HALF_PAST_MIDNIGHT = (
    "0 30 0 ? 4 5L"  # on the day on which Cairo's clocks are set forward at midnight
)


@each_case(
    "schedule",
    [
        Schedule(cron="* * * * * *"),
        Schedule(cron="0 0 29 2 *"),
        Schedule(cron="0 0 0 29 2 MON"),
        Schedule(cron="@yearly", timezone="Asia/Kathmandu", end_second=at("2027-01-02T00:00Z")),
        Schedule(cron="0 0 * * *", start_second=LATER, end_second=LATER),
        Schedule(every_seconds=1),
        Schedule(every_seconds=86_400 * 3_650, anchor_second=NOW),
        Schedule(every_seconds=60, exclude=("2026-11-21", "2028-02-29")),
        Schedule(cron="* * * * * 2099", dialect=Dialect.CRONEXPR),
        Schedule(cron=HALF_PAST_MIDNIGHT, timezone="Africa/Cairo"),
        Schedule(cron=HALF_PAST_MIDNIGHT, timezone="Europe/London", dst_gap=DstGap.SKIP),
        Schedule(cron="* * * * *", start_second=PAST, end_second=NOW),
    ],
)
def test_a_schedule_that_will_fire_is_accepted(schedule: Schedule) -> None:
    assert refusal_of(schedule, NOW) is None


@each_case(
    ("schedule", "field", "reason"),
    [
        (Schedule(cron="every minute"), "cron", "takes 5 fields, or 6"),
        (Schedule(cron="61 * * * *"), "cron", "minute '61' is not from 0 to 59."),
        (Schedule(cron="* " * 300), "cron", "must have at most 500 characters."),
        (Schedule(cron="0 0 30 2 *"), "cron", "never fires: there is no such date."),
        (Schedule(cron="0 0 31 4,6,9,11 *"), "cron", "never fires: there is no such date."),
        (Schedule(cron="0 0 0 LW * SUN"), "cron", "never fires: there is no such date."),
        (Schedule(cron="0 0 0 8 * 1#1"), "cron", "never fires: there is no such date."),
        (Schedule(cron="0 0 L-30 2 *"), "cron", "never fires: there is no such date."),
        (
            Schedule(cron="0 0 29 2 * 2025,2026,2027", dialect=Dialect.CRONEXPR),
            "cron",
            "never fires: there is no such date.",
        ),
        (Schedule(cron="0 0 1 1 * 2026", dialect=Dialect.CRONEXPR), "cron", "lies in the past"),
        (Schedule(cron="@daily", timezone="Mars/Olympus"), "timezone", "is no zone"),
        (Schedule(every_seconds=5, timezone=""), "timezone", "is no zone"),
        (Schedule(cron="@daily", timezone="europe/london"), "timezone", "is no zone"),
        (Schedule(cron="@daily", timezone="../../etc/passwd"), "timezone", "is no zone"),
        (Schedule(cron="@daily", timezone="zones"), "timezone", "is no zone"),
        (
            Schedule(cron="@daily", start_second=LATER, end_second=LATER - 1),
            "end_at",
            "is before start_at.",
        ),
        (Schedule(every_seconds=9, end_second=PAST), "end_at", "leaves nothing"),
        (
            Schedule(cron="0 12 * * *", start_second=LATER, end_second=LATER + 3600),
            "end_at",
            "leaves nothing",
        ),
        (
            Schedule(cron="* * * * * 2026", dialect=Dialect.CRONEXPR, start_second=NOW + 10**8),
            "start_at",
            "leaves nothing",
        ),
        (
            Schedule(cron=HALF_PAST_MIDNIGHT, timezone="Africa/Cairo", dst_gap=DstGap.SKIP),
            "dst_gap",
            "leaves nothing",
        ),
        (
            Schedule(cron="@hourly", end_second=LATER - 1, exclude=("2026-11-21",)),
            "exclude",
            "leaves out every date there is.",
        ),
    ],
)
def test_a_refusal_names_the_field_and_the_reason(
    schedule: Schedule, field: str, reason: str
) -> None:
    refusal = refusal_of(schedule, NOW)
    assert refusal is not None
    assert refusal[0] == field
    assert refusal[1].startswith(reason)
    assert refusal[1].endswith(".")
