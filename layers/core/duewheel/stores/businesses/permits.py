"""The permits of each business that limits its calls in flight: one record, changed on condition of
the version that was read. A lost answer does no harm: a run sets what it holds, and adds nothing.

The end of the line is moved by an addition, beside the version, so that many runs can line tasks up
at once. A damaged record is reported, and no call begins by it: calls may be under way.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert

from duewheel.rules.businesses.rate_limit import US_PER_MS, ReservedTurns
from duewheel.rules.delivery.permits import CALL_US_MAX, VERSION, Holding, Permits
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Throttled, Written, write_if
from duewheel.stores.item_attributes import (
    INSTANT_MS_MAX,
    InvalidAttribute,
    json_text,
    number,
    parsed,
    reported,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_TRIES = 10
_KEPT_SECONDS = 7 * 86_400  # longer than any permit is held
_VERSION, _HELD, _CALL = "version", "held", "call_us"
_LINE, _LATE = "line_us", "late_us"
_EXPIRES = "expires_at"
_US_MAX = INSTANT_MS_MAX * US_PER_MS
_HELD_BYTES_MAX = 256 * 1024  # so that the item has room; some 4,000 works that go on


class PermitStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def read(self, scope: str) -> Permits:
        return _permits(self._item(scope))

    def change(self, scope: str, plan: Callable[[Permits], Permits | None]) -> Permits:
        """Change the record as planned; returns it as it is then. A plan of None changes
        nothing."""
        item = self._item(scope)
        for _ in range(_TRIES):
            permits = _permits(item)
            after = plan(permits)
            if after is None:
                return permits
            result = write_if(
                self.client.update_item,
                TableName=self.table,
                Key=registry_keys.permits(scope),
                ReturnValues="ALL_NEW",
                **_changed(item or {}, after),
            )
            if isinstance(result, Written):
                return _permits(result.attributes)
            item = result.item
        raise Throttled(f"the permits of {scope} changed {_TRIES} times while some were taken")

    def _item(self, scope: str) -> Item | None:
        key = registry_keys.permits(scope)
        return self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item")

    def line_up(
        self, scope: str, count: int, from_ms: int, interval_us: int, *, is_late: bool
    ) -> ReservedTurns:
        """So many places at the end of a line, none before `from_ms`."""
        name = _LATE if is_late else _LINE
        cost_us, from_us = count * interval_us, from_ms * US_PER_MS
        for number_of_try in range(_TRIES):
            move = _lengthened if number_of_try % 2 == 0 else _begun_anew
            result = write_if(
                self.client.update_item,
                TableName=self.table,
                Key=registry_keys.permits(scope),
                ReturnValues="UPDATED_NEW",
                **move(name, from_us, cost_us),
            )
            if isinstance(result, Written):
                end_us = int(result.attributes[name]["N"])
                return ReservedTurns(end_us - cost_us, interval_us, count, VERSION)
        raise Throttled(f"the line of {scope} moved {_TRIES} times while places were taken")


def _lengthened(name: str, from_us: int, cost_us: int) -> dict[str, Any]:
    return {
        "UpdateExpression": "SET #line = #line + :cost",
        "ConditionExpression": "#line >= :from",
        "ExpressionAttributeNames": {"#line": name},
        "ExpressionAttributeValues": {
            ":cost": {"N": str(cost_us)},
            ":from": {"N": str(from_us)},
        },
    }


def _begun_anew(name: str, from_us: int, cost_us: int) -> dict[str, Any]:
    """It has ended before, or there is none."""
    return {
        "UpdateExpression": "SET #line = :to",
        "ConditionExpression": "attribute_not_exists(#line) OR #line < :from",
        "ExpressionAttributeNames": {"#line": name},
        "ExpressionAttributeValues": {
            ":to": {"N": str(from_us + cost_us)},
            ":from": {"N": str(from_us)},
        },
    }


def _changed(item: Item, after: Permits) -> dict[str, Any]:
    """On condition of the version that was read."""
    held = json_text(dict(after.held))
    if len(held) > _HELD_BYTES_MAX:
        raise Throttled("the record of permits has no room for another holder")
    until_ms = max((one.until_ms for one in after.held.values()), default=0)
    reaches_ms = max(until_ms, after.line_us // US_PER_MS, after.late_us // US_PER_MS)
    values: dict[str, Any] = {
        _VERSION: {"N": str(after.version)},
        _HELD: {"S": held},
        _CALL: {"N": str(after.call_us)},
        _EXPIRES: {"N": str(reaches_ms // 1000 + _KEPT_SECONDS)},
    }
    names = {f"#{name}": name for name in values}
    values = {f":{name}": value for name, value in values.items()}
    condition = "attribute_not_exists(#version)"
    if _VERSION in item:
        condition, values[":read"] = "#version = :read", item[_VERSION]
    return {
        "UpdateExpression": "SET " + ", ".join(f"{name} = :{name[1:]}" for name in names),
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def _line_us(item: Item, name: str) -> int:
    return number(item, name, _US_MAX) if name in item else 0


def _permits(item: Item | None) -> Permits:
    """Raises UnreadableItem, and reports it, if the record is damaged."""
    if item is None:
        return Permits()
    try:
        line_us, late_us = _line_us(item, _LINE), _line_us(item, _LATE)
        if _VERSION not in item and _HELD not in item:  # lines alone
            return Permits(line_us=line_us, late_us=late_us)
        return Permits(
            version=number(item, _VERSION),
            held=parsed(item, _HELD, _held_from, _HELD_BYTES_MAX),
            call_us=number(item, _CALL, CALL_US_MAX),
            line_us=line_us,
            late_us=late_us,
        )
    except InvalidAttribute as error:
        raise reported(item, error.attribute) from error


def _held_from(row: Any) -> dict[str, Holding]:
    return convert(row, dict[str, Holding])
