"""Order items: one for each live task of a flow key whose tasks are called in order, in the order
of their places.

An item is put before its task is written. A removal says up to which version of the task the item
may have been put, so a late one does not remove the item of a task that lives again.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from duewheel.rules.refusals import MalformedTaskId
from duewheel.rules.tasks.flow_order import KEPT_SECONDS, Line, OrderItem
from duewheel.rules.wheel.addresses import home_of_order_place, order_slot
from duewheel.stores import item_attributes
from duewheel.stores.dynamodb import Item, write_batch, write_if
from duewheel.stores.item_attributes import (
    InstantMs,
    InvalidAttribute,
    N,
    S,
    Text,
    readable_ones,
    reads_an_item,
)
from duewheel.stores.tasks.plan_codec import Version
from duewheel.stores.tasks.tasks import TaskStore

LOOKED_AT = 10

_IS_OLDER = (
    "attribute_not_exists(place) OR #version < :version"
    " OR (#version = :version AND attribute_not_exists(overtakes))"
)
_Place = Annotated[str, Meta(pattern=r"^[0-9]{14}#[A-Za-z0-9_-]+$")]


class _Row(Struct, kw_only=True):
    place: S[_Place]
    version: N[Version]
    written_ms: N[InstantMs]
    overtakes: S[Text] | None = None


class OrderItemStore(Struct, frozen=True):
    tasks: TaskStore

    def put(self, items: Mapping[Line, Sequence[OrderItem]]) -> list[tuple[Line, OrderItem]]:
        """Put them. Returns those that DynamoDB left unwritten."""
        puts = [(line, item) for line, some in items.items() for item in some]
        if len(puts) == 1:
            self._put_alone(*puts[0])
            return []
        requests = [{"PutRequest": {"Item": _item(line, item)}} for line, item in puts]
        tasks = self.tasks
        left = write_batch(tasks.client, tasks.clock, tasks.table, requests)
        unwritten = {_name(one["PutRequest"]["Item"]) for one in left}
        return [one for one in puts if _name(_key(one[0], one[1].place)) in unwritten]

    def _put_alone(self, line: Line, item: OrderItem) -> None:
        """Unless the item of a later version is there, or one that says more: a late repeat takes
        nothing away."""
        write_if(
            self.tasks.client.put_item,
            TableName=self.tasks.table,
            Item=_item(line, item),
            ConditionExpression=_IS_OLDER,
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={":version": {"N": str(item.version)}},
        )

    def between(
        self, line: Line, first: str, last: str, limit: int = LOOKED_AT
    ) -> tuple[list[OrderItem], bool]:
        """The items at these places and between them, strongly consistent, and whether there may
        be more. Damaged ones are reported and left out."""
        answer = self.tasks.client.query(
            TableName=self.tasks.table,
            KeyConditionExpression="slot = :slot AND place BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":slot": {"S": _slot(line)},
                ":first": {"S": first},
                ":last": {"S": last},
            },
            Limit=limit,
            ConsistentRead=True,
        )
        return readable_ones(list(answer["Items"]), _order_item), "LastEvaluatedKey" in answer

    def remove(self, line: Line, place: str, version: int) -> None:
        """Unless it was put for a later version of its task."""
        write_if(
            self.tasks.client.delete_item,
            TableName=self.tasks.table,
            Key=_key(line, place),
            ConditionExpression="attribute_not_exists(place) OR #version <= :version",
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={":version": {"N": str(version)}},
        )

    def remove_for_good(self, places: Sequence[tuple[Line, str]]) -> None:
        """Of tasks that never live again, or were never created. Those that DynamoDB leaves are
        stale."""
        requests = [{"DeleteRequest": {"Key": _key(line, place)}} for line, place in places]
        write_batch(self.tasks.client, self.tasks.clock, self.tasks.table, requests)


def _slot(line: Line) -> str:
    return order_slot(line.biz_type, line.flow_key)


def _key(line: Line, place: str) -> dict[str, Any]:
    return {"slot": {"S": _slot(line)}, "place": {"S": place}}


def _item(line: Line, item: OrderItem) -> dict[str, Any]:
    kept_until = max(item.instant_ms, item.written_ms) // 1000 + KEPT_SECONDS
    row = {
        **_key(line, item.place),
        "version": {"N": str(item.version)},
        "written_ms": {"N": str(item.written_ms)},
        "expires_at": {"N": str(kept_until)},
    }
    if item.overtakes is not None:
        row["overtakes"] = {"S": item.overtakes}
    return row


@reads_an_item
def _order_item(item: Item) -> OrderItem:
    row = item_attributes.attributes(item, _Row)
    try:
        home_of_order_place(row.place.S)
    except MalformedTaskId as error:
        raise InvalidAttribute("place") from error
    return OrderItem(
        place=row.place.S,
        version=row.version.N,
        written_ms=row.written_ms.N,
        overtakes=row.overtakes and row.overtakes.S,
    )


def _name(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["slot"]["S"], item["place"]["S"]
