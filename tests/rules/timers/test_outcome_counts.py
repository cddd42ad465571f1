"""What the runs of a timer count as, and that folding counts each once."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.tasks.task import Occurrence, Revival, Status, Task
from duewheel.rules.timers.outcome_counts import OPEN_MAX, Counted, Folded, counts_of, fold
from duewheel.rules.timers.planning import counted_again_ms, occurrence_home
from duewheel.rules.wheel.addresses import Address
from tests.support.cases import each_case

TIMER_ID = "4503599627370497"
BEGIN = 1_800_000_000


def run(second: int, **fields: Any) -> Task:
    home = occurrence_home(TIMER_ID, second, second, 1)
    task = Task.at(home, "orders", home.instant_ms, 0)
    occurrence = Occurrence(TIMER_ID, second, indexed=False)
    return replace(task, **{"occurrence": occurrence, **fields})


def once(**end: Any) -> dict[str, Any]:
    """Redriven once, from this end."""
    return {"redrives": 1, "revivals": (Revival(ended=BEGIN, revived=BEGIN + 9, **end),)}


@each_case(
    ("fields", "expected"),
    [
        ({}, []),
        ({"attempts": 1}, ["fired"]),
        ({"status": Status.DELIVERED, "attempts": 3}, ["fired", "delivered"]),
        ({"status": Status.DEAD, "attempts": 1}, ["fired", "dead"]),
        ({"status": Status.EXPIRED}, ["expired"]),
        ({"status": Status.EXPIRED, "attempts": 2}, ["fired", "expired"]),
        ({"status": Status.CANCELLED}, []),
        ({"status": Status.CANCELLED, "reason": "timer disabled"}, []),
        ({"status": Status.CANCELLED, "reason": "missed"}, ["missed"]),
        ({"status": Status.CANCELLED, "reason": "superseded"}, ["superseded"]),
        ({"status": Status.CANCELLED, "reason": "skipped"}, ["skipped"]),
        # Pages count what happens after a redrive.
        (once(), ["fired", "dead"]),
        ({**once(), "attempts": 1, "status": Status.DELIVERED}, ["fired", "dead"]),
        (once(status=Status.DELIVERED), ["fired", "delivered"]),
        ({**once(status=Status.DELIVERED), "status": Status.DEAD}, ["fired", "delivered"]),
        (once(status=Status.EXPIRED, attempts=0), ["expired"]),
        (once(status=Status.CANCELLED, reason="missed", attempts=0), ["missed"]),
        (once(status=Status.CANCELLED, reason="cancelled by caller", attempts=1), ["fired"]),
    ],
)
def test_a_run_counts_by_its_first_end(fields: dict[str, Any], expected: list[str]) -> None:
    assert counts_of(run(BEGIN, **fields)) == Counter(map(Counted, expected))


delays = st.integers(0, 40)
runs = st.dictionaries(st.integers(0, 60), st.none() | delays, max_size=40)
looks = st.lists(st.integers(0, 120), max_size=12).map(sorted)


@given(runs, looks, st.integers(1, 5))
def test_each_run_that_has_ended_is_counted_once_however_often_it_is_folded(
    drawn: dict[int, int | None], at: list[int], limit: int
) -> None:
    """By due second: after how many seconds the run ends; None: it was withdrawn. They are read a
    few at a time."""
    ends = {BEGIN + due: delay for due, delay in sorted(drawn.items())}
    homes = [run(second).home for second in ends]

    def there(now: int) -> dict[Address, Task]:
        found = {}
        for second, delay in ends.items():
            if delay is not None:
                status = Status.DELIVERED if second + delay <= now else Status.PENDING
                task = run(second, status=status, attempts=int(status is Status.DELIVERED))
                found[task.home] = task
        return found

    folded, total = Folded(), Counter[Counted]()
    for look in [*at, 200, 200]:
        now = BEGIN + look
        for _ in range(50):
            due = [home for home in homes if folded.until_second <= home.second < now]
            end = due[limit].second if len(due) > limit else now
            result = fold(folded, due[:limit], there(now), end)
            total += result.counts
            is_done = result.after.until_second == now or result.after == folded
            folded = result.after
            assert len(folded.open_homes) <= OPEN_MAX
            if is_done:
                break
        ended = sum(
            delay is not None and second + delay <= now and second < now
            for second, delay in ends.items()
        )
        assert total[Counted.DELIVERED] <= ended
    assert total[Counted.DELIVERED] == total[Counted.FIRED] == ended
    assert folded.open_homes == ()


def test_folding_waits_while_too_many_runs_have_not_ended() -> None:
    live = [run(BEGIN + n) for n in range(OPEN_MAX + 5)]
    tasks = {task.home: task for task in live}
    result = fold(Folded(), [*tasks], tasks, BEGIN + 1_000)
    assert result.after.until_second == BEGIN + OPEN_MAX
    assert len(result.after.open_homes) == OPEN_MAX
    first = replace(live[0], status=Status.DELIVERED, attempts=1)
    rest = [task.home for task in live[OPEN_MAX:]]
    result = fold(result.after, rest, {**tasks, first.home: first}, BEGIN + 1_000)
    assert result.after.until_second == BEGIN + OPEN_MAX + 1
    assert result.counts == {Counted.FIRED: 1, Counted.DELIVERED: 1}


def test_a_run_that_is_in_the_index_is_counted_by_its_page() -> None:
    """Two planners may have written by different settings; a record names it all the same."""
    task = run(BEGIN, status=Status.DELIVERED, attempts=1, occurrence=Occurrence(TIMER_ID, BEGIN))
    assert fold(Folded(), [task.home], {task.home: task}, BEGIN + 1).counts == {}


@each_case(
    ("now", "expected"),
    [(-600, 120), (0, 120), (60, 180), (500, 1_000), (90_000, 90_000 + 86_400)],
)
def test_a_chain_that_plans_no_more_counts_less_and_less_often(now: int, expected: int) -> None:
    again_ms = counted_again_ms(BEGIN, (BEGIN + now) * 1000)
    assert again_ms == (BEGIN + expected) * 1000
