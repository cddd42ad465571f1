"""The record of permits: changed by one run at a time; a damaged one stops what it bounds."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.delivery.permits import Holding, Permits
from duewheel.rules.refusals import UnreadableItem
from duewheel.stores import registry_keys
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.dynamodb import Throttled
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.support.world import World


@pytest.fixture
def store(world: World) -> PermitStore:
    return PermitStore(world.dynamodb, world.settings.registry_table)


def with_holder(owner: str, count: int = 1) -> Any:
    def plan(permits: Permits) -> Permits:
        held = {**permits.held, owner: Holding(count, NOON_MS)}
        return replace(permits, version=permits.version + 1, held=held)

    return plan


def test_a_change_is_read_back_and_a_plan_of_nothing_writes_nothing(
    world: World, store: PermitStore
) -> None:
    assert store.read("orders") == Permits()
    changed = store.change("orders", with_holder("a", 3))
    assert changed == store.read("orders") == Permits(version=1, held={"a": Holding(3, NOON_MS)})
    before = len(world.recorder.calls)
    assert store.change("orders", lambda permits: None) == changed
    assert [call.operation for call in world.recorder.calls[before:]] == ["GetItem"]


def test_a_change_that_another_run_precedes_is_planned_again(store: PermitStore) -> None:
    others = iter(["b", "c"])

    def plan(permits: Permits) -> Permits:
        if (other := next(others, None)) is not None:
            store.change("orders", with_holder(other))
        return with_holder("a")(permits)

    changed = store.change("orders", plan)
    assert changed.held.keys() == {"a", "b", "c"}
    assert changed.version == 3


def test_a_record_that_changes_all_the_time_counts_as_throttled(store: PermitStore) -> None:
    def plan(permits: Permits) -> Permits:
        store.change("orders", with_holder("b"))
        return with_holder("a")(permits)

    with pytest.raises(Throttled):
        store.change("orders", plan)


def test_places_follow_each_other_in_two_lines(store: PermitStore) -> None:
    first = store.line_up("orders", 3, NOON_MS, 10_000, is_late=False)
    second = store.line_up("orders", 2, NOON_MS, 10_000, is_late=False)
    late = store.line_up("orders", 1, NOON_MS + 5, 10_000, is_late=True)
    assert first.instants_ms() == [NOON_MS, NOON_MS + 10, NOON_MS + 20]
    assert second.instants_ms() == [NOON_MS + 30, NOON_MS + 40]
    assert late.instants_ms() == [NOON_MS + 5]
    behind = store.line_up("orders", 1, NOON_MS + 90_000, 10_000, is_late=False)
    assert behind.instants_ms() == [NOON_MS + 90_000]


def test_a_change_of_permits_leaves_the_lines_as_they_are(store: PermitStore) -> None:
    store.line_up("orders", 3, NOON_MS, 10_000, is_late=False)
    permits = store.change("orders", with_holder("a"))
    assert (permits.line_us, permits.late_us) == (NOON_MS * 1_000 + 30_000, 0)
    store.line_up("orders", 1, NOON_MS, 10_000, is_late=True)
    assert store.read("orders").held == {"a": Holding(1, NOON_MS)}


def test_the_record_expires_well_after_what_it_says(world: World, store: PermitStore) -> None:
    store.change("orders", with_holder("a"))
    item = world.dynamodb.get_item(
        TableName=world.settings.registry_table, Key=registry_keys.permits("orders")
    )["Item"]
    assert int(item["expires_at"]["N"]) > NOON_MS // 1_000 + 6 * 86_400


DAMAGE: list[tuple[str, dict[str, str] | None]] = [
    ("held", {"S": "[]"}),
    ("held", {"S": '{"a":["many",1]}'}),
    ("held", None),
    ("version", {"S": "one"}),
    ("version", None),
    ("call_us", {"S": "long"}),
    ("line_us", {"S": "end"}),
    ("line_us", {"N": "9" * 30}),
    ("late_us", {"N": "-1"}),
]


@each_case(("attribute", "value"), DAMAGE)
def test_a_damaged_record_is_reported_and_gives_no_permit(
    attribute: str,
    value: dict[str, str] | None,
    world: World,
    store: PermitStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.clear()
    store.change("orders", with_holder("a"))
    table, key = world.settings.registry_table, registry_keys.permits("orders")
    item = world.dynamodb.get_item(TableName=table, Key=key)["Item"]
    item.pop(attribute, None)
    damaged = item if value is None else {**item, attribute: value}
    world.dynamodb.put_item(TableName=table, Item=damaged)
    with pytest.raises(UnreadableItem):
        store.read("orders")
    with pytest.raises(UnreadableItem):
        store.change("orders", with_holder("b"))
    left = world.dynamodb.get_item(TableName=table, Key=key)["Item"]
    world.dynamodb.delete_item(TableName=table, Key=key)
    assert left == damaged
    assert [record.__dict__["action"] for record in caplog.records] == ["unreadable"] * 2


def test_a_record_holds_as_many_works_as_it_can_be_read_with(store: PermitStore) -> None:
    works = {f"task:{number:028d}": Holding(1, NOON_MS) for number in range(3_000)}
    store.change("orders", lambda permits: replace(permits, version=1, held=works))
    assert store.read("orders").held == works
    more = works | {f"more:{number:028d}": Holding(1, NOON_MS) for number in range(3_000)}
    with pytest.raises(Throttled):
        store.change("orders", lambda permits: replace(permits, version=2, held=more))
    assert store.read("orders").held == works
