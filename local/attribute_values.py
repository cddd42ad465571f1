"""Lets moto write the attributes of items as they are held.

Invariant: same answers. A value has one of ten types, and is held under the very name that is
written; moto would look for all ten of them in each value, each under several names.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.serialize import BaseJSONSerializer


@contextmanager
def values_of_one_type() -> Iterator[None]:
    any_map = BaseJSONSerializer._serialize_type_map

    def map_of(self: BaseJSONSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.value.name != "AttributeValue":
            any_map(self, serialized, value, shape, key)
        else:
            serialized[key] = {name: _written(attribute) for name, attribute in value.items()}

    with patch.object(BaseJSONSerializer, "_serialize_type_map", map_of):
        yield


def _written(value: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, held),) = value.items()
    match kind:
        case "L":
            held = [_written(one) for one in held]
        case "M":
            held = {name: _written(one) for name, one in held.items()}
        case "B":
            held = b64encode(held).decode()
        case "BS":
            held = [b64encode(one).decode() for one in held]
    return {kind: held}
