"""Lets moto undo a transaction item by item instead of by a copy of the whole table.

Invariant: same outcome. moto's own code carries the transaction out; but when a condition fails it
restores a copy of the touched items, not one of the whole table.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from unittest.mock import patch

from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table


@contextmanager
def transactions_within_their_items() -> Iterator[None]:
    whole_table_transaction = DynamoDBBackend.transact_write_items

    def transact(backend: DynamoDBBackend, actions: list[Any]) -> None:
        touched = list(_touched(backend, actions))
        before = [deepcopy(items.get(key)) for items, key in touched]
        try:
            with patch.object(Table, "__deepcopy__", lambda table, memo: table, create=True):
                whole_table_transaction(backend, actions)
        except Exception:
            for (items, key), item in zip(touched, before, strict=True):
                if item is None:
                    items.pop(key, None)
                else:
                    items[key] = item
            raise

    with patch.object(DynamoDBBackend, "transact_write_items", transact):
        yield


def _touched(backend: DynamoDBBackend, actions: list[Any]) -> Iterator[tuple[Any, DynamoType]]:
    """The places of a transaction's items: their container, and their key in it. An action that
    names no table or no whole key touches nothing; moto refuses it."""
    for action in actions:
        for operation in action.values():
            table = backend.tables.get(operation["TableName"])
            names = operation.get("Key") or operation.get("Item") or {}
            if table is None or not set(table.table_key_attrs) <= set(names):
                continue
            hash_key = DynamoType(names[table.hash_key_attr])
            if table.range_key_attr is None:
                yield table.items, hash_key
            else:
                yield table.items[hash_key], DynamoType(names[table.range_key_attr])
