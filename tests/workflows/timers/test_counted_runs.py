"""The chain counts the runs that step records name, when they have ended."""

from collections import Counter
from contextlib import nullcontext
from functools import partial

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.tasks.lifecycle import REDRIVABLE_AFTER_MS
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers.outcome_counts import Counted, Folded
from duewheel.rules.timers.timer import Misfire, Timer
from duewheel.stores import registry_keys
from duewheel.wiring import notifier
from duewheel.workflows.timers import count_outcomes
from tests.support.receiver import BUSY, GONE, OK
from tests.support.stories import End, Interruption, Story
from tests.support.timers import chain_of, fates, made, now, occurrences
from tests.support.world import CALLER, LAMBDA_MS, World

RUNS = 5


@pytest.fixture
def run_index() -> bool:
    return False


def ended(world: World, timer: Timer) -> dict[str, int]:
    """The counters that are not zero."""
    counts = world.count_outcomes.shown(timer.timer_id)
    return {name: count for name, count in counts.items() if count}


def folded(world: World, timer: Timer) -> dict[str, int]:
    """Without the runs that no chain has counted yet."""
    counts = world.counters.read(timer.timer_id).counts
    return {name: count for name, count in counts.items() if count}


def fold(world: World, timer: Timer) -> bool:
    until_ms = world.clock.now_ms() + LAMBDA_MS
    return world.count_outcomes.fold(timer.timer_id, now(world), until_ms)


def first_chain(world: World, timer: Timer) -> Status:
    assert timer.chain is not None
    chain = world.tasks.get(timer.chain)
    assert chain is not None
    return chain.status


def test_runs_are_shown_at_once_and_folded_when_they_have_ended(world: World) -> None:
    story = Story(world)
    timer = made(world, 30)
    story.deliver()
    world.recorder.clear()
    story.pass_time(30 * RUNS)
    pages = [
        call.request["Key"]
        for call in world.recorder.calls
        if call.operation == "UpdateItem" and "record" in call.request["Key"]
    ]
    assert registry_keys.timer_counters(timer.timer_id) not in pages, "no page counts"
    assert ended(world, timer) == {"fired": RUNS, "delivered": RUNS}
    assert folded(world, timer) == {}
    story.pass_time(62)
    due = len([task for task in occurrences(world, timer) if task.status is Status.DELIVERED])
    assert fold(world, timer) is True, "there are more"
    assert 0 < folded(world, timer)["fired"] < due
    assert ended(world, timer) == {"fired": due, "delivered": due}
    before = world.counters.read(timer.timer_id)
    fold(world, timer)
    assert world.counters.read(timer.timer_id).counts == before.counts


def test_the_chain_folds_at_each_planning_and_for_the_last_time_when_the_timer_has_ended(
    world: World,
) -> None:
    story = Story(world)
    timer = made(world, 2, max_runs=RUNS)
    story.pass_time(2 * RUNS + 3)
    assert world.timers.read(timer.timer_id).ended  # type: ignore[union-attr]
    assert first_chain(world, timer) is Status.PENDING
    assert folded(world, timer) == {}
    story.settle_all()
    assert folded(world, timer) == {"fired": RUNS, "delivered": RUNS} == ended(world, timer)
    assert first_chain(world, timer) is Status.CANCELLED


