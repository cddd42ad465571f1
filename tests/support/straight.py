"""Fills or empties tables directly in moto, without requests, because tests use thousands of
items."""

import gc
from collections.abc import Iterable
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.sqs.models import sqs_backends

from local.aws.emulator import Emulator
from local.aws.template import ACCOUNT_ID, REGION
from tests.support.second_opinion import SecondOpinion


def put_straight(table_name: str, items: Iterable[dict[str, Any]]) -> None:
    table = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
    for attributes in items:
        values = {name: DynamoType(value) for name, value in attributes.items()}
        item = Item(values["slot"], values["place"], {})
        # In one step, since moto checks the size at each attribute that is set.
        item.attrs = LimitedSizeDict(values)
        table.items[item.hash_key][item.range_key] = item
    gc.freeze()  # else the garbage collector visits thousands of items repeatedly


def empty(emulator: Emulator) -> None:
    """Delete all items and messages, without the minute of waiting between two purges of a
    queue."""
    if isinstance(emulator, SecondOpinion):
        emulator.empty()
        return
    for table in dynamodb_backends[ACCOUNT_ID][REGION].tables.values():
        table.items.clear()
    for queue in sqs_backends[ACCOUNT_ID][REGION].queues.values():
        queue._messages.clear()
        queue._pending_messages.clear()
