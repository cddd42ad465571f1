"""The index of dead tasks: their homes by business and the instant of their death.

It follows the table a moment later, so what it says is where to look, never what is true.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.dead import Died, Stretch
from duewheel.stores import task_items
from duewheel.stores.attributes import readable_ones

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_INDEX = "dead_by_business"


class DeadIndex(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str
    buckets: int

    def first(self, biz_type: str, stretch: Stretch, count: int) -> tuple[list[Died], bool]:
        """The longest dead come first; and whether there may be more."""
        if stretch.low_ms > stretch.high_ms:
            return [], False
        answer: Any = self.client.query(
            TableName=self.table,
            IndexName=_INDEX,
            KeyConditionExpression="dead_biz = :business AND settled_ms BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":business": {"S": biz_type},
                ":low": {"N": str(stretch.low_ms)},
                ":high": {"N": str(stretch.high_ms)},
            },
            Limit=count,
            **self._behind(biz_type, stretch.after),
        )
        return readable_ones(answer["Items"], _died), "LastEvaluatedKey" in answer

    def _behind(self, biz_type: str, after: Died | None) -> dict[str, Any]:
        """A position, not an item: whether a task still stands there does not matter."""
        if after is None:
            return {}
        return {
            "ExclusiveStartKey": {
                **task_items.key(after.home, self.buckets),
                "dead_biz": {"S": biz_type},
                "settled_ms": {"N": str(after.settled_ms)},
            }
        }


def _died(item: Any) -> Died:
    return Died(int(item["settled_ms"]["N"]), task_items.address_of(item))
