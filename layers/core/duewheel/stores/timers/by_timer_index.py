"""The index of a timer's occurrences, past and future: their homes by due instant.

It is eventually consistent: it says where to look, and the table says what is true.
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
        """The next occurrences behind a place, in order, and whether there may be more. The place
        need not exist."""
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
