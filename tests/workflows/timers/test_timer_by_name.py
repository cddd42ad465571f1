"""A timer by its name is made once, and changed only where its definition differs: after crashes,
and beside other requests, too."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest

from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import (
    IdempotencyKeyReused,
    InvalidField,
    TimersShareName,
    UnknownTimer,
    VersionMismatch,
)
from duewheel.rules.tasks.idempotency import IdempotentRequest, idempotent_request
from duewheel.rules.timers.requests import NamedTimer, NewTimer, TimerChange, named_timer
from duewheel.rules.timers.schedule import Dialect, Schedule
from duewheel.rules.timers.timer import Rules, Timer
from duewheel.workflows.timers.timer_by_name import Put
from tests.support.conflicts import A_MOMENT, conflicts, of_transactions, send_transactions_twice
from tests.support.timers import CALLBACK, chain_of, made
from tests.support.world import CALLER, World

ANYHOW = Precondition()
HOOK = '"callback":{"url":"https://receiver.example/hook"}'
EACH_HOUR = f'{{"cron":"0 * * * *",{HOOK}}}'
EACH_NINETY = f'{{"every_seconds":90,{HOOK}}}'


def definition(body: str = EACH_HOUR, name: str = "closing") -> NamedTimer:
    return named_timer(body, "orders", name)


def put(world: World, body: str = EACH_HOUR, when: Precondition = ANYHOW, **more: Any) -> Put:
    return world.timer_by_name.put(definition(body), when, by=CALLER, **more)


def all_timers(world: World) -> list[Timer]:
    lines, _ = world.timers.page("orders", "", None, 100)
    found = [world.timers.read(line.timer_id) for line in lines]
    return [timer for timer in found if timer is not None]


def assert_whole(world: World, timer: Timer) -> None:
    """Its chain is live, its line is in the list, and its latest change is recorded."""
    assert all_timers(world) == [timer]
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.is_live
    assert world.read_changes.of_timer(timer.timer_id).changes[0].version == timer.version
    live = [item for item in world.items() if "plan" in item and item["status"]["S"] == "pending"]
    assert len(live) == 1


def test_a_definition_that_the_timer_has_changes_nothing(world: World) -> None:
    first = put(world, EACH_NINETY)
    assert (first.is_new, first.timer.version) == (True, 1)
    world.clock.advance_ms(77_000)
    world.recorder.clear()
    again = put(world, EACH_NINETY)
    assert (again.is_new, again.timer) == (False, first.timer)
    assert not [call for call in world.recorder.calls if "Write" in call.operation]


def test_what_a_definition_leaves_out_is_set_back_to_its_default(world: World) -> None:
    before = put(world, f'{{"cron":"0 3 * * *","max_runs":7,"payload":1,"priority":"low",{HOOK}}}')
    after = put(world, EACH_HOUR).timer
    assert (after.timer_id, after.version) == (before.timer.timer_id, 2)
    assert (after.rules.max_runs, after.rules.payload, after.rules.priority) == (None, None, None)
    assert after.rules.schedule == Schedule(cron="0 * * * *")
    assert_whole(world, after)


def test_a_disabled_timer_stays_disabled_unless_the_definition_enables_it(world: World) -> None:
    timer = put(world).timer
    world.change_timer.disable(timer.timer_id, by=CALLER)
    left = put(world).timer
    assert (left.enabled, left.version) == (False, 2)
    assert put(world, EACH_HOUR.replace("{", '{"enabled":true,', 1)).timer.enabled


def test_a_timer_that_has_ended_may_be_put_again_unchanged(world: World) -> None:
    body = f'{{"every_seconds":60,"end_at":"2027-01-15T08:01:30Z",{HOOK}}}'
    first = put(world, body).timer
    world.clock.advance_ms(3 * 86_400_000)
    assert put(world, body).timer.version == first.version


def test_a_timer_made_without_its_name_is_adopted_if_it_is_the_only_one(world: World) -> None:
    old = made(world, 60)
    adopted = put(world, EACH_HOUR)
    assert (adopted.is_new, adopted.timer.timer_id) == (False, old.timer_id)
    assert adopted.timer.rules.schedule == Schedule(cron="0 * * * *")
    assert_whole(world, adopted.timer)


def test_an_adopted_timer_of_the_xtimer_interface_gets_the_usual_dialect(world: World) -> None:
    schedule = Schedule(cron="0 * * * *", dialect=Dialect.CRONEXPR)
    made(world, schedule=schedule)
    assert put(world, EACH_HOUR).timer.rules.schedule == Schedule(cron="0 * * * *")


def test_a_name_that_several_timers_have_is_refused_with_their_ids(world: World) -> None:
    ids = sorted(made(world, 60).timer_id for _ in range(2))
    for refused in (
        lambda: put(world),
        lambda: world.timer_by_name.find("orders", "closing"),
        lambda: world.timer_by_name.delete("orders", "closing", ANYHOW, by=CALLER),
    ):
        with pytest.raises(TimersShareName) as refusal:
            refused()
        assert all(one in refusal.value.detail for one in ids)
    assert [timer.version for timer in all_timers(world)] == [1, 1]


def test_timers_whose_names_begin_alike_are_others(world: World) -> None:
    for name in ("closing#1", "closing of day", "closing2"):
        rules = Rules(name, Schedule(cron="0 * * * *"), callback=CALLBACK)
        world.create_timer(NewTimer("orders", rules), by=CALLER)
    assert put(world).is_new
    assert len(all_timers(world)) == 4


def test_a_deleted_name_is_made_anew_with_another_id(world: World) -> None:
    first = put(world).timer
    deleted = world.timer_by_name.delete("orders", "closing", ANYHOW, by=CALLER)
    assert deleted.timer_id == first.timer_id
    with pytest.raises(UnknownTimer):
        world.timer_by_name.find("orders", "closing")
    again = put(world)
    assert again.is_new
    assert again.timer.timer_id != first.timer_id


def test_a_renamed_timer_leaves_its_name_free(world: World) -> None:
    first = put(world).timer
    world.change_timer(first.timer_id, TimerChange({"name": "opening"}), by=CALLER)
    assert put(world).is_new
    assert world.timer_by_name.find("orders", "opening").timer_id == first.timer_id


def test_preconditions_count_for_new_and_for_existing_timers(world: World) -> None:
    with pytest.raises(VersionMismatch):
        put(world, when=Precondition(version=1))
    with pytest.raises(VersionMismatch):
        put(world, when=Precondition(is_there=True))
    assert put(world, when=Precondition(is_there=False)).is_new
    with pytest.raises(VersionMismatch):
        put(world, EACH_NINETY, when=Precondition(is_there=False))
    assert put(world, EACH_NINETY, when=Precondition(version=1)).timer.version == 2
    with pytest.raises(VersionMismatch):
        world.timer_by_name.delete("orders", "closing", Precondition(version=1), by=CALLER)


def test_a_dry_run_shows_what_would_be_and_writes_nothing(world: World) -> None:
    world.recorder.clear()
    would = put(world, dry_run=True)
    assert (would.is_new, would.timer.version) == (True, 1)
    timer = put(world).timer
    world.recorder.clear()
    would = put(world, EACH_NINETY, dry_run=True)
    assert (would.timer.version, would.timer.rules.schedule.every_seconds) == (2, 90)
    with pytest.raises(InvalidField):
        put(world, '{"cron":"61 * * * *"}', dry_run=True)
    assert not [call for call in world.recorder.calls if "Write" in call.operation]
    assert all_timers(world) == [timer]


def test_a_put_is_refused_if_its_notices_go_to_a_host_that_the_business_does_not_allow(
    world: World,
) -> None:
    timer = put(world).timer
    world.configured("orders", allowed_hosts=("receiver.example",))
    told = '"on_outcome":{"outcomes":["dead"],"callback":{"url":"https://elsewhere.example/"}}'
    for dry_run in (True, False):
        with pytest.raises(InvalidField, match=r"on_outcome\.callback\.url"):
            put(world, EACH_HOUR.replace("{", f"{{{told},", 1), dry_run=dry_run)
    assert all_timers(world) == [timer]


def test_two_requests_that_make_a_name_at_once_make_one_timer(world: World) -> None:
    others: list[Put] = []
    world.recorder.once("TransactWriteItems", lambda: others.append(put(world, EACH_NINETY)))
    mine = put(world)
    assert others[0].is_new
    assert not mine.is_new
    assert mine.timer.timer_id == others[0].timer.timer_id
    assert mine.timer.rules.schedule == Schedule(cron="0 * * * *")
    assert_whole(world, mine.timer)


def test_a_name_that_is_deleted_and_made_meanwhile_is_still_one_timer(world: World) -> None:
    put(world)
    world.timer_by_name.delete("orders", "closing", ANYHOW, by=CALLER)
    world.recorder.once("TransactWriteItems", lambda: put(world, EACH_NINETY))
    assert not put(world).is_new
    assert len(all_timers(world)) == 1


def test_a_timer_that_is_deleted_while_it_is_put_is_made_anew(world: World) -> None:
    first = put(world).timer

    def gone() -> None:
        world.timer_by_name.delete("orders", "closing", ANYHOW, by=CALLER)

    world.recorder.once("TransactWriteItems", gone)
    again = put(world, EACH_NINETY)
    assert again.is_new
    assert again.timer.timer_id != first.timer_id
    assert_whole(world, again.timer)


Act = Callable[[World, str], object]


def put_anew(world: World, name: str) -> None:
    world.timer_by_name.put(definition(name=name), ANYHOW, by=CALLER)


def put_changed(world: World, name: str) -> None:
    world.timer_by_name.put(definition(EACH_NINETY, name), ANYHOW, by=CALLER)


def delete(world: World, name: str) -> None:
    world.timer_by_name.delete("orders", name, ANYHOW, by=CALLER)


def create_once(world: World, name: str) -> None:
    rules = Rules(name, Schedule(cron="0 * * * *"), callback=CALLBACK)
    world.create_timer(NewTimer("orders", rules), by=CALLER, once=request(name))


def request(key: str, body: str = "", caller: str = CALLER) -> IdempotentRequest:
    return idempotent_request(caller, key, "/v1/timers", body, is_single=True)


ACTS: dict[str, tuple[Act | None, Act]] = {
    "made": (None, put_anew),
    "changed": (put_anew, put_changed),
    "deleted": (put_anew, delete),
    "made under a key": (None, create_once),
}


@pytest.mark.parametrize(("prepare", "act"), ACTS.values(), ids=ACTS)
def test_a_crash_at_any_call_leaves_a_whole_timer_or_none(
    world: World, prepare: Act | None, act: Act
) -> None:
    for moment in ("before", "after"):
        for number in range(1, 100):
            name = f"t{number}-{moment}"
            if prepare is not None:
                prepare(world, name)
            if not world.dies(partial(act, world, name), number, moment):
                break
            found = world.timers.named("orders", name)
            assert len(found) <= 1
            for timer in found:
                chain = chain_of(world, timer)
                assert chain is not None
                assert chain.is_live
                latest = world.read_changes.of_timer(timer.timer_id).changes[0]
                assert latest.version == timer.version
            if act is not delete or found:
                act(world, name)  # the repeat
            assert len(world.timers.named("orders", name)) == (act is not delete)
        assert number > 2


def test_a_put_that_meets_another_transaction_is_tried_again(world: World) -> None:
    with conflicts(of_transactions, times=A_MOMENT):
        assert put(world).is_new
    assert len(all_timers(world)) == 1


def test_a_transaction_that_the_sdk_sends_twice_makes_one_timer(world: World) -> None:
    send_transactions_twice(world.dynamodb)
    assert put(world).is_new
    create_once(world, "other")
    assert [timer.rules.name for timer in all_timers(world)] == ["closing", "other"]


def test_one_idempotency_key_makes_one_timer(world: World) -> None:
    new = NewTimer("orders", Rules("closing", Schedule(cron="0 * * * *"), callback=CALLBACK))
    first = world.create_timer(new, by=CALLER, once=request("key"))
    changed = world.change_timer(first.timer_id, TimerChange({"max_runs": 3}), by=CALLER)
    assert world.create_timer(new, by=CALLER, once=request("key")) == changed
    with pytest.raises(IdempotencyKeyReused):
        world.create_timer(new, by=CALLER, once=request("key", body="another"))
    assert len(all_timers(world)) == 1
    other = world.create_timer(new, by=CALLER, once=request("key", caller="another"))
    assert other.timer_id != first.timer_id


def test_a_repeat_does_not_make_a_timer_again_that_was_deleted(world: World) -> None:
    new = NewTimer("orders", Rules("closing", Schedule(cron="0 * * * *"), callback=CALLBACK))
    first = world.create_timer(new, by=CALLER, once=request("key"))
    world.change_timer.delete(first.timer_id, by=CALLER)
    with pytest.raises(UnknownTimer):
        world.create_timer(new, by=CALLER, once=request("key"))
    world.clock.advance_ms(86_400_000)
    again = world.create_timer(new, by=CALLER, once=request("key"))
    assert all_timers(world) == [again]


def test_a_repeat_gets_its_timer_also_if_its_business_would_refuse_it_by_now(world: World) -> None:
    new = NewTimer("orders", Rules("closing", Schedule(cron="0 * * * *"), callback=CALLBACK))
    first = world.create_timer(new, by=CALLER, once=request("key"))
    world.configured("orders", allowed_hosts=("elsewhere.example",))
    assert world.create_timer(new, by=CALLER, once=request("key")) == first
    with pytest.raises(InvalidField):
        world.create_timer(new, by=CALLER, once=request("other"))


def test_one_idempotency_key_makes_one_run(world: World) -> None:
    timer = made(world, 3_600)
    run = world.run_timer
    first = run(timer.timer_id, request("key"))
    assert run(timer.timer_id, request("key")) == first
    assert run(timer.timer_id, request("other")).task_id != first.task_id
    with pytest.raises(IdempotencyKeyReused):
        run(timer.timer_id, request("key", body="another"))


def test_a_crash_of_a_run_under_a_key_makes_one_run_at_most(world: World) -> None:
    timer = made(world, 3_600)
    for number, moment in product(range(1, 10), ("before", "after")):
        once = request(f"{number}-{moment}")
        world.dies(partial(world.run_timer, timer.timer_id, once), number, moment)
        task = world.run_timer(timer.timer_id, once)
        assert world.run_timer(timer.timer_id, once) == task
    assert len([item for item in world.items() if "occurrence" in item]) == 18


def test_a_create_without_a_key_pays_nothing_for_keys_and_names(world: World) -> None:
    world.recorder.clear()
    made(world, 60)
    (write,) = [call for call in world.recorder.calls if call.operation == "TransactWriteItems"]
    assert len(write.request["TransactItems"]) == 4  # definition, line, chain, change
