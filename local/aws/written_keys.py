"""Which partitions of a table requests have written, by the requests themselves.

Invariant: a written partition is among them, whether the write was carried out or refused.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_OF_ONE_ITEM = ("PutItem", "UpdateItem", "DeleteItem")
_OF_SEVERAL = ("BatchWriteItem", "TransactWriteItems")


class WrittenKeys:
    """Of one table, whose partition key is a string."""

    def __init__(self, table_name: str, key: str) -> None:
        self._table_name = table_name
        self._key = key
        self._found: set[str] = set()

    def take(self) -> set[str]:
        """Those since this was last called."""
        found, self._found = self._found, set()
        return found

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        self._found.update(item[self._key]["S"] for item in items)

    def note(self, operation: str, body: bytes | str | None) -> None:
        """The body of a request to DynamoDB."""
        if operation in _OF_ONE_ITEM:
            self.add(self._here(json.loads(body or "{}")))
        elif operation in _OF_SEVERAL:
            self.add(self._among(json.loads(body or "{}")))

    def _here(self, write: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        if write.get("TableName", "").rpartition("/")[2] == self._table_name:
            yield write.get("Item") or write["Key"]

    def _among(self, request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for write in request.get("TransactItems", ()):
            for kind in ("Put", "Update", "Delete"):
                if kind in write:
                    yield from self._here(write[kind])
        for write in request.get("RequestItems", {}).get(self._table_name, ()):
            one = write.get("PutRequest") or write["DeleteRequest"]
            yield one.get("Item") or one["Key"]
