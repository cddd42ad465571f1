"""Headers: how many shards a second has, announced before anything is put there.

The number only rises. A header has no TTL until the sweep has passed its second. A process keeps
the numbers that it has read. A kept number may be too small, never too large: entries are put
where readers look.
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
        """The shards of those seconds that have a header, eventually consistent. What is not
        seen is written where it always was, so a read that fails is not worth failing for."""
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
        """How many shards the second has now: so many at least, or None when that could not be
        written, and must not be used."""
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
        """The sweep has passed the second: nobody needs the header but the audit, as long as
        what has ended there may be kept."""
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
    """Of one that was damaged nobody but the sweep can say what it has said."""
    try:
        return shards_from(header)
    except UnreadableItem as damaged:
        report_unreadable(damaged)
        return 1


_SECONDS_MAX = 10_000


class ShardsCache:
    """Of seconds with more than one. What has passed is forgotten when room is needed."""

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
