"""The audit finds nothing in a healthy wheel at any moment, and finds each kind of damage."""

import pytest
from msgspec.structs import replace

from duewheel.rules.sweep.audit import AuditRequest, Wrong
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel import timing
from duewheel.workflows.sweep import audit as workflow
from tests.support.between_requests import Looks
from tests.support.bounds import quick_first
from tests.support.damage import delete, edit, key_of
from tests.support.each_damage import (
    DAMAGE,
    DAMAGE_WHILE_PARKED,
    LADDER,
    audited,
    drop_entry,
    parked,
    retried,
    words,
)
from tests.support.receiver import BUSY, GONE
from tests.support.recorder import Call
from tests.support.world import World


@pytest.mark.parametrize("kind", DAMAGE_WHILE_PARKED)
def test_each_kind_of_damage_to_a_parked_task_is_found_and_nothing_else(
    world: World, kind: str
) -> None:
    task = parked(world)
    assert audited(world) == []
    damage, expected = DAMAGE_WHILE_PARKED[kind]
    damage(world, task)
    assert words(audited(world)) == expected


@pytest.mark.parametrize("kind", quick_first(DAMAGE, pytest.mark.exhaustive, 6))
def test_each_kind_of_damage_is_found_and_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The time pointer stays near the time: so the sweep pointer can be ahead of it, and not of the
    task's entry."""
    monkeypatch.setattr(timing, "AHEAD_MS", 0)
    task = retried(world)
    healthy = world.created(in_ms=600_000)
    assert audited(world) == []
    damage, expected = DAMAGE[kind]
    damage(world, task)

    findings = audited(world)
    assert words(findings) == expected
    assert healthy.task_id not in {finding.task_id for finding in findings}


def test_each_word_of_a_finding_is_produced_by_some_damage() -> None:
    every = (DAMAGE | DAMAGE_WHILE_PARKED).values()
    assert set().union(*(expected for _, expected in every)) == set(Wrong)


def test_an_entry_whose_home_was_kept_for_its_time_and_then_deleted_is_consistent(
    world: World,
) -> None:
    """For example, the entry of a cancelled task that had been brought forward."""
    task = world.created(in_ms=40 * 86_400_000)
    entry = world.entry_writer.put(task, world.clock.now_ms() + 39 * 86_400_000)
    delete(world, key_of(world, task))
    request = AuditRequest(entry.second, entry.second)
    assert words(world.audit(request).findings) == {"home-gone"}
    world.clock.advance_ms(world.settings.retention_seconds * 1000)
    assert world.audit(request).findings == []


@pytest.mark.exhaustive
def test_the_audit_finds_nothing_after_any_request_in_the_life_of_a_task(world: World) -> None:
    """The audit runs after each request of retries, a death and its redrive, a change, a cancel and
    the sweep."""
    looks = Looks(world, audited)
    task = world.created_by_key(world.new(20_000, retry=LADDER, key="order-17")).task
    answers = iter([BUSY, GONE])
    world.receiver.answer = lambda received: next(answers, replace(BUSY, verdict=GONE.verdict))
    world.dispatch_until(task.home.second)
    world.drain()
    world.dispatch_until(world.read(task).entry.second)
    world.drain()
    assert world.read(task).status is Status.DEAD
    world.redrive(task.task_id)
    world.drain()
    moved = world.created(in_ms=900_000)
    world.change.run(moved.task_id)
    other = world.created(in_ms=60_000)
    world.cancel(other.task_id)
    world.sweep_past(other.home.second)
    assert looks.number > 30


@pytest.mark.exhaustive
def test_the_audit_finds_nothing_after_any_request_of_a_pause(world: World) -> None:
    task = world.created_by_key(world.new(20_000, retry=LADDER, key="order-17")).task
    looks = Looks(world, audited)
    world.configured("orders", paused=True)
    world.dispatch_until(task.home.second)
    world.drain()
    assert world.read(task).parked
    world.clock.advance_ms(1_000)
    world.configured("orders", paused=None)
    world.drain()
    assert not world.read(task).parked
    world.recorder.after = None
    assert looks.number > 10


def test_a_task_that_changes_during_the_audit_is_read_again(world: World) -> None:
    task = retried(world)
    changed = []

    def name_another_entry(call: Call) -> None:
        """Between the read of the home and that of its entry, the task names another entry, and the
        first is swept."""
        if call.operation == "BatchGetItem" and not changed:
            changed.append(task)
            fresh = world.entry_writer.put(task, world.clock.now_ms() + 60_000)
            (state,) = world.tasks.home_states([task.home])[0].values()
            assert world.tasks.name_entry(state, fresh)
            drop_entry(world, task)

    world.recorder.before = name_another_entry
    assert world.audit(AuditRequest(task.home.second, task.home.second)).findings == []
    assert changed


def test_a_range_is_walked_in_calls_of_bounded_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "ITEMS_AT_ONCE", 3)
    monkeypatch.setattr(workflow, "ITEMS_MAX", 6)
    tasks = [world.created(in_ms=100_000) for _ in range(20)]
    for task in tasks:
        edit(world, key_of(world, task), expires_at={"N": "1900000000"})
    second = tasks[0].home.second
    request, found, calls = AuditRequest(second - 30, second + 30), [], 0
    while True:
        answer = world.audit(request)
        found += answer.findings
        calls += 1
        assert answer.items < 6 + 3
        if answer.cursor is None:
            break
        assert answer.audited_until_second <= second + 31
        request = replace(request, cursor=answer.cursor)
    assert sorted(f.task_id or "" for f in found) == sorted(t.task_id for t in tasks)
    assert calls > 2
    assert answer.audited_until_second == second + 31


def test_tasks_that_name_the_same_entry_and_key_are_checked_separately(world: World) -> None:
    task = retried(world)
    other = world.created(in_ms=task.home.instant_ms + 600_000 - world.clock.now_ms())
    twin = world.created(in_ms=task.home.instant_ms + 600_000 - world.clock.now_ms())
    for one in (other, twin):
        edit(world, key_of(world, one), entry={"S": task.entry.name}, key={"S": "order-17"})
    found = world.audit(AuditRequest(other.home.second, other.home.second)).findings
    wrong = ("entry-foreign", "key-foreign")
    assert {(f.task_id, f.wrong.value) for f in found} == {
        (one.task_id, word) for one in (other, twin) for word in wrong
    }


def test_the_audit_only_reads(world: World) -> None:
    retried(world)
    world.recorder.clear()
    audited(world)
    assert set(world.recorder.operations()) <= {"Query", "GetItem", "BatchGetItem"}


def test_the_homes_of_entries_in_the_range_are_checked_too(world: World) -> None:
    task = retried(world)
    edit(world, key_of(world, task), expires_at={"N": "1900000000"})
    findings = world.audit(AuditRequest(task.entry.second, task.entry.second)).findings
    assert [finding.task_id for finding in findings] == [task.task_id]
