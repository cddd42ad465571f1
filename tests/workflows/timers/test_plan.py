"""A timer plans itself through the wheel: which occurrences it writes, when, and despite which
interruptions."""

from collections.abc import Callable
from functools import partial

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.sweep.minute_statistics import StatsRequest, Tally
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers import planning
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Misfire, Timer
from duewheel.rules.wheel.addresses import header_place
from tests.support.bounds import quick_first
from tests.support.damage import edit, key_of
from tests.support.recorder import Death
from tests.support.stories import End, Interruption, Story
from tests.support.timers import (
    called_seconds,
    chain_of,
    damage,
    fates,
    made,
    now,
    occurrences,
    patched,
    plan,
)
from tests.support.world import CALLER, World

HOUR = 3_600
RUNS = 4
READS = {"Query", "GetItem", "BatchGetItem"}

Step = Callable[[Story, Timer], object]


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ("PLANNED_SECONDS", 40), ("PLANNED_MAX", 3):
        monkeypatch.setattr(planning, name, value)
    monkeypatch.setattr(planning, "LEFT_SECONDS_MIN", 10)
    monkeypatch.setattr(planning, "LEFT_MIN", 1)


def numbers(world: World, timer: Timer) -> list[int]:
    return [task.occurrence.number for task in occurrences(world, timer) if task.occurrence]


def not_yet_planned(story: Story, **rules: object) -> Timer:
    """A timer that is enabled and not planned yet; its first seconds are too near to be read with
    their slices."""
    return made(story.world, 2, **{"max_runs": RUNS, **rules})


def check_each_was_called_once(story: Story, timer: Timer, again: int = 0) -> None:
    """`again`: how many calls may be repeated because AWS failed before they were recorded."""
    story.settle_all()
    story.check()
    assert fates(story.world, timer) == {"delivered": RUNS}
    assert numbers(story.world, timer) == list(range(1, RUNS + 1))
    assert RUNS <= len(story.world.receiver.received) <= RUNS + again


def test_enabling_writes_no_occurrence_and_the_first_ones_are_called_in_time(world: World) -> None:
    story, first = Story(world), now(world) + 1
    timer = made(world, max_runs=5)
    assert occurrences(world, timer) == []
    story.pass_time(8)
    assert called_seconds(world) == list(range(first, first + 5))
    assert [received.body for received in world.receiver.received] == [
        b'{"n":"%d"}' % n for n in (1, 2, 3, 4, 5)
    ]
    assert {task.lateness_ms for task in occurrences(world, timer)} == {0}


def test_occurrences_of_the_next_minutes_are_in_their_slices_and_need_no_scheduler(
    world: World,
) -> None:
    """Their seconds may be dispatched already, so their planner announces the pages."""
    timer = made(world, 30, max_runs=5)
    world.drain()
    tasks = occurrences(world, timer)
    assert [task.names_its_home and not task.home.direct for task in tasks] == [True] * 5
    for task in tasks:
        world.clock.set_ms(task.due_ms - world.settings.lead_ms)
        world.drain()
    called = [(received.task_id, received.at_ms) for received in world.receiver.received]
    assert called == [(task.task_id, task.due_ms) for task in tasks]


@pytest.mark.exhaustive
def test_a_timer_without_end_is_planned_half_an_hour_ahead_for_as_long_as_it_is_enabled(
    world: World,
) -> None:
    story, begins = Story(world), now(world)
    timer = made(world, 1_200)
    for _ in range(4):
        story.pass_time(HOUR)
        ahead = occurrences(world, timer)[-1].due_ms // 1000 - now(world)
        assert ahead >= HOUR // 2 - 1_200
    assert called_seconds(world) == [begins + 1_200 * n for n in range(1, 13)]
    assert numbers(world, timer) == list(range(1, len(occurrences(world, timer)) + 1))
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    assert chain.version <= 11, "twice an hour: before its occurrences are written, and after"
    assert chain.plan.numbered == len(occurrences(world, timer))


