"""The last changes of definitions in the Registry: one item for each change, beside the definition.

A change is a part of the transaction that writes the definition, and replaces the change of ten
versions before. The items expire some time after the definition has ended, unless it is created
again.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.history.changes import (
    KEPT_MAX,
    Change,
    ChangeAction,
    Difference,
    KeptChanges,
    Subject,
    gone_ms,
)
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, transact
from duewheel.stores.item_attributes import (
    InvalidAttribute,
    integer,
    json_text,
    number,
    reported,
    string,
    text,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class ChangeRecords(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def write(
        self,
        parts: Sequence[Any],
        subject: Subject,
        change: Change,
        is_as_left: Callable[[], bool],
    ) -> bool:
        """Write a definition by these parts of a transaction, with the record of its change. False
        if a condition did not hold. If a retry of the SDK is refused because its first try was
        carried out, definition and record are as that try left them: this counts as written."""
        if transact(self.client, [*parts, self._recorded(subject, change)]):
            return True
        return is_as_left() and self._is_recorded(subject, change)

    def _recorded(self, subject: Subject, change: Change) -> dict[str, Any]:
        values = {":change": {"S": _text(change)}, ":owner": {"S": subject.owner}}
        update = "SET #place = :change, #owner = :owner"
        if (gone := gone_ms(subject, change)) is None:
            update += " REMOVE #expires"
        else:
            update += ", #expires = :expires"
            values[":expires"] = {"N": str(-(-gone // 1000))}
        return {
            "Update": {
                "TableName": self.table,
                "Key": registry_keys.changes(subject.kind, subject.name),
                "UpdateExpression": update,
                "ExpressionAttributeNames": {
                    "#place": _place(change.version),
                    "#owner": "owner",
                    "#expires": "expires_at",
                },
                "ExpressionAttributeValues": values,
            }
        }

    def _is_recorded(self, subject: Subject, change: Change) -> bool:
        item = self._item(subject.kind, subject.name) or {}
        return item.get(_place(change.version)) == {"S": _text(change)}

    def read(self, kind: str, name: str, now_ms: int) -> KeptChanges | None:
        """None if nothing is kept. A damaged record is reported and left out. An expired item does
        not count: TTL deletes within days."""
        item = self._item(kind, name)
        if item is None:
            return None
        owner, expires_at = _whose_until(item)
        if expires_at is not None and expires_at <= now_ms // 1000:
            return None
        found = [_read(item, _place(digit)) for digit in range(KEPT_MAX)]
        changes = [change for change in found if change is not None]
        changes.sort(key=lambda change: (change.at_ms, change.version), reverse=True)
        return KeptChanges(owner, tuple(changes))

    def _item(self, kind: str, name: str) -> Item | None:
        answer = self.client.get_item(
            TableName=self.table, Key=registry_keys.changes(kind, name), ConsistentRead=True
        )
        return answer.get("Item")


def _place(version: int) -> str:
    return f"change{version % KEPT_MAX}"


def _whose_until(item: Item) -> tuple[str, int | None]:
    """Raises UnreadableItem, and reports it: the business decides who may read the changes."""
    try:
        expires_at = number(item, "expires_at") if "expires_at" in item else None
        return text(item, "owner"), expires_at
    except InvalidAttribute as error:
        raise reported(item, error.attribute) from error


def _text(change: Change) -> str:
    differences = [[one.setting, *(one.shown or ())] for one in change.differences]
    return json_text([change.version, change.at_ms, change.by, change.did, differences])


def _read(item: Item, place: str) -> Change | None:
    if place not in item:
        return None
    try:
        return _change(json.loads(item[place]["S"]))
    except NOT_UNDERSTOOD:
        reported(item, place)
        return None


def _change(row: list[Any]) -> Change:
    version, at_ms, by, did, differences = row
    return Change(
        version=integer(version, smallest=1),
        at_ms=integer(at_ms),
        by=string(by),
        did=ChangeAction(did),
        differences=tuple(_difference(*one) for one in differences),
    )


def _difference(setting: Any, *shown: Any) -> Difference:
    if not shown:
        return Difference(string(setting))
    before, after = shown
    return Difference(string(setting), (before, after))
