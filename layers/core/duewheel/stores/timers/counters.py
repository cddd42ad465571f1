"""Counters of outcomes by timer: one record each, to which pages add, and into which chains fold.

What pages add is approximate. A notifier that crashes between a call and its count leaves it out,
and a retry of the SDK may count twice. The runs themselves, and the statistics of the business, are
exact.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.log import logger
from duewheel.rules.timers.outcome_counts import OPEN_MAX, Counted, Folded
from duewheel.rules.wheel.addresses import Second, address_named
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Written, write_if
from duewheel.stores.item_attributes import reported

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


_FOLDED = "folded"


class _FoldedRow(Struct, array_like=True, forbid_unknown_fields=True):
    until_second: Second
    open_homes: Annotated[list[str], Meta(max_length=OPEN_MAX)]


_row = Decoder(_FoldedRow)


class Counters(Struct, frozen=True):
    """As they were read."""

    counts: dict[str, int]
    folded: Folded = Folded()
    seen: Any = None  # the attribute


class CounterStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def read(self, timer_id: str) -> Counters:
        """All counters; 0 for a damaged one. Strongly consistent, so that counts and the second up
        to which they are folded are those of the latest folding."""
        answer = self.client.get_item(
            TableName=self.table,
            Key=registry_keys.timer_counters(timer_id),
            ConsistentRead=True,
        )
        item = answer.get("Item", {})
        counts = {name.value: _count(item, name) for name in Counted}
        return Counters(counts, _folded(item), item.get(_FOLDED))

    def fold(
        self, timer_id: str, before: Counters, after: Folded, counts: Mapping[Counted, int]
    ) -> bool:
        """Add what was folded, once: False if another has folded since `before` was read, or an
        earlier try of this request."""
        row = after.until_second, [home.name for home in after.open_homes]
        request = self.add_request(timer_id, {Counted.FIRED: 0, **counts})
        names = request["ExpressionAttributeNames"]
        values = request["ExpressionAttributeValues"]
        request["UpdateExpression"] += " SET #folded = :after"
        names["#folded"] = _FOLDED
        values[":after"] = {"S": encode(row).decode()}
        request["ConditionExpression"] = "attribute_not_exists(#folded)"
        if before.seen is not None:
            request["ConditionExpression"] = "#folded = :seen"
            values[":seen"] = before.seen
        return isinstance(write_if(self.client.update_item, **request), Written)

    def add(self, timer_id: str, counts: Mapping[Counted, int]) -> None:
        """A failed count fails no call."""
        counts = {name: count for name, count in counts.items() if count}
        if not counts:
            return
        try:
            self.client.update_item(**self.add_request(timer_id, counts))
        except (ClientError, BotoCoreError) as error:
            logger.warning(
                "runs not counted", action="not-counted", timer_id=timer_id, error=str(error)
            )

    def add_request(self, timer_id: str, counts: Mapping[Counted, int]) -> dict[str, Any]:
        """The same, as a part of a transaction, in which it fails with the rest."""
        return {
            "TableName": self.table,
            "Key": registry_keys.timer_counters(timer_id),
            "UpdateExpression": "ADD " + ", ".join(f"#{name} :{name}" for name in counts),
            "ExpressionAttributeNames": {f"#{name}": name.value for name in counts},
            "ExpressionAttributeValues": {
                f":{name}": {"N": str(count)} for name, count in counts.items()
            },
        }


def _count(item: object, name: Counted) -> int:
    try:
        return int(item[name.value]["N"])  # type: ignore[index]
    except NOT_UNDERSTOOD:
        return 0


def _folded(item: Item) -> Folded:
    """A damaged one is begun anew: runs may be counted twice, as far back as they are recorded."""
    if _FOLDED not in item:
        return Folded()
    try:
        row = _row.decode(item[_FOLDED]["S"])
        return Folded(row.until_second, tuple(map(address_named, row.open_homes)))
    except NOT_UNDERSTOOD:
        reported(item, _FOLDED)
        return Folded()
