"""Records of requests under idempotency keys that make one thing, in one transaction with it.

So a record is there if, and only if, the thing was made, and it needs no lease. Creates of tasks
have records of another kind, since the tasks of a batch fit into no transaction.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.tasks.idempotency import IdempotentRequest, check_same
from duewheel.stores import registry_keys

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class MadeOnce(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def record(self, request: IdempotentRequest, made: str, now_ms: int) -> dict[str, Any]:
        """The part of the transaction that makes it. `made`: its id."""
        item = {
            **registry_keys.made(request.name),
            "digest": {"S": request.digest},
            "made": {"S": made},
            "expires_at": {"N": str(-(-now_ms // 1000) + request.remembered_seconds)},
        }
        return {
            "Put": {
                "TableName": self.table,
                "Item": item,
                "ConditionExpression": "attribute_not_exists(#kind) OR expires_at <= :now",
                "ExpressionAttributeNames": {"#kind": "kind"},
                "ExpressionAttributeValues": {":now": {"N": str(now_ms // 1000)}},
            }
        }

    def made(self, request: IdempotentRequest, now_ms: int) -> str | None:
        """The id of what the request has made. Refuses a key that came with another request."""
        answer = self.client.get_item(
            TableName=self.table, Key=registry_keys.made(request.name), ConsistentRead=True
        )
        item = answer.get("Item")
        if item is None or int(item["expires_at"]["N"]) <= now_ms // 1000:
            return None
        check_same(request, item["digest"]["S"])
        return item["made"]["S"]
