"""Headers: the shard count of a second, recorded before an entry is put into a new shard.

The count only rises. A header gets a TTL when the sweep has passed its second. A process caches
counts. A cached count may be too small, never too large: entries are put where readers look.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger, report_unreadable
from duewheel.rules.businesses.settings import RETENTION_SECONDS_MAX
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.wheel import addresses
from duewheel.stores.batch_writes import READS_PER_BATCH, chunks, get_batch
from duewheel.stores.conditional_writes import Item, Refused, Throttled, write_if
from duewheel.stores.sweep.slices import shards_from

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class HeaderStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str
    buckets: int

    def read(self, seconds: Iterable[int]) -> dict[int, int]:
        """The shard counts of the seconds that have a header, eventually consistent. A failed read
        counts as no header: entries are then written to the first shard."""
        found: dict[int, int] = {}
        keys = [self._key(second) for second in dict.fromkeys(seconds)]
        for chunk in chunks(keys, READS_PER_BATCH):
            try:
                items = get_batch(self.client, self.clock, self.table, chunk, strongly=False)
            except (ClientError, BotoCoreError, Throttled) as error:
                logger.warning("headers not read", action="headers-not-read", error=str(error))
                continue
            for item in items:
                found[addresses.second_of(item["place"]["S"])] = _readable_shards(item)
        return found

    def raise_to(self, second: int, shards: int) -> int | None:
        """Raise the shard count of the second to at least this number. Returns the count, or None
        if it could not be written; then no new shard may be used."""
        try:
            result = write_if(
                self.client.update_item,
                TableName=self.table,
                Key=self._key(second),
                UpdateExpression="SET #shards = :shards",
                ConditionExpression="attribute_not_exists(#shards) OR #shards < :shards",
                ExpressionAttributeNames={"#shards": "shards"},
                ExpressionAttributeValues={":shards": {"N": str(shards)}},
            )
        except (ClientError, BotoCoreError, Throttled) as error:
            logger.warning("header not written", action="header-not-written", error=str(error))
            return None
        if isinstance(result, Refused):
            return None if result.item is None else _readable_shards(result.item)
        return shards

    def let_go(self, second: int) -> None:
        """Give the header a TTL when the sweep has passed the second. The audit reads it as long as
        ended tasks of the second may be kept."""
        expires_at = self.clock.now_ms() // 1000 + RETENTION_SECONDS_MAX
        write_if(
            self.client.update_item,
            TableName=self.table,
            Key=self._key(second),
            UpdateExpression="SET #expires_at = :expires_at",
            ConditionExpression="attribute_exists(#shards)",
            ExpressionAttributeNames={"#expires_at": "expires_at", "#shards": "shards"},
            ExpressionAttributeValues={":expires_at": {"N": str(expires_at)}},
        )

    def _key(self, second: int) -> dict[str, Any]:
        return {
            "slot": {"S": addresses.slot(second, 0, self.buckets)},
            "place": {"S": addresses.header_place(second)},
        }


def _readable_shards(header: Item) -> int:
    """A damaged header has no shard count; only the sweep reads all shards then."""
    try:
        return shards_from(header)
    except UnreadableItem as damaged:
        report_unreadable(damaged)
        return 1


_SECONDS_MAX = 10_000


class ShardsCache:
    """Of seconds with more than one shard. Past seconds are evicted when room is needed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shards: dict[int, int] = {}

    def of(self, seconds: Iterable[int]) -> dict[int, int]:
        return {second: self._shards[second] for second in seconds if second in self._shards}

    def keep(self, shards: Mapping[int, int]) -> None:
        for second, number in shards.items():
            if number > self._shards.get(second, 1):
                self._shards[second] = number
        if len(self._shards) > _SECONDS_MAX:
            now = self._clock.now_ms() // 1000
            ahead = [(second, n) for second, n in self._shards.items() if second >= now]
            self._shards = dict(ahead[-_SECONDS_MAX // 2 :])
