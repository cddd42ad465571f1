"""Lets moto write the values of items without asking for what they are not.

Invariant: same answers. A value has one of ten types, and its name is the very one that is
written; moto would look for all ten of them, each under several names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.serialize import ResponseSerializer


@contextmanager
def values_of_one_type() -> Iterator[None]:
    any_member = ResponseSerializer._serialize_structure_member

    def member(self: ResponseSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.parent.name != "AttributeValue" or key in value:
            any_member(self, serialized, value, shape, key)

    with patch.object(ResponseSerializer, "_serialize_structure_member", member):
        yield
