"""HTTP clients weighed for the notifier: what importing one adds and what a call costs.

Every figure is taken in a fresh process; imports are measured after boto3 with its DynamoDB
and SQS clients, which the notifier has anyway. Calls are POSTs to a server in another process
on loopback, over kept connections, and only the caller's own CPU is counted. Trust the
ratios, not the milliseconds.

    pip install boto3 aiohttp h11 httptools httpcore anyio urllib3
    python bench/http_clients.py
"""

import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CORE = Path(__file__).resolve().parents[1] / "layers" / "core"
IN_FLIGHT = 64
CALLS = 3_200
ROUNDS = 7
BODY = json.dumps({"order": 17, "note": "x" * 250}).encode()
HEADERS = {"content-type": "application/json", "webhook-id": "t" * 28, "duewheel-attempt": "1"}

# What the notifier would import and build for each client.
IMPORTS = {
    "boto3 alone": "",
    "aiohttp": "import aiohttp",
    "asyncio + h11": "import asyncio, h11",
    "asyncio + httptools": "import asyncio, httptools",
    "httpcore (asyncio)": "import asyncio, httpcore, anyio; httpcore.AsyncConnectionPool()",
    "urllib3 in threads": "import concurrent.futures.thread, urllib3; urllib3.PoolManager()",
    "HttpTarget": "import asyncio; from duewheel.targets.http.target import HttpTarget; "
    "from duewheel.clock import SystemClock; "
    "HttpTarget(clock=SystemClock(), allowed_private_cidrs=())",
}
_IMPORT_PROBE = """
import resource, sys, time
sys.path.insert(0, {core!r})
start = time.perf_counter()
import boto3
options = dict(region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
clients = boto3.client("dynamodb", **options), boto3.client("sqs", **options)
middle = time.perf_counter()
{statement}
end = time.perf_counter()
kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((middle - start) * 1000, (end - middle) * 1000, kib / 1024)
"""


class Sink(asyncio.Protocol):
    """Answers every request with 200 as soon as its body is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nserver: sink\r\n"
                b"date: Mon, 02 Nov 2026 08:00:00 GMT\r\ncontent-length: 11\r\n\r\n"
                b'{"ok":true}'
            )


def serve(pipe: Any) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def repeat(calls: int, call: Callable[[], Awaitable[None]]) -> None:
    async def caller() -> None:
        for _ in range(calls // IN_FLIGHT):
            await call()

    await asyncio.gather(*(caller() for _ in range(IN_FLIGHT)))


@contextmanager
def own_cpu_ms_per_call() -> Iterator[list[float]]:
    result: list[float] = []
    start = time.process_time()
    yield result
    result.append((time.process_time() - start) * 1000 / (CALLS // IN_FLIGHT * IN_FLIGHT))


async def with_aiohttp(port: int) -> float:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    timeout = aiohttp.ClientTimeout(total=10, connect=3)
    url = f"http://127.0.0.1:{port}/hook"
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def call() -> None:
            async with session.post(
                url, data=BODY, headers=HEADERS, allow_redirects=False
            ) as reply:
                assert await reply.content.read(256)
                assert reply.status == 200

        await repeat(IN_FLIGHT, call)
        with own_cpu_ms_per_call() as cost:
            await repeat(CALLS, call)
    return cost[0]


async def with_httpcore(port: int) -> float:
    import httpcore

    url = f"http://127.0.0.1:{port}/hook"
    async with httpcore.AsyncConnectionPool(max_connections=IN_FLIGHT) as pool:

        async def call() -> None:
            async with asyncio.timeout(10):
                reply = await pool.request("POST", url, headers=HEADERS, content=BODY)
            assert reply.content
            assert reply.status == 200

        await repeat(IN_FLIGHT, call)
        with own_cpu_ms_per_call() as cost:
            await repeat(CALLS, call)
    return cost[0]


class ParserProtocol(asyncio.Protocol, ABC):
    """The least that a client over a sans-IO parser needs; the parser is the subclass's."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.reply: asyncio.Future[int]

    async def call(self, port: int) -> None:
        self.reply = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(10):
            self.send(port)
            assert await self.reply == 200

    @abstractmethod
    def send(self, port: int) -> None: ...


