"""Occurrences of timers: those of one timer in order, and the one begun last.

The index of a timer is eventually consistent: it says where to look, and the table says what is
true. A timer whose occurrences do not overlap has a record of the one
that was begun last, and of the one that waits for its end.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.timers.overlap import Line
from duewheel.rules.wheel.addresses import Address, address_named
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Written, get_batch, write_if
from duewheel.stores.item_attributes import readable_ones, reported
from duewheel.stores.tasks import codec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


_INDEX = "by_timer"
_HOME = "home"
_WAITING = "waiting"


class OccurrenceIndex(Struct, frozen=True):
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


class Running(Struct, frozen=True):
    """The line as it was read. `seen`: the attributes."""

    line: Line = Line()
    seen: Mapping[str, Any] = {}


class RunningStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def read_many(self, timer_ids: Iterable[str]) -> dict[str, Running]:
        """Strongly consistent; of those that have one."""
        keys = [registry_keys.timer_running(timer_id) for timer_id in dict.fromkeys(timer_ids)]
        items = get_batch(self.client, self.clock, self.table, keys)
        return {registry_keys.timer_id_of(item): _running_from(item) for item in items}

    def put(self, timer_id: str, before: Running, line: Line) -> Running:
        """Put this line, if the record is as it was read; returns the record as it then is."""
        homes = {_HOME: line.running, _WAITING: line.waiting}
        after = {name: {"S": home.name} for name, home in homes.items() if home is not None}
        gone = [name for name in before.seen if name not in after]
        update = "SET " + ", ".join(f"#{name} = :{name}" for name in after)
        if gone:
            update += " REMOVE " + ", ".join(f"#{name}" for name in gone)
        as_read = [
            f"#{name} = :seen_{name}" if name in before.seen else f"attribute_not_exists(#{name})"
            for name in homes
        ]
        result = write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.timer_running(timer_id),
            UpdateExpression=update,
            ConditionExpression=" AND ".join(as_read),
            ExpressionAttributeNames={f"#{name}": name for name in homes},
            ExpressionAttributeValues={
                **{f":{name}": value for name, value in after.items()},
                **{f":seen_{name}": value for name, value in before.seen.items()},
            },
        )
        if isinstance(result, Written):
            return Running(line, after)
        return Running() if result.item is None else _running_from(result.item)


def _running_from(item: Item) -> Running:
    seen = {name: item[name] for name in (_HOME, _WAITING) if name in item}
    return Running(Line(_home_in(item, _HOME), _home_in(item, _WAITING)), seen)


def _home_in(item: Item, name: str) -> Address | None:
    """None where there is none, or none that can be read."""
    if name not in item:
        return None
    try:
        return address_named(item[name]["S"])
    except NOT_UNDERSTOOD:
        reported(item, name)
        return None
