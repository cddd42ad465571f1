"""The next free turn of each limit: one record, moved on by conditional writes.

However many are taken, it is one write, or two after a pause. An SDK retry may move it on twice;
then some turns stay unused, which no promise forbids. A record has no TTL: without it the turns
that were taken would be given a second time.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.turns import NoTurn, Rate, Turns, shortage
from duewheel.stores import registry_keys
from duewheel.stores.conditions import Item, Throttled, Written, write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

CALLS = "calls"
CREATES = "creates"

_TRIES = 10
_NAMES = {"#free": "free_us", "#interval": "interval_us", "#version": "version"}


class TurnStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def take(
        self, limit: str, biz_type: str, rate: Rate, count: int, now_us: int, ahead_us: int
    ) -> Turns | NoTurn:
        """`count` turns, all of which end within `ahead_us`, or none. A record of newer settings
        than the caller's is obeyed."""
        key = registry_keys.turns(limit, biz_type)
        interval_us, version = rate.interval_us, rate.version
        for number in range(_TRIES):
            cost_us = count * interval_us
            if cost_us > ahead_us:
                return shortage(now_us, now_us, ahead_us, interval_us)
            move = _moved_on if number % 2 == 0 else _begun_anew
            result = write_if(
                self.client.update_item,
                TableName=self.table,
                Key=key,
                ReturnValues="UPDATED_NEW",
                **move(interval_us, version, cost_us, now_us, ahead_us),
            )
            if isinstance(result, Written):
                free_us = int(result.attributes["free_us"]["N"])
                return Turns(free_us - cost_us, interval_us, count, version)
            if (stands := result.item) is None:
                continue
            if int(stands["version"]["N"]) > version:
                interval_us = int(stands["interval_us"]["N"])
                version = int(stands["version"]["N"])
            elif _is_short(stands, version, now_us + ahead_us - cost_us):
                return shortage(int(stands["free_us"]["N"]), now_us, ahead_us, interval_us)
        raise Throttled(f"the turns of {biz_type} moved {_TRIES} times while some were taken")


def _is_short(stands: Item, version: int, latest_us: int) -> bool:
    return int(stands["version"]["N"]) == version and int(stands["free_us"]["N"]) > latest_us


def _moved_on(
    interval_us: int, version: int, cost_us: int, now_us: int, ahead_us: int
) -> dict[str, Any]:
    """The next free turn lies ahead: behind those that others have taken."""
    return {
        "UpdateExpression": "SET #free = #free + :cost",
        "ConditionExpression": "#version = :version AND #free BETWEEN :now AND :latest",
        "ExpressionAttributeNames": {n: v for n, v in _NAMES.items() if n != "#interval"},
        "ExpressionAttributeValues": {
            ":cost": {"N": str(cost_us)},
            ":version": {"N": str(version)},
            ":now": {"N": str(now_us)},
            ":latest": {"N": str(now_us + ahead_us - cost_us)},
        },
    }


def _begun_anew(
    interval_us: int, version: int, cost_us: int, now_us: int, ahead_us: int
) -> dict[str, Any]:
    """All turns before now have passed, or belong to settings that hold no more."""
    return {
        "UpdateExpression": "SET #free = :free, #interval = :interval, #version = :version",
        "ConditionExpression": (
            "attribute_not_exists(#free) OR #version < :version"
            " OR (#version = :version AND #free < :now)"
        ),
        "ExpressionAttributeNames": _NAMES,
        "ExpressionAttributeValues": {
            ":free": {"N": str(now_us + cost_us)},
            ":interval": {"N": str(interval_us)},
            ":version": {"N": str(version)},
            ":now": {"N": str(now_us)},
        },
    }
