"""Businesses in the Registry: one record each, with the settings that it has configured.

Every write is conditional on the version that was read, and is one transaction with the record of
the change. A damaged record gives a business that is marked as damaged, so that its tasks are not
called without its settings.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, convert, field
from msgspec.json import decode
from msgspec.structs import asdict, replace

from duewheel.clock import Clock
from duewheel.rules.access.name_spans import NameSpan
from duewheel.rules.businesses.change_records import (
    business_configured,
    business_named,
)
from duewheel.rules.businesses.flow import PAUSED_MAX, Flow, FlowLimits
from duewheel.rules.businesses.health import BusinessHealth
from duewheel.rules.businesses.settings import Business, Defaults, Own, SigningSecret
from duewheel.rules.callbacks.secret_headers import NamedSecret
from duewheel.rules.callbacks.types import KeepAnswers
from duewheel.rules.history.changes import Change, deleted
from duewheel.rules.names import FlowKey
from duewheel.rules.priority import Priority
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tolerance import TOLERANCE_SECONDS_MAX
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.businesses.health import health_from
from duewheel.stores.callbacks.codec import (
    DURATION_SECONDS_MAX,
    Duration,
    callback_of_row,
    callback_row,
    on_outcome_of_row,
    on_outcome_row,
    retry_of_row,
    retry_row,
)
from duewheel.stores.dynamodb import Item, get_batch
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.item_attributes import INSTANT_MS_MAX, integer, json_text, reported

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class BusinessStore(Struct, frozen=True, kw_only=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str
    defaults: Defaults
    reads_health: bool = False  # read with the settings, by the notifier

    def read_whole(self, biz_type: str) -> Business:
        """Version 0 without a record; raises UnreadableItem if the record is damaged."""
        item = self._item_of(biz_type)
        business = self._from(item) if item else self._unconfigured(biz_type)
        if business.damaged is not None:
            raise UnreadableItem(registry_keys.BUSINESS_KIND, biz_type, business.damaged)
        return business

    def read_many(self, biz_types: Iterable[str]) -> dict[str, Business]:
        """Eventually consistent, at half the price."""
        names = list(biz_types)
        keys = [registry_keys.business(biz_type) for biz_type in names]
        if self.reads_health:
            keys += map(registry_keys.health, names)
        found = {biz_type: self._unconfigured(biz_type) for biz_type in names}
        healths: dict[str, BusinessHealth] = {}
        for item in get_batch(self.client, self.clock, self.table, keys, strongly=False):
            biz_type = registry_keys.biz_type_of(item)
            if registry_keys.is_health(item):
                healths[biz_type] = health_from(item)
            else:
                found[biz_type] = self._from(item)
        for biz_type, health in healths.items():
            found[biz_type] = replace(found[biz_type], health=health)
        return found

    def write(self, before: Business, after: Business, by: str) -> bool:
        """False if the record changed since `before` was read."""
        item = _item(after)
        put = {"Put": {"TableName": self.table, "Item": item, **_as_read(before)}}
        change = business_configured(before, after, by)
        return self._written(after.biz_type, put, change, leaves=item)

    def delete(self, business: Business, by: str) -> bool:
        """False if the record changed since it was read."""
        key = registry_keys.business(business.biz_type)
        delete = {"Delete": {"TableName": self.table, "Key": key, **_as_read(business)}}
        change = deleted(business.version, business.updated_ms, by, self.clock.now_ms())
        return self._written(business.biz_type, delete, change, leaves=None)

    def page(self, span: NameSpan, limit: int) -> tuple[list[Business], bool]:
        """In the order of their names, and whether there may be more."""
        answer = self.client.query(
            TableName=self.table,
            **registry_keys.records_within(registry_keys.BUSINESS_KIND, span),
            Limit=limit,
            ConsistentRead=True,
        )
        return [self._from(item) for item in answer["Items"]], "LastEvaluatedKey" in answer

    def _written(
        self, biz_type: str, action: dict[str, Any], change: Change, leaves: Item | None
    ) -> bool:
        changes, subject = ChangeRecords(self.client, self.table), business_named(biz_type)
        return changes.write([action], subject, change, lambda: self._item_of(biz_type) == leaves)

    def _item_of(self, biz_type: str) -> Item | None:
        key = registry_keys.business(biz_type)
        return self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item")

    def _unconfigured(self, biz_type: str) -> Business:
        return Business(biz_type, self.defaults)

    def _from(self, item: Item) -> Business:
        biz_type = item["record"]["S"]
        try:
            version = integer(int(item["version"]["N"]), smallest=1)
            return Business(
                biz_type,
                self.defaults,
                own=_own(item),
                version=version,
                created_ms=integer(int(item["created_ms"]["N"])),
                updated_ms=integer(int(item["updated_ms"]["N"])),
            )
        except NOT_UNDERSTOOD:
            reported(item, "settings")
            return Business(biz_type, self.defaults, damaged="settings")


def _as_read(business: Business) -> dict[str, Any]:
    """A business that was deleted and created anew may have the same version."""
    names = {"#version": "version"}
    if business.version == 0:
        condition = "attribute_not_exists(#version)"
        return {"ConditionExpression": condition, "ExpressionAttributeNames": names}
    return {
        "ConditionExpression": "#version = :seen AND #created_ms = :created_ms",
        "ExpressionAttributeNames": {**names, "#created_ms": "created_ms"},
        "ExpressionAttributeValues": {
            ":seen": {"N": str(business.version)},
            ":created_ms": {"N": str(business.created_ms)},
        },
    }


def _item(business: Business) -> dict[str, Any]:
    return {
        **registry_keys.business(business.biz_type),
        "version": {"N": str(business.version)},
        "created_ms": {"N": str(business.created_ms)},
        "updated_ms": {"N": str(business.updated_ms)},
        **_attributes(business.own),
    }


_CODECS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "callback": (callback_row, callback_of_row),
    "retry": (retry_row, retry_of_row),
    "on_outcome": (on_outcome_row, on_outcome_of_row),
}

_Count = Annotated[int, Meta(ge=1, le=INSTANT_MS_MAX)]
_Rate = Annotated[float, Meta(gt=0, le=DURATION_SECONDS_MAX)]
_Statuses = tuple[Annotated[int, Meta(ge=300, le=599)] | Literal["3xx", "4xx", "5xx"], ...]


class _LimitsRow(FlowLimits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    calls_per_second: _Rate | None = None
    calls_in_flight: _Count | None = None


class _FlowRow(Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of flow keys, with the bounds of numbers that were written here."""

    default: _LimitsRow | None = None
    prefixes: dict[str, _LimitsRow] = field(default_factory=dict)
    set_ms: Annotated[int, Meta(ge=0, le=INSTANT_MS_MAX)] = 0


