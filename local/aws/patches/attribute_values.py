"""Lets moto write, copy, measure and check the attributes of items by their one type.

Invariant: same answers. A value has one of ten types, and is stored under the name that is written;
moto would check each value for all ten, each under several names, measure the whole item again for
each of its attributes, and record for each value whether it was copied. Only texts and numbers,
which are nearly all values, are handled here; others are left to moto or the SDK.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from botocore.validate import ParamValidator
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb import responses
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import dynamo_type
from moto.dynamodb.models.dynamo_type import DynamoType

# moto and the SDK do not type them.
_Item: Any = vars(dynamo_type)["Item"]
_Attributes: Any = vars(dynamo_type)["LimitedSizeDict"]
_Validator: Any = ParamValidator
_any_plain = vars(responses)["dynamo_to_dict"]
_any_size = DynamoType.size
_any_copy = DynamoType.__deepcopy__
_any_check = _Validator._validate_structure

_TEXTS = {"S", "N"}
_PLAIN = {str, int, float, bool, type(None)}
_ITEM_BYTES_MAX = 405_000  # moto's


@contextmanager
def values_of_one_type() -> Iterator[None]:
    any_map = BaseJSONSerializer._serialize_type_map

    def map_of(self: BaseJSONSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.value.name != "AttributeValue":
            any_map(self, serialized, value, shape, key)
        else:
            serialized[key] = {name: _written(attribute) for name, attribute in value.items()}

    with ExitStack() as patched:
        for target, name, replacement in (
            (BaseJSONSerializer, "_serialize_type_map", map_of),
            (responses, "dynamo_to_dict", _plain),
            (_Item, "__init__", _make),
            (_Item, "__deepcopy__", _copied),
            (DynamoType, "size", _size),
            (_Validator, "_validate_structure", _check),
        ):
            patched.enter_context(patch.object(target, name, replacement))
        yield


def _plain(held: Any) -> Any:
    kind = type(held)
    if kind in _PLAIN:
        return held
    if kind is DynamoType and held.type in _TEXTS:
        return {held.type: held.value}
    if kind is dict or kind is _Attributes:
        return {name: _plain(value) for name, value in held.items()}
    if kind is list:
        return [_plain(value) for value in held]
    return _any_plain(held)


def _make(item: Any, hash_key: Any, range_key: Any, attrs: Mapping[str, Any]) -> None:
    values = {name: DynamoType(value) for name, value in attrs.items()}
    if sum(len(name.encode()) + value.size() for name, value in values.items()) > _ITEM_BYTES_MAX:
        raise ItemSizeTooLarge
    item.hash_key, item.range_key, item.attrs = hash_key, range_key, _Attributes()
    dict.update(item.attrs, values)


def _copied(item: Any, memo: dict[int, Any]) -> Any:
    copied = object.__new__(_Item)
    copied.hash_key = _value_copied(item.hash_key, memo)
    copied.range_key = item.range_key and _value_copied(item.range_key, memo)
    copied.attrs = _Attributes()
    dict.update(copied.attrs, {n: _value_copied(v, memo) for n, v in item.attrs.items()})
    return copied


def _value_copied(value: DynamoType, memo: dict[int, Any]) -> DynamoType:
    if value.type not in _TEXTS:
        return _any_copy(value, memo)
    copied = object.__new__(DynamoType)
    copied.type, copied.value = value.type, value.value
    return copied


def _size(value: DynamoType) -> int:
    held = value.value
    return len(held.encode()) if type(held) is str else _any_size(value)


def _check(validator: Any, value: Any, shape: Any, errors: Any, name: str) -> None:
    if shape.name == "AttributeValue" and type(value) is dict and len(value) == 1:
        ((kind, held),) = value.items()
        if kind in _TEXTS and type(held) is str:
            return
    _any_check(validator, value, shape, errors, name)


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
