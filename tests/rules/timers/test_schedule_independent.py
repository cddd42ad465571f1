"""The seconds of a schedule, compared with two other implementations: cronsim, for the forms that
both support, and brute force over every minute around the changes of the clocks. `make prove` tries
ten thousand of each."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from random import Random

from cronsim import CronSim, CronSimError
from hypothesis import given, note, settings
from hypothesis import strategies as st

from duewheel.rules.timers.schedule import (
    DstGap,
    DstOverlap,
    Schedule,
    contains,
    next_second,
    seconds_from,
)
from duewheel.rules.timers.time_zones import zone_named
from tests.support.brute_cron import BruteCron, seconds_by_brute_force
from tests.support.cron_expressions import (
    cron_expression,
    cronexpr_expression,
    text_known_to_cronsim,
)

SOME = settings(max_examples=settings.default.max_examples * 7)  # 420, and 10,500 to prove
SEEDS = st.integers(0, 2**63)
HOUR = 3_600


# Local times at which clocks are set: by an hour, at midnight, by half an hour, by two hours, back
# over midnight, over a whole day, by a quarter of an hour at midnight, and a day without a change.
CHANGES = [
    ("America/New_York", "2026-03-08T02:00"),
    ("America/New_York", "2026-11-01T02:00"),
    ("Europe/London", "2026-03-29T01:00"),
    ("Europe/London", "2026-10-25T02:00"),
    ("Africa/Cairo", "2026-04-24T00:00"),
    ("Africa/Cairo", "2026-10-29T23:59"),
    ("Australia/Lord_Howe", "2026-04-05T02:00"),
    ("Australia/Lord_Howe", "2026-10-04T02:00"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Antarctica/Troll", "2026-10-25T02:59"),
    ("America/Havana", "2026-03-08T00:00"),
    ("America/Havana", "2026-11-01T01:00"),
    ("America/St_Johns", "2006-04-02T00:01"),
    ("America/St_Johns", "2006-10-29T00:00"),
    ("Europe/Dublin", "2026-10-25T02:00"),
    ("Pacific/Apia", "2011-12-30T00:00"),
    ("Asia/Kathmandu", "1986-01-01T00:00"),
    ("Asia/Kathmandu", "2026-06-30T12:00"),
]


@SOME
@given(SEEDS)
def test_brute_force_finds_the_same_seconds(seed: int) -> None:
    chance = Random(seed)
    expression = chance.choice((cron_expression, cronexpr_expression))(chance)
    gap, overlap = chance.choice(list(DstGap)), chance.choice(list(DstOverlap))
    name, wall = chance.choice(CHANGES)
    span = 2 * HOUR if expression.fields[0] == "0" else HOUR // 3
    zone = zone_named(name)
    change = int(datetime.fromisoformat(wall).replace(tzinfo=zone).timestamp())
    first = change + chance.randint(-span, HOUR)
    last = first + span
    note(f"{expression} in {name} from {first}, {gap}, {overlap}")
    schedule = Schedule(
        cron=expression.text,
        dialect=expression.dialect,
        timezone=name,
        dst_gap=gap,
        dst_overlap=overlap,
    )
    brute = BruteCron(list(expression.fields), expression.either)
    expected = seconds_by_brute_force(brute, zone, first, last, gap, overlap)

    assert seconds_from(schedule, first, 4 * HOUR, until=last) == expected
    seconds = set(expected)
    for second in [*expected[:3], *expected[-3:]]:
        for near in (second - 3600, second - 1, second, second + 1, second + 1800):
            if first <= near <= last:
                assert contains(schedule, near) == (near in seconds)


@SOME
@given(SEEDS)
def test_cronsim_finds_the_same_local_times(seed: int) -> None:
    chance = Random(seed)
    text = text_known_to_cronsim(chance)
    after = chance.randrange(4_000_000_000)
    note(f"{text!r} after {after}")
    start = datetime(1970, 1, 1) + timedelta(seconds=after)
    try:
        found = list(islice(CronSim(text, start), 8))
    except CronSimError:
        found = []
    expected = [int(wall.replace(tzinfo=UTC).timestamp()) for wall in found]

    schedule = Schedule(cron=text)
    assert seconds_from(schedule, after + 1, len(expected) or 1) == expected
    for second, following in pairwise(expected):
        assert next_second(schedule, second) == following
