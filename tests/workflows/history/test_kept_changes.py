"""A definition and the record of its change are one write, also after crashes, races and repeated
requests."""

from collections.abc import Callable
from typing import Any

import pytest

from duewheel.rules.businesses.requests import DeleteQuery
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import outcome_of_answer
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.history.changes import (
    DELETED_KEPT_SECONDS,
    KEPT_MAX,
    THE_SERVICE,
    Change,
    ChangeAction,
)
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import (
    InvalidField,
    UnknownBusiness,
    UnknownTimer,
    VersionMismatch,
)
from duewheel.rules.timers.timer import Timer
from duewheel.stores import registry_keys
from tests.support.conflicts import A_MOMENT, conflicts, of_transactions, send_transactions_twice
from tests.support.damage import delete as delete_item
from tests.support.recorder import Death
from tests.support.timers import (
    made,
    patched,
    run_for,
)
from tests.support.world import CALLER, World

OTHER = "arn:aws:iam::123456789012:user/other"
ANYHOW = Precondition()
GONE = outcome_of_answer(410, {}, b"", 0)

Act = Callable[[World, str], object]  # the world, and the caller


def configure(world: World, by: str = CALLER, **settings: Any) -> Business:
    return world.configure_business("orders", settings, ANYHOW, by=by)


def pause(world: World, by: str = CALLER, *, paused: bool = True) -> Business:
    return world.configure_business.pause("orders", ANYHOW, paused=paused, by=by)


def delete(world: World, by: str = CALLER) -> None:
    assert world.delete_business("orders", DeleteQuery(), ANYHOW, by=by).done


def of_business(world: World) -> list[Change]:
    return list(reversed(world.read_changes.of_business("orders").changes))


def of_timer(world: World, timer: Timer) -> list[Change]:
    return list(reversed(world.read_changes.of_timer(timer.timer_id).changes))


def summaries(changes: list[Change]) -> list[tuple[int, str, str]]:
    return [(change.version, change.did.value, change.by) for change in changes]


def test_a_put_that_changes_nothing_makes_a_version_and_a_record_without_differences(
    world: World,
) -> None:
    configure(world, retention_days=3)
    again = configure(world, retention_days=3)
    assert again.version == 2
    assert of_business(world)[-1] == Change(
        version=2, at_ms=again.updated_ms, by=CALLER, did=ChangeAction.CONFIGURED
    )


def test_the_last_ten_changes_are_kept(world: World) -> None:
    for _ in range(KEPT_MAX + 3):
        configure(world)
    kept = of_business(world)
    assert [change.version for change in kept] == list(range(4, KEPT_MAX + 4))


def test_a_change_whose_reply_is_lost_leaves_one_record(world: World) -> None:
    send_transactions_twice(world.dynamodb)
    assert configure(world, retention_days=3).version == 1
    assert pause(world).version == 2
    timer = made(world, 60)
    world.change_timer.disable(timer.timer_id, by=CALLER)
    world.change_timer.delete(timer.timer_id, by=CALLER)
    delete(world)
    assert summaries(of_business(world)) == [
        (1, "created", CALLER),
        (2, "paused", CALLER),
        (3, "deleted", CALLER),
    ]
    assert [change.did for change in of_timer(world, timer)] == ["created", "disabled", "deleted"]


def test_two_concurrent_changes_of_a_business_each_return_their_own_version(world: World) -> None:
    configure(world)
    others: list[Business] = []
    world.recorder.once(
        "TransactWriteItems", lambda: others.append(configure(world, OTHER, retention_days=3))
    )
    mine = configure(world, timeout_seconds=2.0)
    assert [others[0].version, mine.version] == [2, 3]
    assert summaries(of_business(world))[1:] == [
        (2, "configured", OTHER),
        (3, "configured", CALLER),
    ]
    found = [[one.setting for one in change.differences] for change in of_business(world)[1:]]
    assert found == [["retention_days"], ["timeout_seconds"]]


