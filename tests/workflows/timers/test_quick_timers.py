"""The costs of a timer of every second whose runs are not wanted: counted by requests."""

import json
from collections import Counter
from functools import partial
from itertools import count

import pytest

from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers import planning
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.timers.schedule import seconds_from
from duewheel.rules.timers.timer import Misfire, Timer
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address
from tests.support.bounds import quick_first
from tests.support.stories import End, Interruption, Story
from tests.support.timers import called_seconds, chain_of, fates, made, now, occurrences, patched
from tests.support.world import CALLER, World

PLANNED = 200
AHEAD_MS = 4_000  # nearer pages are announced, and their messages come whatever becomes of the runs
REACH = 10  # seconds: nearer runs are announced, or about to be dispatched, and fall due
DAYS = 3 * 86_400


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "OCCURRENCES_MAX", PLANNED // 2)
    monkeypatch.setattr(planning, "STEP_SECONDS", PLANNED // 2)
    monkeypatch.setattr(planning, "LOOK_AGAIN_MS", 15_000)
    monkeypatch.setattr(timing, "AHEAD_MS", AHEAD_MS)


def planned(story: Story, **rules: object) -> Timer:
    """A timer that is enabled and planned some minutes ahead."""
    timer = made(story.world, 1, **rules)
    for _ in range(4):
        story.deliver()
    assert len(occurrences(story.world, timer)) >= PLANNED - 1
    return timer


def ahead(world: World, timer: Timer) -> list[int]:
    """The seconds of its runs that have not fallen due yet."""
    tasks = occurrences(world, timer)
    return [t.home.second for t in tasks if t.is_live and t.home.second > now(world) + REACH]


def operations_of(world: World, step: object) -> Counter[str]:
    before = len(world.recorder.calls)
    step()  # type: ignore[operator]
    return Counter(world.recorder.operations()[before:])


def plan(world: World, timer: Timer) -> int:
    """The work of a notifier on the due entry of the chain. Returns the second up to which it has
    planned."""
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    deadline_ms = world.clock.now_ms() + 60_000
    world.deliver.deliver_entries.plan_timers([(chain, chain.plan)], deadline_ms)
    return chain.plan.planned_until_second


def catch_up(world: World, timer: Timer) -> None:
    while plan(world, timer) <= now(world):
        pass


def disable(world: World, timer: Timer) -> None:
    world.change_timer.disable(timer.timer_id, by=CALLER)


def delete(world: World, timer: Timer) -> None:
    world.change_timer.delete(timer.timer_id, by=CALLER)


@pytest.mark.parametrize("stop", quick_first([disable, delete], pytest.mark.exhaustive))
def test_the_planned_runs_of_a_stopped_timer_are_withdrawn_page_by_page(
    world: World, stop: object
) -> None:
    story = Story(world)
    timer = planned(story)
    stopped = now(world)
    stop(world, timer)  # type: ignore[operator]
    operations = operations_of(world, story.deliver)
    assert ahead(world, timer) == []
    assert operations["TransactWriteItems"] == -(-(PLANNED - REACH) // 99)
    assert operations["DeleteItem"] == operations["BatchWriteItem"] == 0
    quiet = operations_of(world, partial(story.pass_time, PLANNED))
    written = {name: n for name, n in quiet.items() if name not in {"Query", "BatchGetItem"}}
    assert sum(written.values()) < PLANNED, "not one run for each second"
    assert occurrences(world, timer)[-1].home.second <= stopped + REACH
    story.pass_time(PLANNED)  # it may have to count runs
    chain = world.tasks.get(timer.chain)  # type: ignore[arg-type]
    assert chain is not None
    assert chain.status is Status.CANCELLED
    story.check()


@pytest.mark.exhaustive
def test_a_timer_that_is_enabled_again_calls_each_second_once_and_continues_its_numbers(
    world: World,
) -> None:
    story = Story(world)
    begins = now(world)
    timer = planned(story)
    story.pass_time(10)
    disable(world, timer)
    story.deliver()
    story.pass_time(20)
    assert ahead(world, timer) == []
    world.change_timer.enable(timer.timer_id, by=CALLER)
    enabled = now(world)
    for _ in range(4):
        story.deliver()
    story.pass_time(30)
    delivered = [t for t in occurrences(world, timer) if t.status is Status.DELIVERED]
    seconds = [t.occurrence.second for t in delivered if t.occurrence]
    after = [second for second in seconds if second > enabled]
    assert after == list(range(enabled + 1, enabled + 1 + len(after)))
    assert len(after) >= 30
    numbers = [t.occurrence.number for t in delivered if t.occurrence]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(world.receiver.received) == len(delivered)
    found = world.audit(AuditRequest(begins - 10, now(world) + 60))
    assert found.findings == []


def enable_again(world: World, timer: Timer) -> None:
    world.change_timer.enable(timer.timer_id, by=CALLER)


def disable_and_enable(story: Story, timer: Timer, gaps: list[range]) -> None:
    """Appends the seconds in which the timer is disable to `gaps`."""
    story.idle(3)
    begins = now(story.world) + 1
    disable(story.world, timer)
    story.idle(10)
    enable_again(story.world, timer)
    gaps.append(range(begins, now(story.world) + 1))


@pytest.mark.exhaustive
@pytest.mark.parametrize("times", [1, 2])
def test_a_slow_planner_causes_no_calls_for_seconds_in_which_its_timer_was_disabled(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It continues with what it has read before, and writes runs for those seconds."""
    monkeypatch.setattr(planning, "OCCURRENCES_MAX", 30)
    monkeypatch.setattr(planning, "STEP_SECONDS", 30)
    put = 0
    for number in (1, 2, 3, 4, 5, 10, 20, 30):
        story = Story(world)
        begins = now(world)
        timer = made(world, 1)
        gaps: list[range] = []

        def toggled(story: Story = story, timer: Timer = timer, gaps: list[range] = gaps) -> None:
            for _ in range(times):
                disable_and_enable(story, timer, gaps)

        step = partial(plan, world, timer)
        assert story.interrupted(step, Interruption(number, toggled))
        for _ in range(4):
            story.deliver()
        story.pass_time(20)
        off = {second for gap in gaps for second in gap}
        runs = [(task, task.occurrence) for task in occurrences(world, timer) if task.occurrence]
        put += sum(one.second in off for _, one in runs)
        assert {t.reason for t, one in runs if one.second in off} <= {"timer disabled"}
        called = [one.second for t, one in runs if t.status is Status.DELIVERED]
        enabled = gaps[-1][-1]
        assert [s for s in called if s > enabled] == list(range(enabled + 1, now(world) + 1))
        assert set(called) <= set(range(begins, now(world) + 1)) - off
        assert len(world.receiver.received) == len(called)
    assert put >= 20, "runs that were written for seconds in which the timer was disable"


@pytest.mark.exhaustive
def test_an_interruption_at_any_call_of_a_withdrawal_loses_no_run_of_an_enabled_timer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notifier dies, or the timer is enabled again, before the first call and after each; then
    all runs ahead exist. After a call means before the next one."""
    monkeypatch.setattr(planning, "TAKEN_BACK_MIN", 20)
    monkeypatch.setattr(planning, "OCCURRENCES_MAX", 30)
    monkeypatch.setattr(planning, "STEP_SECONDS", 30)
    happened = 0
    for by in (End.DEATH, enable_again):
        for number in count():
            story = Story(world)
            timer = made(world, 1)
            for _ in range(4):
                story.deliver()
            disable(world, timer)
            world.entry_writer.placement()
            between = by if isinstance(by, End) else partial(by, world, timer)
            moment = "after" if number else "before"
            at = Interruption(max(number, 1), between, moment)
            if not story.interrupted(story.deliver, at):
                break
            happened += 1
            world.change_timer.enable(timer.timer_id, by=CALLER)
            begins = now(world)
            for _ in range(4):
                story.deliver()
            seconds = {t.occurrence.second for t in occurrences(world, timer) if t.occurrence}
            assert seconds >= set(range(begins + 1, begins + 40))
            story.pass_time(12)
            # The leader and the notifiers share a clock here, so that some calls are late.
            delivered = {
                t.occurrence.second
                for t in occurrences(world, timer)
                if t.occurrence and t.status is Status.DELIVERED and t.attempts == 1
            }
            assert delivered >= set(range(begins + 1, begins + 13))
    assert happened >= 16


def plan_of(world: World, chain: Address | None) -> None:
    """The work of a notifier on the entry of this chain only."""
    task = None if chain is None else world.tasks.get(chain)
    assert task is not None
    assert task.plan is not None
    deadline_ms = world.clock.now_ms() + 60_000
    world.deliver.deliver_entries.plan_timers([(task, task.plan)], deadline_ms)


def test_runs_are_withdrawn_when_a_timer_is_disabled_again_before_its_new_chain_plans(
    world: World,
) -> None:
    story = Story(world)
    timer = planned(story)
    disable(world, timer)
    enable_again(world, timer)
    plan_of(world, timer.chain)
    assert len(ahead(world, timer)) > PLANNED - 2 * REACH, "it is enabled again"
    disable(world, timer)
    story.deliver()
    assert ahead(world, timer) == []


def test_a_change_of_a_disabled_timer_during_its_withdrawal_leaves_no_run(world: World) -> None:
    """The transactions check the timer as it was read; the chain reads it again later."""
    story = Story(world)
    timer = planned(story)
    disable(world, timer)
    change = Interruption(3, partial(patched, world, timer, payload='{"n":2}'))
    assert story.interrupted(partial(plan_of, world, timer.chain), change)
    assert len(ahead(world, timer)) > PLANNED - 2 * REACH
    story.pass_time(planning.LOOK_AGAIN_MS // 1000 + 1)
    assert ahead(world, timer) == []


@pytest.mark.exhaustive
def test_a_run_that_was_changed_is_not_withdrawn(world: World) -> None:
    story = Story(world)
    timer = planned(story)
    *_, moved = occurrences(world, timer)
    world.cancel(moved.task_id)
    disable(world, timer)
    story.deliver()
    left = [t for t in occurrences(world, timer) if t.home.second > now(world) + REACH]
    assert [(task.home, task.status) for task in left] == [(moved.home, Status.CANCELLED)]


@pytest.mark.exhaustive
def test_a_few_planned_runs_are_cancelled_when_they_fall_due(world: World) -> None:
    story = Story(world)
    timer = made(world, 60)
    story.deliver()
    count = len(occurrences(world, timer))
    assert 0 < count < planning.TAKEN_BACK_MIN
    disable(world, timer)
    story.settle_all()
    assert fates(world, timer) == {"timer disabled": count}


@pytest.mark.exhaustive
def test_a_late_run_that_a_planner_wrote_before_it_died_is_counted_once(world: World) -> None:
    """The other planner died before its chain moved on; the next one runs when all of them are
    late."""
    story = Story(world)
    runs = 80
    timer = made(world, 1, misfire=Misfire.LATEST, grace_seconds=5, max_runs=runs)
    story.interrupted(partial(plan, world, timer), Interruption(30, End.DEATH))
    assert 10 < len(occurrences(world, timer)) < runs - planning.MISFIRES_WRITTEN
    story.idle(PLANNED)
    plan(world, timer)
    story.settle_all()
    counted = world.count_outcomes.shown(timer.timer_id)
    assert (counted["superseded"], counted["fired"]) == (runs - 1, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("misfire", [Misfire.SKIP, Misfire.LATEST])
def test_runs_of_three_days_without_notifiers_are_counted_and_not_written(
    world: World, monkeypatch: pytest.MonkeyPatch, misfire: Misfire
) -> None:
    monkeypatch.setattr(planning, "MISFIRES_MAX", 40_000)
    Story(world)
    begins = now(world)
    timer = made(world, 1, misfire=misfire, grace_seconds=5)
    world.clock.advance_ms(DAYS * 1000)

    operations = operations_of(world, partial(catch_up, world, timer))
    assert operations["TransactWriteItems"] < 100
    assert operations["UpdateItem"] < 50
    counters = world.count_outcomes.shown(timer.timer_id)
    late = counters["missed"] + counters["superseded"]
    written = occurrences(world, timer)
    first = written[0].occurrence
    assert first is not None
    assert first.second > begins + DAYS - 60, "the runs before it were only counted"
    cancelled = [task for task in written if task.status is Status.CANCELLED]
    assert len(cancelled) <= planning.MISFIRES_WRITTEN
    assert late == first.number - 1 + len(cancelled)
    assert [t.occurrence.number for t in written if t.occurrence] == [
        t.occurrence.second - begins for t in written if t.occurrence
    ]


@pytest.mark.parametrize("stride", quick_first([2, 1], pytest.mark.exhaustive))
def test_the_count_of_misfires_is_written_with_the_chain_or_not_at_all(
    world: World, stride: int
) -> None:
    """The planner dies at every call: when the chain is planned again, it adds nothing a second
    time."""
    happened = 0
    for number in range(1, 60, stride):
        story = Story(world)
        timer = made(world, 1, misfire=Misfire.SKIP, grace_seconds=5)
        world.clock.advance_ms(500_000)
        world.entry_writer.placement()
        by = Interruption(number, End.DEATH, "after")
        did = story.interrupted(partial(plan, world, timer), by)
        happened += did
        if not did:
            break
        catch_up(world, timer)
        written = occurrences(world, timer)
        first = written[0].occurrence
        assert first is not None
        counted = world.count_outcomes.shown(timer.timer_id)["missed"]
        cancelled = [task for task in written if task.status is Status.CANCELLED]
        # Written runs are counted when they are written, and a death may leave some out.
        assert first.number - 1 <= counted <= first.number - 1 + len(cancelled)
    assert happened * stride > 5


@pytest.mark.exhaustive
def test_all_late_runs_are_written_when_the_misfire_policy_calls_them(world: World) -> None:
    Story(world)
    timer = made(world, 1, misfire=Misfire.ALL)
    world.clock.advance_ms(200_000)
    catch_up(world, timer)
    assert [t.occurrence.number for t in occurrences(world, timer) if t.occurrence][:200] == list(
        range(1, 201)
    )


@pytest.mark.parametrize(
    "rules", quick_first([{"max_runs": 30}, {"every_seconds": 7}], pytest.mark.exhaustive)
)
def test_runs_that_a_changed_timer_does_not_contain_are_withdrawn_page_by_page(
    world: World, rules: dict[str, object]
) -> None:
    """Runs that the new schedule contains stay, and are called with those that the new chain
    plans."""
    story = Story(world)
    begins = now(world)
    timer = planned(story)
    after = patched(world, timer, **rules)
    operations = operations_of(world, story.deliver)
    first, until = now(world) + REACH + 1, now(world) + PLANNED // 2
    contained = seconds_from(after.rules.schedule, first, PLANNED, until)
    if after.rules.max_runs is not None:
        contained = [second for second in contained if second <= begins + after.rules.max_runs]
    assert [second for second in ahead(world, timer) if second <= until] == contained
    assert operations["TransactWriteItems"] < PLANNED / 10
    story.pass_time(70)
    assert [s for s in called_seconds(world) if s >= first] == [
        second for second in contained if second <= now(world)
    ]
    chain = world.tasks.get(timer.chain)  # type: ignore[arg-type]
    assert chain is not None
    assert chain.reason == "plans no timer any more"


@pytest.mark.exhaustive
def test_a_timer_that_is_changed_back_at_any_call_of_a_withdrawal_keeps_all_its_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "TAKEN_BACK_MIN", 20)
    monkeypatch.setattr(planning, "OCCURRENCES_MAX", 30)
    monkeypatch.setattr(planning, "STEP_SECONDS", 30)
    happened = 0
    for number in range(1, 60, 5):
        story = Story(world)
        timer = made(world, 1)
        for _ in range(4):
            story.deliver()
        patched(world, timer, every_seconds=7)
        world.entry_writer.placement()
        back = partial(patched, world, timer, every_seconds=1)
        if not story.interrupted(story.deliver, Interruption(number, back)):
            break
        happened += 1
        begins = now(world)
        for _ in range(4):
            story.deliver()
        seconds = {t.occurrence.second for t in occurrences(world, timer) if t.occurrence}
        assert seconds >= set(range(begins + 1, begins + 40))
    assert happened >= 4


def missed(world: World, timer: Timer) -> int:
    counted = world.count_outcomes.shown(timer.timer_id)
    return counted["missed"] + counted["superseded"]


WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}


def writes_of(operations: Counter[str]) -> int:
    return sum(number for name, number in operations.items() if name in WRITES)


@pytest.mark.parametrize(
    "misfire", quick_first([Misfire.SKIP, Misfire.LATEST], pytest.mark.exhaustive)
)
def test_planned_runs_that_an_outage_missed_are_withdrawn_page_by_page(
    world: World, misfire: Misfire
) -> None:
    """All runs have their numbers: each was called, is listed as cancelled, or was withdrawn."""
    story = Story(world)
    timer = planned(story, misfire=misfire, grace_seconds=5, max_runs=PLANNED + 40)
    assert chain_of(world, timer) is not None
    story.idle(PLANNED + 60)
    operations = operations_of(world, partial(story.pass_time, 1))
    late = missed(world, timer)
    listed = fates(world, timer)
    cancelled = listed["missed"] + listed["superseded"]
    assert late == PLANNED + 40 - listed["delivered"]
    assert listed.total() == cancelled + listed["delivered"]
    assert planning.MISFIRES_WRITTEN <= cancelled < 4 * planning.MISFIRES_WRITTEN
    assert writes_of(operations) < PLANNED, operations
    story.settle_all()
    story.check()
    assert missed(world, timer) == late


def test_withdrawn_runs_are_told_once_a_page_together(world: World) -> None:
    """Each missed run is told, alone or with others, and no more is paid than a put for a page."""
    story = Story(world)
    told = OnOutcome((Told.MISSED,), HttpCallback("https://receiver.example/told"))
    timer = planned(
        story, misfire=Misfire.SKIP, grace_seconds=5, max_runs=PLANNED + 40, on_outcome=told
    )
    story.idle(PLANNED + 60)
    story.settle_all()
    notices = [json.loads(item["payload"]["S"]) for item in world.items() if "notice_of" in item]
    counts = [notice["runs"]["count"] if "runs" in notice else 1 for notice in notices]
    assert sum(counts) == missed(world, timer)
    assert max(counts) > 20
    assert len(notices) < PLANNED


def test_a_missed_run_on_a_page_with_a_lease_is_not_withdrawn(world: World) -> None:
    """Its call may be under way."""
    story = Story(world)
    timer = planned(story, misfire=Misfire.SKIP, grace_seconds=5)
    met, *others = [t for t in occurrences(world, timer) if t.home.second > now(world) + REACH]
    begun = others[20]
    story.idle(PLANNED + 60)
    page = PageLease(begun.home.second, begun.home.shard)
    assert isinstance(world.pages.take(page, "a run", now(world) * 1000, 14_000), PageLease)
    current = world.timers.read(timer.timer_id)
    business = world.business_cache.one(timer.biz_type)
    world.deliver.deliver_entries.check.take_back.missed(met, current, Reason.MISSED, business)
    left = {task.home for task in occurrences(world, timer)}
    assert begun.home in left
    assert others[19].home not in left
    assert others[21].home not in left
