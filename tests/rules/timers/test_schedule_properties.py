"""Properties of every schedule around every change of the clocks."""

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given, note
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.timers.schedule import (
    DstGap,
    DstOverlap,
    Schedule,
    contains,
    next_second,
    seconds_from,
)
from duewheel.rules.timers.time_zones import (
    earliest_local_time,
    latest_local_time,
    moments_of,
    zone_named,
)
from tests.support.cron_expressions import cron_expression, cronexpr_expression

HOUR = 3_600
SEEDS = st.integers(0, 2**63)
ZONES = (
    *("America/New_York", "Europe/London", "Africa/Cairo", "Australia/Lord_Howe"),
    *("Asia/Kathmandu", "America/Havana", "Antarctica/Troll", "UTC"),
)
CHANGE_DAYS = ("2026-03-08", "2026-03-29", "2026-04-05", "2026-04-24", "2026-10-04", "2026-10-25")


def some_schedule(chance: Random) -> tuple[Schedule, int]:
    """With an instant around which its zone may change its clocks."""
    day = datetime.fromisoformat(chance.choice(CHANGE_DAYS)) + timedelta(days=chance.randint(-1, 1))
    exclude = tuple(f"{day + timedelta(days=days):%Y-%m-%d}" for days in chance.choices(range(9)))
    expression = chance.choice((cron_expression, cronexpr_expression))(chance)
    at = int(day.replace(tzinfo=UTC).timestamp()) + chance.randint(-8 * HOUR, 24 * HOUR)
    cron = Schedule(
        cron=expression.text,
        dialect=expression.dialect,
        timezone=chance.choice(ZONES),
        dst_gap=chance.choice(list(DstGap)),
        dst_overlap=chance.choice(list(DstOverlap)),
        exclude=chance.choice(((), exclude)),
    )
    if chance.random() < 0.2:
        every = chance.choice((1, 7, 60, 900, 3_601))
        anchor = at + chance.randint(-10_000, 1_000)
        cron = replace(cron, cron=None, every_seconds=every, anchor_second=anchor)
    return cron, at


@given(SEEDS)
def test_a_schedule_contains_exactly_the_seconds_that_it_lists(seed: int) -> None:
    chance = Random(seed)
    schedule, at = some_schedule(chance)
    note(f"{schedule} at {at}")
    listed = seconds_from(schedule, at, 300, until=at + HOUR)
    assert listed == sorted(set(listed))
    end = listed[-1] if len(listed) == 300 else at + HOUR
    steps = {*range(at, end + 1, 60 - at % 60), *(chance.randint(at, end) for _ in range(20))}
    looked_at = [second for second in steps | set(listed[:50]) if second <= end]
    assert {second for second in looked_at if contains(schedule, second)} == (
        set(looked_at) & set(listed)
    )


@given(SEEDS)
def test_the_next_second_is_the_first_later_one_and_parts_of_a_list_make_the_whole(
    seed: int,
) -> None:
    chance = Random(seed)
    schedule, at = some_schedule(chance)
    note(f"{schedule} at {at}")
    whole = seconds_from(schedule, at, 60, until=at + 5 * HOUR)
    second, chain = at - 1, []
    while len(chain) < min(len(whole), 20):
        second = next_second(schedule, second) or 0
        chain.append(second)
    assert chain == whole[:20]
    if len(whole) < 60:
        cut = chance.randint(at, at + 5 * HOUR)
        parts = [
            *seconds_from(schedule, at, 60, until=cut),
            *seconds_from(schedule, cut + 1, 60, until=at + 5 * HOUR),
        ]
        assert parts == whole


@given(SEEDS)
def test_shift_and_both_only_add_seconds(seed: int) -> None:
    chance = Random(seed)
    expression = cron_expression(chance)
    _, at = some_schedule(chance)
    zone = zone_named(chance.choice(ZONES))
    schedule = Schedule(cron=expression.text, timezone=zone.key)
    note(f"{schedule} at {at}")

    def found(gap: DstGap, overlap: DstOverlap) -> set[int]:
        of = replace(schedule, dst_gap=gap, dst_overlap=overlap)
        return set(seconds_from(of, at, 100_000, until=at + HOUR // 2))

    for gap in DstGap:
        first, last, both = (found(gap, overlap) for overlap in DstOverlap)
        assert both == first | last
    for overlap in DstOverlap:
        assert found(DstGap.SKIP, overlap) <= found(DstGap.SHIFT, overlap)


@given(st.sampled_from(ZONES), SEEDS)
def test_every_instant_is_one_of_the_moments_of_its_local_time(name: str, seed: int) -> None:
    _, at = some_schedule(Random(seed))
    zone = zone_named(name)
    for second in range(at, at + 4 * HOUR, 600):
        first, last = earliest_local_time(zone, second), latest_local_time(zone, second)
        local_times = range(first, last + 1, 300)
        assert any(second in moments_of(zone, local)[:2] for local in local_times)
        assert moments_of(zone, first - 1).last < second < moments_of(zone, last + 1).first + 1
