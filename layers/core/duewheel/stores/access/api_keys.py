"""API keys in the Registry: one record each, with the hashes of its secrets.

The authorizer, which delays every call with a key, imports only this module; `api_key_changes.py`
has the writes. The day of the last use is written without a new version.
"""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.access.api_keys import ApiKey
from duewheel.rules.access.grants import grants_of
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Throttled, write_if
from duewheel.stores.item_attributes import integer, reported

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_DIGEST_BYTES = 32


class ApiKeyStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def reach(self) -> list[str]:
        self.client.get_item(TableName=self.table, Key=registry_keys.api_key("-"))
        return [self.table]

    def read(self, key_id: str) -> ApiKey | None:
        """Raises UnreadableItem, and reports it, if the record is damaged."""
        answer = self.client.get_item(
            TableName=self.table, Key=registry_keys.api_key(key_id), ConsistentRead=True
        )
        item: Item | None = answer.get("Item")
        return None if item is None else _read(item)

    def page(self, after: str | None, limit: int) -> tuple[list[ApiKey], str | None]:
        """In the order of their ids, with the last id that was read if there may be more. Damaged
        records are reported and left out."""
        start: dict[str, Any] = {}
        if after is not None:
            start["ExclusiveStartKey"] = registry_keys.api_key(after)
        answer = self.client.query(
            TableName=self.table, **_all_keys(), Limit=limit, ConsistentRead=True, **start
        )
        found = []
        for item in answer["Items"]:
            try:
                found.append(_read(item))
            except UnreadableItem:
                continue
        last: Item | None = answer.get("LastEvaluatedKey")
        return found, None if last is None else registry_keys.api_key_id_of(last)

    def is_full(self, keys_max: int) -> bool:
        """Whether there are so many records, ended ones included."""
        counted, start = 0, dict[str, Any]()
        while counted < keys_max:
            answer = self.client.query(
                TableName=self.table, **_all_keys(), **start, Limit=keys_max, Select="COUNT"
            )
            counted += answer["Count"]
            if "LastEvaluatedKey" not in answer:
                return counted >= keys_max
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return True

    def mark_used(self, key_id: str, day: int) -> None:
        """A failed write is reported and fails no call."""
        try:
            write_if(
                self.client.update_item,
                TableName=self.table,
                Key=registry_keys.api_key(key_id),
                UpdateExpression="SET last_used_day = :day",
                ConditionExpression="attribute_exists(#kind) AND "
                "(attribute_not_exists(last_used_day) OR last_used_day < :day)",
                ExpressionAttributeNames={"#kind": "kind"},
                ExpressionAttributeValues={":day": {"N": str(day)}},
            )
        except (BotoCoreError, ClientError, Throttled) as error:
            logger.warning(
                "last use not recorded",
                action="last-use-not-recorded",
                key_id=key_id,
                error=type(error).__name__,
            )


def _all_keys() -> dict[str, Any]:
    return {
        "KeyConditionExpression": "#kind = :kind",
        "ExpressionAttributeNames": {"#kind": "kind"},
        "ExpressionAttributeValues": {":kind": {"S": registry_keys.API_KEY_KIND}},
    }


def _read(item: Item) -> ApiKey:
    try:
        return ApiKey(
            key_id=registry_keys.api_key_id_of(item),
            name=item["name"]["S"],
            grants=grants_of(item["grants"]["S"]),
            digest=_digest(item["digest"]["B"]),
            created_ms=integer(int(item["created_ms"]["N"])),
            created_by=item["created_by"]["S"],
            version=integer(int(item["version"]["N"]), smallest=1),
            expires_ms=_instant_ms(item, "expires_ms"),
            previous_digest=(
                _digest(item["previous_digest"]["B"]) if "previous_digest" in item else None
            ),
            previous_until_ms=_instant_ms(item, "previous_until_ms") or 0,
            revoked_ms=_instant_ms(item, "revoked_ms"),
            last_used_day=_instant_ms(item, "last_used_day"),
        )
    except NOT_UNDERSTOOD as error:
        raise reported(item, "key") from error


def _instant_ms(item: Item, name: str) -> int | None:
    return integer(int(item[name]["N"])) if name in item else None


def _digest(value: Any) -> bytes:
    digest = bytes(value)
    if len(digest) != _DIGEST_BYTES:
        raise ValueError("no digest")
    return digest
