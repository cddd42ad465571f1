"""How large an item is for DynamoDB: UTF-8 of names and texts, numbers by their digits."""

import math
from base64 import b64decode
from collections.abc import Mapping
from typing import Any


def size_of(item: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return math.ceil(len(content.lstrip("-").replace(".", "")) / 2) + 1
        case "B":  # as in a request
            return len(b64decode(content))
        case "BOOL":
            return 1
        case "L":
            return 3 + sum(1 + _value_size(element) for element in content)
        case _:
            raise NotImplementedError(f"the size of a {kind} is not known")
