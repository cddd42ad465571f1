"""Signing secrets and named secrets of businesses, in the table Secrets. The Registry names them; a
reader of the Registry does not get at them.

A secret is an item; its key is the business with a random id, which the business's record has.

Invariants: a secret is bound to its business. An id is used for one secret, so that a process may
cache what it has opened. An item is put before a record names it, and deleted after no record names
it any more: a crash in between leaves an item that nothing names.

The api has only the right BatchWriteItem on the table: unlike PutItem and DeleteItem it can return
no item that was there before.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.clock import Clock
from duewheel.stores.dynamodb import Throttled, write_all

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

OPENED_MAX = 1_000
ID_BYTES = 16


class SecretUnavailable(Exception):
    """A secret could not be stored or opened: AWS does not answer, or this function has no
    right."""


class SecretGone(SecretUnavailable):
    """The table has no such secret of this business."""


class SecretTable(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    name: str
    random_bytes: Callable[[int], bytes]

    def new_id(self) -> str:
        return urlsafe_b64encode(self.random_bytes(ID_BYTES)).rstrip(b"=").decode()

    def write(self, requests: list[object]) -> None:
        try:
            write_all(self.client, self.clock, self.name, requests, "secrets were not written")
        except (ClientError, BotoCoreError, Throttled) as error:
            raise SecretUnavailable(str(error)) from error

    def read(self, key: dict[str, Any]) -> bytes:
        try:
            answer = self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True)
        except (ClientError, BotoCoreError) as error:
            raise SecretUnavailable(str(error)) from error
        secret = answer.get("Item", {}).get("secret", {}).get("B")
        if secret is None:  # or it was put by hand, with another type
            raise SecretGone(f"no secret in the item {key['id']['S']}")
        return bytes(secret)


class SecretsRead(Struct, frozen=True):
    """Of a function that may read secrets."""

    table: SecretTable

    def reach(self) -> list[str]:
        with suppress(SecretGone):
            self.table.read(_item_key("-", "-"))
        return [self.table.name]


class NewSecrets:
    """Secrets of a change that is not yet written."""

    def __init__(self, biz_type: str, table: SecretTable) -> None:
        self._biz_type = biz_type
        self._table = table
        self._puts: list[object] = []

    def add(self, secret: bytes) -> str:
        """Its id."""
        secret_id = self._table.new_id()
        item = {**_item_key(self._biz_type, secret_id), "secret": {"B": secret}}
        self._puts.append({"PutRequest": {"Item": item}})
        return secret_id

    def write(self) -> None:
        """Before the record; a repeat writes nothing."""
        if self._puts:
            self._table.write(self._puts)
            self._puts.clear()


class SecretStore:
    """Each process opens a secret once and keeps it in memory only."""

    def __init__(self, table: SecretTable) -> None:
        self._table = table
        self._opened = lru_cache(OPENED_MAX)(self._open)

    def new(self, biz_type: str) -> NewSecrets:
        return NewSecrets(biz_type, self._table)

    def open(self, biz_type: str, secret_id: str) -> bytes:
        return self._opened(biz_type, secret_id)

    def delete(self, biz_type: str, ids: Iterable[str]) -> None:
        """After no record contains them any more."""
        requests: list[object] = [
            {"DeleteRequest": {"Key": _item_key(biz_type, one)}} for one in sorted(ids)
        ]
        if requests:
            self._table.write(requests)

    def _open(self, biz_type: str, secret_id: str) -> bytes:
        return self._table.read(_item_key(biz_type, secret_id))


def _item_key(biz_type: str, secret_id: str) -> dict[str, Any]:
    """The secrets of a business are not in one partition: every notifier of a burst reads them."""
    return {"id": {"S": f"{biz_type}#{secret_id}"}}
