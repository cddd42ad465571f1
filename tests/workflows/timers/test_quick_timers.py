"""The costs of a timer of every second whose runs are not wanted: counted by requests."""

import json
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial

import pytest

from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers import planning
from duewheel.rules.timers.schedule import seconds_from
from duewheel.rules.timers.timer import Misfire, Timer
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address
from tests.support.bounds import quick_first
from tests.support.stories import End, Interruption, Story
from tests.support.timers import chain_of, fates, made, now, occurrences, patched
from tests.support.world import CALLER, World

DAYS = 3 * 86_400
AHEAD_MS = 4_000  # nearer pages are announced; if all were, a delivery would never end
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "AHEAD_MS", AHEAD_MS)


def planned(story: Story, every: int = 1, **rules: object) -> Timer:
    """A timer that is enabled, and planned as far ahead as it may be."""
    timer = made(story.world, every, **rules)
    plan(story.world, timer)
    return timer


def ahead(world: World, timer: Timer) -> list[Task]:
    """Its runs that have not fallen due yet."""
    tasks = occurrences(world, timer)
    return [task for task in tasks if task.is_live and task.home.second > now(world)]


def called(world: World, timer: Timer) -> list[int]:
    """The seconds of its runs that were delivered."""
    delivered = [t for t in occurrences(world, timer) if t.status is Status.DELIVERED]
    return [task.occurrence.second for task in delivered if task.occurrence]


def writes_of(world: World, begun: int, homes: Collection[Address]) -> int:
    """Of these tasks, since that call."""
    return sum(
        call.operation in WRITES and any(home.place in str(call.request) for home in homes)
        for call in world.recorder.calls[begun:]
    )


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


def change(world: World, timer: Timer) -> None:
    patched(world, timer, every_seconds=600)


@pytest.mark.parametrize("stop", quick_first([disable, delete, change], pytest.mark.exhaustive))
def test_each_planned_run_of_a_stopped_timer_is_cancelled_by_one_write_when_it_falls_due(
    world: World, stop: Callable[[World, Timer], None]
) -> None:
    story = Story(world)
    timer = planned(story)
    stopped = ahead(world, timer)
    assert len(stopped) == planning.PLANNED_MAX == 48
    stop(world, timer)
    begun = len(world.recorder.calls)
    story.pass_time(60)
    homes = {task.home for task in stopped}
    assert writes_of(world, begun, homes) == len(stopped)
    ended = [task for task in occurrences(world, timer) if task.home in homes]
    assert {task.status for task in ended} == {Status.CANCELLED}
    assert world.receiver.received == []
    chain = world.tasks.get(timer.chain)  # type: ignore[arg-type]
    assert chain is not None
    assert chain.status is Status.CANCELLED
    if stop is not change:
        story.settle_all()
        story.check()


@pytest.mark.exhaustive
@pytest.mark.parametrize("every", [1, 60, 600])
def test_no_more_than_forty_eight_runs_or_two_hours_of_them_are_ahead_at_any_time(
    world: World, every: int
) -> None:
    story = Story(world)
    timer = planned(story, every)
    most = min(planning.PLANNED_MAX, planning.PLANNED_SECONDS // every)
    for _ in range(20):
        story.pass_time(max(5, 3 * every))
        assert len(ahead(world, timer)) * planning.PLANNED_MAX // most >= planning.LEFT_MIN - 1
        assert len(ahead(world, timer)) <= most
    due = [task for task in occurrences(world, timer) if task.home.second <= now(world)]
    assert called(world, timer) == [task.home.second for task in due]


@pytest.mark.parametrize(
    "rules", quick_first([{"max_runs": 30}, {"every_seconds": 7}], pytest.mark.exhaustive)
)
def test_runs_that_a_changed_timer_still_contains_are_called_with_those_of_its_new_chain(
    world: World, rules: dict[str, object]
) -> None:
    story = Story(world)
    begins = now(world)
    timer = planned(story)
    after = patched(world, timer, **rules)
    story.pass_time(70)
    contained = seconds_from(after.rules.schedule, begins + 1, 100, now(world))
    assert called(world, timer) == contained[: after.rules.max_runs]
    assert fates(world, timer)["timer changed"] > 10


@pytest.mark.exhaustive
def test_a_timer_that_is_enabled_again_calls_each_second_once_and_continues_its_numbers(
    world: World,
) -> None:
    """Runs that were planned before keep theirs."""
    story = Story(world)
    begins = now(world)
    timer = planned(story)
    story.pass_time(10)
    disable(world, timer)
    story.pass_time(20)
    world.change_timer.enable(timer.timer_id, by=CALLER)
    enabled = now(world) + 1  # the run of this second may have been decided already
    story.pass_time(32)
    after = [second for second in called(world, timer) if second > enabled]
    assert after == list(range(enabled + 1, enabled + 1 + len(after)))
    assert len(after) >= 30
    delivered = [t for t in occurrences(world, timer) if t.status is Status.DELIVERED]
    numbers = {t.occurrence.second - begins: t.occurrence.number for t in delivered if t.occurrence}
    assert all(number == second for second, number in numbers.items() if second <= 48)
    off = enabled - begins - 10  # seconds in which it was disabled
    assert all(abs(second - number - off) <= 2 for second, number in numbers.items() if second > 48)
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
    world: World, times: int
) -> None:
    """It continues with what it has read before, and writes runs for those seconds."""
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
def test_a_late_run_that_a_planner_wrote_before_it_died_is_counted_once(world: World) -> None:
    """The other planner died before its chain moved on; the next one runs when all of them are
    late."""
    story = Story(world)
    runs = 80
    timer = made(world, 1, misfire=Misfire.LATEST, grace_seconds=5, max_runs=runs)
    story.interrupted(partial(plan, world, timer), Interruption(30, End.DEATH))
    assert 10 < len(occurrences(world, timer)) < runs - planning.MISFIRES_WRITTEN
    story.idle(200)
    plan(world, timer)
    story.settle_all()
    counted = world.counters.read(timer.timer_id)
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
    counters = world.counters.read(timer.timer_id)
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
        counted = world.counters.read(timer.timer_id)["missed"]
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
    "misfire", quick_first([Misfire.SKIP, Misfire.LATEST], pytest.mark.exhaustive)
)
def test_runs_that_an_outage_missed_have_each_been_counted_once(
    world: World, misfire: Misfire
) -> None:
    """Those that were planned are cancelled and told one by one, and most others only counted."""
    story = Story(world)
    told = OnOutcome((Told.MISSED,), HttpCallback("https://receiver.example/told"))
    timer = planned(story, misfire=misfire, grace_seconds=5, max_runs=240, on_outcome=told)
    story.idle(400)
    story.settle_all()
    listed = fates(world, timer)
    cancelled = listed["missed"] + listed["superseded"]
    counted = world.counters.read(timer.timer_id)
    assert counted["missed"] + counted["superseded"] == 240 - listed["delivered"]
    assert cancelled <= planning.PLANNED_MAX + planning.MISFIRES_WRITTEN
    notices = [json.loads(item["payload"]["S"]) for item in world.items() if "notice_of" in item]
    counts = [notice["runs"]["count"] if "runs" in notice else 1 for notice in notices]
    assert sum(counts) == 240 - listed["delivered"]
    story.check()
