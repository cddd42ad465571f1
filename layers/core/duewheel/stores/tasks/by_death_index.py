"""The index of dead tasks: their homes by business and the instant of their death.

A partition of an index takes a thousand writes a second, so a business has sixteen, and one that
earlier releases wrote to. The index is eventually consistent: it says where to look, and the table
says what is true.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.fan_out import fan_out
from duewheel.rules.tasks.dead_tasks import Died, Found, Part, Stretch, merged, parts
from duewheel.rules.wheel.addresses import LIST_PARTITIONS
from duewheel.stores.item_attributes import readable_ones
from duewheel.stores.tasks import codec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_INDEX = "dead_by_business"
_SPARE = 4
READERS = 1 + LIST_PARTITIONS


class DeadIndex(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str
    buckets: int
    readers: ThreadPoolExecutor

    def first(self, biz_type: str, stretch: Stretch, count: int) -> Found:
        """The earliest deaths first, and whether there may be more."""
        # Tasks spread by their homes, so twice a partition's share and a few fill a page. What
        # earlier releases wrote is all in one.
        share = 2 * count // LIST_PARTITIONS + _SPARE

        def read(part: Part) -> Found:
            return self._first(part, count if part.partition == biz_type else share)

        return merged(fan_out(self.readers, read, parts(biz_type, stretch)))

    def _first(self, part: Part, count: int) -> Found:
        died: list[Died] = []
        start = self._start(part)
        while True:
            answer = self._query(part, count - len(died), start)
            died += readable_ones(answer["Items"], _died)
            start = answer.get("LastEvaluatedKey")
            if start is None or len(died) == count:
                return Found(died, goes_on=start is not None)

    def _query(self, part: Part, count: int, start: Any) -> Any:
        arguments: dict[str, Any] = {} if start is None else {"ExclusiveStartKey": start}
        return self.client.query(
            TableName=self.table,
            IndexName=_INDEX,
            KeyConditionExpression="dead_biz = :partition AND settled_ms BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":partition": {"S": part.partition},
                ":low": {"N": str(part.low_ms)},
                ":high": {"N": str(part.high_ms)},
            },
            Limit=count,
            **arguments,
        )

    def _start(self, part: Part) -> dict[str, Any] | None:
        """A position, not an item: the task there need not exist any more."""
        if part.after is None:
            return None
        return {
            **codec.key(part.after.home, self.buckets),
            "dead_biz": {"S": part.partition},
            "settled_ms": {"N": str(part.after.settled_ms)},
        }


def _died(item: Any) -> Died:
    is_spread = "#" in item["dead_biz"]["S"]  # which no name of a business holds
    return Died(int(item["settled_ms"]["N"]), codec.address_of(item), is_spread)
