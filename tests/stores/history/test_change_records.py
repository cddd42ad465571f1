"""The last changes of a definition: one item with up to ten changes, the latest first."""

from typing import Any

import pytest

from duewheel.rules.history.changes import (
    DELETED_KEPT_SECONDS,
    KEPT_MAX,
    Change,
    ChangeAction,
    Difference,
    KeptChanges,
    Subject,
)
from duewheel.rules.refusals import UnreadableItem
from duewheel.stores import registry_keys
from duewheel.stores.history.change_records import ChangeRecords
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.support.damage import edit
from tests.support.world import CALLER, World

ORDERS = Subject("business", "orders", owner="orders")
SHOWN = Difference("retention_days", (None, 7))
IF_THERE: Any = {"ConditionExpression": "attribute_exists(unheard_of)"}
EVERY_FORM = (SHOWN, Difference("allowed_hosts", (["a.example"], None)), Difference("callback"))


@pytest.fixture
def records(world: World) -> ChangeRecords:
    return ChangeRecords(world.dynamodb, world.settings.registry_table)


def change(version: int, did: ChangeAction = ChangeAction.CONFIGURED, **fields: Any) -> Change:
    return Change(
        version=version, at_ms=fields.pop("at_ms", NOON_MS + version), by=CALLER, did=did, **fields
    )


def keep(records: ChangeRecords, *changes: Change, thing: Subject = ORDERS) -> None:
    for one in changes:
        assert records.write([], thing, one, lambda: False)


def kept(records: ChangeRecords, thing: Subject = ORDERS, now_ms: int = NOON_MS) -> KeptChanges:
    found = records.read(thing.kind, thing.name, now_ms)
    assert found is not None
    return found


def test_a_change_is_read_as_it_was_recorded(records: ChangeRecords) -> None:
    made = change(1, ChangeAction.CREATED, differences=EVERY_FORM)
    keep(records, made)
    assert kept(records) == KeptChanges("orders", (made,))
    assert records.read("timer", "orders", NOON_MS) is None
    assert records.read("business", "invoices", NOON_MS) is None


def test_the_last_ten_are_kept_the_latest_first(records: ChangeRecords) -> None:
    changes = [change(version) for version in range(1, KEPT_MAX + 4)]
    keep(records, *changes)
    assert kept(records).changes == tuple(reversed(changes[-KEPT_MAX:]))


def test_of_two_changes_at_one_instant_the_later_version_is_first(records: ChangeRecords) -> None:
    keep(records, *(change(version, at_ms=NOON_MS) for version in (9, 10, 11)))
    assert [one.version for one in kept(records).changes] == [11, 10, 9]


def test_definitions_have_separate_changes(records: ChangeRecords) -> None:
    timer = Subject("timer", "orders", owner="billing")
    keep(records, change(1))
    keep(records, change(2), thing=timer)
    assert kept(records).changes == (change(1),)
    assert kept(records, timer) == KeptChanges("billing", (change(2),))


def test_changes_are_kept_for_a_time_after_the_deletion(records: ChangeRecords) -> None:
    keep(records, change(1), change(2, ChangeAction.DELETED))
    last_ms = NOON_MS + 2 + DELETED_KEPT_SECONDS * 1000 - 1_000
    assert len(kept(records, now_ms=last_ms).changes) == 2
    assert records.read("business", "orders", last_ms + 2_000) is None, "TTL deletes within days"


def test_a_definition_created_again_keeps_its_earlier_changes(records: ChangeRecords) -> None:
    keep(records, change(1, at_ms=NOON_MS), change(2, ChangeAction.DELETED))
    again = change(1, ChangeAction.CREATED, at_ms=NOON_MS + 10_000)
    keep(records, again)
    found = kept(records, now_ms=NOON_MS + 400 * 86_400_000).changes
    assert found == (again, change(2, ChangeAction.DELETED))


def test_a_repeated_write_accepts_only_its_own_record(records: ChangeRecords) -> None:
    check = {"TableName": records.table, "Key": registry_keys.SHAPE, **IF_THERE}

    def is_written(one: Change, is_as_left: bool = True) -> bool:
        return records.write([{"ConditionCheck": check}], ORDERS, one, lambda: is_as_left)

    assert not is_written(change(1))
    keep(records, change(1))
    assert is_written(change(1))
    assert not is_written(change(1), is_as_left=False)
    assert not is_written(change(1, ChangeAction.PAUSED))
    assert not is_written(change(11))


@pytest.mark.parametrize(
    ("name", "value"),
    [("owner", {"N": "1"}), ("expires_at", {"S": "soon"}), ("expires_at", {"N": "-1"})],
)
def test_a_record_without_a_valid_owner_or_expiry_is_unreadable(
    world: World, records: ChangeRecords, name: str, value: Any
) -> None:
    keep(records, change(1))
    edit(world, registry_keys.changes("business", "orders"), **{name: value})
    with pytest.raises(UnreadableItem, match=name):
        kept(records)


@each_case(
    "text",
    [
        "nonsense",
        "{}",
        "[2]",
        '[0,1,"a","paused",[]]',
        '[2,1,3,"paused",[]]',
        '[2,1,"a","eaten",[]]',
        '[2,1,"a","paused",[["lane","slow"]]]',
        '[2,1,"a","paused",[[]]]',
        '[2,1,"a","paused",7]',
    ],
)
def test_a_damaged_change_does_not_hide_the_others(
    world: World, records: ChangeRecords, text: str
) -> None:
    keep(records, change(1), change(2), change(3))
    edit(world, registry_keys.changes("business", "orders"), change2={"S": text})
    assert kept(records).changes == (change(3), change(1))