class _Row(Struct, forbid_unknown_fields=True):
    """The fields of `Own` as JSON. Those without a value are left out."""

    callback: dict[str, Any] | None = None
    retry: dict[str, Any] | None = None
    retention_days: Annotated[int, Meta(ge=1, le=10**6)] | None = None
    timeout_seconds: Duration | None = None
    allowed_hosts: tuple[str, ...] | None = None
    trusted_origins: tuple[str, ...] | None = None
    retry_statuses: _Statuses | None = None
    stop_statuses: _Statuses | None = None
    calls_per_second: _Rate | None = None
    calls_in_flight: _Count | None = None
    creates_per_second: _Rate | None = None
    signing_secrets: tuple[SigningSecret, ...] | None = None
    paused: bool | None = None
    secrets: tuple[NamedSecret, ...] | None = None
    tolerance_seconds: Annotated[int, Meta(ge=0, le=TOLERANCE_SECONDS_MAX)] | None = None
    priority: Priority | None = None
    flow: Flow | None = None
    paused_flow_keys: Annotated[tuple[FlowKey, ...], Meta(max_length=PAUSED_MAX)] | None = None
    keep_answers: KeepAnswers | None = None
    on_outcome: dict[str, Any] | None = None


def _attributes(own: Own) -> dict[str, Any]:
    values = {name: value for name, value in asdict(own).items() if value is not None}
    for name in _CODECS.keys() & values.keys():
        values[name] = _CODECS[name][0](values[name])
    return {"settings": {"S": json_text(values)}}


def _own(item: Item) -> Own:
    row = decode(item["settings"]["S"])
    if None in row.values():
        raise ValueError("left out if it has no value")
    if "flow" in row:
        convert(row["flow"], _FlowRow)
    values = asdict(convert(row, _Row))
    for name in _CODECS.keys() & row.keys():
        values[name] = _CODECS[name][1](row[name])
    return Own(**values)
