"""Items put straight into moto: thousands at once, where a story begins with a full table."""

from collections.abc import Iterable
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict

from local.template import ACCOUNT_ID, REGION


def put_straight(table_name: str, items: Iterable[dict[str, Any]]) -> None:
    table = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
    for attributes in items:
        values = {name: DynamoType(value) for name, value in attributes.items()}
        item = Item(values["slot"], values["place"], {})
        item.attrs = LimitedSizeDict(values)  # all at once: moto checks the size at each one
        table.items[item.hash_key][item.range_key] = item
