"""Records of businesses and flow keys that may have parked tasks, in one partition of the Registry.

Invariant: a record gets a new mark before each write that begins or ends a pause, and is deleted
only if it is as it was read. So every parked task has a record that leads to it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.delivery.page_lease import LEASE_MS_MAX
from duewheel.rules.delivery.parked_tasks import Parking
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Written, get_batch, write_if, written
from duewheel.stores.item_attributes import InvalidAttribute, number, reported, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_LEASE = {"#owner": "owner", "#until": "until_ms"}
_SINCE = {"#since": "unpaused_ms"}
_MARK = {"#mark": "mark"}
_FREE = (
    "attribute_exists(#kind) AND (attribute_not_exists(#until) OR #owner = :me OR #until < :now)"
)


class ParkingRecords(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def mark(self, scope: str, mark: str) -> None:
        """A pause is about to begin or to end: earlier findings no longer count, and a run that is
        releasing loses its lease."""
        item = {**registry_keys.parking(scope), "mark": {"S": mark}}
        written(self.client.put_item, TableName=self.table, Item=item)

    def give_back_part(self, scope: str, part: int, me: str) -> None:
        write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.parking(scope),
            UpdateExpression="REMOVE #owner, #until",
            ConditionExpression="#owner = :me",
            ExpressionAttributeNames=_lease_of(part),
            ExpressionAttributeValues={":me": {"S": me}},
        )

    def take(
        self, scope: str, me: str, now_ms: int, lease_ms: int, part: int | None = None
    ) -> Parking | None:
        """Take the right to release, all or one slot; None if another run has it, if nothing can be
        parked, or if the record is damaged: then all stays parked. A new mark repairs it."""
        lease = _lease_of(part)
        result = write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.parking(scope),
            UpdateExpression="SET #owner = :me, #until = :until",
            ConditionExpression=_FREE,
            ExpressionAttributeNames={"#kind": "kind", **lease},
            ExpressionAttributeValues={
                ":me": {"S": me},
                ":until": {"N": str(now_ms + lease_ms)},
                ":now": {"N": str(now_ms)},
            },
            ReturnValues="ALL_NEW",
        )
        item = result.attributes if isinstance(result, Written) else result.item
        if item is None:
            return None
        try:
            parking = _parking(scope, item, lease["#until"], now_ms + LEASE_MS_MAX)
        except InvalidAttribute as error:
            reported(item, error.attribute)
            return None
        return parking if isinstance(result, Written) else None

    def give_back(self, parking: Parking, me: str, unpaused_ms: int | None) -> None:
        """Give the right back and record the findings. If the record has a new mark, the findings
        do not count."""
        update, names = "REMOVE #owner, #until", _LEASE | _MARK
        values: dict[str, Any] = {":me": {"S": me}}
        if unpaused_ms is not None:
            update += " SET #since = :since"
            names |= _SINCE
            values[":since"] = {"N": str(unpaused_ms)}
        condition, mark = _unchanged(parking)
        write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.parking(parking.scope),
            UpdateExpression=update,
            ConditionExpression=f"#owner = :me AND {condition}",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values | mark,
        )

    def forget(self, parking: Parking, me: str) -> None:
        """Delete the record, unless it has a new mark."""
        condition, mark = _unchanged(parking)
        write_if(
            self.client.delete_item,
            TableName=self.table,
            Key=registry_keys.parking(parking.scope),
            ConditionExpression=f"#owner = :me AND {condition}",
            ExpressionAttributeNames={"#owner": "owner"} | _MARK,
            ExpressionAttributeValues={":me": {"S": me}} | mark,
        )

    def known_of(self, scopes: Iterable[str]) -> set[str]:
        """Those of these that have a record."""
        keys = [registry_keys.parking(scope) for scope in dict.fromkeys(scopes)]
        items = get_batch(self.client, self.clock, self.table, keys)
        return {str(item["record"]["S"]) for item in items}

    def scopes(self) -> list[str]:
        """All that may have parked tasks, eventually consistent."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind",
            ProjectionExpression="#record",
            ExpressionAttributeNames={"#kind": "kind", "#record": "record"},
            ExpressionAttributeValues={":kind": {"S": registry_keys.PARKING_KIND}},
        )
        return [str(item["record"]["S"]) for page in pages for item in page["Items"]]


def _lease_of(part: int | None) -> dict[str, str]:
    if part is None:
        return _LEASE
    return {"#owner": f"owner_{part}", "#until": f"until_ms_{part}"}


def _unchanged(parking: Parking) -> tuple[str, dict[str, Any]]:
    if parking.mark is None:
        return "attribute_not_exists(#mark)", {}
    return "#mark = :mark", {":mark": {"S": parking.mark}}


def _parking(scope: str, item: Item, until: str, latest_ms: int) -> Parking:
    def instant(name: str) -> int | None:
        return number(item, name, latest_ms) if name in item else None

    instant(until)
    mark = text(item, "mark") if "mark" in item else None
    return Parking(scope, mark, instant("unpaused_ms"))
