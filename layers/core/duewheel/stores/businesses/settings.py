"""Businesses in the Registry: one record each, with the settings that it has configured.

Every write is conditional on the version that was read, and is one transaction with the record of
the change. A damaged record reads as a business that is marked as damaged: its tasks are not called
as if it had no settings.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import report_unreadable
from duewheel.rules.businesses.change_records import (
    business_configured,
    business_deleted,
    business_named,
)
from duewheel.rules.businesses.health import BusinessHealth
from duewheel.rules.businesses.settings import Business, Defaults, Own, SigningSecret
from duewheel.rules.callbacks.outcome import StatusEntry, is_status_entry
from duewheel.rules.callbacks.secret_headers import NamedSecret
from duewheel.rules.history.changes import Change
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD, Lane
from duewheel.stores import registry_keys
from duewheel.stores.batch_writes import get_batch
from duewheel.stores.businesses.health import health_from
from duewheel.stores.callbacks.codec import callback_of_row, callback_row, retry_of_row, retry_row
from duewheel.stores.conditional_writes import Item, transact
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.item_attributes import decimal, flag, integer, string

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_DURATION_SECONDS_MAX = 10**9
_DAYS_MAX = 10**6


class BusinessStore(Struct, frozen=True, kw_only=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str
    defaults: Defaults
    reads_health: bool = False  # along with the settings, for those who call

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
        change = business_deleted(business, by, self.clock.now_ms())
        return self._written(business.biz_type, delete, change, leaves=None)

    def page(self, after: str | None, limit: int) -> tuple[list[Business], bool]:
        """In the order of their names, and whether there may be more."""
        start: dict[str, Any] = {}
        if after is not None:
            start["ExclusiveStartKey"] = registry_keys.business(after)
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#kind = :kind",
            ExpressionAttributeNames={"#kind": "kind"},
            ExpressionAttributeValues={":kind": {"S": registry_keys.BUSINESS_KIND}},
            Limit=limit,
            ConsistentRead=True,
            **start,
        )
        return [self._from(item) for item in answer["Items"]], "LastEvaluatedKey" in answer

    def _written(
        self, biz_type: str, action: dict[str, Any], change: Change, leaves: Item | None
    ) -> bool:
        """If a retry of the SDK is refused because its first try was carried out, record and change
        are as that try left them: this counts as written."""
        changes, subject = ChangeRecords(self.client, self.table), business_named(biz_type)
        if transact(self.client, [action, changes.recorded(subject, change)]):
            return True
        return self._item_of(biz_type) == leaves and changes.is_recorded(subject, change)

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
                own=replace(_own(json.loads(item["settings"]["S"])), **_beside_the_settings(item)),
                version=version,
                created_ms=integer(int(item["created_ms"]["N"])),
                updated_ms=integer(int(item["updated_ms"]["N"])),
            )
        except NOT_UNDERSTOOD:
            report_unreadable(UnreadableItem(item["kind"]["S"], biz_type, "settings"))
            return Business(biz_type, self.defaults, damaged="settings")


def _as_read(business: Business) -> dict[str, Any]:
    names = {"ExpressionAttributeNames": {"#version": "version"}}
    if business.version == 0:
        return {"ConditionExpression": "attribute_not_exists(#version)", **names}
    return {
        "ConditionExpression": "#version = :seen",
        "ExpressionAttributeValues": {":seen": {"N": str(business.version)}},
        **names,
    }


def _item(business: Business) -> dict[str, Any]:
    return {
        **registry_keys.business(business.biz_type),
        "version": {"N": str(business.version)},
        "created_ms": {"N": str(business.created_ms)},
        "updated_ms": {"N": str(business.updated_ms)},
        "settings": {"S": _compact(_row(business.own))},
        **_item_beside_the_settings(business.own),
    }


def _item_beside_the_settings(own: Own) -> dict[str, Any]:
    """Settings that an older release passes over, and does not take for damage."""
    row = {
        "trusted_origins": own.trusted_origins,
        "secrets": own.secrets and list(map(_named_row, own.secrets)),
    }
    return {name: {"S": _compact(value)} for name, value in row.items() if value is not None}


def _beside_the_settings(item: Item) -> dict[str, Any]:
    read: dict[str, Callable[[Any], Any]] = {
        "trusted_origins": lambda origins: tuple(map(string, origins)),
        "secrets": lambda rows: tuple(map(_named_of_row, rows)),
    }
    return {name: read[name](json.loads(item[name]["S"])) for name in read if name in item}


def _named_row(secret: NamedSecret) -> list[str]:
    return [secret.name, b64encode(secret.sealed).decode("ascii")]


def _named_of_row(row: list[Any]) -> NamedSecret:
    name, sealed = row
    return NamedSecret(string(name), b64decode(string(sealed), validate=True))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _row(own: Own) -> dict[str, Any]:
    row: dict[str, Any] = {
        "callback": own.callback and callback_row(own.callback),
        "retry": own.retry and retry_row(own.retry),
        "retention_days": own.retention_days,
        "timeout_seconds": own.timeout_seconds,
        "allowed_hosts": own.allowed_hosts,
        "retry_statuses": own.retry_statuses,
        "stop_statuses": own.stop_statuses,
        "on_dead": own.on_dead and callback_row(own.on_dead),
        "calls_per_second": own.calls_per_second,
        "calls_in_flight": own.calls_in_flight,
        "creates_per_second": own.creates_per_second,
        "creates_burst": own.creates_burst,
        "signing_secrets": own.signing_secrets and list(map(_secret_row, own.signing_secrets)),
        "paused": own.paused,
        "lane": own.lane,
    }
    return {name: value for name, value in row.items() if value is not None}


def _own(row: dict[str, Any]) -> Own:
    read: dict[str, Callable[[Any], Any]] = {
        "callback": callback_of_row,
        "retry": retry_of_row,
        "retention_days": lambda days: integer(days, _DAYS_MAX, smallest=1),
        "timeout_seconds": lambda seconds: decimal(seconds, _DURATION_SECONDS_MAX),
        "allowed_hosts": lambda hosts: tuple(map(string, hosts)),
        "retry_statuses": _statuses,
        "stop_statuses": _statuses,
        "on_dead": callback_of_row,
        "calls_per_second": _rate,
        "calls_in_flight": lambda number: integer(number, smallest=1),
        "creates_per_second": _rate,
        "creates_burst": lambda number: integer(number, smallest=1),
        "signing_secrets": lambda rows: tuple(map(_secret_of_row, rows)),
        "paused": flag,
        "lane": Lane,
    }
    return Own(**{name: read[name](value) for name, value in row.items()})


def _secret_row(secret: SigningSecret) -> list[str]:
    return [secret.hint, b64encode(secret.sealed).decode("ascii")]


def _secret_of_row(row: list[Any]) -> SigningSecret:
    hint, sealed = row
    return SigningSecret(string(hint), b64decode(string(sealed), validate=True))


def _rate(value: Any) -> float:
    rate = decimal(value, _DURATION_SECONDS_MAX)
    if rate <= 0:
        raise ValueError("no rate")
    return rate


def _statuses(values: list[Any]) -> tuple[StatusEntry, ...]:
    if not all(map(is_status_entry, values)):
        raise ValueError("no such status")
    return tuple(values)
