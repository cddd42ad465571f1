"""Claims of names: of two requests that make a timer by one name at once, one is refused.

A record names the latest timer that was made by its name. It is written in the transaction that
makes the next one, on condition that it is as it was read before that name was looked for in the
list. So a timer that the list did not have yet refuses the transaction. After a day the record may
go, since no request is at work for so long.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.timers.timer import Timer
from duewheel.stores import registry_keys

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_KEPT_SECONDS = 86_400


class NameClaims(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def latest(self, biz_type: str, name: str) -> str | None:
        """The id of the latest timer, which may have been deleted."""
        answer = self.client.get_item(
            TableName=self.table, Key=registry_keys.timer_name(biz_type, name), ConsistentRead=True
        )
        return answer["Item"]["timer_id"]["S"] if "Item" in answer else None

    def claim(self, timer: Timer, seen: str | None) -> dict[str, Any]:
        """The part of the transaction that makes the timer."""
        condition = registry_keys.IF_ABSENT
        if seen is not None:
            condition = {
                "ConditionExpression": "timer_id = :seen",
                "ExpressionAttributeValues": {":seen": {"S": seen}},
            }
        item = {
            **registry_keys.timer_name(timer.biz_type, timer.rules.name),
            "timer_id": {"S": timer.timer_id},
            "expires_at": {"N": str(timer.created_ms // 1000 + _KEPT_SECONDS)},
        }
        return {"Put": {"TableName": self.table, "Item": item, **condition}}
