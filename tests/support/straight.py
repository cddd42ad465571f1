"""Straight into moto: thousands of items at once, or none, where a story is to begin so."""

import gc
from collections.abc import Iterable
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.sqs.models import sqs_backends

from local.template import ACCOUNT_ID, REGION


def put_straight(table_name: str, items: Iterable[dict[str, Any]]) -> None:
    table = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
    for attributes in items:
        values = {name: DynamoType(value) for name, value in attributes.items()}
        item = Item(values["slot"], values["place"], {})
        item.attrs = LimitedSizeDict(values)  # all at once: moto checks the size at each one
        table.items[item.hash_key][item.range_key] = item
    gc.freeze()  # else the garbage collector walks through thousands of items again and again


def empty(table_name: str) -> None:
    dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name].items.clear()


def empty_queue(url: str) -> None:
    """Without the minute's wait between two purges."""
    queue = sqs_backends[ACCOUNT_ID][REGION].queues[url.rpartition("/")[2]]
    queue._messages.clear()
    queue._pending_messages.clear()
