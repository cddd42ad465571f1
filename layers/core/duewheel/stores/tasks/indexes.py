"""The indexes of tasks: those of a business by due instant, and its dead tasks by their deaths.

They are eventually consistent: they say where to look, and the table says what is true. A partition
of an index takes a thousand writes a second, so a business has sixteen in each.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from duewheel.fan_out import fan_out
from duewheel.rules.tasks import dead_tasks, listing
from duewheel.rules.tasks.dead_tasks import Died, Part
from duewheel.rules.tasks.listing import Listed
from duewheel.rules.wheel.addresses import LIST_PARTITIONS, Address
from duewheel.stores.item_attributes import readable_ones
from duewheel.stores.tasks import codec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_SPARE = 4
READERS = LIST_PARTITIONS

K = TypeVar("K")


class ListIndex(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str
    buckets: int

    def first_keys(self, stretch: listing.Stretch, count: int) -> listing.Found:
        after = stretch.after
        keys = _Range(
            index="by_business",
            partition=("biz_part", stretch.partition),
            instant="due_ms",
            low_ms=stretch.low_ms,
            high_ms=stretch.high_ms,
            is_ascending=stretch.is_ascending,
            after=None if after is None else (after.home, after.due_ms),
        )
        found, goes_on = _first(self, keys, count, _listed)
        return listing.Found(found, goes_on)


class DeadIndex(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str
    buckets: int
    readers: ThreadPoolExecutor

    def first(self, biz_type: str, stretch: dead_tasks.Stretch, count: int) -> dead_tasks.Found:
        """The first ones of a stretch, and whether there may be more."""
        # Tasks are spread by their homes, so twice the average of a partition, and a few, fill a
        # page.
        share = 2 * count // LIST_PARTITIONS + _SPARE

        def read(part: Part) -> dead_tasks.Found:
            return self._first(part, share, is_ascending=stretch.is_ascending)

        found = fan_out(self.readers, read, dead_tasks.parts(biz_type, stretch))
        return dead_tasks.merged(found, is_ascending=stretch.is_ascending)

    def _first(self, part: Part, count: int, *, is_ascending: bool) -> dead_tasks.Found:
        after = part.after
        keys = _Range(
            index="dead_by_business",
            partition=("dead_biz", part.partition),
            instant="settled_ms",
            low_ms=part.low_ms,
            high_ms=part.high_ms,
            is_ascending=is_ascending,
            after=None if after is None else (after.home, after.settled_ms),
        )
        found, goes_on = _first(self, keys, count, _died)
        return dead_tasks.Found(found, goes_on)


class _Range(Struct, frozen=True, kw_only=True):
    """Of the keys in one partition of an index, those from `low_ms` to `high_ms`, both included,
    behind `after`: a position, not an item, so it does not matter whether a task is still there."""

    index: str
    partition: tuple[str, str]  # name and value
    instant: str  # name
    low_ms: int
    high_ms: int
    is_ascending: bool = True
    after: tuple[Address, int] | None


def _first(
    of: ListIndex | DeadIndex, keys: _Range, count: int, read: Callable[[Any], K]
) -> tuple[list[K], bool]:
    """The first keys, `count` of them if there are so many, and whether there may be more."""
    name, value = keys.partition
    found: list[K] = []
    start: dict[str, Any] = {}
    if keys.after is not None:
        home, instant_ms = keys.after
        position = {name: {"S": value}, keys.instant: {"N": str(instant_ms)}}
        start = {"ExclusiveStartKey": codec.key(home, of.buckets) | position}
    while True:
        answer: Any = of.client.query(
            TableName=of.table,
            IndexName=keys.index,
            KeyConditionExpression=f"{name} = :partition AND {keys.instant} BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":partition": {"S": value},
                ":low": {"N": str(keys.low_ms)},
                ":high": {"N": str(keys.high_ms)},
            },
            ScanIndexForward=keys.is_ascending,
            Limit=count - len(found),
            **start,
        )
        found += readable_ones(answer["Items"], read)
        last = answer.get("LastEvaluatedKey")
        if last is None or len(found) == count:
            return found, last is not None
        start = {"ExclusiveStartKey": last}


def _listed(item: Any) -> Listed:
    return Listed(int(item["due_ms"]["N"]), codec.address_of(item))


def _died(item: Any) -> Died:
    return Died(int(item["settled_ms"]["N"]), codec.address_of(item))
