"""Lets moto answer a query from the items of its partition instead of the whole table.

Invariant: same answers. moto's own code runs, on a view of the table without the items that it
would skip anyway: other partitions, items before or behind the requested page, and, for an index,
items with another index key.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any
from unittest.mock import patch

from moto.dynamodb.models.table import Table

# Conditions that are false for every sort key before their first value.
_FROM_A_VALUE_ON = {"=", ">", ">=", "BETWEEN", "BEGINS_WITH"}
_CONDITIONS = {"hash_key_conditions", "range_key_conditions"}  # else there are legacy filters


@contextmanager
def query_within_its_partition() -> Iterator[None]:
    whole_table_query = Table.query

    def query(table: Table, hash_key: Any, *arguments: Any, **named: Any) -> Any:
        comparison, values, limit, start, is_forward, _, index_name, *_ = arguments
        if index_name:
            items = _indexed(table, hash_key, named["hash_key_conditions"])
        elif is_forward is False or table.range_key_type != "S" or set(named) > _CONDITIONS:
            items = _partition(table, hash_key)
        else:
            lows = [values[0].value] if comparison in _FROM_A_VALUE_ON else []
            lows += [start[table.range_key_attr]["S"]] if start else []
            items = _ahead(_partition(table, hash_key), max(lows, default=""), limit)
        return whole_table_query(_view(table, items), hash_key, *arguments, **named)

    with patch.object(Table, "query", query):
        yield


def _view(table: Table, items: Any) -> Table:
    # Past moto's own __new__, which would keep every view for ever.
    view: Table = object.__new__(type(table))
    vars(view).update(vars(table), items=items)
    return view


def _partition(table: Table, hash_key: Any) -> Any:
    # Checked first: a read must not make a partition.
    return {hash_key: table.items[hash_key]} if hash_key in table.items else {}


def _ahead(items: Any, low: str, limit: int | None) -> Any:
    """The items that meet the condition are contiguous and begin at `low`, or behind it; moto reads
    one more behind the last requested item."""
    looked_at = None if limit is None else limit + 2
    cut = {}
    for hash_key, partition in items.items():
        ahead = [(key.value, key, item) for key, item in partition.items() if key.value >= low]
        ahead.sort(key=itemgetter(0))
        cut[hash_key] = {key: item for _, key, item in ahead[:looked_at]}
    return cut


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
