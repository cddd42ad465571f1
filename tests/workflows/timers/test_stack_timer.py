"""The timer of a resource of a stack, where a run crashes, or others are at work beside it."""

from typing import Any

import pytest

from duewheel.rules.refusals import InvalidField
from duewheel.rules.timers.requests import TimerChange
from duewheel.rules.timers.stack_resource import StackRequest, stack_request
from duewheel.workflows.timers.stack_timer import Carried
from tests.support.stack_requests import StackOfATeam
from tests.support.timers import chain_of
from tests.support.world import CALLER, World
from tests.workflows.timers.test_timer_by_name import died_at, put

DEADLINE_MS = 180_000
HOURLY = {
    "biz_type": "orders",
    "name": "closing",
    "cron": "0 * * * *",
    "callback": {"url": "https://receiver.example/hook"},
}
NO_TIMER = "not-made"


@pytest.fixture
def world(world: World) -> World:
    world.wire(timer_resource_businesses=("*",))
    return world


@pytest.fixture
def stack() -> StackOfATeam:
    return StackOfATeam(send=lambda event: event)


def request(stack: StackOfATeam, kind: str, timer_id: str = "", **more: Any) -> StackRequest:
    event = stack.event(kind, "Nightly", {**HOURLY, **more})
    return stack_request(event | ({"PhysicalResourceId": timer_id} if timer_id else {}))


def carry_out(world: World, wanted: StackRequest) -> Carried:
    return world.stack_timer(wanted, world.clock.now_ms() + DEADLINE_MS)


def made(world: World, stack: StackOfATeam, **more: Any) -> str:
    timer = carry_out(world, request(stack, "Create", **more)).timer
    assert timer is not None
    return timer.timer_id


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_a_repeat_after_a_crash_at_any_call_ends_the_request(
    world: World, stack: StackOfATeam, kind: str, moment: str
) -> None:
    for number in range(1, 100):
        name = f"closing{number}"
        before = "" if kind == "Create" else made(world, stack, name=name)
        wanted = request(stack, kind, before, name=name, max_runs="7")
        if not died_at(world, moment, number, lambda: carry_out(world, wanted)):  # noqa: B023
            break
        ended = carry_out(world, wanted)
        found = world.timers.named("orders", name)
        assert len(found) == (kind != "Delete")
        for timer in found:
            assert timer == ended.timer
            assert timer.rules.max_runs == 7
            chain = chain_of(world, timer)
            assert chain is not None
            assert chain.is_live
    assert number > 2


def test_a_create_that_crashed_is_rolled_back_whole(world: World, stack: StackOfATeam) -> None:
    """CloudFormation got no answer, so it knows no timer."""
    for number in range(1, 100):
        wanted = request(stack, "Create")
        if not died_at(world, "after", number, lambda: carry_out(world, wanted)):  # noqa: B023
            break
        carry_out(world, request(stack, "Delete", NO_TIMER))
        assert world.timers.named("orders", "closing") == []
    assert number > 2


def test_two_runs_of_one_create_make_one_timer(world: World, stack: StackOfATeam) -> None:
    wanted, others = request(stack, "Create"), list[Carried]()
    world.recorder.once("TransactWriteItems", lambda: others.append(carry_out(world, wanted)))
    mine = carry_out(world, wanted)
    assert mine == others[0]
    assert len(world.timers.named("orders", "closing")) == 1


def test_a_timer_that_another_makes_meanwhile_is_not_taken(
    world: World, stack: StackOfATeam
) -> None:
    world.recorder.once("TransactWriteItems", lambda: put(world))
    with pytest.raises(InvalidField, match="has no owner"):
        carry_out(world, request(stack, "Create"))
    (timer,) = world.timers.named("orders", "closing")
    assert (timer.version, timer.rules.managed_by) == (1, None)


@pytest.mark.parametrize("kind", ["Update", "Delete"])
def test_a_timer_that_is_taken_meanwhile_is_neither_changed_nor_deleted(
    world: World, stack: StackOfATeam, kind: str
) -> None:
    timer_id = made(world, stack)

    def take() -> None:
        world.change_timer(timer_id, TimerChange({"managed_by": "another"}), by=CALLER)

    world.recorder.once("TransactWriteItems", take)
    wanted = request(stack, kind, timer_id, max_runs="7")
    if kind == "Update":
        with pytest.raises(InvalidField, match="is managed by another"):
            carry_out(world, wanted)
    else:
        assert carry_out(world, wanted).timer is None
    timer = world.timers.read(timer_id)
    assert timer is not None
    assert (timer.version, timer.rules.max_runs) == (2, None)


def test_a_timer_that_is_deleted_while_it_is_deleted_is_gone(
    world: World, stack: StackOfATeam
) -> None:
    timer_id = made(world, stack)
    wanted = request(stack, "Delete", timer_id)
    world.recorder.once("TransactWriteItems", lambda: carry_out(world, wanted))
    carry_out(world, wanted)
    assert world.timers.read(timer_id) is None


def test_an_unchanged_definition_writes_nothing(world: World, stack: StackOfATeam) -> None:
    timer_id = made(world, stack)
    world.recorder.clear()
    carry_out(world, request(stack, "Update", timer_id))
    assert not [call for call in world.recorder.calls if "Write" in call.operation]