def test_a_timer_with_max_runs_ends_when_its_last_run_has_fallen_due(world: World) -> None:
    story = Story(world)
    timer = not_yet_planned(story)
    story.pass_time(2 * RUNS - 2)
    assert world.timers.read(timer.timer_id).ended is False  # type: ignore[union-attr]
    check_each_was_called_once(story, timer)
    current = world.timers.read(timer.timer_id)
    assert current is not None
    assert current.ended
    assert current.enabled
    assert current.numbered == RUNS
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.status is Status.CANCELLED
    assert chain.expires_at is not None


def test_a_chain_that_is_planned_a_lead_before_the_end_of_its_timer_ends_in_one_step(
    world: World,
) -> None:
    """That is when the slice of its entry opens. It gets no further entry."""
    story = Story(world)
    timer = not_yet_planned(story)
    plan(story.world, timer)
    chain = chain_of(world, timer)
    assert chain is not None
    assert occurrences(world, timer)[-1].due_ms == chain.next_ms - 1_000
    entries = world.entries_elsewhere()
    world.clock.set_ms(chain.next_ms - world.settings.lead_ms)
    plan(story.world, timer)
    ended = chain_of(world, timer)
    assert ended is not None
    assert (ended.status, ended.version) == (Status.CANCELLED, chain.version + 1)
    assert world.entries_elsewhere() == entries
    current = world.timers.read(timer.timer_id)
    assert current is not None
    assert current.ended


