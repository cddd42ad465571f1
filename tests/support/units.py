"""The units that AWS would bill for recorded calls, computed from item sizes, since no emulator
computes them correctly.

A write costs a unit per started KB, a read one per started 4 KB (half if eventually consistent). A
refused condition costs the same as a write, and transactions cost double.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from local.aws.patches.item_sizes import size_of
from tests.support.clients import plain
from tests.support.recorder import Call


@dataclass
class Meter:
    """Adds up the calls of a recorder. Only `table` is counted."""

    table: str
    write_units: float = 0
    read_units: float = 0
    requests: Counter[str] = field(default_factory=Counter)
    empty_probes: int = 0
    _plain: Any = field(default_factory=lambda: plain("dynamodb"))
    _lock: Any = field(default_factory=Lock)  # threads settle concurrently

    def __call__(self, call: Call) -> None:
        with self._lock:
            self._count(call)

    def _count(self, call: Call) -> None:
        request, response = call.request, call.response or {}
        if "QueueUrl" in request:
            if call.operation != "ReceiveMessage" or response.get("Messages"):
                self.requests[call.operation] += 1
            return
        if self.table not in _tables(request):
            return
        if call.operation == "Query" and not response["Items"]:
            self.empty_probes += 1
        self.requests[call.operation] += 1
        self._bill(call.operation, request, response)

    def _bill(self, operation: str, request: dict[str, Any], response: dict[str, Any]) -> None:
        match operation:
            case "PutItem":
                self._write([request["Item"]])
            case "UpdateItem" | "DeleteItem":
                # Measured afterwards: the items of these tests only grow, and none reaches 1 KB.
                self._write([self._stored(request["Key"])])
            case "BatchWriteItem":
                writes = request["RequestItems"][self.table]
                self._write([w["PutRequest"]["Item"] for w in writes if "PutRequest" in w])
                self._write([{} for w in writes if "DeleteRequest" in w])
            case "TransactWriteItems":
                for action in request["TransactItems"]:
                    ((kind, what),) = action.items()
                    if what["TableName"] != self.table:
                        continue
                    for _ in range(2):  # a transaction costs double
                        self._write([what["Item"] if kind == "Put" else self._stored(what["Key"])])
            case _:
                self._bill_read(operation, request, response)

    def _bill_read(self, operation: str, request: dict[str, Any], response: dict[str, Any]) -> None:
        match operation:
            case "GetItem":
                self._read([response.get("Item", {})], request.get("ConsistentRead", False))
            case "BatchGetItem":
                for item in response["Responses"][self.table]:
                    self._read([item], request["RequestItems"][self.table]["ConsistentRead"])
            case "Query":
                whole = [self._stored(item) for item in self._scanned(request)]
                self._read(whole, request.get("ConsistentRead", False))
            case _:
                raise AssertionError(f"the meter does not know what {operation} costs")

    @property
    def dynamodb_requests(self) -> int:
        return sum(n for name, n in self.requests.items() if "Message" not in name)

    @property
    def sqs_requests(self) -> int:
        return sum(n for name, n in self.requests.items() if "Message" in name)

    def _write(self, items: Iterable[Mapping[str, Any]]) -> None:
        for item in items:
            self.write_units += max(1, math.ceil(size_of(item) / 1024))
            # An index is written when a task is created; its keys never change later.
            if "status" in item and item.get("version") == {"N": "1"}:
                self.write_units += ("biz_part" in item) + ("timer" in item)

    def _read(self, items: Iterable[Mapping[str, Any]], strongly: bool) -> None:
        units = max(1, math.ceil(sum(map(size_of, items)) / 4096))
        self.read_units += units if strongly else units / 2

    def _stored(self, key: Mapping[str, Any]) -> Mapping[str, Any]:
        names = ("slot", "place") if "slot" in key else ("kind", "record")
        place = {name: key[name] for name in names}
        answer = self._plain.get_item(TableName=self.table, Key=place)
        found: Mapping[str, Any] = answer.get("Item", {})
        return found

    def _scanned(self, request: dict[str, Any]) -> list[Mapping[str, Any]]:
        """The keys that the query read, independent of its projection."""
        names = (
            "TableName",
            "KeyConditionExpression",
            "ExpressionAttributeValues",
            "Limit",
            "ExclusiveStartKey",
        )
        again = {name: request[name] for name in names if name in request}
        given = request.get("ExpressionAttributeNames", {})
        if used := {n: given[n] for n in given if n in request["KeyConditionExpression"]}:
            again["ExpressionAttributeNames"] = used
        items: list[Mapping[str, Any]] = self._plain.query(**again)["Items"]
        return items


def _tables(request: Mapping[str, Any]) -> set[str | None]:
    actions = request.get("TransactItems", ())
    in_actions = (what["TableName"] for action in actions for what in action.values())
    return {request.get("TableName"), *request.get("RequestItems", ()), *in_actions}
