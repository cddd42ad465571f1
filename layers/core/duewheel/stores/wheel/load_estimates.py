"""Load estimates: how many entries future seconds are expected to hold. One record a minute, under
one key for each hour.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.wheel.load_estimate import MinuteLoad
from duewheel.stores import registry_keys
from duewheel.stores.conditional_writes import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_MINUTES_PER_HOUR = 60
_KEPT_SECONDS = 86_400
_SECOND = "s"


class LoadStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def add(self, loads: Iterable[MinuteLoad]) -> dict[int, float]:
        """Add to the expected entries of these seconds; returns the new estimates. A failed write
        is ignored: then nothing is known."""
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
