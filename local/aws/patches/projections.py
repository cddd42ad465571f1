"""Lets moto reduce items to some attributes without copying each item for each attribute.

Invariant: same answers. Only whole attributes are picked here; paths into them are left to moto.
Reserved words of DynamoDB are in a set; moto searches a list for each name.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords


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

    reserved = frozenset(ReservedKeywords.get_reserved_keywords())
    with ExitStack() as patched:
        patched.enter_context(patch.object(Item, "project", project))
        patched.enter_context(patch.object(ReservedKeywords, "KEYWORDS", reserved))
        yield
