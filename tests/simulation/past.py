"""The tables as they stood some moments ago, for reads that need not be consistent.

Invariant: a look at the past changes nothing. Only what was written within the longest lag is kept.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType

from local.aws.template import ACCOUNT_ID, REGION
from local.chaos.aws_faults import operation_of

LAG_SECONDS_MAX = 2.0
_READS = {"GetItem", "Query", "BatchGetItem"}
_NESTED = {"M", "L"}


class Past:
    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        # When, where, and what stood there before; None: nothing.
        self._before: deque[tuple[float, dict[Any, Any], Any, Any]] = deque()

    def note(self, request: Any) -> None:
        """Before a write is carried out."""
        now = self._seconds()
        while self._before and self._before[0][0] < now - LAG_SECONDS_MAX:
            self._before.popleft()
        for table, key in _written(operation_of(request), request.body):
            items, name = _place(table, key)
            self._before.append((now, items, name, _copied(items.get(name))))

    @contextmanager
    def as_it_was(self, seconds_ago: float) -> Iterator[None]:
        then = self._seconds() - seconds_ago
        now: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        for at, items, name, before in reversed(self._before):
            if at <= then:
                break
            now.setdefault((id(items), name), (items, items.get(name)))
            _put(items, name, before)
        try:
            yield
        finally:
            for (_, name), (items, item) in now.items():
                _put(items, name, item)


def may_lag(request: Any) -> bool:
    """Whether it is a read that need not see what has just been written."""
    operation = operation_of(request)
    if operation not in _READS:
        return False
    asked = json.loads(request.body)
    if operation == "BatchGetItem":
        return not any(one.get("ConsistentRead") for one in asked["RequestItems"].values())
    return not asked.get("ConsistentRead")


def _written(operation: str, body: Any) -> Iterator[tuple[str, Any]]:
    """By table: what names the key."""
    match operation:
        case "PutItem":
            asked = json.loads(body)
            yield asked["TableName"], asked["Item"]
        case "UpdateItem" | "DeleteItem":
            asked = json.loads(body)
            yield asked["TableName"], asked["Key"]
        case "BatchWriteItem":
            for table, parts in json.loads(body)["RequestItems"].items():
                for part in parts:
                    ((_, what),) = part.items()
                    yield table, what.get("Item") or what["Key"]
        case "TransactWriteItems":
            for action in json.loads(body)["TransactItems"]:
                ((_, what),) = action.items()
                yield what["TableName"], what.get("Item") or what["Key"]


def _place(table_name: str, key: Any) -> tuple[dict[Any, Any], Any]:
    table: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
    return (
        table.items[DynamoType(key[table.hash_key_attr])],
        DynamoType(key[table.range_key_attr]),
    )


def _copied(item: Any) -> Any:
    """moto replaces plain values, and changes nested ones where they are."""
    if item is None:
        return None
    twin = copy(item)
    twin.attrs = copy(item.attrs)
    for name, value in item.attrs.items():
        if value.type in _NESTED:
            twin.attrs[name] = deepcopy(value)
    return twin


def _put(items: dict[Any, Any], name: Any, item: Any) -> None:
    if item is None:
        items.pop(name, None)
    else:
        items[name] = item
