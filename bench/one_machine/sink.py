"""The receiver of all calls: a process of its own, which records the arrival of each call.

POST /{case}/{number} is noted and answered POST /{case}/{number}?wait_ms=50 is noted, and answered
that much later GET /{case} [[number, arrived_ms, answered], ...] in order of arrival GET
/{case}/count how many came

Invariant: a call is noted as soon as its request is whole, and counts as answered only if its
caller was still connected. Its path says which task it was for.

python -m bench.one_machine.sink # prints its port, serves until it is ended
"""

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.one_machine.processes import Process, python

BACKLOG = 4096
_REQUEST = re.compile(rb"(GET|POST) /([\w-]+)(?:/(\d+|count))?(?:\?wait_ms=(\d+))? HTTP/1\.1$")
_LENGTH = re.compile(rb"^content-length: *(\d+)\r?$", re.IGNORECASE | re.MULTILINE)

Arrivals = defaultdict[str, list[list[Any]]]


class Sink(asyncio.Protocol):
    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < whole:
                return
            self._buffer = self._buffer[whole:]
            self._answer(head.partition(b"\r\n")[0])

    def _answer(self, line: bytes) -> None:
        match = _REQUEST.match(line)
        if match is None:
            self._write(400, b'"no such call"')
            return
        method, case, number, wait_ms = match.groups()
        arrived = self._arrivals[case.decode()]
        if method == b"GET":
            self._write(200, json.dumps(len(arrived) if number else arrived).encode())
            return
        call = [int(number), time.time_ns() / 1e6, False]
        arrived.append(call)
        if wait_ms is None:
            self._settle(call)
        else:
            later = partial(self._settle, call)
            asyncio.get_running_loop().call_later(int(wait_ms) / 1000, later)

    def _settle(self, call: list[Any]) -> None:
        call[2] = not self._transport.is_closing()
        if call[2]:
            self._write(200, b"{}")

    def _write(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\n"
        self._transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)


@contextmanager
def receiving(folder: Path) -> Iterator[str]:
    """A sink of its own, by its URL."""
    process = Process(python("bench.one_machine.sink"), folder / "sink.log", speaks=True)
    try:
        yield f"http://127.0.0.1:{process.line()}"
    finally:
        process.stop()


async def serve() -> None:
    arrivals: Arrivals = defaultdict(list)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sink(arrivals), "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
