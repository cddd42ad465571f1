"""Secrets that the service makes for itself, each recorded once in the Registry."""

from typing import TYPE_CHECKING, Any

from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Refused, write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

CURSOR = "cursor"


def read_or_record(client: "DynamoDBClient", table: str, name: str, fresh: bytes) -> bytes:
    """The secret of this name; the first process records `fresh`."""
    key = registry_keys.secret(name)
    answer = client.get_item(TableName=table, Key=key, ConsistentRead=True)
    item: Item | None = answer.get("Item")
    if item is None:
        mine: Any = {**key, "secret": {"B": fresh}}
        result = write_if(client.put_item, TableName=table, Item=mine, **registry_keys.IF_ABSENT)
        item = result.item if isinstance(result, Refused) and result.item else mine
    return bytes(item["secret"]["B"])