def test_the_chain_counts_more_runs_of_one_second_than_it_reads_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tolerance gathers them there."""
    monkeypatch.setattr(count_outcomes, "READ_AT_ONCE", 8)
    story = Story(world)
    timer = made(world, max_runs=60, tolerance_seconds=30)
    story.pass_time(100)
    assert max(Counter(task.due_ms for task in occurrences(world, timer)).values()) == 30
    story.settle_all()
    assert folded(world, timer) == {"fired": 60, "delivered": 60}
    assert first_chain(world, timer) is Status.CANCELLED


def test_the_chain_of_a_disabled_timer_counts_its_last_runs_and_ends(world: World) -> None:
    story = Story(world)
    timer = made(world, 120)
    story.pass_time(245)
    world.change_timer.disable(timer.timer_id, by=CALLER)
    story.settle_all()
    assert fates(world, timer)["timer disabled"] > 10, "few are left to be cancelled when due"
    assert folded(world, timer) == {"fired": 2, "delivered": 2}
    assert first_chain(world, timer) is Status.CANCELLED


def test_the_chain_of_a_deleted_timer_ends_at_once(world: World) -> None:
    story = Story(world)
    timer = made(world, 120)
    story.pass_time(245)
    world.change_timer.delete(timer.timer_id, by=CALLER)
    assert first_chain(world, timer) is Status.CANCELLED
    story.settle_all()
    assert folded(world, timer) == {}


def test_the_chain_of_a_timer_that_is_enabled_again_counts_the_runs_of_the_one_before(
    world: World,
) -> None:
    story = Story(world)
    timer = made(world, 30, max_runs=8)
    story.pass_time(125)
    world.change_timer.disable(timer.timer_id, by=CALLER)
    story.pass_time(10)
    world.change_timer.enable(timer.timer_id, by=CALLER)
    story.settle_all()
    assert fates(world, timer)["delivered"] == 8
    assert folded(world, timer) == {"fired": 8, "delivered": 8}


def test_a_run_that_is_retried_is_left_open_and_counted_when_it_ends(world: World) -> None:
    story = Story(world)
    retry = RetryPolicy(delays_seconds=(600.0,))
    timer = made(world, 2, max_runs=2, retry=retry)
    world.receiver.answer = lambda received: (
        BUSY if received.headers["duewheel-attempt"] == "1" else OK
    )
    story.pass_time(200)
    assert ended(world, timer) == {"fired": 2}
    fold(world, timer)
    counters = world.counters.read(timer.timer_id)
    assert len(counters.folded.open_homes) == 2
    assert folded(world, timer) == {}
    assert first_chain(world, timer) is Status.PENDING
    story.pass_time(2_000)
    assert folded(world, timer) == {"fired": 2, "delivered": 2}
    assert first_chain(world, timer) is Status.CANCELLED


@pytest.mark.parametrize("is_folded_first", [True, False])
def test_a_redriven_run_counts_as_dead_and_by_its_new_end(
    world: World, is_folded_first: bool
) -> None:
    story = Story(world)
    timer = made(world, 2, max_runs=2)
    world.receiver.answer = lambda received: GONE
    story.pass_time(6)
    assert ended(world, timer) == {"fired": 2, "dead": 2}
    world.clock.advance_ms(100_000)
    if is_folded_first:
        fold(world, timer)
        assert folded(world, timer) == {"fired": 2, "dead": 2}
    world.receiver.answer = lambda received: OK
    world.redrive(occurrences(world, timer)[0].task_id)
    story.pass_time(5)
    assert fates(world, timer)["delivered"] == 1
    assert ended(world, timer) == {"fired": 2, "dead": 2, "delivered": 1}
    story.settle_all()
    assert folded(world, timer) == {"fired": 2, "dead": 2, "delivered": 1}


@pytest.mark.parametrize("is_folded_first", [True, False])
def test_a_run_that_is_delivered_and_redriven_counts_once(
    world: World, is_folded_first: bool
) -> None:
    story = Story(world)
    timer = made(world, 2, max_runs=2)
    story.pass_time(6)
    world.clock.advance_ms(REDRIVABLE_AFTER_MS)
    if is_folded_first:
        fold(world, timer)
        assert folded(world, timer) == {"fired": 2, "delivered": 2}
    for answer, expected in ((OK, {}), (GONE, {"dead": 1})):
        world.receiver.answer = lambda received, answer=answer: answer
        world.redrive(occurrences(world, timer)[0].task_id)
        story.pass_time(5)
        assert ended(world, timer) == {"fired": 2, "delivered": 2, **expected}
        world.clock.advance_ms(REDRIVABLE_AFTER_MS)
    story.settle_all()
    assert folded(world, timer) == {"fired": 2, "delivered": 2, "dead": 1}
    assert len(world.receiver.received) == 4


def test_runs_by_hand_are_counted_by_their_pages(world: World) -> None:
    timer = made(world, 60, enabled=False)
    world.run_timer(timer.timer_id)
    world.drain()
    assert folded(world, timer) == {"fired": 1, "delivered": 1}


def test_runs_of_a_business_that_keeps_them_for_a_day_are_in_the_index_and_counted_by_their_pages(
    world: World,
) -> None:
    """They might be deleted before the chain falls due, once a day."""
    story = Story(world)
    world.configured("orders", retention_days=1)
    timer = made(world, 2, max_runs=RUNS)
    story.pass_time(2 * RUNS + 2)
    indexed = {t.occurrence.indexed for t in occurrences(world, timer) if t.occurrence}
    assert indexed == {True}
    assert folded(world, timer) == {"fired": RUNS, "delivered": RUNS}
    assert first_chain(world, timer) is Status.CANCELLED


def test_late_runs_that_are_put_after_others_were_folded_are_counted(world: World) -> None:
    """No notifier works for an hour: what has not been planned yet is not folded."""
    story = Story(world)
    timer = made(world, 600, misfire=Misfire.ALL, max_runs=30)
    story.deliver()
    story.idle(3 * 3_600)
    assert chain_of(world, timer) is not None
    for _ in range(3):
        fold_as_chain(world, timer)
        story.deliver()
        story.pass_time(5)
    story.settle_all()
    assert fates(world, timer) == {"delivered": 30}
    assert folded(world, timer) == {"fired": 30, "delivered": 30}


def fold_as_chain(world: World, timer: Timer) -> None:
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    until_ms = world.clock.now_ms() + LAMBDA_MS
    world.count_outcomes.fold(timer.timer_id, chain.plan.planned_until_second, until_ms)


def test_a_death_or_another_chain_at_any_call_of_a_folding_counts_each_run_once(
    world: World,
) -> None:
    story = Story(world)
    timer = made(world, 10, max_runs=12)
    story.pass_time(125)
    world.clock.advance_ms(60_000)
    table = world.settings.registry_table
    key = registry_keys.timer_counters(timer.timer_id)
    happened = 0
    for number in range(1, 8):
        for by in (End.DEATH, partial(fold, world, timer)):
            for moment, is_first in (("before", True), ("after", False), ("before", False)):
                world.unrecorded.delete_item(TableName=table, Key=key)
                if not is_first:
                    none = world.counters.read(timer.timer_id)
                    world.counters.fold(timer.timer_id, none, Folded(1), {})
                interruption = Interruption(number, by, moment)
                happened += story.interrupted(partial(fold, world, timer), interruption)
                fold(world, timer)
                assert folded(world, timer) == {"fired": 12, "delivered": 12}
    assert happened >= 18


@pytest.mark.parametrize("code", ["ThrottlingException", "ServiceUnavailable"])
def test_a_chain_moves_on_although_its_runs_cannot_be_counted(world: World, code: str) -> None:
    story = Story(world)
    timer = made(world, 600)
    story.deliver()
    chain = chain_of(world, timer)
    assert chain is not None
    world.recorder.refuse("GetItem", code=code, of="counters")
    plan = chain.plan
    assert plan is not None
    world.clock.set_ms(chain.next_ms)
    deadline_ms = world.clock.now_ms() + LAMBDA_MS
    is_throttled = code == "ThrottlingException"
    with nullcontext() if is_throttled else pytest.raises(ClientError):
        notifier.plan_timers()([(chain, plan)], deadline_ms)
    after = chain_of(world, timer)
    assert after is not None
    assert after.plan is not None
    assert after.plan.planned_until_second > plan.planned_until_second


def test_a_damaged_mark_of_the_folding_is_begun_anew(world: World) -> None:
    timer = made(world, 600)
    key = registry_keys.timer_counters(timer.timer_id)
    world.counters.add(timer.timer_id, {Counted.FIRED: 3})
    for nonsense in ("?", "[1]", "[-1,[]]", '[1,["x"]]'):
        world.unrecorded.update_item(
            TableName=world.settings.registry_table,
            Key=key,
            UpdateExpression="SET folded = :nonsense",
            ExpressionAttributeValues={":nonsense": {"S": nonsense}},
        )
        counters = world.counters.read(timer.timer_id)
        assert counters.folded == Folded()
        assert world.counters.fold(timer.timer_id, counters, Folded(7), {Counted.FIRED: 2})
        after = world.counters.read(timer.timer_id)
        assert after.folded == Folded(7)
        assert not world.counters.fold(timer.timer_id, counters, Folded(9), {Counted.FIRED: 2})
    assert world.counters.read(timer.timer_id).counts["fired"] == 3 + 4 * 2


def test_a_chain_that_counts_the_runs_of_an_ended_timer_puts_none_of_them_again(
    world: World,
) -> None:
    """All were due before the first planning, which ended the timer."""
    story = Story(world)
    timer = made(world, 60, misfire=Misfire.ALL, max_runs=10)
    story.idle(3_600)
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    notifier.plan_timers()([(chain, chain.plan)], world.clock.now_ms() + LAMBDA_MS)
    assert len(occurrences(world, timer)) == 10
    assert first_chain(world, timer) is Status.PENDING
    world.recorder.clear()
    story.settle_all()
    puts = [call for call in world.recorder.calls if "occurrence" in call.request.get("Item", {})]
    transactions = world.recorder.operations().count("TransactWriteItems")
    assert (puts, transactions) == ([], 0)
    assert folded(world, timer) == {"fired": 10, "delivered": 10}
    assert first_chain(world, timer) is Status.CANCELLED
