"""Lets moto cut items down to some attributes without making each item anew for each attribute.

Invariant: same answers. Only whole attributes are picked here; paths into them are left to moto.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from moto.dynamodb.models.dynamo_type import Item


@contextmanager
def projections_of_whole_attributes() -> Iterator[None]:
    any_projection = Item.project

    def project(item: Item, expressions: list[list[str]]) -> Item:
        if any(len(path) > 1 or "[" in path[0] for path in expressions):
            return any_projection(item, expressions)
        cut = Item(item.hash_key, item.range_key, {})
        for (name,) in expressions:
            if name in item.attrs:
                cut.attrs[name] = item.attrs[name]
        return cut

    with patch.object(Item, "project", project):
        yield
