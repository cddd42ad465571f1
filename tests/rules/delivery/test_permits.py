"""Permits: never more than the limit are held, and those of a crashed run come back."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import ReservedTurns
from duewheel.rules.delivery import permits as rules
from duewheel.rules.delivery.permits import Holding, Permits, Wanted, changed
from duewheel.rules.delivery.reservations import Tries, tries
from duewheel.rules.tasks.task import Reservation
from duewheel.rules.wheel.timing import SKEW_MS
from tests.support.clock import NOON_MS
from tests.support.limited_business import a_task

TIMEOUT_MS = 10_000
CALL_MS = 300


def wanted(owner: str, count: int, at_least: int = 0, now_ms: int = NOON_MS) -> Wanted:
    until_ms = now_ms + TIMEOUT_MS + rules.BEGIN_MS
    return Wanted(owner=owner, count=count, at_least=at_least, until_ms=until_ms)


def taken(permits: Permits, want: Wanted, limit: int, now_ms: int = NOON_MS) -> Permits:
    return changed(permits, want, limit, now_ms) or permits


def held(permits: Permits) -> dict[str, int]:
    return {owner: one.count for owner, one in permits.held.items()}


def test_a_run_gets_as_many_as_are_free() -> None:
    permits = taken(Permits(), wanted("a", 3), limit=5)
    assert held(permits) == {"a": 3}
    permits = taken(permits, wanted("b", 4), limit=5)
    assert held(permits) == {"a": 3, "b": 2}
    assert permits.waiting(NOON_MS) == 2
    assert held(taken(permits, wanted("c", 1), limit=5)) == {"a": 3, "b": 2, "c": 0}


def test_what_is_given_back_is_free_at_once() -> None:
    permits = taken(Permits(), wanted("a", 2), limit=2)
    permits = taken(permits, wanted("a", 0), limit=2)
    assert held(permits) == {}
    assert held(taken(permits, wanted("b", 2), limit=2)) == {"b": 2}


def test_the_permits_of_a_crashed_run_come_back_when_they_have_expired_by_all_clocks() -> None:
    permits = taken(Permits(), wanted("a", 2), limit=2)
    over_ms = NOON_MS + TIMEOUT_MS + rules.BEGIN_MS + SKEW_MS
    want = wanted("b", 1, now_ms=over_ms)
    assert held(taken(permits, want, 2, over_ms)) == {"a": 2, "b": 0}
    assert held(taken(permits, want, 2, over_ms + 1)) == {"b": 1}


def test_a_lower_limit_takes_no_permit_from_a_call_under_way() -> None:
    permits = taken(Permits(), wanted("a", 5), limit=5)
    permits = taken(permits, wanted("a", 5, at_least=4), limit=2)
    assert held(permits) == {"a": 4}
    assert held(taken(permits, wanted("b", 1), limit=2)) == {"a": 4, "b": 0}


def test_what_a_run_has_for_long_enough_is_not_written_again() -> None:
    permits = taken(Permits(), wanted("a", 3), limit=2)
    soon_ms = NOON_MS + rules.RENEWED_EVERY_MS - 1
    assert changed(permits, wanted("a", 3, 2, soon_ms), 2, soon_ms) is None
    renewed = changed(permits, wanted("a", 3, 2, soon_ms + 1), 2, soon_ms + 1)
    assert renewed is not None
    assert renewed.held["a"].until_ms > permits.held["a"].until_ms


def test_a_run_without_permits_is_noted_once_and_only_while_the_record_has_room() -> None:
    permits = taken(Permits(), wanted("a", 2), limit=2)
    waiting = taken(permits, wanted("b", 1), limit=2)
    assert waiting.held["b"] == Holding(0, NOON_MS + rules.WAITING_MS, 1)
    assert changed(waiting, wanted("b", 1), 2, NOON_MS) is None
    assert held(taken(waiting, wanted("b", 0), limit=2)) == {"a": 2}
    many = {str(number): Holding(0, NOON_MS, 1) for number in range(rules.WAITERS_MAX)}
    full = replace(permits, held={**permits.held, **many})
    assert changed(full, wanted("b", 1), 2, NOON_MS) is None
    assert "b" in held(taken(full, wanted("b", 1), limit=3))


def test_free_permits_are_left_to_a_run_that_waits_for_an_earlier_task() -> None:
    late = replace(wanted("late", 2), first_order=NOON_MS)
    early = replace(wanted("early", 1), first_order=NOON_MS - rules.YIELD_MS - 1)
    about_as_early = replace(early, first_order=NOON_MS - rules.YIELD_MS)
    permits = taken(Permits(), wanted("a", 2), limit=2)
    behind = taken(taken(permits, early, limit=2), wanted("a", 0), limit=2)
    assert held(taken(behind, late, limit=2)) == {"early": 0, "late": 1}
    beside = taken(taken(permits, about_as_early, limit=2), wanted("a", 0), limit=2)
    assert held(taken(beside, late, limit=2)) == {"early": 0, "late": 2}


def test_a_run_gives_its_permits_to_one_that_waits_for_an_earlier_task_as_its_calls_end() -> None:
    permits = taken(Permits(), replace(wanted("a", 5), first_order=NOON_MS), limit=3)
    early = replace(wanted("early", 2), first_order=NOON_MS - 10_000)
    permits = taken(permits, early, limit=3)
    more = replace(wanted("a", 5, at_least=3), first_order=NOON_MS)
    assert rules.share(permits, more, 3, NOON_MS) == 1
    assert held(taken(permits, more, limit=3))["a"] == 3
    assert held(taken(permits, replace(more, at_least=1), limit=3))["a"] == 1


def test_places_lie_as_far_apart_as_calls_end() -> None:
    calls = replace(wanted("a", 1), ended=(200, 200 * CALL_MS))
    permits = taken(Permits(), calls, limit=3)
    assert abs(permits.call_us - CALL_MS * 1_000) < 10
    assert permits.interval_us(3) == round(permits.call_us * rules.LINE_SHARE / 3)
    assert Permits(call_us=1).interval_us(100) == 1


def test_a_line_begins_behind_the_tasks_that_wait_in_runs_with_permits() -> None:
    permits = Permits(held={"a": Holding(2, NOON_MS, waiting=40)}, call_us=500_000)
    assert permits.has_line(NOON_MS)
    ahead_ms = 40 * permits.interval_us(2) // 1_000
    late, early = a_task(1, NOON_MS - 5_000), a_task(1, NOON_MS + 60_000)
    assert permits.line_from_ms(2, late, NOON_MS) == NOON_MS + ahead_ms
    assert permits.line_from_ms(2, early, NOON_MS) == NOON_MS + 60_000
    behind = replace(permits, late_us=(NOON_MS + 90_000) * 1_000)
    assert behind.line_from_ms(2, early, NOON_MS) == NOON_MS + 90_000
    assert not permits.has_line(NOON_MS + SKEW_MS + 1)  # it has crashed


def test_tasks_from_the_line_wait_longer_and_line_up_among_the_late() -> None:
    new, other = a_task(1, NOON_MS), a_task(2, NOON_MS + 100)
    places = ReservedTurns(NOON_MS * 1_000 + 500, 10_000, 2, rules.VERSION)
    (first, at), (second, behind) = rules.placed([new, other], places)
    assert (first, second) == (new, other)
    assert (at.at_ms, at.is_late, behind.at_ms) == (NOON_MS + 1, False, NOON_MS + 100)
    placed = replace(new, next_ms=at.at_ms, reservation=at)
    assert rules.is_placed(placed)
    assert rules.by_line([placed, other], lambda task: task.due_ms) == [[other], [placed]]
    ((_, again),) = rules.placed(
        [placed], replace(places, first_us=NOON_MS * 1_000 + 20_000, count=1)
    )
    assert again.is_late
    late = replace(placed, next_ms=again.at_ms, reservation=again)
    assert rules.patience_ms(late) > rules.patience_ms(placed) == rules.patience_ms(new)


def test_a_place_of_a_rate_limit_is_none_in_the_line_of_permits() -> None:
    task = a_task(1, NOON_MS)
    assert not rules.is_placed(replace(task, reservation=Reservation(NOON_MS, NOON_MS)))
    assert not rules.is_placed(replace(task, reservation=Reservation(1, rules.VERSION)))


class Run:
    """A notifier: its clock is off; it may freeze or crash between a write and its calls."""

    def __init__(self, name: str, skew_ms: int) -> None:
        self.name = name
        self.skew_ms = skew_ms
        self.count = 0
        self.until_ms = 0
        self.calls: list[int] = []  # when each ends, by real time


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["take", "call", "end", "give back", "crash", "wait"]),
        st.integers(1, 6),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 4), st.lists(st.integers(-1_000, 1_000), min_size=4, max_size=4))
def test_never_more_calls_than_the_limit_with_crashes_and_clocks_that_differ(
    steps: list[tuple[int, str, int]], limit: int, skews: list[int]
) -> None:
    permits, real_ms = Permits(), NOON_MS
    runs = [Run(f"{n}", skew) for n, skew in enumerate(skews)]
    abandoned: list[int] = []  # calls of runs that crashed
    crashes = 0
    for number, step, amount in steps:
        run = runs[number]
        now_ms = real_ms + run.skew_ms
        run.calls = [end for end in run.calls if end > real_ms]
        match step:
            case "take":
                want = wanted(run.name, amount, len(run.calls), now_ms)
                permits = taken(permits, want, limit, now_ms)
                mine = permits.held.get(run.name, Holding(0, 0))
                run.count, run.until_ms = mine.count, mine.until_ms
            case "call" if len(run.calls) < run.count and now_ms <= run.until_ms - TIMEOUT_MS:
                run.calls.append(real_ms + amount * TIMEOUT_MS // 6)
            case "end":
                run.calls = run.calls[1:]
            case "give back":
                want = wanted(run.name, 0, len(run.calls), now_ms)
                permits = taken(permits, want, limit, now_ms)
                run.count = len(run.calls)
            case "crash":
                abandoned += run.calls
                crashes += 1
                runs[number] = Run(f"{number}-{crashes}", run.skew_ms)
            case "wait":
                real_ms += amount * 2_500
        under_way = [end for one in runs for end in one.calls] + abandoned
        assert sum(end > real_ms for end in under_way) <= limit


def test_a_run_gives_permits_back_however_many_runs_wait() -> None:
    many = {str(number): Holding(0, NOON_MS, 1) for number in range(rules.WAITERS_MAX)}
    permits = taken(Permits(held=many), wanted("a", 2), limit=2)
    assert held(taken(permits, wanted("a", 0), limit=2)) == held(Permits(held=many))


def test_a_run_yields_its_permits_to_earlier_tasks_however_many_runs_wait() -> None:
    many = {str(number): Holding(0, NOON_MS, 1, NOON_MS) for number in range(rules.WAITERS_MAX)}
    permits = taken(Permits(held=many), wanted("a", 2), limit=22)
    later = replace(wanted("a", 2), first_order=NOON_MS + 2 * rules.YIELD_MS)
    assert held(taken(permits, later, limit=2)) == {**dict.fromkeys(many, 0), "a": 0}


def test_a_place_in_another_line_counts_as_a_try_for_a_turn() -> None:
    task = a_task(1, NOON_MS)
    place = Reservation(NOON_MS, rules.VERSION)
    assert tries(replace(task, reservation=place), NOON_MS) is Tries.SECOND
    late = replace(place, is_late=True)
    assert tries(replace(task, reservation=late), NOON_MS) is Tries.MORE
    former = replace(task, reservation=replace(place, version=NOON_MS - 1))
    assert tries(former, NOON_MS) is Tries.FIRST
    assert tries(replace(former, flow_key="a"), NOON_MS) is Tries.SECOND
    assert tries(replace(task, next_ms=NOON_MS + 1, reservation=place), NOON_MS) is Tries.FIRST
