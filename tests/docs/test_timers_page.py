"""docs/timers.md says what the rules compute."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from duewheel.rules.timers.cron.fields import NotUnderstood
from duewheel.rules.timers.schedule import DstGap, DstOverlap, Schedule, cron_of, seconds_from
from duewheel.rules.timers.schedule_validation import CRON_CHARACTERS_MAX
from duewheel.rules.timers.time_zones import zone_named

PAGE = (Path(__file__).parents[2] / "docs" / "timers.md").read_text("utf-8")
FIRST_OF_2026 = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())

FIRES = re.findall(r"^\| `([^`]+)` \| (\d{4}-[^|]+) \|$", PAGE, re.M)
CHANGES = re.findall(
    r"^\| `(\w+/\w+)` \| (\d{4}-\d\d-\d\d) \| `([^`]+)` \| `(\w+)` \| ([^|]+) \|$", PAGE, re.M
)

FORMS = [
    ("* 7", "{} * * * *"),
    ("9-17", "0 {} * * *"),
    ("*/15 5/15 10-30/5", "{} * * * *"),
    ("? L L-3 15W LW", "0 0 {} * *"),
    ("5L FRIL 5#2 FRI#2", "0 0 * * {}"),
]


def section(title: str) -> str:
    return PAGE.partition(f" {title}\n")[2].partition("\n#")[0]


def test_the_occurrences_shown_are_those_of_the_expression() -> None:
    assert len(FIRES) > 9
    for cron, shown in FIRES:
        seconds = seconds_from(Schedule(cron=cron), FIRST_OF_2026, 2)
        instants = [datetime.fromtimestamp(second, UTC) for second in seconds]
        assert shown == ", ".join(f"{instant:%Y-%m-%d %H:%M:%S}" for instant in instants), cron


def test_the_days_of_changes_are_as_computed() -> None:
    assert {setting for *_, setting, _ in CHANGES} == {*DstGap, *DstOverlap}
    assert len({zone for zone, *_ in CHANGES}) == 5
    for name, day, cron, setting, shown in CHANGES:
        gap = {"dst_gap": DstGap(setting)} if setting in set(DstGap) else {}
        overlap = {"dst_overlap": DstOverlap(setting)} if not gap else {}
        schedule = Schedule(cron=cron, timezone=name, **gap, **overlap)
        assert shown == fired_on(schedule, day, zone_named(name)), (name, day, cron, setting)


def fired_on(schedule: Schedule, day: str, zone: ZoneInfo) -> str:
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone)
    first, end = (int(at.timestamp()) for at in (midnight, midnight + timedelta(days=1)))
    seconds = seconds_from(schedule, first, 99, until=end - 1)
    times = (datetime.fromtimestamp(second, UTC).astimezone(zone) for second in seconds)
    return ", ".join(f"{at:%H:%M}{at.isoformat()[-6:]}" for at in times) or "never"


def test_the_forms_of_the_table_are_understood() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| [^|]+ \|$", section("Cron expressions"), re.M)
    shown = [form for row in rows for form in re.findall(r"`([^` ]+)`", row)]
    assert shown == [form for forms, _ in FORMS for form in forms.split()]
    for forms, cron in FORMS:
        for form in forms.split():
            cron_of(Schedule(cron=cron.format(form)))
    for form in re.findall(r"`(@\w+)`", section("Cron expressions")):
        cron_of(Schedule(cron=form))


@pytest.mark.parametrize(
    "cron",
    [
        "0 22-2 * * *", "0 0 * * SAT-MON", "*/90 * * * *", "0 0 0 * * ? 2030", "0 0 * * L",
        "0 0 L-3W * *", "0 0 5C * *", "H 0 * * *", "R 0 * * *", "0 0 * * L5", "0 0 w15 * *",
        "@reboot", "@every 5m", "0 0 * January *",
    ],
)  # fmt: skip
def test_what_is_said_to_be_refused_is(cron: str) -> None:
    refused = section("What is refused")
    assert f"more than {CRON_CHARACTERS_MAX} characters" in refused
    with pytest.raises(NotUnderstood):
        cron_of(Schedule(cron=cron))
