"""Statistics in the Registry: one record per business and minute, under one key for each day.

Only the sweep writes them, each on condition that it is as it was read. A damaged record is
reported; a write replaces it, and a list leaves it out.
"""

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.sweep.minute_statistics import (
    LATENESS_BOUNDS_MS,
    MinuteName,
    MinuteStats,
    Tally,
)
from duewheel.rules.wheel.addresses import SECOND_MAX, SHARDS_MAX
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Written, as_read, get_batch, write_if
from duewheel.stores.item_attributes import InvalidAttribute, built, integer, parsed, reported, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

MINUTES_PER_DAY = 1_440
_COUNTS = tuple(name for name in Tally.__struct_fields__ if name != "lateness_classes")
_COUNT_MAX = (
    10**18
)  # a redrive may be counted in an earlier minute than its death: down to -_COUNT_MAX


class ReadMinute(Struct, frozen=True):
    stats: MinuteStats
    item: Item | None  # as it was read, readable or not; None when there is none


class StatisticsStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def read(self, name: MinuteName) -> ReadMinute:
        """Strongly consistent. A minute without a record, or with a damaged one, is empty."""
        items = get_batch(self.client, self.clock, self.table, [_key(name)])
        if not items:
            return ReadMinute(MinuteStats(*name), None)
        return ReadMinute(_readable(items[0]) or MinuteStats(*name), items[0])

    def write(self, before: ReadMinute, after: MinuteStats) -> bool:
        """False if the record changed since it was read."""
        item = {**_key((after.biz_type, after.minute)), **_attributes(after)}
        condition = registry_keys.IF_ABSENT if before.item is None else as_read(before.item)
        result = write_if(self.client.put_item, TableName=self.table, Item=item, **condition)
        return isinstance(result, Written) or result.item == item  # an earlier try of this write

    def between(
        self, biz_type: str, first_minute: int, last_minute: int, *, strongly: bool = True
    ) -> list[MinuteStats]:
        """In the order of the minutes, both bounds included."""
        minutes: list[MinuteStats] = []
        for day in range(first_minute // MINUTES_PER_DAY, last_minute // MINUTES_PER_DAY + 1):
            items = self._day(biz_type, day, first_minute, last_minute, strongly=strongly)
            minutes += [stats for item in items if (stats := _readable(item)) is not None]
        return minutes

    def last_minute(self, biz_type: str, day: int) -> int | None:
        """The last minute of that day in which there was something, in minutes since the epoch."""
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind",
            ExpressionAttributeNames={"#kind": "kind"},
            ExpressionAttributeValues={
                ":kind": {"S": registry_keys.statistics_kind(biz_type, day)}
            },
            ScanIndexForward=False,
            Limit=1,
        )
        return next((int(item["record"]["S"]) for item in answer["Items"]), None)

    def _day(
        self, biz_type: str, day: int, first_minute: int, last_minute: int, *, strongly: bool
    ) -> list[Item]:
        # A whole day is about 400 KB, which is less than the megabyte that one query reads.
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind AND #record BETWEEN :first AND :last",
            ExpressionAttributeNames={"#kind": "kind", "#record": "record"},
            ExpressionAttributeValues={
                ":kind": {"S": registry_keys.statistics_kind(biz_type, day)},
                ":first": {"S": registry_keys.minute_record(first_minute)},
                ":last": {"S": registry_keys.minute_record(last_minute)},
            },
            ConsistentRead=strongly,
        )
        return list(answer["Items"])


def _key(name: MinuteName) -> dict[str, Any]:
    biz_type, minute = name
    kind = registry_keys.statistics_kind(biz_type, minute // MINUTES_PER_DAY)
    return registry_keys.key(kind, registry_keys.minute_record(minute))


def _attributes(stats: MinuteStats) -> dict[str, Any]:
    counts = {name: getattr(stats.tally, name) for name in _COUNTS}
    return {
        "biz_type": {"S": stats.biz_type},
        "up_to": {"N": str(stats.up_to)},
        "expires_at": {"N": str(stats.expires_at)},
        "lateness_classes": {"S": ",".join(map(str, stats.tally.lateness_classes))},
        **({"lacks": {"S": json.dumps(sorted(stats.lacks))}} if stats.lacks else {}),
        **({"partly": {"S": json.dumps(sorted(stats.partly.items()))}} if stats.partly else {}),
        **{name: {"N": str(count)} for name, count in counts.items() if count},
    }


def _readable(item: Item) -> MinuteStats | None:
    try:
        return _sheet_from(item)
    except InvalidAttribute as error:
        reported(item, error.attribute)
        return None


def _sheet_from(item: Item) -> MinuteStats:
    counts = {name: _count(item, name) for name in _COUNTS if name in item}
    return MinuteStats(
        biz_type=text(item, "biz_type"),
        minute=int(item["record"]["S"]),
        tally=Tally(**counts, lateness_classes=_classes(item)),
        up_to=built(item, "up_to", lambda: integer(int(item["up_to"]["N"]), SECOND_MAX, -1)),
        lacks=parsed(item, "lacks", _seconds) if "lacks" in item else frozenset(),
        partly=parsed(item, "partly", _shards) if "partly" in item else {},
    )


def _count(item: Item, name: str) -> int:
    return built(item, name, lambda: integer(int(item[name]["N"]), _COUNT_MAX, -_COUNT_MAX))


def _classes(item: Item) -> tuple[int, ...]:
    def build() -> tuple[int, ...]:
        classes = tuple(map(int, item["lateness_classes"]["S"].split(",")))
        if len(classes) != len(LATENESS_BOUNDS_MS) + 1:
            raise ValueError("not one number for each class")
        return classes

    return built(item, "lateness_classes", build)


def _shards(rows: Any) -> dict[int, int]:
    return {integer(second, SECOND_MAX): integer(shard, SHARDS_MAX) for second, shard in rows}


def _seconds(values: Any) -> frozenset[int]:
    return frozenset(integer(value, SECOND_MAX) for value in values)
