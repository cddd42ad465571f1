"""Who moves the time pointer, told as timelines of several schedulers."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from duewheel.rules.wheel import leader_election
from duewheel.rules.wheel.leader_election import LEASE_MS, WATCH_SECONDS_AT_HANDOVER, Pointer, Step
from duewheel.stores.wheel.pointers import PointerStore
from duewheel.workflows.wheel.run_leader import FAILED_TICKS_MAX
from tests.support.bounds import quick_first
from tests.support.recorder import Call
from tests.support.world import World, time_for

STEPS_OF_A_TICK = [
    (operation, moment)
    for operation in ("Query", "SendMessageBatch", "UpdateItem")
    for moment in ("before", "after")
]


def leading(world: World, me: str) -> Pointer:
    mine = world.pointers.claim(world.pointer(), me, world.clock.now_ms())
    assert mine is not None
    return mine


def test_of_two_schedulers_that_see_the_lease_free_one_gets_it(world: World) -> None:
    seen = world.pointer()
    first = world.pointers.claim(seen, "first", world.clock.now_ms())
    second = world.pointers.claim(seen, "second", world.clock.now_ms())

    assert first is not None
    assert first.epoch == 1
    assert second is None


def test_a_deposed_leader_cannot_move_the_pointer(world: World) -> None:
    old = leading(world, "old")
    world.clock.advance_ms(LEASE_MS)
    new = leading(world, "new")
    assert world.pointers.advance(new, new.position + 5, world.clock.now_ms()) is not None

    assert world.pointers.advance(old, old.position + 100, world.clock.now_ms()) is None
    assert world.pointers.release(old, old.position + 100, world.clock.now_ms()) is False
    assert world.pointer().position == new.position + 5
    assert world.pointer().owner == "new"


def test_a_retried_pointer_write_that_was_carried_out_counts_as_done(world: World) -> None:
    mine = leading(world, "me")
    once = world.pointers.advance(mine, mine.position + 5, world.clock.now_ms())
    again = world.pointers.advance(mine, mine.position + 5, world.clock.now_ms())

    assert once is not None
    assert again == once


@pytest.mark.parametrize(
    ("operation", "moment"), quick_first(STEPS_OF_A_TICK, pytest.mark.exhaustive, 2)
)
def test_nothing_is_skipped_or_delivered_twice_when_the_leader_dies_at_any_step(
    world: World, operation: str, moment: str
) -> None:
    tasks = [world.created(in_ms=200_000 + n * 1_100) for n in range(7)]
    world.clock.advance_ms(197_000)

    def is_step(call: Call) -> bool:
        return call.operation == operation and "slot" not in call.request.get("Key", {})

    leads = partial(world.lead.run, "leader", lambda: 1_000_000)
    assert world.dies(leads, 2 if operation == "UpdateItem" else 3, moment, is_step)

    world.clock.advance_ms(LEASE_MS)
    world.come_up(tasks[-1])

    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


@pytest.mark.parametrize(
    ("operation", "moment"), quick_first(STEPS_OF_A_TICK, pytest.mark.exhaustive, 2)
)
def test_a_leader_deposed_at_any_step_neither_skips_nor_turns_the_pointer_back(
    world: World, operation: str, moment: str
) -> None:
    """It slept through its lease; another led meanwhile, and then it goes on."""
    tasks = [world.created(in_ms=200_000 + n * 1_100) for n in range(7)]
    world.clock.advance_ms(197_000)
    usurped: list[Pointer] = []

    def another_leads() -> None:
        world.clock.advance_ms(LEASE_MS)
        world.lead_once("usurper")
        usurped.append(world.pointer())

    at_step(world, operation, moment, another_leads)
    world.lead.run("leader", time_for(40))
    assert usurped
    assert world.pointer().position >= usurped[0].position

    world.come_up(tasks[-1])
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def at_step(world: World, operation: str, moment: str, happens: Callable[[], None]) -> None:
    """Let something happen around the third such call of a leader (its second write: the
    first one is the claim)."""
    seen: list[str] = []

    def hook(call: Call) -> None:
        if call.operation == operation and "slot" not in call.request.get("Key", {}):
            seen.append(call.operation)
            if len(seen) == (2 if operation == "UpdateItem" else 3):
                setattr(world.recorder, moment, None)
                happens()

    setattr(world.recorder, moment, hook)


def test_a_deposed_leader_stops_at_its_next_write(world: World) -> None:
    deposed_at: list[int] = []

    def depose(call: Call) -> None:
        if call.operation == "Query" and not deposed_at:
            deposed_at.append(world.clock.now_ms())
            world.clock.advance_ms(LEASE_MS)
            world.recorder.before = None
            leading(world, "usurper")

    world.recorder.before = depose
    world.lead.run("leader", lambda: 1_000_000)

    assert world.pointer().owner == "usurper"
    assert (
        world.clock.now_ms() - deposed_at[0]
        <= LEASE_MS + 2 * leader_election.POINTER_WRITE_EVERY_MS
    )


def test_a_candidate_makes_the_leader_step_down_and_the_standby_leads(world: World) -> None:
    """10:00 leader, 10:01 standby, 10:02 candidate."""
    leader = leading(world, "leader")
    wait_once(world, "standby")
    assert world.pointer().standby == "standby"
    wait_once(world, "candidate")
    assert world.pointer().candidate == "candidate"

    renewed = world.pointers.advance(leader, leader.position, world.clock.now_ms())
    assert renewed is not None
    assert renewed.candidate == "candidate"
    world.pointers.release(renewed, renewed.position, world.clock.now_ms())

    freed = world.pointer()
    now_ms = world.clock.now_ms()
    assert leader_election.next_step(freed, "candidate", now_ms) is leader_election.Step.WAIT
    assert leader_election.next_step(freed, "standby", now_ms) is leader_election.Step.CLAIM
    claimed = leading(world, "standby")
    assert (claimed.epoch, claimed.standby, claimed.candidate) == (2, "candidate", None)


def test_a_leader_steps_down_after_the_tick_in_which_it_reads_a_candidate(world: World) -> None:
    def candidates_arrive() -> None:
        wait_once(world, "standby")
        wait_once(world, "candidate")

    world.recorder.once("Query", candidates_arrive)
    world.lead.run("leader", lambda: 1_000_000)

    freed = world.pointer()
    assert freed.owner is None
    assert (freed.standby, freed.candidate) == ("standby", "candidate")


def test_when_the_standby_is_dead_too_the_candidate_leads_after_a_short_grace(world: World) -> None:
    leader = leading(world, "leader")
    wait_once(world, "dead standby")
    wait_once(world, "candidate")
    current = world.pointers.advance(leader, leader.position, world.clock.now_ms())
    assert current is not None
    world.pointers.release(current, current.position, world.clock.now_ms())

    world.clock.advance_ms(leader_election.STANDBY_GRACE_MS)
    assert (
        leader_election.next_step(world.pointer(), "candidate", world.clock.now_ms())
        is leader_election.Step.CLAIM
    )


def test_a_standby_replaces_a_leader_that_died_within_the_lease_and_a_look(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.clock.advance_ms(55_000)
    leading(world, "dead leader")
    died_ms = world.clock.now_ms()
    dispatched_ms: list[int] = []
    world.recorder.after = note_time_of(world, "SendMessageBatch", dispatched_ms)

    left = iter([1_000_000] * 30)
    world.lead.run("standby", lambda: next(left, 0))

    assert world.pointer().position >= task.due_ms // 1000
    assert dispatched_ms[0] <= died_ms + LEASE_MS + leader_election.WATCH_SECONDS * 1000


def test_a_waiting_scheduler_looks_more_often_once_a_handover_is_near(world: World) -> None:
    leading(world, "leader")
    wait_once(world, "standby")
    calm = leader_election.watch_seconds(world.pointer())
    wait_once(world, "candidate")
    assert leader_election.watch_seconds(world.pointer()) < calm


def test_a_leader_lives_through_a_few_ticks_that_fail(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.clock.advance_ms(59_000)
    failures = iter(range(FAILED_TICKS_MAX - 1))

    def fail(call: Call) -> None:
        if call.operation == "Query" and next(failures, None) is not None:
            raise ConnectionError

    world.recorder.before = fail
    world.lead.run("leader", time_for(20))

    assert next(failures, None) is None
    assert world.pointer().position >= task.due_ms // 1000
    world.drain()
    assert world.receiver.task_ids == [task.task_id]


def test_a_leader_that_keeps_failing_frees_the_lease_for_the_next(world: World) -> None:
    def fail(call: Call) -> None:
        if call.operation == "Query":
            raise ConnectionError

    world.recorder.before = fail
    with pytest.raises(ConnectionError):
        world.lead.run("leader", lambda: 1_000_000)

    assert world.pointer().owner is None


def wait_once(world: World, me: str) -> None:
    seen = world.pointer()
    step = leader_election.next_step(seen, me, world.clock.now_ms())
    world.pointers.register(seen, me, step)


def note_time_of(world: World, operation: str, times: list[int]) -> Callable[[Call], Any]:
    def note(call: Call) -> None:
        if call.operation == operation:
            times.append(world.clock.now_ms())

    return note


@pytest.mark.parametrize("waits", [False, True])
def test_a_look_that_was_stale_is_not_repeated_at_once(world: World, waits: bool) -> None:
    """Whether it shows a lease that another has claimed since, or a place that is taken."""
    stale = world.pointer()
    if waits:
        claimed = world.pointers.claim(stale, "leader", world.clock.now_ms() + 600_000)
        assert claimed is not None
        stale = claimed
        assert world.pointers.register(stale, "standby", Step.REGISTER_AS_STANDBY)
    else:
        assert world.pointers.claim(stale, "leader", world.clock.now_ms()) is not None
    until_ms = world.clock.now_ms() + 30_000
    looks = 0

    def read(*_: Any, **__: Any) -> Pointer:
        nonlocal looks
        looks += 1
        assert looks < 1_000
        return stale

    with patch.object(PointerStore, "read", read):
        world.lead.run("another", lambda: until_ms - world.clock.now_ms())
    assert looks <= 20_000 / 1000 / WATCH_SECONDS_AT_HANDOVER + 1
