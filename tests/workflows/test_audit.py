"""The audit is silent on a healthy wheel at any moment, and finds each kind of damage."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.addresses import holds_seconds, second_of
from duewheel.rules.audit import Finding, Wrong
from duewheel.rules.audit_request import AuditRequest
from duewheel.rules.task import RetryPolicy, Status, Task
from duewheel.stores import keys, parked_items, pointers
from duewheel.workflows import audit as workflow
from tests.support.damage import delete, edit, entry_key, key_of, move_pointer
from tests.support.receiver import BUSY, GONE
from tests.support.recorder import Call
from tests.support.world import World

LADDER = RetryPolicy(attempts_max=3, delays_seconds=(30.0, 90.0))


def audited(world: World) -> list[Finding]:
    """All that is found in the seconds in which anything stands."""
    seconds = {
        second_of(item["place"]["S"]) for item in world.items() if holds_seconds(item["slot"]["S"])
    }
    return [
        finding
        for second in sorted(seconds)
        for finding in world.audit(AuditRequest(second, second)).findings
    ]


def words(findings: list[Finding]) -> set[str]:
    return {finding.wrong.value for finding in findings}


def retried(world: World) -> Task:
    """A pending task whose named entry is elsewhere."""
    world.receiver.answer = lambda received: BUSY
    task = world.created_by_key(world.new(20_000, retry=LADDER, key="order-17")).task
    world.dispatch_until(task.home.second)
    world.drain()
    task = world.read(task)
    assert not task.names_its_home
    return task


def parked(world: World) -> Task:
    task = retried(world)
    world.configured("orders", paused=True)
    world.dispatch_until(task.entry.second)
    world.drain()
    task = world.read(task)
    assert task.parked
    return task


def forget_parking(world: World, _: Task) -> None:
    key = {"kind": {"S": "parking"}, "record": {"S": "orders"}}
    world.unrecorded.delete_item(TableName=world.settings.registry_table, Key=key)


def drop_entry(world: World, task: Task) -> None:
    delete(world, entry_key(world, task.entry))


def pass_over(world: World, task: Task) -> None:
    world.clock.set_ms(task.entry.second * 1000)
    move_pointer(world, pointers.TIME, task.entry.second)
    move_pointer(world, pointers.SWEEP, task.entry.second)


def other_home(world: World) -> dict[str, Any]:
    return {"S": world.created(in_ms=600_000).home.name}


DAMAGE: dict[str, tuple[Callable[[World, Task], object], set[str]]] = {
    "named entry deleted": (drop_entry, {"entry-missing"}),
    "named entry unreadable": (
        lambda w, t: edit(w, entry_key(w, t.entry), home={"S": "nowhere"}),
        {"entry-missing", "unreadable"},
    ),
    "named entry of another": (
        lambda w, t: edit(w, entry_key(w, t.entry), home=other_home(w)),
        {"entry-foreign"},
    ),
    "named entry expires": (
        lambda w, t: edit(w, entry_key(w, t.entry), expires_at={"N": "1900000000"}),
        {"entry-expires"},
    ),
    "named entry swept over": (pass_over, {"passed"}),
    "sweep ahead": (
        lambda w, t: move_pointer(w, pointers.SWEEP, w.pointer().position + 1),
        {"sweep-ahead"},
    ),
    "time ahead": (
        lambda w, t: move_pointer(w, pointers.TIME, w.clock.now_ms() // 1000 + 161),
        {"time-ahead"},
    ),
    "pending task expires": (
        lambda w, t: edit(w, key_of(w, t), expires_at={"N": "1900000000"}),
        {"pending-expires"},
    ),
    "settled task never expires": (
        lambda w, t: edit(w, key_of(w, t), status={"S": "delivered"}),
        {"never-expires"},
    ),
    "key deleted": (lambda w, t: delete(w, keys.key_of(t)), {"key-missing"}),
    "key unreadable": (
        lambda w, t: edit(w, keys.key_of(t), task={"N": "17"}),
        {"key-missing"},
    ),
    "key of another": (
        lambda w, t: edit(w, keys.key_of(t), task=other_home(w)),
        {"key-foreign"},
    ),
    "key expires": (
        lambda w, t: edit(w, keys.key_of(t), expires_at={"N": "1900000000"}),
        {"key-expires"},
    ),
    "home deleted": (lambda w, t: delete(w, key_of(w, t)), {"home-gone"}),
    "task in another partition of the list": (
        lambda w, t: edit(w, key_of(w, t), biz_part={"S": "invoices#1"}),
        {"misplaced"},
    ),
    "task before its creation": (
        lambda w, t: edit(w, key_of(w, t), created_ms={"N": str(t.home.instant_ms + 60_000)}),
        {"misplaced"},
    ),
    "task unreadable": (
        lambda w, t: edit(w, key_of(w, t), next_ms={"N": "1000000000000000000"}),
        {"unreadable"},
    ),
    "header unreadable": (
        lambda w, t: edit(
            w,
            {**key_of(w, t), "place": {"S": f"{t.home.second:011d}#"}},
            shards={"S": "many"},
        ),
        {"unreadable"},
    ),
    "lease unreadable": (
        lambda w, t: edit(
            w,
            {**key_of(w, t), "place": {"S": f"{t.home.second:011d}~0"}},
            until_ms={"S": "later"},
        ),
        {"unreadable"},
    ),
}


DAMAGE_WHILE_PARKED: dict[str, tuple[Callable[[World, Task], object], set[str]]] = {
    "parked item deleted": (
        lambda w, t: delete(w, parked_items.key_of(t)),
        {"parked-missing"},
    ),
    "parked item unreadable": (
        lambda w, t: edit(w, parked_items.key_of(t), task={"N": "17"}),
        {"parked-missing"},
    ),
    "parked item of another": (
        lambda w, t: edit(w, parked_items.key_of(t), task=other_home(w)),
        {"parked-foreign"},
    ),
    "parked item expires": (
        lambda w, t: edit(w, parked_items.key_of(t), expires_at={"N": "1900000000"}),
        {"parked-expires"},
    ),
    "record of parking deleted": (forget_parking, {"release-missing"}),
    "entry of a parked task deleted": (drop_entry, set()),
}


@pytest.mark.parametrize("kind", DAMAGE_WHILE_PARKED)
def test_each_kind_of_damage_to_a_parked_task_is_found_and_nothing_else(
    world: World, kind: str
) -> None:
    task = parked(world)
    assert audited(world) == []
    damage, expected = DAMAGE_WHILE_PARKED[kind]
    damage(world, task)
    assert words(audited(world)) == expected


@pytest.mark.parametrize("kind", DAMAGE)
def test_each_kind_of_damage_is_found_and_nothing_else(world: World, kind: str) -> None:
    task = retried(world)
    healthy = world.created(in_ms=600_000)
    assert audited(world) == []
    damage, expected = DAMAGE[kind]
    damage(world, task)

    findings = audited(world)
    assert words(findings) == expected
    assert healthy.task_id not in {finding.task_id for finding in findings}


def test_every_word_is_found_by_some_damage() -> None:
    every = (DAMAGE | DAMAGE_WHILE_PARKED).values()
    assert set().union(*(expected for _, expected in every)) == set(Wrong)


def test_an_entry_whose_home_was_kept_for_its_time_and_then_deleted_is_honest(world: World) -> None:
    """Of a cancelled task that had been brought forward, say."""
    task = world.created(in_ms=40 * 86_400_000)
    entry = world.reenter.put(task.home, world.clock.now_ms() + 39 * 86_400_000)
    delete(world, key_of(world, task))
    asked = AuditRequest(entry.second, entry.second)
    assert words(world.audit(asked).findings) == {"home-gone"}
    world.clock.advance_ms(world.settings.retention_seconds * 1000)
    assert world.audit(asked).findings == []


def test_nothing_is_found_between_any_two_requests_of_a_healthy_life(world: World) -> None:
    """Retries, a death and its redrive, a change, a cancel and the sweep, looked at each time."""
    looks = 0

    def look(call: Call) -> None:
        nonlocal looks
        if call.operation in ("Query", "GetItem", "BatchGetItem", "ReceiveMessage"):
            return
        hook, world.recorder.after = world.recorder.after, None
        assert audited(world) == [], call.operation
        world.recorder.after = hook
        looks += 1

    world.recorder.after = look
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
    assert looks > 30


def test_nothing_is_found_between_any_two_requests_of_a_pause(world: World) -> None:
    task = world.created_by_key(world.new(20_000, retry=LADDER, key="order-17")).task
    looks = 0

    def look(call: Call) -> None:
        nonlocal looks
        if call.operation in ("Query", "GetItem", "BatchGetItem", "ReceiveMessage"):
            return
        hook, world.recorder.after = world.recorder.after, None
        assert audited(world) == [], call.operation
        world.recorder.after = hook
        looks += 1

    world.recorder.after = look
    world.configured("orders", paused=True)
    world.dispatch_until(task.home.second)
    world.drain()
    assert world.read(task).parked
    world.clock.advance_ms(1_000)
    world.configured("orders", paused=None)
    world.drain()
    assert not world.read(task).parked
    world.recorder.after = None
    assert looks > 10


def test_a_task_that_changes_while_it_is_looked_at_is_looked_at_anew(world: World) -> None:
    task = retried(world)
    changed = []

    def follow(call: Call) -> None:
        """Between the look at the home and that at its entry: named elsewhere, and swept."""
        if call.operation == "BatchGetItem" and not changed:
            changed.append(task)
            fresh = world.reenter.put(task.home, world.clock.now_ms() + 60_000)
            (state,) = world.tasks.home_states([task.home])[0].values()
            assert world.tasks.name_entry(state, fresh)
            drop_entry(world, task)

    world.recorder.before = follow
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
    asked, found, calls = AuditRequest(second - 30, second + 30), [], 0
    while True:
        answer = world.audit(asked)
        found += answer.findings
        calls += 1
        assert answer.items < 6 + 3
        if answer.cursor is None:
            break
        assert answer.audited_until_second <= second + 31
        asked = replace(asked, cursor=answer.cursor)
    assert sorted(f.task_id or "" for f in found) == sorted(t.task_id for t in tasks)
    assert calls > 2
    assert answer.audited_until_second == second + 31


def test_tasks_that_name_the_same_entry_and_key_are_judged_each(world: World) -> None:
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


def test_the_homes_of_entries_in_the_range_are_judged_too(world: World) -> None:
    task = retried(world)
    edit(world, key_of(world, task), expires_at={"N": "1900000000"})
    findings = world.audit(AuditRequest(task.entry.second, task.entry.second)).findings
    assert [finding.task_id for finding in findings] == [task.task_id]
