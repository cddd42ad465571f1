"""Counters of outcomes by timer: one record each, to which pages add.

They are approximate. A notifier that crashes between a call and its count leaves it out,
and a retry of the SDK may count twice. The runs themselves, and the statistics of the business, are
exact.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.timers.outcome_counts import Counted
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class CounterStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def read(self, timer_id: str) -> dict[str, int]:
        """All counters; 0 for a damaged one."""
        answer = self.client.get_item(
            TableName=self.table,
            Key=registry_keys.timer_counters(timer_id),
            ConsistentRead=True,
        )
        item = answer.get("Item", {})
        return {name.value: _count(item, name) for name in Counted}

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