def test_two_equal_changes_at_one_instant_are_both_recorded(world: World) -> None:
    world.recorder.once("TransactWriteItems", lambda: configure(world, OTHER, retention_days=3))
    assert configure(world, retention_days=3).version == 2
    assert summaries(of_business(world)) == [(1, "created", OTHER), (2, "configured", CALLER)]


def test_changes_with_equal_records_are_told_apart_by_the_settings(world: World) -> None:
    """The record contains only the name of a callback, so two changes by one caller at one instant
    are alike."""
    one, other = HttpCallback("https://one.example/"), HttpCallback("https://other.example/")
    world.recorder.once("TransactWriteItems", lambda: configure(world, callback=one))
    assert configure(world, callback=other).version == 2
    assert world.businesses.read_whole("orders").callback == other


def test_two_concurrent_changes_of_a_timer_each_return_their_own_version(world: World) -> None:
    timer = made(world, 60)
    disable = world.change_timer.disable
    world.recorder.once("TransactWriteItems", lambda: disable(timer.timer_id, by=OTHER))
    assert patched(world, timer, name="other").version == 3
    assert summaries(of_timer(world, timer))[1:] == [(2, "disabled", OTHER), (3, "changed", CALLER)]


def test_only_one_of_two_concurrent_deletes_succeeds(world: World) -> None:
    configure(world)
    world.recorder.once("TransactWriteItems", lambda: delete(world, OTHER))
    with pytest.raises(VersionMismatch):
        delete(world)
    assert summaries(of_business(world))[1:] == [(2, "deleted", OTHER)]
    timer = made(world, 60)
    world.recorder.once(
        "TransactWriteItems", lambda: world.change_timer.delete(timer.timer_id, by=OTHER)
    )
    with pytest.raises(UnknownTimer):
        world.change_timer.delete(timer.timer_id, by=CALLER)
    assert summaries(of_timer(world, timer))[1:] == [(2, "deleted", OTHER)]


def test_a_change_that_meets_another_transaction_is_retried(world: World) -> None:
    configure(world)
    with conflicts(of_transactions, times=A_MOMENT):
        assert pause(world).version == 2
    assert summaries(of_business(world))[1:] == [(2, "paused", CALLER)]


def test_a_refused_change_leaves_no_record(world: World) -> None:
    configure(world)
    timer, other = made(world, 60), Precondition(version=9)
    for refused in (
        lambda: world.configure_business("orders", {}, other, by=CALLER),
        lambda: world.configure_business.pause("orders", other, paused=True, by=CALLER),
        lambda: world.delete_business("orders", DeleteQuery(), other, by=CALLER),
        lambda: world.change_timer.disable(timer.timer_id, other, by=CALLER),
        lambda: world.change_timer.delete(timer.timer_id, other, by=CALLER),
    ):
        with pytest.raises(VersionMismatch):
            refused()
    with pytest.raises(InvalidField):
        configure(world, retry_statuses=(404,), stop_statuses=(404,))
    with pytest.raises(InvalidField):
        patched(world, timer, every_seconds=None)
    assert (len(of_business(world)), len(of_timer(world, timer))) == (1, 1)


ACTS: dict[str, Act] = {
    "configured": lambda world, _: configure(world, retention_days=3),
    "paused": lambda world, _: pause(world),
    "business deleted": lambda world, _: delete(world),
    "timer created": lambda world, _: made(world, 60),
    "timer changed": lambda world, timer_id: patched(world, at(world, timer_id), name="other"),
    "timer disabled": lambda world, timer_id: world.change_timer.disable(timer_id, by=CALLER),
    "timer deleted": lambda world, timer_id: world.change_timer.delete(timer_id, by=CALLER),
}


def at(world: World, timer_id: str) -> Timer:
    timer = world.timers.read(timer_id)
    assert timer is not None
    return timer


