"""A real server on loopback with set answers, and the HTTP target that calls it."""

import asyncio
import functools
import inspect
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from duewheel.clock import Clock, SystemClock
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.targets.http import resolver
from duewheel.targets.http.target import HttpTarget

LOOPBACK = ("127.0.0.0/8", "::1/128")
LONG_SECONDS = 20.0  # no test waits for it
SHORT_SECONDS = 0.15  # tests of hanging servers wait for it
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CLOSE = b""
HANG = None


@dataclass
class Received:
    connection: int
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class FarSide:
    """Answers each request with the bytes that `answer` gives for it."""

    answer: Callable[[Received], bytes | None] = lambda request: OK
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0
    waiting: int = 0
    gate: asyncio.Event | None = None
    port: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        number = self.connections
        self.writers.append(writer)
        try:
            while True:
                request = await self._request(reader, number)
                self.received.append(request)
                if self.gate is not None:
                    self.waiting += 1
                    await self.gate.wait()
                    self.waiting -= 1
                answer = self.answer(request)
                if answer is HANG:
                    await reader.read()
                    return
                writer.write(answer)
                if answer == CLOSE or b"connection: close" in answer:
                    return
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.open_connections -= 1
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, connection: int) -> Received:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")[:-2]
        headers = dict(line.split(": ", 1) for line in head[1:])
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Received(connection, head[0], headers, body)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@asynccontextmanager
async def far_side(
    answer: Callable[[Received], bytes | None] | bytes | None = OK,
    *,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[FarSide]:
    side = FarSide(answer if callable(answer) else lambda request: answer)
    server = await asyncio.start_server(side.serve, host, 0, ssl=tls)
    side.port = server.sockets[0].getsockname()[1]
    try:
        yield side
    finally:
        server.close()
        for writer in side.writers:
            writer.transport.abort()


@asynccontextmanager
async def target(
    allowed: tuple[str, ...] = LOOPBACK,
    calls_in_flight_max: int = 8,
    clock: Clock | None = None,
) -> AsyncIterator[HttpTarget]:
    http = HttpTarget(
        clock=clock or SystemClock(),
        allowed_private_cidrs=allowed,
        calls_in_flight_max=calls_in_flight_max,
    )
    try:
        yield http
    finally:
        await http.close()


async def post(
    http: HttpTarget, url: str, body: bytes | None = b"{}", seconds: float = LONG_SECONDS
) -> Outcome:
    return await http.call(HttpCallback(url), {}, body, seconds)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in a loop of its own; a hang fails instead of blocking."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 20))

    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    return run


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


def names(monkeypatch: pytest.MonkeyPatch, **addresses: list[str] | OSError) -> list[str]:
    """Set the addresses of hosts; `_` stands for a dot. Returns the list of hosts that were looked
    up."""
    asked: list[str] = []

    async def look_up(host: str) -> tuple[str, ...]:
        asked.append(host)
        found = addresses[host.replace(".", "_")]
        if isinstance(found, OSError):
            raise found
        return tuple(found)

    monkeypatch.setattr(resolver, "look_up", look_up)
    return asked
