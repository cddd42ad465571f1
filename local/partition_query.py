"""Lets moto answer a query of a table from its one partition instead of the whole table.

Invariant: same answers. moto's own code runs, on a view of the table that holds only
the partition that was asked for; queries of indexes are left as they are.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.dynamodb.models.table import Table


@contextmanager
def query_within_its_partition() -> Iterator[None]:
    whole_table_query = Table.query

    def query(table: Table, hash_key: Any, *arguments: Any, **named: Any) -> Any:
        index_name = named.get("index_name") or (arguments[6] if len(arguments) > 6 else None)
        if index_name:
            return whole_table_query(table, hash_key, *arguments, **named)
        return whole_table_query(_partition_of(table, hash_key), hash_key, *arguments, **named)

    with patch.object(Table, "query", query):
        yield


def _partition_of(table: Table, hash_key: Any) -> Table:
    # Past moto's own __new__, which would keep every view for ever.
    view: Table = object.__new__(type(table))
    vars(view).update(vars(table), items=defaultdict(dict))
    if hash_key in table.items:  # asked first: a look must not make a partition
        view.items[hash_key] = table.items[hash_key]
    return view
