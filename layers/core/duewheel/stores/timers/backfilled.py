"""Backfilled runs: a record for each, by timer and instant, so that it is made once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.wheel.addresses import Address, Second, address_named
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, get_batch
from duewheel.stores.item_attributes import reported, string

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

KEPT_SECONDS = 400 * 86_400


class Backfilled(Struct, frozen=True):
    """`mark`: of the operation that made it; `home` of its task. None: that cannot be read."""

    mark: str | None
    home: Address | None


class BackfilledRuns(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def seconds(self, timer_id: str, seconds: Sequence[Second]) -> set[Second]:
        """Those of these that have been made, strongly consistent."""
        keys = [registry_keys.timer_backfilled(timer_id, second) for second in seconds]
        items = get_batch(self.client, self.clock, self.table, keys)
        return {registry_keys.backfilled_second(item) for item in items}

    def read(self, timer_id: str, second: Second) -> Backfilled | None:
        answer = self.client.get_item(
            TableName=self.table,
            Key=registry_keys.timer_backfilled(timer_id, second),
            ConsistentRead=True,
        )
        return _from(answer["Item"]) if "Item" in answer else None

    def record(self, timer_id: str, second: Second, mark: str, home: Address) -> dict[str, Any]:
        """The part of the transaction that makes the run."""
        expires_at = self.clock.now_ms() // 1000 + KEPT_SECONDS
        item = {
            **registry_keys.timer_backfilled(timer_id, second),
            "mark": {"S": mark},
            "home": {"S": home.name},
            "expires_at": {"N": str(expires_at)},
        }
        return {"Put": {"TableName": self.table, "Item": item, **registry_keys.IF_ABSENT}}


def _from(item: Item) -> Backfilled:
    try:
        return Backfilled(string(item["mark"]["S"]), address_named(item["home"]["S"]))
    except NOT_UNDERSTOOD:
        reported(item, "mark")
        return Backfilled(None, None)
