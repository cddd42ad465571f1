"""The rate of each flow key, beside that of its business."""

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.rate_limit import RateLimit
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores import registry_keys
from duewheel.stores.businesses.rate_limits import CALLS, KEY_KEPT_SECONDS
from duewheel.stores.tasks import codec
from tests.support.world import World


def limited(world: World, per_second: float = 1.0, **own: object) -> None:
    flow = Flow(FlowLimits(calls_per_second=per_second), {"free/": FlowLimits()})
    world.configured("orders", flow=flow, **own)


def called_ms(world: World, since_ms: int = 0) -> dict[str | None, list[int]]:
    """When the tasks of each key were called, in order."""
    found: dict[str | None, list[int]] = defaultdict(list)
    for task in tasks_of(world, since_ms):
        found[task.flow_key] += [attempt.at_ms for attempt in task.history]
    return {key: sorted(instants) for key, instants in found.items()}


def tasks_of(world: World, since_ms: int = 0) -> list[Task]:
    found = [codec.task_from(item) for item in world.items() if "status" in item]
    return [task for task in found if task.created_ms >= since_ms]


def created(world: World, *keys: str | None, in_ms: int = 60_000) -> None:
    world.created_many(world.new(in_ms, flow_key=key) for key in keys)


def turns_of(world: World, scope: str) -> dict[str, object] | None:
    key = registry_keys.turns(CALLS, scope)
    table = world.settings.registry_table
    return world.dynamodb.get_item(TableName=table, Key=key).get("Item")  # type: ignore[return-value]


def test_tasks_of_one_key_take_turns_and_those_of_others_are_on_time(world: World) -> None:
    limited(world)
    created(world, *["a"] * 6, "b", None, "free/1", "free/1")
    due_ms = tasks_of(world)[0].due_ms
    world.let_pass(75)
    called = called_ms(world)
    assert [at - due_ms for at in called["a"]] == [0, 1_000, 2_000, 3_000, 4_000, 5_000]
    assert called["b"] == called[None] == [due_ms]
    assert called["free/1"] == [due_ms, due_ms]


def test_a_key_that_waits_takes_no_turns_of_its_business(world: World) -> None:
    limited(world, calls_per_second=2.0)
    created(world, *["a"] * 20, "b", "c", "d")
    world.let_pass(120)
    due_ms = tasks_of(world)[0].due_ms
    called = called_ms(world)
    assert all(called[key][0] < due_ms + 4_000 for key in "bcd")
    assert len(called["a"]) == 20
    assert are_apart(called["a"], 1_000)


def test_calls_of_a_key_that_wait_for_turns_of_the_business_do_not_come_together(
    world: World,
) -> None:
    """Turns of the key a third of a second apart; those of the business come a second later, a
    tenth apart."""
    limited(world, 3.0, calls_per_second=10.0)
    created(world, *[None] * 10, *["a"] * 4)
    world.let_pass(75)
    called = called_ms(world)["a"]
    assert len(called) == 4
    assert are_apart(called, 1_000 / 3)


def test_a_task_without_a_limited_key_takes_no_turn(world: World) -> None:
    limited(world)
    created(world, None, "free/1")
    world.let_pass(65)
    assert called_ms(world).keys() == {None, "free/1"}
    assert not any("turns#" in str(call.request) for call in world.recorder.calls)


def test_a_page_writes_the_turns_of_a_key_once(world: World) -> None:
    limited(world, 10.0)
    created(world, *["a"] * 5)
    before = len(world.recorder.calls)
    world.let_pass(65)
    record = registry_keys.turns(CALLS, "orders#a")
    writes = [
        call
        for call in world.recorder.calls[before:]
        if call.request.get("Key") == record and call.operation == "UpdateItem"
    ]
    assert len(writes) == 2  # with the creation of the record


def test_the_turns_of_a_key_expire_a_week_after_the_last_instant_and_those_of_a_business_never(
    world: World,
) -> None:
    limited(world, 0.01, calls_per_second=50.0)
    created(world, *["a"] * 5)
    world.let_pass(62)
    item = turns_of(world, "orders#a")
    assert item is not None
    last_us = max(int(item[name]["N"]) for name in ("free_us", "line_us", "late_us"))  # type: ignore[index]
    expires_at = int(item["expires_at"]["N"])  # type: ignore[index]
    assert expires_at >= last_us / 1_000_000 + KEY_KEPT_SECONDS
    business = turns_of(world, "orders")
    assert business is not None
    assert "expires_at" not in business


def test_others_who_move_the_turns_meanwhile_do_not_bring_their_expiry_forward(
    world: World,
) -> None:
    rate, now_us = RateLimit(0.01, 1), world.clock.now_ms() * 1_000
    world.turns.line_up("orders#a", rate, 1, now_us)
    world.turns.line_up("orders#a", rate, 100, now_us)
    world.turns.line_up("orders#a", rate, 1, now_us)
    item = turns_of(world, "orders#a")
    assert item is not None
    assert int(item["expires_at"]["N"]) >= int(item["line_us"]["N"]) / 1e6 + KEY_KEPT_SECONDS  # type: ignore[index]


def are_apart(instants: list[int], interval_ms: float) -> bool:
    """A call may come one interval after its turn; instants are rounded to a millisecond."""
    return all(
        at - instants[first] >= (last - first - 1) * interval_ms - 2
        for first in range(len(instants))
        for last, at in enumerate(instants[first + 1 :], first + 1)
    )


@pytest.mark.exhaustive  # many examples of what the tests before it show once
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    keys=st.lists(st.sampled_from(["a", "b", "free/1", None]), min_size=1, max_size=25),
    apart_ms=st.sampled_from([0, 100, 700]),
    per_second=st.sampled_from([0.5, 1.0, 5.0]),
    of_business=st.sampled_from([None, 1.0, 3.0, 10.0]),
)
def test_no_window_of_a_key_has_more_calls_than_its_rate_allows(
    world: World,
    keys: list[str | None],
    apart_ms: int,
    per_second: float,
    of_business: float | None,
) -> None:
    # Behind a lower rate of the business they may come together: docs/delivery.md says it.
    assume(of_business is None or of_business >= per_second)
    since_ms = world.clock.now_ms()
    limited(world, per_second, calls_per_second=of_business)
    world.clock.advance_ms(6_000)
    for number, key in enumerate(keys):
        created(world, key, in_ms=20_000 + number * apart_ms)
    for _ in range(40):
        world.let_pass(5)
        if all(task.status is Status.DELIVERED for task in tasks_of(world, since_ms)):
            break
    called = called_ms(world, since_ms)
    assert sum(map(len, called.values())) == len(keys)
    assert are_apart(called.get("a", []), 1_000 / per_second)
    assert are_apart(called.get("b", []), 1_000 / per_second)
    if of_business is None:
        for task in tasks_of(world, since_ms):
            if task.flow_key in ("free/1", None):
                assert task.history[0].at_ms == task.due_ms
