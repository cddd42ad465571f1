"""Writes of API keys: each key together with the record of its change, in one transaction.

Every change is conditional on the version that was read.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.access.api_keys import ApiKey
from duewheel.rules.access.change_records import key_created, key_named
from duewheel.rules.access.grants import grants_text
from duewheel.rules.history.changes import Change
from duewheel.stores import registry_keys
from duewheel.stores.history.change_records import ChangeRecords

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class ApiKeyChanges(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def create(self, key: ApiKey) -> bool:
        """False when another key has its id."""
        put = {"Item": _item(key), **registry_keys.IF_ABSENT}
        return self._written({"Put": {"TableName": self.table, **put}}, key, key_created(key))

    def change(self, before: ApiKey, after: ApiKey, change: Change) -> bool:
        """Change the secrets of a key, or end it. False if the key changed since `before` was
        read."""
        update = {"TableName": self.table, **_update(before, after)}
        return self._written({"Update": update}, after, change)

    def _written(self, action: dict[str, Any], key: ApiKey, change: Change) -> bool:
        def is_as_left() -> bool:
            record = registry_keys.api_key(key.key_id)
            answer = self.client.get_item(TableName=self.table, Key=record, ConsistentRead=True)
            current = answer.get("Item", {})
            return all(current.get(name) == value for name, value in _changing(key).items())

        changes = ChangeRecords(self.client, self.table)
        return changes.write([action], key_named(key), change, is_as_left)


def _item(key: ApiKey) -> dict[str, Any]:
    return {
        **registry_keys.api_key(key.key_id),
        "name": {"S": key.name},
        "grants": {"S": grants_text(key.grants)},
        "created_ms": {"N": str(key.created_ms)},
        "created_by": {"S": key.created_by},
        **({} if key.expires_ms is None else {"expires_ms": {"N": str(key.expires_ms)}}),
        **_changing(key),
    }


def _changing(key: ApiKey) -> dict[str, Any]:
    """The attributes that a change may write. A change removes none."""
    item: dict[str, Any] = {"digest": {"B": key.digest}, "version": {"N": str(key.version)}}
    if key.previous_digest is not None:
        item["previous_digest"] = {"B": key.previous_digest}
        item["previous_until_ms"] = {"N": str(key.previous_until_ms)}
    if key.revoked_ms is not None:
        item["revoked_ms"] = {"N": str(key.revoked_ms)}
    if key.gone_ms is not None:
        item["expires_at"] = {"N": str(-(-key.gone_ms // 1000))}
    return item


def _update(before: ApiKey, after: ApiKey) -> dict[str, Any]:
    written = _changing(after)
    return {
        "Key": registry_keys.api_key(after.key_id),
        "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in written),
        "ConditionExpression": "#version = :seen",
        "ExpressionAttributeNames": {f"#{name}": name for name in written},
        "ExpressionAttributeValues": {
            ":seen": {"N": str(before.version)},
            **{f":{name}": value for name, value in written.items()},
        },
    }
