"""Statistics in the Registry: one record per business and minute, a day's under one key.

Only the sweep writes them, each on condition that it still holds what was read.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.books import Sheet, SheetName
from duewheel.rules.tally import Tally
from duewheel.stores import registry_keys
from duewheel.stores.conditions import Item, Written, write_if
from duewheel.stores.unprocessed import READS_PER_BATCH, chunks, get_batch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

MINUTES_PER_DAY = 1_440
_COUNTS = tuple(name for name in Tally.__struct_fields__ if name != "lateness_classes")


class StatisticsStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def sheets(self, names: Iterable[SheetName]) -> dict[SheetName, Sheet]:
        """Strongly consistent; a sheet that nobody has written yet is empty."""
        names = list(names)
        sheets = {name: Sheet(*name) for name in names}
        for chunk in chunks(names, READS_PER_BATCH):
            keys = [_key(name) for name in chunk]
            for item in get_batch(self.client, self.clock, self.table, keys):
                sheet = _sheet_from(item)
                sheets[sheet.biz_type, sheet.minute] = sheet
        return sheets

    def write(self, before: Sheet, after: Sheet) -> bool:
        """False when the sheet no longer stands as `before`. What it holds, it tells by `up_to` and
        `lacks`; so these two say how it stands."""
        item = {**_key((after.biz_type, after.minute)), **_attributes(after)}
        seen = _attributes(before)
        values: dict[str, Any] = {}
        conditions = []
        for name in ("up_to", "lacks"):
            if name in seen and before.up_to >= 0:
                conditions.append(f"#{name} = :{name}")
                values[f":{name}"] = seen[name]
            else:
                conditions.append(f"attribute_not_exists(#{name})")
        result = write_if(
            self.client.put_item,
            TableName=self.table,
            Item=item,
            ConditionExpression=" AND ".join(conditions),
            ExpressionAttributeNames={"#up_to": "up_to", "#lacks": "lacks"},
            **({"ExpressionAttributeValues": values} if values else {}),
        )
        return isinstance(result, Written) or result.item == item  # an earlier try of this write

    def between(self, biz_type: str, first_minute: int, last_minute: int) -> list[Sheet]:
        """In the order of their minutes, both bounds included."""
        sheets: list[Sheet] = []
        for day in range(first_minute // MINUTES_PER_DAY, last_minute // MINUTES_PER_DAY + 1):
            sheets += map(_sheet_from, self._day(biz_type, day, first_minute, last_minute))
        return sheets

    def _day(self, biz_type: str, day: int, first_minute: int, last_minute: int) -> list[Item]:
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
            ConsistentRead=True,
        )
        return list(answer["Items"])


def _key(name: SheetName) -> dict[str, Any]:
    biz_type, minute = name
    kind = registry_keys.statistics_kind(biz_type, minute // MINUTES_PER_DAY)
    return registry_keys.key(kind, registry_keys.minute_record(minute))


def _attributes(sheet: Sheet) -> dict[str, Any]:
    counts = {name: getattr(sheet.tally, name) for name in _COUNTS}
    return {
        "biz_type": {"S": sheet.biz_type},
        "up_to": {"N": str(sheet.up_to)},
        "expires_at": {"N": str(sheet.expires_at)},
        "lateness_classes": {"S": ",".join(map(str, sheet.tally.lateness_classes))},
        **({"lacks": {"S": json.dumps(sorted(sheet.lacks))}} if sheet.lacks else {}),
        **{name: {"N": str(count)} for name, count in counts.items() if count},
    }


def _sheet_from(item: Item) -> Sheet:
    counts = {name: int(item[name]["N"]) for name in _COUNTS if name in item}
    classes = tuple(map(int, item["lateness_classes"]["S"].split(",")))
    return Sheet(
        biz_type=item["biz_type"]["S"],
        minute=int(item["record"]["S"]),
        tally=Tally(**counts, lateness_classes=classes),
        up_to=int(item["up_to"]["N"]),
        lacks=frozenset(json.loads(item["lacks"]["S"])) if "lacks" in item else frozenset(),
    )
