"""Checks of a schedule: the field that is refused, and why."""

from msgspec.structs import replace

from duewheel.rules.timers.cron.fields import NotUnderstood
from duewheel.rules.timers.schedule import DstGap, Schedule, cron_of, next_second
from duewheel.rules.timers.time_zones import UnknownZone, zone_named

CRON_CHARACTERS_MAX = 500
EXCLUDE_MAX = 366


def refusal_of(schedule: Schedule, now_second: int) -> tuple[str, str] | None:
    """The refused field and the reason; None if the schedule is accepted. `every_seconds` and
    `exclude` have been checked."""
    return (
        _of_timezone(schedule)
        or _of_bounds(schedule)
        or _of_cron(schedule)
        or _of_nothing_left(schedule, now_second)
    )


def _of_timezone(schedule: Schedule) -> tuple[str, str] | None:
    try:
        zone_named(schedule.timezone)
    except UnknownZone:
        return "timezone", "is no zone of the IANA database, such as Europe/London."
    return None


def _of_bounds(schedule: Schedule) -> tuple[str, str] | None:
    start, end = schedule.start_second, schedule.end_second
    if start is not None and end is not None and end < start:
        return "end_at", "is before start_at."
    return None


def _of_cron(schedule: Schedule) -> tuple[str, str] | None:
    if schedule.cron is None:
        return None
    if len(schedule.cron) > CRON_CHARACTERS_MAX:
        return "cron", f"must have at most {CRON_CHARACTERS_MAX} characters."
    try:
        cron_of(schedule)
    except NotUnderstood as wrong:
        return "cron", str(wrong)
    if next_second(Schedule(cron=schedule.cron, dialect=schedule.dialect), -1) is None:
        return "cron", "never fires: there is no such date."
    return None


def _of_nothing_left(schedule: Schedule, now_second: int) -> tuple[str, str] | None:
    """A schedule without occurrences from now on. The refused field is the one without which there
    would be some."""
    if next_second(schedule, now_second - 1) is not None:
        return None
    if schedule.exclude and next_second(replace(schedule, exclude=()), now_second - 1) is not None:
        return "exclude", "leaves out every date there is."
    unended = replace(schedule, end_second=None, exclude=())
    if schedule.end_second is not None and next_second(unended, now_second - 1) is not None:
        return "end_at", "leaves nothing: the timer would not fire once until then."
    unbounded = replace(unended, start_second=None)
    if schedule.start_second is not None and next_second(unbounded, now_second - 1) is not None:
        return "start_at", "leaves nothing: the timer would not fire once from then on."
    unskipped = replace(unbounded, dst_gap=DstGap.SHIFT)
    if next_second(unskipped, now_second - 1) is not None:
        return "dst_gap", "leaves nothing: clocks are set forward over every time that it names."
    return "cron", "lies in the past: it would not fire once from now on."
