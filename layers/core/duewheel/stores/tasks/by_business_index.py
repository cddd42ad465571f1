"""The list index: the keys of a business's tasks by due instant.

It is eventually consistent: it says where to look, and the table says what is true.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.tasks.listing import Found, Listed, Stretch
from duewheel.stores.item_attributes import readable_ones
from duewheel.stores.tasks import codec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_INDEX = "by_business"


class ListIndex(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str
    buckets: int

    def first_keys(self, stretch: Stretch, count: int) -> Found:
        keys: list[Listed] = []
        start = self._start(stretch)
        while True:
            answer = self._query(stretch, count - len(keys), start)
            keys += readable_ones(answer["Items"], _listed)
            start = answer.get("LastEvaluatedKey")
            if start is None or len(keys) == count:
                return Found(keys, goes_on=start is not None)

    def _query(self, stretch: Stretch, count: int, start: Any) -> Any:
        arguments: dict[str, Any] = {} if start is None else {"ExclusiveStartKey": start}
        return self.client.query(
            TableName=self.table,
            IndexName=_INDEX,
            KeyConditionExpression="biz_part = :partition AND due_ms BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":partition": {"S": stretch.partition},
                ":low": {"N": str(stretch.low_ms)},
                ":high": {"N": str(stretch.high_ms)},
            },
            ScanIndexForward=stretch.is_ascending,
            Limit=count,
            **arguments,
        )

    def _start(self, stretch: Stretch) -> dict[str, Any] | None:
        """A position, not an item: the task there need not exist any more."""
        if stretch.after is None:
            return None
        return {
            **codec.key(stretch.after.home, self.buckets),
            "biz_part": {"S": stretch.partition},
            "due_ms": {"N": str(stretch.after.due_ms)},
        }


def _listed(item: Any) -> Listed:
    return Listed(int(item["due_ms"]["N"]), codec.address_of(item))
