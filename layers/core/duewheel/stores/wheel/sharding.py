"""Sharding: the headers of seconds, which record their shard counts, and the load estimates.

A shard count is recorded before an entry is put into a new shard, and only rises. A header gets a
TTL when the sweep has passed its second. A process caches counts. A cached count may be too small,
never too large: entries are put where readers look.

Load estimates say how many entries future seconds are expected to hold: one record a minute, under
one key for each hour.
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
from duewheel.rules.wheel.sharding import MinuteLoad
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import (
    READS_PER_BATCH,
    Item,
    Refused,
    Throttled,
    chunks,
    get_batch,
    write_if,
)
from duewheel.stores.sweep.slices import shards_from

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_SECONDS_MAX = 10_000
_MINUTES_PER_HOUR = 60
_KEPT_SECONDS = 86_400
_SECOND = "s"


class HeaderStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str
    buckets: int

    def read(self, seconds: Iterable[int]) -> dict[int, int]:
        """The shard counts of the seconds that have headers, eventually consistent. A failed read
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
                found[addresses.second_of(item["place"]["S"])] = _readable(item)
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
        if not isinstance(result, Refused):
            return shards
        return None if result.item is None else _readable(result.item)

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


def _readable(header: Item) -> int:
    """A damaged header counts as none; only the sweep reads all shards then."""
    try:
        return shards_from(header)
    except UnreadableItem as damaged:
        report_unreadable(damaged)
        return 1


class HeaderCache:
    """Shard counts of seconds with more than one. Past seconds are evicted when room is needed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shards: dict[int, int] = {}

    def of(self, seconds: Iterable[int]) -> dict[int, int]:
        return {second: self._shards[second] for second in seconds if second in self._shards}

    def one(self, second: int) -> int:
        return self._shards.get(second, 1)

    def keep(self, found: Mapping[int, int]) -> None:
        for second, shards in found.items():
            if shards > self.one(second):
                self._shards[second] = shards
        if len(self._shards) > _SECONDS_MAX:
            now = self._clock.now_ms() // 1000
            ahead = [(second, one) for second, one in self._shards.items() if second >= now]
            self._shards = dict(ahead[-_SECONDS_MAX // 2 :])


class LoadStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def add(self, loads: Iterable[MinuteLoad]) -> dict[int, float]:
        """Add to the expected entries of these seconds; returns the new estimates. A failed write
        is ignored, and gives no estimates."""
        expected: dict[int, float] = {}
        for load in loads:
            try:
                expected |= self._add(load)
            except (ClientError, BotoCoreError) as error:
                logger.warning("load not noted", action="load-not-noted", error=str(error))
        return expected

    def between(self, first_minute: int, last_minute: int) -> list[MinuteLoad]:
        """The minutes that have a record, in order, both bounds included."""
        first_hour, last_hour = first_minute // _MINUTES_PER_HOUR, last_minute // _MINUTES_PER_HOUR
        return [
            _load_from(item)
            for hour in range(first_hour, last_hour + 1)
            for item in self._hour(hour, first_minute, last_minute)
        ]

    def _add(self, load: MinuteLoad) -> dict[int, float]:
        """An SDK retry may add twice; the number is an estimate."""
        seconds = sorted(load.by_second)
        expires_at = load.minute * 60 + _KEPT_SECONDS
        answer = self.client.update_item(
            TableName=self.table,
            Key=_key(load.minute),
            UpdateExpression="SET #expires_at = :expires_at ADD "
            + ", ".join(f"#{_SECOND}{second} :{_SECOND}{second}" for second in seconds),
            ExpressionAttributeNames={
                "#expires_at": "expires_at",
                **{f"#{_SECOND}{second}": f"{_SECOND}{second}" for second in seconds},
            },
            ExpressionAttributeValues={
                ":expires_at": {"N": str(expires_at)},
                **{f":{_SECOND}{s}": {"N": str(load.by_second[s])} for s in seconds},
            },
            ReturnValues="UPDATED_NEW",
        )
        by_second = _by_second(answer["Attributes"])
        return {load.minute * 60 + second: entries for second, entries in by_second.items()}

    def _hour(self, hour: int, first_minute: int, last_minute: int) -> list[Item]:
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind AND #record BETWEEN :first AND :last",
            ExpressionAttributeNames={"#kind": "kind", "#record": "record"},
            ExpressionAttributeValues={
                ":kind": {"S": registry_keys.load_kind(hour)},
                ":first": {"S": registry_keys.minute_record(first_minute)},
                ":last": {"S": registry_keys.minute_record(last_minute)},
            },
        )
        return list(answer["Items"])


def _key(minute: int) -> dict[str, Any]:
    kind = registry_keys.load_kind(minute // _MINUTES_PER_HOUR)
    return registry_keys.key(kind, registry_keys.minute_record(minute))


def _load_from(item: Item) -> MinuteLoad:
    return MinuteLoad(int(item["record"]["S"]), dict(sorted(_by_second(item).items())))


def _by_second(item: Item) -> dict[int, float]:
    return {
        int(name.removeprefix(_SECOND)): float(value["N"])
        for name, value in item.items()
        if name.startswith(_SECOND) and name[len(_SECOND) :].isdecimal()
    }
