"""Lets moto answer a query from the items it is about instead of from the whole table.

Invariant: same answers. moto's own code runs, on a view of the table that leaves out what it
would skip anyway: other partitions, what stands before the start key, and, for an index, items
with another index key. The view is in order, so that moto has little left to sort.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any
from unittest.mock import patch

from moto.dynamodb.models.table import Table


@contextmanager
def query_within_its_partition() -> Iterator[None]:
    whole_table_query = Table.query

    def query(table: Table, hash_key: Any, *arguments: Any, **named: Any) -> Any:
        # In moto's order: comparison, its values, limit, start key, forward, projection, index.
        start, is_forward, index_name = arguments[3], arguments[4] is not False, arguments[6]
        if index_name:
            items = _indexed(table, hash_key, named["hash_key_conditions"])
        else:
            items = _partition(table, hash_key, start if is_forward else None)
        return whole_table_query(_view(table, items), hash_key, *arguments, **named)

    with patch.object(Table, "query", query):
        yield


def _view(table: Table, items: Any) -> Table:
    # Past moto's own __new__, which would keep every view for ever.
    view: Table = object.__new__(type(table))
    vars(view).update(vars(table), items=items)
    return view


def _partition(table: Table, hash_key: Any, start: Any) -> Any:
    if hash_key not in table.items:  # asked first: a look must not make a partition
        return defaultdict(dict)
    partition = table.items[hash_key]
    if table.range_key_type == "S":
        first = start[table.range_key_attr]["S"] if start else ""
        ahead = [(key.value, key, item) for key, item in partition.items() if key.value >= first]
        partition = {key: item for _, key, item in sorted(ahead, key=itemgetter(0))}
    return {hash_key: partition}


def _indexed(table: Table, index_key: Any, conditions: Any) -> Any:
    name = conditions[0][0]
    if index_key.type != "S" or not table.has_range_key:
        return table.items
    return {
        hash_key: {
            range_key: item
            for range_key, item in partition.items()
            if (found := item.attrs.get(name)) is not None and found.value == index_key.value
        }
        for hash_key, partition in table.items.items()
    }