class H11Protocol(ParserProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        import h11

        super().connection_made(transport)
        self.h11 = h11
        self.connection = h11.Connection(h11.CLIENT)

    def send(self, port: int) -> None:
        h11, connection = self.h11, self.connection
        headers = [*HEADERS.items(), ("host", f"127.0.0.1:{port}"), ("content-length", len(BODY))]
        head = h11.Request(method="POST", target="/hook", headers=[(k, str(v)) for k, v in headers])
        self.transport.write(
            b"".join(connection.send(e) for e in (head, h11.Data(BODY), h11.EndOfMessage()))
        )

    def data_received(self, data: bytes) -> None:
        h11, connection = self.h11, self.connection
        connection.receive_data(data)
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                self.status = event.status_code
            if isinstance(event, h11.EndOfMessage):
                connection.start_next_cycle()
                self.reply.set_result(self.status)
                return


class HttptoolsProtocol(ParserProtocol):
    def send(self, port: int) -> None:
        import httptools

        self.headers: dict[bytes, bytes] = {}
        self.parser = httptools.HttpResponseParser(self)
        lines = [f"{name}: {value}\r\n" for name, value in HEADERS.items()]
        self.transport.write(
            (
                f"POST /hook HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{''.join(lines)}"
                f"content-length: {len(BODY)}\r\n\r\n"
            ).encode()
            + BODY
        )

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self.body = body

    def on_message_complete(self) -> None:
        self.reply.set_result(self.parser.get_status_code())


async def with_protocol(port: int, protocol: type[ParserProtocol]) -> float:
    loop = asyncio.get_running_loop()
    pool = [
        (await loop.create_connection(protocol, "127.0.0.1", port))[1] for _ in range(IN_FLIGHT)
    ]

    async def call() -> None:
        connection = pool.pop()
        await connection.call(port)
        pool.append(connection)

    await repeat(IN_FLIGHT, call)
    with own_cpu_ms_per_call() as cost:
        await repeat(CALLS, call)
    return cost[0]


async def with_http_target(port: int) -> float:
    sys.path.insert(0, str(CORE))
    from duewheel.clock import SystemClock
    from duewheel.rules.callbacks.outcome import Verdict
    from duewheel.rules.callbacks.types import HttpCallback
    from duewheel.targets.http.target import HttpTarget

    target = HttpTarget(
        clock=SystemClock(),
        allowed_private_cidrs=("127.0.0.0/8",),
        calls_in_flight_max=IN_FLIGHT,
    )
    callback = HttpCallback(url=f"http://127.0.0.1:{port}/hook")

    async def call() -> None:
        outcome = await target.call(callback, HEADERS, BODY, 10)
        assert outcome.verdict is Verdict.DELIVERED, outcome

    await repeat(IN_FLIGHT, call)
    with own_cpu_ms_per_call() as cost:
        await repeat(CALLS, call)
    await target.close()
    return cost[0]


def with_urllib3(port: int) -> float:
    import urllib3

    url = f"http://127.0.0.1:{port}/hook"
    pool = urllib3.PoolManager(maxsize=IN_FLIGHT, block=True)
    timeout = urllib3.Timeout(connect=3, read=10)

    def call(_: int) -> None:
        reply = pool.request(
            "POST", url, body=BODY, headers=HEADERS, timeout=timeout, retries=False, redirect=False
        )
        assert reply.status == 200
        assert reply.data

    with ThreadPoolExecutor(IN_FLIGHT) as threads:
        list(threads.map(call, range(IN_FLIGHT)))
        with own_cpu_ms_per_call() as cost:
            list(threads.map(call, range(CALLS // IN_FLIGHT * IN_FLIGHT)))
    return cost[0]


CALLERS: dict[str, Callable[[int], float]] = {
    "aiohttp": lambda port: asyncio.run(with_aiohttp(port)),
    "asyncio + h11": lambda port: asyncio.run(with_protocol(port, H11Protocol)),
    "asyncio + httptools": lambda port: asyncio.run(with_protocol(port, HttptoolsProtocol)),
    "httpcore (asyncio)": lambda port: asyncio.run(with_httpcore(port)),
    "urllib3 in threads": with_urllib3,
    "HttpTarget": lambda port: asyncio.run(with_http_target(port)),
}


def call_cost_ms(name: str) -> float:
    """In this process: the server runs in another."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        return CALLERS[name](ours.recv())
    finally:
        server.terminate()


def import_cost(name: str) -> tuple[float, float, float]:
    """Median ms of boto3 with its clients, of the client's own import, and the RSS in MiB."""
    probe = _IMPORT_PROBE.format(core=str(CORE), statement=IMPORTS[name])
    runs = [[float(part) for part in _python("-c", probe).split()] for _ in range(ROUNDS)]
    boto_ms, own_ms, mib = (statistics.median(column) for column in zip(*runs, strict=True))
    return boto_ms, own_ms, mib


def _python(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True
    ).stdout


def main() -> None:
    if len(sys.argv) == 2:
        print(call_cost_ms(sys.argv[1]))
        return
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, {IN_FLIGHT} in flight")
    print(f"{'client':22}{'start':>8}{'+ ms':>8}{'+ MiB':>8}{'CPU/call':>10}{'ms/call':>9}")
    base_ms, _, base_mib = import_cost("boto3 alone")
    costs = {
        name: statistics.median(float(_python(__file__, name)) for _ in range(3))
        for name in CALLERS
    }
    least = min(costs.values())
    print(f"{'boto3 alone':22}{1:8.2f}{0:8.0f}{0:8.1f}")
    for name, cost in costs.items():
        boto_ms, own_ms, mib = import_cost(name)
        print(
            f"{name:22}{(boto_ms + own_ms) / boto_ms:8.2f}{own_ms:8.1f}{mib - base_mib:8.1f}"
            f"{cost / least:10.2f}{cost:9.3f}"
        )
    print(f"start: import time over boto3 with two clients ({base_ms:.0f} ms here)")


if __name__ == "__main__":
    main()
