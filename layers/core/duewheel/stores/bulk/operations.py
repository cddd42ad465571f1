"""Bulk operations in the Registry: a record each, beside those of its business; its ids and its
refused items in a partition of its own; and a marker while it is open, in the small partition that
the sweeper and the workers read. A marker is put under a number of its caller, if that is free.

A worker writes on condition of its lease and of the number of its last write. A refusal that shows
its own write counts as written, since a retry of the SDK can meet its first try.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.bulk.open_ones import WORKERS, Marker, OpenOnes
from duewheel.rules.bulk.operation import (
    LEASE_MS,
    PARTS_KEPT_SECONDS,
    Operation,
    RefusedItem,
    State,
)
from duewheel.rules.bulk.requests import named_operation
from duewheel.rules.refusals import UnreadableItem
from duewheel.stores import registry_keys
from duewheel.stores.bulk import codec
from duewheel.stores.dynamodb import Item, Written, get_batch, transact, write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

T = TypeVar("T")


class OperationStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def create(self, operation: Operation, ids: tuple[str, ...], *along: Any) -> bool:
        """False if another has its id or its marker, or if the condition of another part did not
        hold."""
        marker = codec.marker_item(codec.marker_of(operation))
        parts = [
            self._put(codec.operation_item(operation), **registry_keys.IF_ABSENT),
            self._put(marker, **registry_keys.IF_ABSENT),
        ]
        if ids:
            key = registry_keys.operation_ids(operation.operation_id)
            parts.append(self._put({**key, **codec.ids_attribute(ids), **self._kept()}))
        return transact(self.client, [*parts, *along])

    def read(self, biz_type: str, mark: str) -> Operation | None:
        """Raises UnreadableItem, and reports it, if the record is damaged."""
        item = self._item(registry_keys.operation(biz_type, mark))
        return None if item is None else self._unless_gone(codec.operation_from(item))

    def ids(self, operation: Operation) -> tuple[str, ...]:
        item = self._item(registry_keys.operation_ids(operation.operation_id))
        return () if item is None else codec.ids_from(item)

    def page(
        self, biz_type: str, behind: str | None, limit: int
    ) -> tuple[list[tuple[str, Operation | None]], bool]:
        """The latest first: marks with their operations, and whether there may be more. None for
        one that has expired, or that is damaged."""
        start: dict[str, Any] = {}
        if behind is not None:
            start["ExclusiveStartKey"] = registry_keys.operation(biz_type, behind)
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind",
            ProjectionExpression=", ".join(f"#{name}" for name in codec.SHOWN),
            ExpressionAttributeNames={f"#{name}": name for name in codec.SHOWN},
            ExpressionAttributeValues={":kind": {"S": registry_keys.operations_kind(biz_type)}},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=limit,
            **start,
        )
        found = [
            (str(item["record"]["S"]), self._unless_gone(_readable(item, codec.operation_from)))
            for item in answer["Items"]
        ]
        return found, "LastEvaluatedKey" in answer

    def stop(self, operation: Operation) -> Operation | None:
        """As it is afterwards; None if it is gone."""
        write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.operation(operation.biz_type, operation.mark),
            UpdateExpression="SET #state = :stopping, updated_ms = :now",
            ConditionExpression="#state = :running",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues={
                ":running": {"S": State.RUNNING},
                ":stopping": {"S": State.STOPPING},
                ":now": {"N": str(self.clock.now_ms())},
            },
        )
        return self.read(operation.biz_type, operation.mark)

    # The open ones

    def open_ones(self) -> OpenOnes:
        """Without those that are damaged, which are reported."""
        markers = {one.operation_id: one for one in self.markers()}
        keys = [registry_keys.operation(*named_operation(one)) for one in markers]
        items = get_batch(self.client, self.clock, self.table, keys) if keys else []
        found = {_id_of(item): _readable(item, codec.operation_from) for item in items}
        known = [one for one in found.values() if one is not None]
        over = [one.operation_id for one in known if not one.state.is_open]
        over += [one for one in markers if one not in found]
        return OpenOnes([one for one in known if one.state.is_open], [markers[one] for one in over])

    def claim(self, operation: Operation, owner: str, now_ms: int) -> Operation | None:
        """The operation with its lease; None if another has it, or if it has ended."""
        result = write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.operation(operation.biz_type, operation.mark),
            UpdateExpression="SET #owner = :owner, lease_until_ms = :until",
            ConditionExpression="#state IN (:running, :stopping) AND "
            "(attribute_not_exists(lease_until_ms) OR lease_until_ms <= :now)",
            ExpressionAttributeNames={"#owner": "owner", "#state": "state"},
            ExpressionAttributeValues={
                ":owner": {"S": owner},
                ":until": {"N": str(now_ms + LEASE_MS)},
                ":now": {"N": str(now_ms)},
                ":running": {"S": State.RUNNING},
                ":stopping": {"S": State.STOPPING},
            },
            ReturnValues="ALL_NEW",
        )
        if isinstance(result, Written):
            return codec.operation_from(result.attributes)
        current = None if result.item is None else codec.operation_from(result.item)
        return current if current is not None and current.owner == owner else None

    def write(
        self, before: Operation, after: Operation, refused: Sequence[RefusedItem] = ()
    ) -> Operation | None:
        """What its worker has done, with the lease anew unless it gives it back. `before`: as it
        was claimed or written last. Returns the operation as it is now, since it may have been
        stopped meanwhile; None if the lease is lost."""
        if after.owner is not None:
            after = replace(after, lease_until_ms=self.clock.now_ms() + LEASE_MS)
        after = replace(after, number=before.number + 1)
        update = self._update(before, after)
        if refused:
            key = registry_keys.refused_by_operation(before.operation_id, after.number)
            item = {**key, **codec.refused_attribute(list(refused)), **self._kept()}
            transact(self.client, [{"Update": update}, self._put(item)])
            current = self._item(update["Key"])
        else:
            result = write_if(self.client.update_item, **update, ReturnValues="ALL_NEW")
            current = result.attributes if isinstance(result, Written) else result.item
        shown = None if current is None else codec.operation_from(current)
        if shown is None or (shown.number, shown.owner) != (after.number, after.owner):
            return None
        if not after.state.is_open:
            self.forget(codec.marker_of(after))
        return shown

    def _update(self, before: Operation, after: Operation) -> dict[str, Any]:
        values = codec.progress(after)
        if after.state is not before.state:
            values["state"] = {"S": after.state}
        removed = [name for name in codec.AT_TIMES if name not in values]
        text = "SET " + ", ".join(f"#{name} = :{name}" for name in values)
        if removed:
            text += " REMOVE " + ", ".join(f"#{name}" for name in removed)
        names = {f"#{name}": name for name in (*values, *removed)}
        return {
            "TableName": self.table,
            "Key": registry_keys.operation(before.biz_type, before.mark),
            "UpdateExpression": text,
            "ConditionExpression": "#owner = :me AND #number = :seen",
            "ExpressionAttributeNames": {**names, "#owner": "owner", "#number": "number"},
            "ExpressionAttributeValues": {
                **{f":{name}": value for name, value in values.items()},
                ":me": {"S": str(before.owner)},
                ":seen": {"N": str(before.number)},
            },
        }

    def refused(
        self, operation: Operation, behind: int | None
    ) -> tuple[list[tuple[int, list[RefusedItem]]], bool]:
        """The refused items by the number of the write that counts them, those behind one of them,
        in order, and whether there may be more."""
        low = registry_keys.refused_by_operation(operation.operation_id, (behind or 0) + 1)
        high = registry_keys.refused_by_operation(operation.operation_id, 10**10 - 1)
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind AND #record BETWEEN :low AND :high",
            ExpressionAttributeNames={"#kind": "kind", "#record": "record"},
            ExpressionAttributeValues={
                ":kind": low["kind"],
                ":low": low["record"],
                ":high": high["record"],
            },
            ConsistentRead=True,
        )
        found = [
            (registry_keys.number_of_refused(item), codec.refused_from(item))
            for item in answer["Items"]
        ]
        return found, "LastEvaluatedKey" in answer

    def markers(self) -> list[Marker]:
        """Of all open operations: no more than may be open, and those made at the same time. Those
        that are damaged are reported and left out."""
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind",
            ExpressionAttributeNames={"#kind": "kind"},
            ExpressionAttributeValues={":kind": {"S": registry_keys.OPEN_OPERATIONS_KIND}},
            ConsistentRead=True,
        )
        found = (_readable(item, codec.marker_from) for item in answer["Items"])
        return [one for one in found if one is not None]

    def forget(self, marker: Marker) -> None:
        """Of an operation that has ended. Its number may be another's by now."""
        write_if(
            self.client.delete_item,
            TableName=self.table,
            Key=registry_keys.open_operation(marker.caller, marker.number),
            ConditionExpression="operation_id = :ended",
            ExpressionAttributeValues={":ended": {"S": marker.operation_id}},
        )

    # The seats of workers

    def take_seat(self, owner: str) -> int | None:
        """None if all are taken."""
        return next((seat for seat in range(WORKERS) if self.hold_seat(seat, owner)), None)

    def hold_seat(self, seat: int, owner: str) -> bool:
        """False if another has taken it."""
        now_ms = self.clock.now_ms()
        held = write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.worker_of_operations(seat),
            UpdateExpression="SET #owner = :me, lease_until_ms = :until",
            ConditionExpression="attribute_not_exists(#owner) OR #owner = :me "
            "OR lease_until_ms <= :now",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={
                ":me": {"S": owner},
                ":until": {"N": str(now_ms + LEASE_MS)},
                ":now": {"N": str(now_ms)},
            },
        )
        return isinstance(held, Written)

    def leave_seat(self, seat: int, owner: str) -> None:
        write_if(
            self.client.delete_item,
            TableName=self.table,
            Key=registry_keys.worker_of_operations(seat),
            ConditionExpression="#owner = :me",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={":me": {"S": owner}},
        )

    def _item(self, key: dict[str, Any]) -> Item | None:
        answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return answer.get("Item")

    def _unless_gone(self, operation: Operation | None) -> Operation | None:
        """TTL deletes within days; an expired record counts as deleted."""
        if operation is None or operation.expires_at is None:
            return operation
        return None if operation.expires_at * 1000 <= self.clock.now_ms() else operation

    def _kept(self) -> dict[str, Any]:
        return {"expires_at": {"N": str(self.clock.now_ms() // 1000 + PARTS_KEPT_SECONDS)}}

    def _put(self, item: dict[str, Any], **condition: Any) -> dict[str, Any]:
        return {"Put": {"TableName": self.table, "Item": item, **condition}}


def _readable(item: Item, read: Callable[[Item], T]) -> T | None:
    """None for a damaged one, which must not stop the others."""
    try:
        return read(item)
    except UnreadableItem:  # reported
        return None


def _id_of(item: Item) -> str:
    biz_type = item["kind"]["S"].removeprefix(registry_keys.operations_kind(""))
    return f"{biz_type}~{item['record']['S']}"
