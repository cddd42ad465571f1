"""A timer, its line in lists and its chain change together, also when other requests change them at
the same time."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import (
    InvalidField,
    Unavailable,
    UnknownTimer,
    VersionMismatch,
)
from duewheel.rules.tasks.effective_callback import METHOD_DEFAULT
from duewheel.rules.tasks.task import Plan, Status, Task
from duewheel.rules.timers.requests import NewTimer, TimerChange
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Rules, Timer
from tests.support.clock import NOON_MS
from tests.support.recorder import Death
from tests.support.world import CALLER, World

HOOK = HttpCallback("https://receiver.example/hook", METHOD_DEFAULT)
EACH_MINUTE = Rules("close orders", Schedule(cron="* * * * *"), callback=HOOK)
NOON = NOON_MS // 1000
MINUTE_MS = 60_000


def created(world: World, *, enabled: bool = True, **rules: Any) -> Timer:
    return world.create_timer(NewTimer("orders", replace(EACH_MINUTE, **rules), enabled), by=CALLER)


def change(world: World, timer: Timer, **values: Any) -> Timer:
    return world.change_timer(timer.timer_id, TimerChange(values), by=CALLER)


def stored(world: World, timer: Timer) -> Timer:
    found = world.timers.read(timer.timer_id)
    assert found is not None
    lines, _ = world.timers.page("orders", "", None, 10)
    assert [(line.name, line.timer_id, line.enabled) for line in lines] == [
        (found.rules.name, found.timer_id, found.enabled)
    ]
    return found


def chain_of(world: World, timer: Timer) -> Task:
    assert timer.chain is not None
    (chain,) = world.tasks.get_many([timer.chain]).values()
    return chain


def chains(world: World) -> list[str]:
    """The statuses of all chains that ever existed."""
    return sorted(item["status"]["S"] for item in world.items() if "plan" in item)


def planned(world: World, timer: Timer, until_second: int, numbered: int) -> None:
    """Changes the chain as a run of it would."""
    chain = chain_of(world, timer)
    plan = Plan(timer.timer_id, until_second, numbered)
    assert world.tasks.change(chain, replace(chain, plan=plan, version=chain.version + 1))


def test_an_enabled_timer_begins_with_a_chain_that_is_due_now(world: World) -> None:
    timer = created(world)
    assert stored(world, timer) == timer
    chain = chain_of(world, timer)
    assert chain.plan == Plan(timer.timer_id, NOON + 1, 0)
    assert (chain.home.direct, chain.next_ms, world.messages_waiting()) == (True, NOON_MS, 1)


def test_a_disabled_timer_has_no_chain_until_it_is_enabled(world: World) -> None:
    timer = created(world, enabled=False)
    assert (stored(world, timer).chain, chains(world)) == (None, [])
    enabled = world.change_timer.enable(timer.timer_id, by=CALLER)
    assert stored(world, timer) == enabled
    assert (enabled.enabled, enabled.version) == (True, 2)
    assert chains(world) == ["pending"]
    assert world.messages_waiting() == 1


def test_enabling_and_disabling_twice_changes_nothing(world: World) -> None:
    timer = created(world)
    assert world.change_timer.enable(timer.timer_id, by=CALLER) == timer
    disabled = world.change_timer.disable(timer.timer_id, by=CALLER)
    assert world.change_timer.disable(timer.timer_id, by=CALLER) == disabled
    assert stored(world, timer) == disabled
    assert chains(world) == ["cancelled"]
    assert world.messages_waiting() == 1


def test_a_timer_that_is_enabled_again_continues_its_numbers(world: World) -> None:
    timer = created(world)
    planned(world, timer, NOON + 7_201, 120)
    world.clock.advance_ms(10 * MINUTE_MS)
    disabled = world.change_timer.disable(timer.timer_id, by=CALLER)
    assert (disabled.numbered, disabled.chain) == (10, None)
    world.clock.advance_ms(60 * MINUTE_MS)
    enabled = world.change_timer.enable(timer.timer_id, by=CALLER)
    assert chain_of(world, enabled).plan == Plan(timer.timer_id, NOON + 4_201, 10)


def test_a_change_of_the_schedule_ends_one_chain_and_begins_another(world: World) -> None:
    timer = created(world)
    planned(world, timer, NOON + 7_201, 120)
    world.clock.advance_ms(10 * MINUTE_MS)
    changed = change(world, timer, cron="*/5 * * * *")
    old = chain_of(world, timer)
    assert (old.status, old.reason) == (Status.CANCELLED, "timer changed")
    assert chain_of(world, changed).plan == Plan(timer.timer_id, NOON + 601, 10)
    assert stored(world, timer) == changed


def test_a_change_of_payload_and_name_keeps_the_chain(world: World) -> None:
    timer = created(world)
    changed = change(world, timer, name="archive orders", payload='"{{number}}"', misfire=None)
    assert (changed.chain, changed.version) == (timer.chain, 2)
    assert stored(world, timer) == changed
    assert chains(world) == ["pending"]


def test_a_change_to_the_same_values_writes_nothing(world: World) -> None:
    timer = created(world)
    world.recorder.clear()
    assert change(world, timer, cron="* * * * *", max_runs=None) == timer
    assert world.recorder.operations() == ["GetItem"]


def test_an_ended_timer_continues_when_max_runs_is_raised(world: World) -> None:
    timer = created(world, max_runs=3)
    planned(world, timer, NOON + 181, 3)
    assert timer.chain is not None
    world.clock.advance_ms(10 * MINUTE_MS)
    chain = chain_of(world, timer)
    assert world.tasks.change(
        chain, replace(chain, status=Status.CANCELLED, version=chain.version + 1)
    )
    assert world.timers.mark_ended(timer.timer_id, timer.chain, 3)
    changed = change(world, timer, max_runs=5)
    assert (changed.ended, chain_of(world, changed).plan) == (
        False,
        Plan(timer.timer_id, NOON + 601, 3),
    )


def test_deleting_a_timer_cancels_its_chain(world: World) -> None:
    timer = created(world)
    world.change_timer.delete(timer.timer_id, by=CALLER)
    assert world.timers.read(timer.timer_id) is None
    assert world.timers.page("orders", "", None, 10) == ([], False)
    assert chain_of(world, timer).reason == "timer deleted"
    for act in (world.change_timer.delete, world.change_timer.enable):
        with pytest.raises(UnknownTimer):
            act(timer.timer_id, by=CALLER)
    with pytest.raises(UnknownTimer):
        world.run_timer(timer.timer_id)


def test_a_chain_that_cannot_be_read_prevents_no_change(world: World) -> None:
    timer = created(world)
    assert timer.chain is not None
    (item,) = world.tasks.items_at([timer.chain])
    world.dynamodb.put_item(TableName=world.tasks.table, Item={**item, "plan": {"S": "nonsense"}})
    assert not world.change_timer.disable(timer.timer_id, by=CALLER).enabled
    assert world.change_timer.enable(timer.timer_id, by=CALLER).chain != timer.chain


def test_a_timer_without_any_callback_is_refused(world: World) -> None:
    with pytest.raises(InvalidField, match="callback"):
        created(world, callback=None)
    timer = created(world)
    with pytest.raises(InvalidField, match="callback"):
        change(world, timer, callback=None)
    assert stored(world, timer) == timer
    world.configured("orders", callback=HOOK)
    world.clock.advance_ms(6_000)  # until the cached business expires
    assert change(world, timer, callback=None).rules.callback is None


def test_a_precondition_is_checked_against_the_version_of_the_timer(world: World) -> None:
    timer = created(world)
    other = Precondition(version=2)
    with pytest.raises(VersionMismatch, match="version 1"):
        world.change_timer.disable(timer.timer_id, other, by=CALLER)
    with pytest.raises(VersionMismatch):
        world.change_timer.delete(timer.timer_id, other, by=CALLER)
    assert (
        world.change_timer.disable(timer.timer_id, Precondition(version=1), by=CALLER).version == 2
    )
    assert (
        world.change_timer.enable(timer.timer_id, Precondition(is_there=True), by=CALLER).version
        == 3
    )


def test_an_id_that_is_taken_is_drawn_again(world: World) -> None:
    first = created(world, enabled=False)
    drawn = iter([int(first.timer_id) - 2**40, 99])
    create = replace(world.create_timer, random_number=lambda: next(drawn))
    second = create(NewTimer("orders", replace(EACH_MINUTE, name="other"), False), by=CALLER)
    assert second.timer_id == str(2**40 + 99)
    taken = replace(world.create_timer, random_number=lambda: 99)
    with pytest.raises(Unavailable):
        taken(NewTimer("orders", EACH_MINUTE, False), by=CALLER)
    assert world.timers.read(second.timer_id) == second


@pytest.mark.exhaustive
def test_two_concurrent_enables_begin_one_chain(world: World) -> None:
    timer = created(world, enabled=False)
    others: list[Timer] = []
    world.recorder.once(
        "TransactWriteItems",
        lambda: others.append(world.change_timer.enable(timer.timer_id, by=CALLER)),
    )
    mine = world.change_timer.enable(timer.timer_id, by=CALLER)
    assert others == [mine] == [stored(world, timer)]
    assert chains(world) == ["pending"]


def test_a_chain_that_moves_on_during_a_change_is_read_again(world: World) -> None:
    timer = created(world)
    world.recorder.once("TransactWriteItems", lambda: planned(world, timer, NOON + 3_601, 60))
    disabled = world.change_timer.disable(timer.timer_id, by=CALLER)
    assert stored(world, timer) == disabled
    assert (disabled.numbered, chains(world)) == (0, ["cancelled"])


def test_a_timer_that_ends_during_a_change_is_read_again(world: World) -> None:
    timer = created(world)
    assert timer.chain is not None
    chain = timer.chain
    world.recorder.once(
        "TransactWriteItems", lambda: world.timers.mark_ended(timer.timer_id, chain, 7)
    )
    renamed = change(world, timer, name="other")
    assert stored(world, timer) == renamed
    assert (renamed.ended, renamed.numbered) == (True, 7)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_the_transaction_leaves_the_whole_change_or_none(
    world: World, when: str
) -> None:
    timer = created(world)

    world.recorder.die("TransactWriteItems", when)
    with pytest.raises(Death):
        change(world, timer, cron="*/5 * * * *", name="other")
    left = stored(world, timer)
    assert left.version == (1 if when == "before" else 2)
    assert chains(world) == (["pending"] if when == "before" else ["cancelled", "pending"])
    again = change(world, timer, cron="*/5 * * * *", name="other")
    assert (again.version, chain_of(world, again).status) == (2, Status.PENDING)
