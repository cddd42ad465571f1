"""Timers in the Registry: a definition each, and an item in the list of its business.

Both are written in one transaction, with the record of the change and the changes on the wheel, on
condition that the definition is as it was read. The mark that a timer has ended does not raise the
version, and has a condition of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode

from duewheel.clock import Clock
from duewheel.rules.history.changes import Change, deleted
from duewheel.rules.names import BIZ_TYPE
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import UNSIZED
from duewheel.rules.timers.change_records import (
    timer_changed,
    timer_created,
    timer_named,
)
from duewheel.rules.timers.timer import DisabledReason, Gap, Timer
from duewheel.rules.wheel.addresses import SECOND_MAX, Address, address_named
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Refused, get_batch, write_if
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.item_attributes import flag, integer, is_json, json_text, reported
from duewheel.stores.tasks.codec import compact
from duewheel.stores.tasks.plan_codec import sizes_from, sizes_row
from duewheel.stores.timers.codec import gaps_row, rules_of_row, rules_row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_COUNT_MAX = 10**15
_LINES_PER_PAGE = 100


class TimerLine(Struct, frozen=True):
    """A timer as the list of its business shows it."""

    name: str
    timer_id: str
    enabled: bool


class TimerStore(Struct, frozen=True):
    """`actions`: further parts of a transaction."""

    client: "DynamoDBClient"
    clock: Clock
    table: str

    def read(self, timer_id: str) -> Timer | None:
        """Raises UnreadableItem, and reports it, if the definition is damaged."""
        item = self._item_of(timer_id)
        return None if item is None else timer_from(item)

    def read_many(self, timer_ids: Iterable[str]) -> dict[str, Timer | UnreadableItem]:
        """The timers that exist; damaged ones are reported."""
        keys = [registry_keys.timer(timer_id) for timer_id in dict.fromkeys(timer_ids)]
        found: dict[str, Timer | UnreadableItem] = {}
        for item in get_batch(self.client, self.clock, self.table, keys):
            try:
                found[registry_keys.timer_id_of(item)] = timer_from(item)
            except UnreadableItem as damaged:
                found[registry_keys.timer_id_of(item)] = damaged
        return found

    def create(self, timer: Timer, by: str, actions: Sequence[Any]) -> bool:
        """False when another timer has its id."""
        definition = self._put(_item(timer), **registry_keys.IF_ABSENT)
        parts = [definition, self._put(_line(timer)), *actions]
        return self._written(timer, parts, timer_created(timer, by), leaves=_item(timer))

    def change(self, before: Timer, after: Timer, by: str, actions: Sequence[Any]) -> bool:
        """False if the definition changed since `before` was read, or if the condition of an action
        failed."""
        parts = [self._put(_item(after), **_as_read(before)), self._put(_line(after))]
        if _line_key(before) != _line_key(after):
            parts.append(self._delete(_line_key(before)))
        change = timer_changed(before, after, by)
        return self._written(after, [*parts, *actions], change, leaves=_item(after))

    def delete(self, timer: Timer, by: str, actions: Sequence[Any]) -> bool:
        """Delete all records of the timer except its changes. False if the definition changed since
        it was read."""
        parts = [
            self._delete(registry_keys.timer(timer.timer_id), **_as_read(timer)),
            self._delete(_line_key(timer)),
            self._delete(registry_keys.timer_counters(timer.timer_id)),
            self._delete(registry_keys.timer_running(timer.timer_id)),
        ]
        change = deleted(timer.version, timer.updated_ms, by, self.clock.now_ms())
        return self._written(timer, [*parts, *actions], change, leaves=None)

    def mark_ended(self, timer_id: str, chain: Address, numbered: int) -> bool:
        """Mark that the schedule has no further occurrences. False if the chain is no longer the
        one of this timer."""
        result = write_if(
            self.client.update_item,
            TableName=self.table,
            Key=registry_keys.timer(timer_id),
            UpdateExpression="SET ended = :true, numbered = :numbered",
            ConditionExpression="chain = :chain AND attribute_not_exists(ended)",
            ExpressionAttributeValues={
                ":true": {"BOOL": True},
                ":numbered": {"N": str(numbered)},
                ":chain": {"S": chain.name},
            },
        )
        if not isinstance(result, Refused):
            return True
        current = result.item or {}
        return "ended" in current and current.get("chain") == {"S": chain.name}

    def page(
        self, biz_type: str, prefix: str, after: TimerLine | None, limit: int
    ) -> tuple[list[TimerLine], bool]:
        """In the order of their names, and whether there may be more."""
        start: dict[str, Any] = {}
        if after is not None:
            key = registry_keys.timer_line(biz_type, after.name, after.timer_id)
            start["ExclusiveStartKey"] = key
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind"
            + (" AND begins_with(#record, :prefix)" if prefix else ""),
            ExpressionAttributeNames={"#kind": "kind"} | ({"#record": "record"} if prefix else {}),
            ExpressionAttributeValues={":kind": {"S": registry_keys.timer_lines_kind(biz_type)}}
            | ({":prefix": {"S": prefix}} if prefix else {}),
            Limit=limit,
            ConsistentRead=True,
            **start,
        )
        return [_line_from(item) for item in answer["Items"]], "LastEvaluatedKey" in answer

    def named(self, biz_type: str, name: str) -> list[Timer]:
        """The timers of this name, which has no `#`. Raises UnreadableItem if one is damaged."""
        lines: list[TimerLine] = []
        goes_on = True
        while goes_on:
            behind = lines[-1] if lines else None
            page, goes_on = self.page(biz_type, f"{name}#", behind, _LINES_PER_PAGE)
            lines.extend(page)
        found = self.read_many(line.timer_id for line in lines if line.name == name)
        for timer in found.values():
            if isinstance(timer, UnreadableItem):
                raise timer
        timers = [timer for timer in found.values() if isinstance(timer, Timer)]
        return [timer for timer in timers if timer.rules.name == name]

    def _item_of(self, timer_id: str) -> Item | None:
        answer = self.client.get_item(
            TableName=self.table, Key=registry_keys.timer(timer_id), ConsistentRead=True
        )
        return answer.get("Item")

    def _written(
        self, timer: Timer, parts: Sequence[Any], change: Change, leaves: Item | None
    ) -> bool:
        def is_as_left() -> bool:
            return self._item_of(timer.timer_id) == leaves

        changes = ChangeRecords(self.client, self.table)
        return changes.write(parts, timer_named(timer), change, is_as_left)

    def _put(self, item: dict[str, Any], **condition: Any) -> dict[str, Any]:
        return {"Put": {"TableName": self.table, "Item": item, **condition}}

    def _delete(self, key: dict[str, Any], **condition: Any) -> dict[str, Any]:
        return {"Delete": {"TableName": self.table, "Key": key, **condition}}


def timer_from(item: Item) -> Timer:
    """Raises UnreadableItem, and reports it, if the item is damaged."""
    try:
        return Timer(
            timer_id=registry_keys.timer_id_of(item),
            biz_type=_biz_type(item["biz_type"]["S"]),
            rules=rules_of_row(decode(item["rules"]["S"]), _payload(item)),
            enabled=flag(item["enabled"]["BOOL"]),
            version=integer(int(item["version"]["N"]), smallest=1),
            created_ms=integer(int(item["created_ms"]["N"])),
            updated_ms=integer(int(item["updated_ms"]["N"])),
            chain=address_named(item["chain"]["S"]) if "chain" in item else None,
            numbered=integer(int(item["numbered"]["N"]), _COUNT_MAX),
            sizes=sizes_from(decode(item["sizes"]["S"])) if "sizes" in item else UNSIZED,
            last_second=integer(int(item["last_second"]["N"]), SECOND_MAX)
            if "last_second" in item
            else None,
            ended="ended" in item,
            gaps=decode(item["gaps"]["S"], type=tuple[Gap, ...]) if "gaps" in item else (),
            disabled_reason=_disabled_reason(item),
        )
    except NOT_UNDERSTOOD as error:
        raise reported(item, "definition") from error


def _item(timer: Timer) -> dict[str, Any]:
    item = {
        **registry_keys.timer(timer.timer_id),
        "biz_type": {"S": timer.biz_type},
        "rules": {"S": json_text(rules_row(timer.rules))},
        "enabled": {"BOOL": timer.enabled},
        "version": {"N": str(timer.version)},
        "created_ms": {"N": str(timer.created_ms)},
        "updated_ms": {"N": str(timer.updated_ms)},
        "numbered": {"N": str(timer.numbered)},
    }
    if timer.rules.payload is not None:
        item["payload"] = {"S": timer.rules.payload}
    if timer.disabled_reason is not None:
        item["disabled_reason"] = {"S": timer.disabled_reason}
    if timer.chain is not None:
        item["chain"] = {"S": timer.chain.name}
    if timer.sizes.until_second:
        item["sizes"] = {"S": compact(sizes_row(timer.sizes))}
    if timer.last_second is not None:
        item["last_second"] = {"N": str(timer.last_second)}
    if timer.ended:
        item["ended"] = {"BOOL": True}
    if timer.gaps:
        item["gaps"] = {"S": compact(gaps_row(timer.gaps))}
    return item


def _line(timer: Timer) -> dict[str, Any]:
    return {**_line_key(timer), "enabled": {"BOOL": timer.enabled}}


def _line_key(timer: Timer) -> dict[str, Any]:
    return registry_keys.timer_line(timer.biz_type, timer.rules.name, timer.timer_id)


def _line_from(item: Mapping[str, Any]) -> TimerLine:
    name, timer_id = registry_keys.timer_of_line(item)
    return TimerLine(name, timer_id, "enabled" in item and bool(item["enabled"].get("BOOL")))


def _as_read(timer: Timer) -> dict[str, Any]:
    ended = "attribute_exists(ended)" if timer.ended else "attribute_not_exists(ended)"
    return {
        "ConditionExpression": f"#version = :seen AND {ended}",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":seen": {"N": str(timer.version)}},
    }


def _biz_type(value: str) -> str:
    if not BIZ_TYPE.fullmatch(value):
        raise ValueError("no business")
    return value


def _disabled_reason(item: Item) -> DisabledReason | None:
    return DisabledReason(item["disabled_reason"]["S"]) if "disabled_reason" in item else None


def _payload(item: Item) -> str | None:
    if "payload" not in item:
        return None
    text: str = item["payload"]["S"]
    if not is_json(text):
        raise ValueError("no JSON")
    return text
