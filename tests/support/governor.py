"""AWS's throughput limits, enforced before the emulator, on the emulator's clock.

Each partition key of the table and of its indexes has a limit of units a second, and so has the
table as a whole. Requests beyond a limit get AWS's refusals. There is no burst credit for quiet
seconds: AWS grants some, but does not guarantee it.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3

from bench.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS, TABLE_READ_UNITS
from local.aws.patches.item_sizes import size_of
from local.chaos.aws_faults import Handle, Reply, error_reply, in_part, operation_of

Item = Mapping[str, Any]

_EQUALS = re.compile(r"([#\w]+) = (:\w+)")


@dataclass
class _Bucket:
    """A token bucket that is refilled each second. The last admitted request may overdraw it."""

    units_a_second: float
    level: float = 0.0
    at_ms: float | None = None
    used: float = 0.0

    def is_open(self, now_ms: float) -> bool:
        passed_ms = now_ms - (self.at_ms if self.at_ms is not None else now_ms - 1000)
        filled = self.level + passed_ms / 1000 * self.units_a_second
        self.level, self.at_ms = min(self.units_a_second, filled), now_ms
        return self.level > 0

    def take(self, units: float) -> None:
        self.level -= units
        self.used += units


@dataclass(frozen=True)
class _Table:
    key: tuple[str, ...]
    indexes: Mapping[str, str]  # by name, with their partition keys

    def name_of(self, item: Item) -> tuple[str, ...]:
        return tuple(str(item[attribute]["S"]) for attribute in self.key)


@dataclass
class Governor:
    """Installed by `answered_by`. Refusals are counted by operation."""

    now_ms: Callable[[], float]
    tables: Iterable[str]
    table_write_units: float
    table_read_units: float = TABLE_READ_UNITS.value
    partition_write_units: float = PARTITION_WRITE_UNITS.value
    partition_read_units: float = PARTITION_READ_UNITS.value
    is_down: Callable[[str], bool] = lambda _: False  # whether a partition key refuses all requests
    refused: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)  # requests, by table
    _buckets: dict[tuple[str, ...], _Bucket] = field(default_factory=dict)
    _sizes: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        described = boto3.client("dynamodb")
        self._tables = {
            name: _table(described.describe_table(TableName=name)["Table"]) for name in self.tables
        }

    def answer(self, request: Any, handle: Handle) -> Reply | None:
        operation = operation_of(request)
        act = {
            "PutItem": self._write_one,
            "UpdateItem": self._write_one,
            "DeleteItem": self._write_one,
            "TransactWriteItems": self._transact,
            "BatchWriteItem": self._write_batch,
            "GetItem": self._read_one,
            "Query": self._read_one,
            "BatchGetItem": self._read_batch,
        }.get(operation)
        if act is None or "DynamoDB" not in str(request.headers.get("X-Amz-Target")):
            return handle(request)
        return act(request, json.loads(request.body), handle)

    def limit_table_writes(self, units_a_second: float) -> None:
        """From now on, in place of the limit before."""
        self.table_write_units = units_a_second
        for table in self.tables:
            bucket = self._bucket("write", units_a_second, table)
            bucket.units_a_second = units_a_second
            bucket.level = min(bucket.level, units_a_second)

    def used_by_table(self, table: str) -> float:
        """The used write units of a table."""
        return self._bucket("write", self.table_write_units, table).used

    # Writes

    def _write_one(self, request: Any, asked: Any, handle: Handle) -> Reply | None:
        self.writes[asked["TableName"]] += 1
        if not self._may_write(asked["TableName"], asked):
            return self._too_much(request)
        return handle(request)

    def _write_batch(self, request: Any, asked: Any, handle: Handle) -> Reply | None:
        ((table, _),) = asked["RequestItems"].items()
        self.writes[table] += 1
        taken: list[bool] = []

        def is_taken(part: Any) -> bool:
            ((_, what),) = part.items()
            taken.append(self._may_write(table, what))
            return taken[-1]

        reply = in_part(request, handle, is_taken)
        self.refused["BatchWriteItem"] += taken.count(False)
        return reply

    def _transact(self, request: Any, asked: Any, handle: Handle) -> Reply | None:
        actions = [what for action in asked["TransactItems"] for what in action.values()]
        if all(self._may_write(what["TableName"], what, times=2) for what in actions):
            return handle(request)
        self.refused["TransactWriteItems"] += 1
        reasons = [{"Code": "ThrottlingError"}, *({"Code": "None"} for _ in actions[1:])]
        return error_reply(
            400, "TransactionCanceledException", "canceled", CancellationReasons=reasons
        )

    def _may_write(self, table: str, what: Any, times: int = 1) -> bool:
        shape = self._tables[table]
        item = what.get("Item") or what["Key"]
        name = (table, *shape.name_of(item))
        size = max(self._sizes.get(name, 0), size_of(item))
        size += size_of(what.get("ExpressionAttributeValues", {})) if "Key" in what else 0
        is_new = "Item" in what and name not in self._sizes
        buckets = [
            self._bucket("write", self.table_write_units, table),
            self._bucket("write", self.partition_write_units, table, name[1]),
        ]
        if is_new:  # else its index keys rarely change
            buckets += [
                self._bucket("write", self.partition_write_units, table, index, item[key]["S"])
                for index, key in shape.indexes.items()
                if key in item
            ]
        if self.is_down(name[1]) or not self._all_open(buckets):
            return False
        units = times * max(1, math.ceil(size / 1024))
        for bucket in buckets:
            bucket.take(units if bucket in buckets[:2] else 1)
        self._sizes[name] = size
        return True

    # Reads

    def _read_one(self, request: Any, asked: Any, handle: Handle) -> Reply | None:
        table = asked["TableName"]
        partition = self._partition_of(table, asked)
        buckets = self._read_buckets(table, partition)
        if self.is_down(partition) or not self._all_open(buckets):
            return self._too_much(request)
        reply = handle(request)
        if reply is not None and reply[0] == 200:
            answer = json.loads(reply[2])
            items = answer.get("Items", [answer["Item"]] if "Item" in answer else [])
            size = sum(self._size_of(table, item) for item in items)
            self._take_read(buckets, size, asked.get("ConsistentRead", False))
        return reply

    def _read_batch(self, request: Any, asked: Any, handle: Handle) -> Reply | None:
        ((table, wanted),) = asked["RequestItems"].items()
        left = 0

        def is_taken(key: Any) -> bool:
            nonlocal left
            partition = self._tables[table].name_of(key)[0]
            buckets = self._read_buckets(table, partition)
            if self.is_down(partition) or not self._all_open(buckets):
                left += 1
                return False
            self._take_read(buckets, self._size_of(table, key), wanted.get("ConsistentRead", False))
            return True

        if len(asked["RequestItems"]) > 1:
            return handle(request)
        reply = in_part(request, handle, is_taken)
        self.refused["BatchGetItem"] += left
        return reply

    def _partition_of(self, table: str, asked: Any) -> str:
        if "Key" in asked:
            return self._tables[table].name_of(asked["Key"])[0]
        match = _EQUALS.search(asked["KeyConditionExpression"])
        assert match is not None
        return str(asked["ExpressionAttributeValues"][match[2]]["S"])

    def _read_buckets(self, table: str, partition: str) -> list[_Bucket]:
        return [
            self._bucket("read", self.table_read_units, table),
            self._bucket("read", self.partition_read_units, table, partition),
        ]

    def _take_read(self, buckets: list[_Bucket], size: int, strongly: bool) -> None:
        units = max(1, math.ceil(size / 4096)) / (1 if strongly else 2)
        for bucket in buckets:
            bucket.take(units)

    def _size_of(self, table: str, item: Item) -> int:
        """The size of the stored item, independent of the projection."""
        key = self._tables[table].key
        if not all(attribute in item for attribute in key):
            return size_of(item)
        return max(size_of(item), self._sizes.get((table, *self._tables[table].name_of(item)), 0))

    # Both

    def _all_open(self, buckets: list[_Bucket]) -> bool:
        now_ms = self.now_ms()
        opened = [bucket.is_open(now_ms) for bucket in buckets]  # each fills up, open or not
        return all(opened)

    def _bucket(self, kind: str, units: float, *name: str) -> _Bucket:
        return self._buckets.setdefault((kind, *name), _Bucket(units))

    def _too_much(self, request: Any) -> Reply:
        self.refused[operation_of(request)] += 1
        return error_reply(400, "ProvisionedThroughputExceededException", "too much")


def _table(described: Any) -> _Table:
    return _Table(
        tuple(key["AttributeName"] for key in described["KeySchema"]),
        {
            index["IndexName"]: index["KeySchema"][0]["AttributeName"]
            for index in described.get("GlobalSecondaryIndexes", [])
        },
    )
