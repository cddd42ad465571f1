"""Which occurrence of a timer was begun last: a record each, of timers that do not overlap."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import report_unreadable
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.wheel.addresses import Address, address_named
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.batch_writes import READS_PER_BATCH, chunks, get_batch
from duewheel.stores.conditional_writes import Item, Written, write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_HOME = "home"


class Running(Struct, frozen=True):
    """As it was read. `home` is None where there is none, or none that can be read."""

    seen: Mapping[str, Any] | None = None
    home: Address | None = None


class RunningStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def read_many(self, timer_ids: Iterable[str]) -> dict[str, Running]:
        """Strongly consistent; of those that have one."""
        keys = [registry_keys.timer_running(timer_id) for timer_id in dict.fromkeys(timer_ids)]
        items: list[Item] = []
        for chunk in chunks(keys, READS_PER_BATCH):
            items += get_batch(self.client, self.clock, self.table, chunk)
        return {registry_keys.timer_id_of(item): _running_from(item) for item in items}

    def begin(self, timer_id: str, before: Running, home: Address) -> Running:
        """Put this occurrence, if the record is as it was read; returns the record as it then
        is."""
        name = {"S": home.name}
        condition, values = "attribute_not_exists(#home)", {":name": name}
        if before.seen is not None:
            condition, values = "#home = :seen", {":name": name, ":seen": dict(before.seen)}
        result = write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.timer_running(timer_id),
            UpdateExpression="SET #home = :name",
            ConditionExpression=condition,
            ExpressionAttributeNames={"#home": _HOME},
            ExpressionAttributeValues=values,
        )
        if isinstance(result, Written):
            return Running(name, home)
        return Running() if result.item is None else _running_from(result.item)


def _running_from(item: Item) -> Running:
    seen = item.get(_HOME)
    try:
        return Running(seen, address_named(item[_HOME]["S"]))
    except NOT_UNDERSTOOD:
        report_unreadable(UnreadableItem(item["kind"]["S"], item["record"]["S"], _HOME))
        return Running(seen)