def versions(world: World) -> dict[str, tuple[int | None, int, bool]]:
    """For each definition that ever existed: its version, the version of its latest change, and
    whether that change deleted it."""
    items = world.unrecorded.scan(TableName=world.settings.registry_table)["Items"]
    found = {}
    for item in items:
        mark, _, thing = item["kind"]["S"].partition("#")
        if mark != "changes":
            continue
        kind, _, name = thing.partition("#")
        if kind == "business":
            current = world.businesses.read_whole(name).version or None
            latest = world.read_changes.of_business(name).changes[0]
        else:
            timer = world.timers.read(name)
            current = timer and timer.version
            latest = world.read_changes.of_timer(name).changes[0]
        found[name] = (current, latest.version, latest.did is ChangeAction.DELETED)
    return found


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_leaves_neither_a_change_without_record_nor_a_record_without_change(
    world: World, act: Act, when: str
) -> None:
    has_timer = act is not ACTS["business deleted"]
    timer_id = made(world, 60).timer_id if has_timer else ""
    configure(world)
    before = versions(world)

    world.recorder.die("TransactWriteItems", when)
    with pytest.raises(Death):
        act(world, timer_id)
    left = versions(world)
    assert (left == before) is (when == "before")
    for current, recorded, is_end in left.values():
        assert current is None if is_end else current == recorded


@pytest.mark.exhaustive
def test_a_timer_that_its_receiver_stops_records_the_service_as_the_caller(world: World) -> None:
    timer = made(world, 60, disable_on_stop=True)
    world.receiver.answer = lambda _: GONE
    run_for(world, 62)
    assert not at(world, timer.timer_id).enabled
    assert summaries(of_timer(world, timer))[1:] == [(2, "disabled", THE_SERVICE)]


@pytest.mark.exhaustive
def test_the_end_of_a_timer_by_itself_records_no_change(world: World) -> None:
    timer = made(world, 20, max_runs=3)
    run_for(world, 90)
    assert len(world.receiver.received) == 3
    assert at(world, timer.timer_id).ended
    assert summaries(of_timer(world, timer)) == [(1, "created", CALLER)]


def test_timers_deleted_with_their_business_record_the_caller(world: World) -> None:
    configure(world)
    timer = made(world, 60)
    query = DeleteQuery(cancel_pending="true")
    assert world.delete_business("orders", query, ANYHOW, by=OTHER).done
    assert summaries(of_timer(world, timer))[-1] == (2, "deleted", OTHER)
    assert summaries(of_business(world))[-1] == (2, "deleted", OTHER)


def test_changes_can_be_read_for_thirty_days_after_a_definition_is_deleted(world: World) -> None:
    configure(world)
    timer = made(world, 60, enabled=False)
    world.delete_business("orders", DeleteQuery(cancel_pending="true"), ANYHOW, by=CALLER)
    world.clock.advance_ms((DELETED_KEPT_SECONDS - 1) * 1000)
    assert (len(of_business(world)), len(of_timer(world, timer))) == (2, 2)
    assert world.read_changes.of_timer(timer.timer_id).owner == "orders"
    world.clock.advance_ms(1_000)
    with pytest.raises(UnknownBusiness):
        of_business(world)
    with pytest.raises(UnknownTimer):
        of_timer(world, timer)


def test_a_definition_without_records_gets_one_with_its_next_change(world: World) -> None:
    configure(world)
    timer = made(world, 60)
    for kind, name in (("business", "orders"), ("timer", timer.timer_id)):
        delete_item(world, registry_keys.changes(kind, name))
    assert (of_business(world), of_timer(world, timer)) == ([], [])
    pause(world)
    patched(world, timer, name="other")
    assert [summaries(of_business(world)), summaries(of_timer(world, timer))] == [
        [(2, "paused", CALLER)],
        [(2, "changed", CALLER)],
    ]
