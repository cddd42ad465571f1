"""When a timer gets another chain, and the number of occurrences that it has had by then."""

from typing import Any

from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.task import Plan, Status
from duewheel.rules.timers.next_occurrence import first_second, next_second, state_of, upcoming
from duewheel.rules.timers.planning import chain_home
from duewheel.rules.timers.requests import State
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Gap, Misfire, Overlap, Rules, Timer
from duewheel.rules.timers.updates import (
    GAPS_MAX,
    changed,
    ended_chain,
    keeps_plan,
    numbered_until,
    planned_by,
    without_chain,
)
from duewheel.rules.wheel.addresses import address_at
from duewheel.rules.wheel.sharding import Placement
from tests.support.cases import each_case

NOW = 1_800_000_000
EACH_MINUTE = Rules("a", Schedule(cron="* * * * *"))
TIMER = Timer(
    timer_id="1099511627777",
    biz_type="orders",
    rules=EACH_MINUTE,
    enabled=True,
    version=3,
    created_ms=1,
    updated_ms=1,
    chain=address_at(NOW * 1000, bytes(8)),
    numbered=5,
)


def after(**fields: Any) -> Timer:
    return replace(TIMER, **fields)


def test_an_update_without_a_difference_returns_the_same_timer() -> None:
    assert changed(TIMER, EACH_MINUTE, enabled=True, now_ms=NOW * 1000) is TIMER
    other = changed(TIMER, replace(EACH_MINUTE, name="b"), enabled=True, now_ms=NOW * 1000)
    assert (other.version, other.updated_ms) == (4, NOW * 1000)


@each_case(
    ("rules", "keeps"),
    [
        ({"name": "b"}, True),
        ({"payload": "1"}, True),
        ({"callback": HttpCallback("https://r.example/")}, True),
        ({"misfire": Misfire.ALL, "grace_seconds": 1}, True),
        ({"overlap": Overlap.SKIP}, True),
        ({"schedule": Schedule(cron="*/2 * * * *")}, False),
        ({"schedule": replace(EACH_MINUTE.schedule, exclude=("2027-12-25",))}, False),
        ({"max_runs": 10}, False),
        ({"jitter_seconds": 5}, False),
        ({"tolerance_seconds": 5}, False),
    ],
)
def test_a_chain_is_kept_while_its_schedule_stays(rules: dict[str, Any], keeps: bool) -> None:
    assert keeps_plan(TIMER, after(rules=replace(EACH_MINUTE, **rules))) is keeps


def test_enabling_and_disabling_need_another_chain() -> None:
    assert not keeps_plan(TIMER, after(enabled=False))
    assert not keeps_plan(after(enabled=False), TIMER)


@each_case(
    ("now", "numbered"),
    [
        (NOW - 61, 9),  # the planned seconds are NOW, NOW + 60, ... NOW + 540
        (NOW - 1, 10),
        (NOW, 11),
        (NOW + 59, 11),
        (NOW + 60, 12),
        (NOW + 540, 20),
        (NOW + 100_000, 20),
    ],
)
def test_occurrences_that_are_planned_ahead_do_not_count(now: int, numbered: int) -> None:
    plan = Plan(TIMER.timer_id, NOW + 600, 20)
    assert numbered_until(TIMER, plan, now) == numbered


def test_a_timer_without_a_chain_has_its_recorded_number_of_occurrences() -> None:
    assert numbered_until(TIMER, None, NOW) == 5


def test_a_timer_whose_chain_is_removed_has_not_ended() -> None:
    chain = replace(home(), plan=Plan(TIMER.timer_id, NOW + 600, 20))
    freed = without_chain(TIMER, after(version=4, ended=True), chain, NOW)
    assert freed == after(version=4, chain=None, numbered=11, ended=False)


def test_a_timer_records_the_latest_gaps_in_which_it_was_disabled() -> None:
    timer, gaps = TIMER, []
    for number in range(GAPS_MAX + 1):
        begins = NOW + 100 * number
        disabled = without_chain(timer, replace(timer, enabled=False), None, begins)
        assert disabled.gaps[-1] == Gap(begins)
        changed_meanwhile = without_chain(disabled, replace(disabled, version=9), None, begins + 5)
        enabled = without_chain(
            changed_meanwhile, replace(changed_meanwhile, enabled=True), None, begins + 10
        )
        timer = planned_by(enabled, home().home, begins + 10)
        gaps.append(Gap(begins, begins + 10))
    assert timer.gaps == tuple(gaps[1:])
    assert planned_by(timer, home().home, NOW + 999).gaps == timer.gaps, "another schedule"


def home() -> Any:
    return chain_home(TIMER, Placement(now_ms=NOW * 1000 + 250, lead_ms=500), bytes(8))


def test_a_chain_is_due_now_and_plans_from_the_next_second() -> None:
    chain = home()
    assert chain.home.direct
    assert (chain.due_ms, chain.next_ms) == (NOW * 1000 + 250, NOW * 1000 + 250)
    assert chain.plan == Plan(TIMER.timer_id, NOW + 1, 5)


@each_case(
    ("timer", "reason"),
    [
        (after(), "timer changed"),
        (after(enabled=False), "timer disabled"),
        (None, "timer deleted"),
    ],
)
def test_a_chain_ends_with_its_reason(timer: Timer | None, reason: str) -> None:
    ended = ended_chain(home(), timer, NOW * 1000)
    assert (ended.status, ended.reason) == (Status.CANCELLED, reason)
    assert ended.expires_at == NOW + 86_400


def test_the_next_occurrence_is_after_the_current_second() -> None:
    assert next_second(TIMER, None, NOW) == NOW + 60
    assert next_second(after(enabled=False), None, NOW) is None


def test_no_occurrence_is_next_when_max_runs_is_used_up() -> None:
    few = after(rules=replace(EACH_MINUTE, max_runs=12))
    plan = Plan(TIMER.timer_id, NOW + 120, 12)  # the eleventh at NOW, the twelfth a minute later
    assert next_second(few, plan, NOW) == NOW + 60
    assert next_second(few, plan, NOW + 60) is None
    assert upcoming(few.rules, 10, NOW, 10) == [NOW, NOW + 60]
    assert list(upcoming(few.rules, 12, NOW, 10)) == []


def test_a_timer_is_ended_when_nothing_is_ahead_of_it() -> None:
    assert state_of(TIMER, NOW) is State.ENABLED
    assert state_of(TIMER, None) is State.ENDED
    assert state_of(after(enabled=False), None) is State.DISABLED


def test_a_preview_begins_at_its_from() -> None:
    assert first_second(None, NOW) == NOW + 1
    assert first_second(NOW * 1000, NOW) == NOW
    assert first_second(NOW * 1000 + 1, NOW) == NOW + 1
