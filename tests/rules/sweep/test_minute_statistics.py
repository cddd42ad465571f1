"""The statistics that the sweep counts from the homes it reads in a second."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Verdict
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.sweep.minute_statistics import (
    ELSEWHERE,
    LATENESS_BOUNDS_MS,
    NOTHING,
    Facts,
    MinuteStats,
    SeenTasks,
    Tally,
    delivered_so_late,
    merge,
    merge_into,
)
from duewheel.rules.sweep.verdict import HomeState
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Attempt, Revival, Status, Task
from duewheel.rules.wheel.addresses import Address, address_at

SECOND = 1_900_000_020  # the first of its minute
MINUTE = SECOND // 60
LATER = SECOND + 3_600
EARLIER = SECOND - 3_600


def at(second: int) -> Address:
    return address_at(second * 1000, b"eight by")


PENDING = HomeState(
    home=at(SECOND),
    entry=at(SECOND),
    status=Status.PENDING,
    next_ms=SECOND * 1000,
    version=1,
    biz_type="orders",
)
DELIVERED = replace(PENDING, status=Status.DELIVERED, lateness_ms=30)


def tally(facts: Facts, minute: int = MINUTE, biz_type: str = "orders") -> Tally:
    return sum(facts.get((biz_type, minute), {}).values(), NOTHING)


def met(home: HomeState, *seconds: int) -> Facts:
    return merge(facts_of(second, [home]) for second in seconds)


def facts_of(second: int, *slices: list[HomeState]) -> Facts:
    met = SeenTasks(second)
    for shard, homes in enumerate(slices):
        met.add(shard, homes)
    return met.facts


def test_a_delivered_task_is_created_and_delivered_in_its_minute() -> None:
    counted = tally(met(DELIVERED, SECOND))
    assert counted == Tally(created=1) + delivered_so_late(30)
    assert counted.pending == 0


def test_a_task_waiting_for_a_retry_is_pending_in_its_minute() -> None:
    waiting = replace(PENDING, entry=at(LATER), failed_seconds=(SECOND,))
    counted = tally(met(waiting, SECOND))
    assert (counted.created, counted.pending, counted.failed_attempts) == (1, 1, 1)


def test_a_task_that_settles_later_counts_in_the_minute_in_which_it_first_fell_due() -> None:
    settled = replace(DELIVERED, entry=at(LATER), failed_seconds=(SECOND,), lateness_ms=3_600_000)
    assert met(settled, LATER) == {
        ("orders", MINUTE): {(LATER, ELSEWHERE): delivered_so_late(3_600_000)}
    }
    whole = tally(met(settled, SECOND, LATER))
    assert (whole.created, whole.delivered, whole.pending, whole.failed_attempts) == (1, 1, 0, 1)


def test_a_failed_attempt_counts_in_its_own_minute() -> None:
    failed_again = replace(PENDING, entry=at(LATER + 60), failed_seconds=(SECOND, LATER))
    facts = met(failed_again, SECOND, LATER)
    assert tally(facts, LATER // 60) == Tally(failed_attempts=1)
    assert tally(facts) == Tally(created=1, failed_attempts=1)


def test_all_attempts_within_one_second_count() -> None:
    hasty = replace(PENDING, entry=at(LATER), failed_seconds=(SECOND, SECOND, SECOND))
    assert tally(met(hasty, SECOND)).failed_attempts == 3


def test_a_task_that_was_brought_forward_counts_only_where_it_fell_due() -> None:
    run = replace(DELIVERED, home=at(LATER), entry=at(SECOND))
    assert tally(met(run, SECOND)) == Tally(created=1) + delivered_so_late(30)
    assert met(run, LATER) == {}


def test_each_final_status_is_counted_separately() -> None:
    for status in (Status.DEAD, Status.EXPIRED, Status.CANCELLED):
        counted = tally(met(replace(PENDING, status=status), SECOND))
        assert counted == Tally(created=1) + Tally(**{status.value: 1})
        assert counted.pending == 0


def test_a_redriven_task_does_not_count_as_dead() -> None:
    redriven = replace(DELIVERED, entry=at(LATER), revivals=(Revival(ended=SECOND, revived=LATER),))
    whole = tally(met(redriven, SECOND, LATER))
    assert (whole.created, whole.dead, whole.delivered, whole.pending) == (1, 0, 1, 0)


def test_a_death_counts_the_same_with_a_redrive_before_or_after_the_sweep() -> None:
    dead = replace(PENDING, status=Status.DEAD)
    redriven = replace(PENDING, entry=at(LATER), revivals=(Revival(ended=SECOND, revived=LATER),))
    assert met(dead, SECOND) == met(redriven, SECOND)


def test_a_death_with_a_redrive_in_the_same_second_does_not_count() -> None:
    hasty = replace(PENDING, entry=at(LATER), revivals=(Revival(ended=SECOND, revived=SECOND),))
    assert tally(met(hasty, SECOND)) == Tally(created=1)


def test_a_task_that_died_before_its_home_fell_due_counts_where_it_died() -> None:
    early = replace(
        DELIVERED,
        home=at(LATER),
        entry=at(SECOND),
        revivals=(Revival(ended=EARLIER, revived=SECOND),),
    )
    facts = met(early, EARLIER, SECOND, LATER)
    assert set(facts) == {("orders", EARLIER // 60)}
    assert tally(facts, EARLIER // 60).delivered == 1


def test_a_task_with_entries_in_several_slices_of_a_second_counts_once() -> None:
    again = replace(DELIVERED, home=at(EARLIER), failed_seconds=(SECOND, SECOND))
    facts = facts_of(SECOND, [again], [DELIVERED, again])
    assert facts == facts_of(SECOND, [], [again, DELIVERED])
    assert tally(facts).failed_attempts == 2


def test_businesses_are_counted_separately() -> None:
    other = replace(DELIVERED, biz_type="invoices")
    facts = facts_of(SECOND, [DELIVERED, other, DELIVERED])
    assert tally(facts).delivered == 2
    assert tally(facts, biz_type="invoices").delivered == 1


statuses = st.sampled_from(Status)
ends = st.sampled_from([status for status in Status if status is not Status.PENDING])


@given(
    statuses,
    st.integers(-90, 90),
    st.integers(0, 90),
    st.lists(st.tuples(st.integers(-30, 30), ends), max_size=4),
)
def test_a_task_counts_once_as_created_and_once_with_its_status_over_all_seconds(
    status: Status, named_after: int, waited: int, redrives: list[tuple[int, Status]]
) -> None:
    """For any outcome and any number of redrives, also before the second of the end."""
    seconds, revivals = SECOND + named_after, []
    for gap, end in redrives:
        revival = Revival(ended=seconds, revived=seconds + gap, status=end, lateness_ms=70)
        revivals.append(revival)
        seconds += gap + waited
    first = min([SECOND, *(revival.revived for revival in revivals)])
    home = replace(
        PENDING, status=status, entry=at(seconds), lateness_ms=0, revivals=tuple(revivals)
    )
    home = replace(home, first_second=first if first < SECOND else None)
    if status is Status.PENDING and seconds <= SECOND:
        home = replace(home, entry=at(SECOND))
    facts = met(home, *range(SECOND - 300, SECOND + 1_000))
    whole = sum((tally(facts, minute) for _, minute in facts), NOTHING)

    assert whole.created == 1
    assert whole.settled == (status is not Status.PENDING)
    assert whole.pending == (status is Status.PENDING)
    assert getattr(whole, status.value) == 1
    assert sum(whole.lateness_classes) == whole.delivered
    assert whole.lateness_sum_ms == 0
    assert len(facts) == 1, "a task counts in one minute"


class Life:
    """The states of a task, each with the second from which it holds."""

    def __init__(self) -> None:
        self.now = SECOND - 60
        self.task = Task.at(at(SECOND), "orders", 0, 0, HttpCallback())
        self.states = [(self.now, self.task)]

    def step(self, passed: int, ahead: int, is_last_attempt: bool) -> None:
        """The task is brought forward, called once it has fallen due, or redriven."""
        self.now += passed
        new, now_ms = at(self.now + ahead), self.now * 1000
        attempt = Attempt(
            at_ms=now_ms,
            lateness_ms=0,
            duration_ms=0,
            outcome=Verdict.RETRY.value,
            entry_second=self.task.entry.second,
        )
        if not self.task.is_live:
            self.becomes(lifecycle.redriven(self.task, new, now_ms))
        elif self.task.entry.second > self.now:
            if new.second < self.task.entry.second:
                self.becomes(lifecycle.brought_to(self.task, new))
        elif is_last_attempt:
            self.becomes(lifecycle.dead(self.task, attempt, "", now_ms, 0))
        else:
            self.becomes(lifecycle.to_be_retried(self.task, attempt, now_ms, new, now_ms))

    def becomes(self, task: Task) -> None:
        self.task = task
        self.states.append((self.now, task))

    def facts_of_sweep(self, second: int) -> Facts:
        """The facts that a sweep reads which finishes the second as soon as the task has ended or
        names no entry of it any more."""
        until = [began for began, _ in self.states[1:]]
        for (_, task), end in zip(self.states, [*until, inf], strict=True):
            if end > second and not (task.is_live and task.entry.second == second):
                return met(state_of(task), second)
        raise AssertionError(f"{second} is never finished")


def state_of(task: Task) -> HomeState:
    return replace(
        PENDING,
        entry=task.entry,
        status=task.status,
        failed_seconds=tuple(attempt.entry_second for attempt in task.history),
        revivals=task.revivals,
        first_second=task.first_second,
    )


steps = st.tuples(st.integers(0, 60), st.integers(0, 60), st.booleans())


@given(st.lists(steps, max_size=6))
def test_a_task_counts_once_in_one_minute_in_any_order_of_finished_seconds(
    steps: list[tuple[int, int, bool]],
) -> None:
    life = Life()
    for passed, ahead, is_last_attempt in steps:
        life.step(passed, ahead, is_last_attempt)
    life.becomes(lifecycle.cancelled(life.task, "", life.now * 1000, 0))
    facts = merge(life.facts_of_sweep(second) for second in range(SECOND - 60, SECOND + 800))
    by_minute = [tally(facts, minute) for _, minute in facts]
    assert sum(counted.created for counted in by_minute) == 1
    assert [counted.settled for counted in by_minute if counted.created] == [1]
    assert all(counted.pending == 0 for counted in by_minute)


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(0, 25))
def test_a_record_counts_each_second_once(repeats: list[int], up_to: int) -> None:
    """For any ranges that are swept again after a crash."""
    by_second = {second: Tally(created=second + 1) for second in range(21)}
    stats = MinuteStats("orders", 0)
    for last in [*repeats, up_to]:
        seen = {(second, 0): each for second, each in by_second.items() if second <= last}
        stats = merge_into(stats, seen, last)
    furthest = max([*repeats, up_to])
    assert stats.tally.created == sum(s + 1 for s in range(21) if s <= furthest)
    assert stats.up_to == furthest


def test_lateness_is_counted_in_the_class_of_its_upper_bound() -> None:
    for number, bound in enumerate(LATENESS_BOUNDS_MS):
        assert delivered_so_late(bound).lateness_classes[number] == 1
        assert delivered_so_late(bound + 1).lateness_classes[number + 1] == 1
    assert delivered_so_late(0).lateness_classes[0] == 1


def test_tallies_add_up_and_keep_the_greatest_lateness() -> None:
    both = delivered_so_late(30) + delivered_so_late(7_000)
    assert (both.delivered, both.lateness_sum_ms, both.lateness_max_ms) == (2, 7_030, 7_000)
    assert sum(both.lateness_classes) == 2
    assert both + NOTHING == both


def test_a_task_whose_home_is_behind_the_sweep_counts_where_it_first_falls_due() -> None:
    """For example, an occurrence that was planned when it was due already."""
    late = replace(PENDING, home=at(EARLIER), entry=at(SECOND), first_second=SECOND)
    assert tally(met(late, SECOND)) == Tally(created=1)
    assert met(late, EARLIER) == {}
    missed = replace(late, status=Status.CANCELLED)
    assert tally(met(missed, SECOND)) == Tally(created=1, cancelled=1)


def test_a_chain_is_not_counted() -> None:
    plan = replace(PENDING, is_plan=True, failed_seconds=(SECOND,))
    assert met(plan, SECOND) == {}
    assert met(replace(plan, status=Status.CANCELLED), SECOND) == {}


class Wheel:
    """The record and the pointer that sweepers leave behind; each second has a fact of its own."""

    def __init__(self, with_facts: set[int]) -> None:
        self.stats = MinuteStats("orders", 0)
        self.position, self.open = -1, frozenset[int]()
        self.facts = {second: Tally(created=1 << second) for second in with_facts}

    def run(self, steps: list[tuple[int, bool]], dies: str) -> None:
        """The run of one sweeper. Each step takes an open second or the next one, and finds it
        finished or not. The sweeper writes the record, and may die before that, before it writes
        the pointer, or never."""
        position, is_open, finished = self.position, set(self.open), set[int]()
        for number, is_finished in steps:
            looked_at = sorted(is_open)[number] if number < len(is_open) else position + 1
            position = max(position, looked_at)
            is_open -= {looked_at}
            if is_finished:
                finished.add(looked_at)
            else:
                is_open.add(looked_at)
        if dies == "before the record":
            return
        met = {(second, 0): self.facts[second] for second in finished & self.facts.keys()}
        if met:
            self.stats = merge_into(self.stats, met, position, frozenset(is_open))
        if dies == "never":
            self.position, self.open = position, frozenset(is_open)


sweepers = st.tuples(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=6),
    st.sampled_from(["before the record", "before the pointer", "never"]),
)


@given(st.lists(sweepers, max_size=12), st.sets(st.integers(0, 40)))
def test_each_fact_counts_once_in_any_order_of_finished_seconds_and_deaths(
    runs: list[tuple[list[tuple[int, bool]], str]], with_facts: set[int]
) -> None:
    wheel = Wheel(with_facts)
    for steps, dies in runs:
        wheel.run(steps, dies)
    while wheel.open:
        wheel.run([(0, True)], "never")
    ahead = wheel.stats.up_to - wheel.position  # of a sweeper that died between record and pointer
    wheel.run([(99, True)] * max(0, ahead), "never")
    finished = sum(1 << second for second in with_facts if second <= wheel.position)
    assert wheel.stats.tally.created == finished


SHARDS = 8
lives = st.lists(st.tuples(st.integers(1, SHARDS), st.sampled_from(["sheet", "place", "never"])))


@given(lives, st.sets(st.sampled_from([*range(SHARDS), ELSEWHERE])))
def test_each_part_of_a_large_second_counts_once_over_any_runs(
    runs: list[tuple[int, str]], with_facts: set[int]
) -> None:
    """Each run counts some shards after those counted before, and dies before it writes the record,
    before it notes the place, or never. Other seconds are counted into the same record in
    between."""
    facts = {(7, part): Tally(created=1 << part % 100) for part in with_facts}
    stats, counted = MinuteStats("orders", 0), 0
    for number, (shards, dies_before) in enumerate(runs):
        reached = min(SHARDS, counted + shards)
        if dies_before != "sheet":
            seen = {part: tally for part, tally in facts.items() if counted <= part[1] < reached}
            partly = {7: reached} if seen else {}
            stats = merge_into(stats, seen, 10 + number, frozenset({7}), partly)
        if dies_before == "never":
            counted = reached
    assert not stats.holds(7, ELSEWHERE)
    left = {part: tally for part, tally in facts.items() if part[1] >= counted}
    for _ in range(2):  # the second time after a death before the list was written
        stats = merge_into(stats, left, 100)
    assert stats.tally == sum(facts.values(), NOTHING)
    assert stats.partly == {}