@pytest.mark.exhaustive
@pytest.mark.usefixtures("short_steps")
def test_the_audit_finds_nothing_while_a_timer_runs_and_each_run_is_counted(world: World) -> None:
    story = Story(world)
    first = now(world)
    timer = not_yet_planned(story)
    for _ in range(4):
        story.pass_time(3)
        found = world.audit(AuditRequest(first - 10, now(world) + 60))
        assert found.findings == []
    check_each_was_called_once(story, timer)
    minutes = StatsRequest(first // 60, now(world) // 60)
    counted = world.read_statistics("orders", minutes).total
    assert (counted.created, counted.delivered, counted.pending) == (RUNS, RUNS, 0)
    assert world.audit(AuditRequest(first - 10, now(world) + 60)).findings == []


def die(_: Story, __: Timer) -> None:
    raise Death


def plan_as_another(story: Story, timer: Timer) -> None:
    plan(story.world, timer)


def disable_and_enable(story: Story, timer: Timer) -> None:
    story.world.change_timer.disable(timer.timer_id, by=CALLER)
    story.world.change_timer.enable(timer.timer_id, by=CALLER)


def change_the_payload(story: Story, timer: Timer) -> None:
    patched(story.world, timer, payload='"new"')


def change_the_runs_and_back(story: Story, timer: Timer) -> None:
    """Each change begins another chain."""
    patched(story.world, timer, max_runs=RUNS - 1)
    patched(story.world, timer, max_runs=RUNS)


def crowd_and(step: Step) -> Step:
    """Before the step, the seconds get more shards than the planner has read."""

    def crowded(story: Story, timer: Timer) -> object:
        begins = story.world.origin
        for second in range(begins, begins + 100):
            story.world.headers.raise_to(second, 8)
        return step(story, timer)

    return crowded


def check_all_is_planned(story: Story, timer: Timer, seconds: list[int]) -> None:
    """After the planning that the sweep would request, each occurrence exists once, and the audit
    finds nothing."""
    world = story.world
    for _ in range(3):  # at most three of them are ahead
        plan(story.world, timer)
        world.clock.set_ms(max(world.clock.now_ms(), (seconds[0] + 1) * 1000))
    tasks = occurrences(world, timer)
    assert [(t.occurrence.second, t.occurrence.number) for t in tasks if t.occurrence] == list(
        zip(seconds, range(1, RUNS + 1), strict=True)
    )
    assert {task.status for task in tasks} == {Status.PENDING}
    assert world.audit(AuditRequest(seconds[0] - 10, seconds[-1] + 10)).findings == []


@pytest.mark.usefixtures("short_steps")
@pytest.mark.parametrize(
    ("due", "between"),
    quick_first(
        [
            *(("soon", die), ("soon", plan_as_another), ("soon", disable_and_enable)),
            *(("soon", change_the_payload), ("soon", change_the_runs_and_back)),
            *(("before", die), ("before", plan_as_another)),
            *(("later", die), ("later", disable_and_enable)),
            *(("later", crowd_and(plan_as_another)), ("later", crowd_and(disable_and_enable))),
            ("soon", crowd_and(plan_as_another)),
        ],
        pytest.mark.exhaustive,
        quick=2,
    ),
)
def test_an_interruption_after_any_write_of_a_planning_neither_doubles_nor_loses_an_occurrence(
    world: World, due: str, between: Step
) -> None:
    """The occurrences are due within seconds, or were due while no notifier ran, or are due so far
    ahead that slices are read for them."""
    every = 8 if due == "later" else 2

    def begin() -> tuple[Story, Timer, list[int]]:
        story, begins = Story(world), now(world)
        timer = made(world, every, max_runs=RUNS)
        world.clock.advance_ms(60_000 if due == "before" else 0)
        world.entry_writer.placement()  # reads the time pointer, as each writer would do first
        return story, timer, [begins + every * n for n in range(1, RUNS + 1)]

    story, timer, _ = begin()
    before = len(world.recorder.calls)
    plan(story.world, timer)
    operations = world.recorder.operations()[before:]
    writes = [n for n, operation in enumerate(operations, 1) if operation not in READS]
    happened = 0
    for number in writes:
        story, timer, seconds = begin()
        by = Interruption(number, partial(between, story, timer), "after")
        happened += story.interrupted(partial(plan, story.world, timer), by)
        check_all_is_planned(story, timer, seconds)
    assert happened >= 5  # a message more when the next planning is near


@pytest.mark.usefixtures("short_steps")
@pytest.mark.parametrize("number", quick_first([8, 4], pytest.mark.exhaustive))
def test_occurrences_of_a_planner_that_died_are_called_once(world: World, number: int) -> None:
    story = Story(world)
    timer = not_yet_planned(story)
    assert story.interrupted(story.deliver, Interruption(number, End.DEATH, "after"))
    check_each_was_called_once(story, timer)


@pytest.mark.parametrize("ends", [Death, ClientError])
def test_occurrences_that_a_planner_wrote_before_it_ended_are_called_in_time(
    world: World, ends: type[BaseException]
) -> None:
    """The scheduler had dispatched their seconds as empty, so they need messages of their own."""
    world.lead_once()
    begun = now(world)
    made(world, 10, max_runs=9)
    refused = begun + 50
    if ends is Death:
        world.recorder.die("SendMessageBatch")
    else:
        world.recorder.refuse("PutItem", of=header_place(refused)[:-1], times=1)
    with pytest.raises(ends):
        world.drain()
    for second in range(begun + 1, begun + 100):
        world.clock.set_ms(max(world.clock.now_ms(), second * 1000))
        world.drain()

    expected = {begun + ahead for ahead in range(20, 90, 10)}
    assert expected - set(called_seconds(world)) == ({refused} if ends is ClientError else set())


@pytest.mark.usefixtures("short_steps")
def test_an_outage_of_aws_during_a_later_planning_loses_no_occurrence(world: World) -> None:
    story = Story(world)
    timer = made(world, 8, max_runs=RUNS)
    story.deliver()
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    assert chain.plan.numbered < RUNS
    world.dispatch_until(chain.entry.second)
    assert story.interrupted(story.deliver, Interruption(8, End.OUTAGE))
    check_each_was_called_once(story, timer, again=RUNS)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("short_steps")
@pytest.mark.parametrize("number", [2, 7])
def test_only_the_new_schedule_applies_after_a_change_during_a_planning(
    world: World, number: int
) -> None:
    story = Story(world)
    timer, begins = not_yet_planned(story), now(world)
    by = Interruption(number, lambda: patched(world, timer, every_seconds=3), "after")
    assert story.interrupted(story.deliver, by)
    story.settle_all()
    assert called_seconds(world) == [begins + 3 * n for n in range(1, RUNS + 1)]
    assert set(fates(world, timer)) <= {"delivered", "timer changed"}


@pytest.mark.parametrize(
    ("misfire", "expected"),
    quick_first(
        [
            (Misfire.LATEST, {"superseded": 2, "delivered": 3}),
            (Misfire.ALL, {"delivered": 5}),
            (Misfire.SKIP, {"missed": 3, "delivered": 2}),
        ],
        pytest.mark.exhaustive,
    ),
)
def test_the_misfire_policy_applies_after_an_outage_of_hours_and_each_run_is_counted(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    misfire: Misfire,
    expected: dict[str, int],
) -> None:
    """No notifier runs for more than three steps. Of the three runs that were due in that time, the
    first was in the wheel, and the others had not been planned. Hours have a hundred seconds."""
    hour = 100
    monkeypatch.setattr(planning, "PLANNED_SECONDS", 2 * hour)
    monkeypatch.setattr(planning, "LEFT_SECONDS_MIN", hour)
    story, begins = Story(world), now(world)
    timer = made(world, hour, misfire=misfire, grace_seconds=5, max_runs=5)
    story.deliver()
    assert len(occurrences(world, timer)) == 1
    story.idle(3 * hour + 15)
    story.settle_all()
    story.check()
    assert fates(world, timer) == expected
    assert numbers(world, timer) == [1, 2, 3, 4, 5]
    counters = world.counters.read(timer.timer_id)
    assert counters["fired"] == counters["delivered"] == expected["delivered"]
    ended = {name: counters[name] for name in ("superseded", "missed") if counters[name]}
    assert ended == {name: n for name, n in expected.items() if name != "delivered"}
    assert called_seconds(world)[-2:] == [begins + 4 * hour, begins + 5 * hour]
    minutes = StatsRequest(begins // 60, now(world) // 60)
    counted = world.read_statistics("orders", minutes).total
    # In a story, the sweep skips tasks that have settled at their homes: the two that were on time.
    assert counted.created == 3
    assert counted.cancelled == 5 - expected["delivered"]


def test_the_chain_of_a_deleted_timer_is_cancelled(world: World) -> None:
    story = Story(world)
    timer = made(world, 600)
    world.change_timer.delete(timer.timer_id, by=CALLER)
    story.settle_all()
    assert occurrences(world, timer) == []
    chain = world.tasks.get(timer.chain)  # type: ignore[arg-type]
    assert chain is not None
    assert chain.status is Status.CANCELLED


def test_a_chain_whose_timer_cannot_be_read_waits_until_it_can(world: World) -> None:
    story = Story(world)
    timer = made(world, 600, max_runs=2)
    damage(world, timer, enabled={"S": "nonsense"})
    story.deliver()
    story.pass_time(1_000)
    assert occurrences(world, timer) == []
    chain = world.tasks.get(timer.chain)  # type: ignore[arg-type]
    assert chain is not None
    assert chain.status is Status.PENDING
    assert chain.entry.second > now(world) - 60
    damage(world, timer, enabled={"BOOL": True})
    story.settle_all()
    assert fates(world, timer) == {"delivered": 2}


def test_a_damaged_chain_plans_no_occurrence(world: World) -> None:
    story = Story(world)
    timer = made(world, 600)
    chain = chain_of(world, timer)
    assert chain is not None
    edit(world, key_of(world, chain), plan={"S": "[1,2]"})
    story.deliver()
    assert occurrences(world, timer) == []


@pytest.mark.exhaustive
def test_chains_of_a_paused_business_continue_to_plan(world: World) -> None:
    story = Story(world)
    timer = made(world, 600, max_runs=2)
    story.pause()
    story.pass_time(700)
    assert [task.parked for task in occurrences(world, timer)] == [True, False]
    story.resume()
    story.settle_all()
    assert fates(world, timer) == {"delivered": 2}


def test_a_timer_ends_when_its_schedule_has_no_more_seconds(world: World) -> None:
    story = Story(world)
    begins = now(world)
    schedule = Schedule(every_seconds=60, anchor_second=begins, end_second=begins + 130)
    timer = made(world, schedule=schedule)
    story.settle_all()
    assert fates(world, timer) == {"delivered": 2}
    current = world.timers.read(timer.timer_id)
    assert current is not None
    assert current.ended


@pytest.mark.exhaustive
def test_chains_belong_to_no_business(world: World) -> None:
    story = Story(world)
    timer = made(world, 600)
    story.deliver()
    chain = chain_of(world, timer)
    assert chain is not None
    (item,) = [item for item in world.items() if "plan" in item]
    assert not {"biz_part", "dead_biz", "timer"} & set(item)
    minutes = StatsRequest(now(world) // 60 - 1, now(world) // 60)
    assert world.read_statistics("orders", minutes).total == Tally()
