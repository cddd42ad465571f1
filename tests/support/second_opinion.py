"""ministack instead of moto: the same tests on another implementation.

Invariant: every request of a client is sent to ministack unchanged, with the time of the tests'
clock in a header; moto answers none. Each process of pytest has a separate server process, since
ministack needs packages of its own (requirements/second.txt).
"""

import json
import subprocess
from collections.abc import Collection
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local.aws.emulator import Emulator, HasNow
from local.aws.time_to_live import Item

SERVER = Path(__file__).parents[1] / "second" / "server.py"
CLOCK_HEADER = "X-Test-Clock-Ms"

Reply = tuple[int, dict[str, str], bytes]


class Server:
    """It ends with its standard input: at `stop`, or with its parent process."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        port = int(self._process.stdout.readline())
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def stop(self) -> None:
        self._connection.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)

    def answer(
        self, method: str, path: str, now_ms: int, headers: dict[str, str], body: bytes
    ) -> Reply:
        self._connection.request(
            method, path, body, {**headers, CLOCK_HEADER: str(now_ms), "Host": "localhost"}
        )
        response = self._connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


class SecondOpinion(Emulator):
    """An emulator with moto's stubs in botocore, its lock and its invocations, but none of its
    answers, and no short way to them."""

    patches = ()

    def __init__(self, clock: HasNow, server: Server) -> None:
        super().__init__(clock)
        self._server = server
        self._partitions: set[str] = set()

    def start(self) -> None:
        super().start()
        self._control("reset")

    def empty(self) -> None:
        """Delete all items and messages."""
        self._control("empty")

    def items(
        self, table_name: str, attributes: Collection[str] | None = None
    ) -> list[dict[str, Any]]:
        request: dict[str, Any] = {"TableName": table_name}
        found = []
        while True:
            page = self._asked("Scan", request)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        if attributes is None:
            return found
        return [{name: item[name] for name in attributes if name in item} for item in found]

    def has_partition(self, table_name: str, key: str) -> bool:
        return True  # so that it is always queried

    def messages_visible_at_ms(self, queue_url: str) -> list[float]:
        visible: list[float] = self._control(f"visible_at_ms?{queue_url.rsplit('/', 1)[-1]}")
        return visible

    def item(self, table_name: str, key: Item) -> Item | None:
        found: Item | None = self._asked("GetItem", {"TableName": table_name, "Key": key}).get(
            "Item"
        )
        return found

    def set_attribute(self, table_name: str, key: Item, name: str, value: dict[str, Any]) -> None:
        found = self.item(table_name, key)
        if found is None:
            raise LookupError(f"{table_name} has no such item")
        self._asked("PutItem", {"TableName": table_name, "Item": {**found, name: value}})

    def written_partitions(
        self, table_name: str, attributes: Collection[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Every one that ever had an item, as if all had been written."""
        partitions: dict[str, list[dict[str, Any]]] = {name: [] for name in self._partitions}
        for item in self.items(table_name, attributes):
            partitions.setdefault(item["slot"]["S"], []).append(item)
        self._partitions = set(partitions)
        return partitions

    def _asked(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/dynamodb/x",
        }
        answer: dict[str, Any] = json.loads(
            self._reply("POST", "/", headers, json.dumps(request).encode())[2]
        )
        return answer

    def _control(self, what: str) -> Any:
        return json.loads(self._reply("POST", f"/_test/{what}", {}, b"")[2])

    def _answered(self, request: Any) -> Reply:
        headers = {
            name: _text(value)
            for name, value in request.headers.items()
            if name.lower() != "host"  # the server's own is added
        }
        body = request.body or b""
        raw = body.encode() if isinstance(body, str) else body
        return self._reply(request.method, urlsplit(request.url).path or "/", headers, raw)

    def _reply(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        with self._lock:
            return self._server.answer(method, path, self._clock.now_ms(), headers, body)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
