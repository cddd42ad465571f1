"""Which businesses have had tasks, whether or not they have settings: one record each, all in one
partition, in the order of their names.

A record names the last day on which the sweep counted something of the business. So it is written
once a day, and once more by each process that begins to sweep; the minute follows from the
statistics of that day.
"""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.access.name_spans import EVERY_NAME, NameSpan
from duewheel.rules.sweep.minute_statistics import KEPT_DAYS
from duewheel.rules.wheel.addresses import SECOND_MAX
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Throttled, write_if
from duewheel.stores.item_attributes import InvalidAttribute, built, integer, reported
from duewheel.stores.sweep.minute_statistics import MINUTES_PER_DAY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_NOTED_MAX = 10_000
_DAY = "day"


class SeenBusinesses(Struct, frozen=True, kw_only=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str
    _noted: dict[str, int] = field(default_factory=dict)  # the day that was written last

    def note(self, biz_type: str, minute: int) -> None:
        """Something of this minute was counted. A refused write is logged, and repeated with the
        next minute: nothing depends on it."""
        day = minute // MINUTES_PER_DAY
        if self._noted.get(biz_type, -1) >= day:
            return
        if len(self._noted) >= _NOTED_MAX:
            self._noted.clear()
        self._noted[biz_type] = day  # before the write, so that one of many threads makes it
        try:
            write_if(
                self.client.update_item,
                TableName=self.table,
                Key=registry_keys.seen(biz_type),
                UpdateExpression="SET #day = :day, #expires = :expires",
                ConditionExpression="attribute_not_exists(#day) OR #day < :day",
                ExpressionAttributeNames={"#day": _DAY, "#expires": "expires_at"},
                ExpressionAttributeValues={
                    ":day": {"N": str(day)},
                    ":expires": {"N": str((day + 1 + KEPT_DAYS) * 86_400)},
                },
            )
        except (ClientError, BotoCoreError, Throttled) as error:
            logger.warning("business not noted", action="not-noted", error=str(error))
            self._noted.pop(biz_type, None)

    def day_of(self, biz_type: str) -> int | None:
        """The last day, in days since the epoch."""
        key = registry_keys.seen(biz_type)
        item: Item | None = self.client.get_item(TableName=self.table, Key=key).get("Item")
        return None if item is None else self._days([item]).get(biz_type)

    def page(self, span: NameSpan, limit: int) -> tuple[dict[str, int], str | None]:
        """The days by business, in the order of the names, and the last name read if there may be
        more."""
        answer = self.client.query(
            TableName=self.table,
            **registry_keys.records_within(registry_keys.SEEN_KIND, span),
            Limit=limit,
        )
        last = answer["Items"][-1]["record"]["S"] if "LastEvaluatedKey" in answer else None
        return self._days(answer["Items"]), last

    def has_other(self, biz_type: str) -> bool:
        """Whether another business has had tasks, or that cannot be read."""
        try:
            days, last = self.page(EVERY_NAME, 3)
        except (ClientError, BotoCoreError):
            return True
        return last is not None or bool(days.keys() - {biz_type})

    def _days(self, items: Any) -> dict[str, int]:
        """Damaged records are reported and left out, as those that TTL may delete."""
        now = self.clock.now_ms() // 1000
        found: dict[str, int] = {}
        for item in items:
            try:
                if _number(item, "expires_at") > now:
                    found[item["record"]["S"]] = _number(item, _DAY)
            except InvalidAttribute as error:
                reported(item, error.attribute)
        return found


def _number(item: Item, name: str) -> int:
    return built(item, name, lambda: integer(int(item[name]["N"]), SECOND_MAX))
