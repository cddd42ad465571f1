"""The index of a timer's occurrences: their homes by due instant, those to come included.

It follows the table a moment later, so what it says is where to look, never what is true.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.wheel.addresses import Address
from duewheel.stores.item_attributes import readable_ones
from duewheel.stores.tasks import codec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_INDEX = "by_timer"


class RunIndex(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def page(
        self, timer_id: str, *, newest_first: bool, behind: str | None, limit: int
    ) -> tuple[list[Address], bool]:
        """The next of them behind a place, in their order, and whether there may be more. Any text
        that sorts among places does: whether something stands there does not matter."""
        values: dict[str, Any] = {":timer": {"S": timer_id}}
        condition = "timer = :timer"
        if behind is not None:
            condition += f" AND place {'<' if newest_first else '>'} :behind"
            values[":behind"] = {"S": behind}
        answer: Any = self.client.query(
            TableName=self.table,
            IndexName=_INDEX,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            ScanIndexForward=not newest_first,
            Limit=limit,
        )
        return readable_ones(answer["Items"], codec.address_of), "LastEvaluatedKey" in answer
