"""The HTTP target against a real server on loopback that behaves, misbehaves or hangs."""

import asyncio
import datetime
import functools
import inspect
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from duewheel import __version__
from duewheel.clock import SystemClock
from duewheel.rules.outcome import Outcome, Verdict
from duewheel.rules.task import Callback
from duewheel.targets import kept_connections, resolver
from duewheel.targets.http import HttpTarget
from duewheel.targets.http_reply import REPLY_BYTES_MAX

LOOPBACK = ("127.0.0.0/8", "::1/128")
LONG_SECONDS = 20.0  # never waited for
SHORT_SECONDS = 0.15  # waited for by the tests of what hangs
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
    allowed: tuple[str, ...] = LOOPBACK, calls_in_flight_max: int = 8
) -> AsyncIterator[HttpTarget]:
    http = HttpTarget(
        clock=SystemClock(),
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
    return await http.call(Callback(url), {}, body, seconds)


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
    """Give hosts addresses; a dot is written `_`. Returns the list of hosts looked up."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: object, **_: object) -> list[tuple[Any, ...]]:
        asked.append(host)
        found = addresses[host.replace(".", "_")]
        if isinstance(found, OSError):
            raise found
        return [
            (socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, 0))
            for a in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


# What is sent.


@in_loop
async def test_a_call_sends_method_target_headers_and_body() -> None:
    async with far_side() as side, target() as http:
        callback = Callback(side.url("/a?b=c"), "PUT", (("X-Team", "billing"),))
        outcome = await http.call(callback, {"webhook-id": "t1"}, b'{"n":1.0}', LONG_SECONDS)
    assert outcome == Outcome(Verdict.DELIVERED, "ok", 200)
    (request,) = side.received
    assert request.line == "PUT /a?b=c HTTP/1.1"
    assert request.body == b'{"n":1.0}'
    assert request.headers == {
        "host": f"127.0.0.1:{side.port}",
        "user-agent": f"duewheel/{__version__}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": "9",
        "x-team": "billing",
        "webhook-id": "t1",
    }


@in_loop
async def test_the_services_headers_win_over_the_callbacks_in_any_case() -> None:
    async with far_side() as side, target() as http:
        callback = Callback(
            side.url(),
            headers=(
                ("Webhook-Id", "forged"),
                ("Host", "other.example"),
                ("Content-Length", "7"),
                ("Accept-Encoding", "gzip"),
                ("Content-Type", "text/plain"),
                ("User-Agent", "mine"),
            ),
        )
        await http.call(callback, {"webhook-id": "t1"}, b"abc", LONG_SECONDS)
    headers = side.received[0].headers
    assert headers["webhook-id"] == "t1"
    assert headers["host"] == f"127.0.0.1:{side.port}"
    assert headers["content-length"] == "3"
    assert headers["accept-encoding"] == "identity"
    assert headers["content-type"] == "text/plain"
    assert headers["user-agent"] == "mine"


@in_loop
async def test_a_get_has_no_body_and_other_methods_have_one_of_known_length() -> None:
    async with far_side() as side, target() as http:
        await http.call(Callback(side.url(), "GET"), {}, b"{}", LONG_SECONDS)
        await http.call(Callback(side.url(), "DELETE"), {}, b"{}", LONG_SECONDS)
        await http.call(Callback(side.url(), "POST"), {}, None, LONG_SECONDS)
    get, delete, post_ = side.received
    assert "content-length" not in get.headers
    assert "content-type" not in get.headers
    assert (delete.body, delete.headers["content-length"]) == (b"{}", "2")
    assert (post_.body, post_.headers["content-length"]) == (b"", "0")
    assert "content-type" not in post_.headers


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("POST", "x", "a\r\nevil: 1"),
        ("POST", "x", "a\nevil: 1"),
        ("POST", "x", "a\x00"),
        ("POST", "x", "é"),
        ("POST", "x\r\nevil", "1"),
        ("POST", "x:y", "1"),
        ("POST", "", "1"),
        ("POST / HTTP/1.1\r\nevil: 1\r\n", "x", "1"),
    ],
)
@in_loop
async def test_no_header_can_be_smuggled_in(method: str, name: str, value: str) -> None:
    async with far_side() as side, target() as http:
        theirs = Callback(side.url(), method, ((name, value),))
        assert (await http.call(theirs, {}, b"", LONG_SECONDS)).verdict is Verdict.STOP
        if method == "POST":
            ours = await http.call(Callback(side.url()), {name: value}, b"", LONG_SECONDS)
            assert ours.verdict is Verdict.STOP
    assert side.connections == 0


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "http://a/\r\nx: y"])
@in_loop
async def test_a_url_that_is_none_stops(url: str) -> None:
    async with target() as http:
        outcome = await post(http, url)
    assert outcome.verdict is Verdict.STOP
    assert outcome.note.startswith("cannot be sent: the URL")


@in_loop
async def test_an_ipv6_host_is_called_and_named_in_brackets() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    async with far_side(host="::1") as side, target() as http:
        outcome = await post(http, side.url(host="[::1]"))
    assert outcome.verdict is Verdict.DELIVERED
    assert side.received[0].headers["host"] == f"[::1]:{side.port}"


# What comes back.


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n0\r\nz: 9\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabcd",
        b"HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nabcd",
        b"HTTP/1.1 200\r\ncontent-length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nupgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 4\r\n\r\nabcd",
    ],
)
@in_loop
async def test_a_reply_is_read_in_every_framing(reply: bytes) -> None:
    async with far_side(reply) as side, target() as http:
        assert await post(http, side.url()) == Outcome(Verdict.DELIVERED, "abcd", 200)


@in_loop
async def test_a_reply_may_come_byte_by_byte() -> None:
    class Drip(FarSide):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._request(reader, 1)
            for byte in b"HTTP/1.1 503 No\r\nretry-after: 7\r\ncontent-length: 3\r\n\r\nnot":
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0)
            writer.close()

    side = Drip()
    server = await asyncio.start_server(side.serve, "127.0.0.1", 0)
    side.port = server.sockets[0].getsockname()[1]
    async with target() as http:
        assert await post(http, side.url()) == Outcome(Verdict.RETRY, "not", 503, 7.0)
    server.close()


@in_loop
async def test_a_reply_without_a_body_leaves_the_connection_usable() -> None:
    async with far_side(b"HTTP/1.1 204 No Content\r\n\r\n") as side, target() as http:
        for _ in range(3):
            assert await post(http, side.url()) == Outcome(Verdict.DELIVERED, "", 204)
    assert side.connections == 1


@in_loop
async def test_a_redirect_is_not_followed() -> None:
    async with far_side() as elsewhere:
        reply = f"HTTP/1.1 307 Go\r\nlocation: {elsewhere.url()}\r\ncontent-length: 0\r\n\r\n"
        async with far_side(reply.encode()) as side, target() as http:
            outcome = await post(http, side.url())
    assert (outcome.verdict, outcome.status_code) == (Verdict.STOP, 307)
    assert elsewhere.connections == 0


@in_loop
async def test_the_stop_header_and_retry_after_reach_the_outcome() -> None:
    answers = {
        "/stop": b"HTTP/1.1 500 No\r\nDuewheel-Stop: true\r\ncontent-length: 0\r\n\r\n",
        "/later": b"HTTP/1.1 429 Slow\r\nRetry-After: 30\r\ncontent-length: 0\r\n\r\n",
    }
    by_path = far_side(lambda request: answers[request.line.split()[1]])
    async with by_path as side, target() as http:
        assert (await post(http, side.url("/stop"))).verdict is Verdict.STOP
        assert (await post(http, side.url("/later"))).retry_after_seconds == 30


@in_loop
async def test_a_trailer_is_no_header() -> None:
    reply = (
        b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n"
        b"0\r\nretry-after: 9\r\nduewheel-stop: true\r\n\r\n"
    )
    async with far_side(reply) as side, target() as http:
        assert await post(http, side.url()) == Outcome(Verdict.RETRY, "", 503)


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the reply is malformed"),
        (b"\x16\x03\x01\x02\x00", "the reply is malformed"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "the reply is malformed"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "the reply is malformed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx", "malformed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "malformed"),
        (b"HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * REPLY_BYTES_MAX + b"\r\n\r\n", "head is longer"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 4_000, "head is longer"),
    ],
)
@in_loop
async def test_garbage_is_tried_again_and_its_connection_dropped(reply: bytes, note: str) -> None:
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url())
        assert outcome.verdict is Verdict.RETRY
        assert note in outcome.note
        assert outcome.note.isprintable()
        await until(lambda: side.open_connections == 0)


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (CLOSE, "the connection closed before a reply"),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\nab",
            "within the reply",
        ),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n9\r\nab",
            "within the reply (status 200)",
        ),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n", "closed before a reply"),
    ],
)
@in_loop
async def test_a_reply_that_breaks_off_is_tried_again(reply: bytes, note: str) -> None:
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url())
    assert outcome.verdict is Verdict.RETRY
    assert note in outcome.note


@pytest.mark.parametrize(
    "head", [b"content-length: 99999999", b"transfer-encoding: chunked", b"x: y"]
)
@in_loop
async def test_an_endless_reply_is_judged_by_its_status_once_it_is_too_long(head: bytes) -> None:
    chunk = b"1000\r\n" + b"z" * 4_096 + b"\r\n"
    reply = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + chunk * 40
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url())
        assert (outcome.verdict, outcome.status_code) == (Verdict.DELIVERED, 200)
        assert len(outcome.note) <= 128
        await until(lambda: side.open_connections == 0)


# Timeouts and failures of the network.


@pytest.mark.parametrize(
    "reply", [HANG, b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"]
)
@in_loop
async def test_a_reply_that_does_not_end_is_given_up_and_its_connection_dropped(
    reply: bytes | None,
) -> None:
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url(), seconds=SHORT_SECONDS)
        assert outcome == Outcome(Verdict.RETRY, "no whole reply within 0.15 s")
        assert http.calls_in_flight == 0
        await until(lambda: side.open_connections == 0)


@in_loop
async def test_a_refused_connection_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with target() as http:
        outcome = await post(http, f"http://127.0.0.1:{port}/")
    assert outcome == Outcome(Verdict.RETRY, "no connection: Connection refused")


@in_loop
async def test_a_connection_that_is_never_made_is_given_up_before_the_total(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("duewheel.targets.http.CONNECT_SECONDS_MAX", SHORT_SECONDS)
    async with target() as http:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
        outcome = await post(http, "http://127.0.0.1:9/")
    assert outcome == Outcome(Verdict.RETRY, "no connection within 0.15 s")


@in_loop
async def test_a_cancelled_call_stays_cancelled_and_drops_its_connection() -> None:
    async with far_side(HANG) as side, target() as http:
        call = asyncio.create_task(post(http, side.url()))
        await until(lambda: len(side.received) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert http.calls_in_flight == 0
        await until(lambda: side.open_connections == 0)


# Kept connections and the bound.


@in_loop
async def test_connections_are_kept_and_used_again() -> None:
    async with far_side() as side, target() as http:
        for _ in range(5):
            assert (await post(http, side.url())).verdict is Verdict.DELIVERED
    assert side.connections == 1


@in_loop
async def test_a_connection_that_the_far_side_closed_is_not_used_again() -> None:
    async with far_side() as side, target() as http:
        for _ in range(3):
            assert (await post(http, side.url())).verdict is Verdict.DELIVERED
            side.writers[-1].close()
            await until(lambda: side.open_connections == 0)
    assert side.connections == 3


def test_a_connection_closed_while_the_loop_stood_still_is_not_used_again() -> None:
    loop = asyncio.new_event_loop()
    http = HttpTarget(clock=SystemClock(), allowed_private_cidrs=LOOPBACK)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        for _ in range(2):
            call = loop.create_task(post(http, url))
            connection = loop.run_until_complete(loop.run_in_executor(None, server.accept))[0]
            loop.run_until_complete(loop.run_in_executor(None, connection.recv, 65_536))
            connection.sendall(OK)
            assert loop.run_until_complete(call).verdict is Verdict.DELIVERED
            connection.close()  # nobody runs the loop now
    loop.run_until_complete(http.close())
    loop.close()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\n",
        OK + b"garbage",
    ],
)
@in_loop
async def test_a_connection_in_doubt_is_not_used_again(reply: bytes) -> None:
    async with far_side(reply) as side, target() as http:
        for _ in range(2):
            assert await post(http, side.url()) == Outcome(Verdict.DELIVERED, "ok", 200)
    assert side.connections == 2


@in_loop
async def test_what_comes_unasked_for_on_a_kept_connection_is_never_taken_for_a_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 3_600)
    async with far_side() as side, target() as http:
        await post(http, side.url())
        side.writers[0].write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
        await until(lambda: side.open_connections == 0)
        assert (await post(http, side.url())).note == "ok"
    assert side.connections == 2


@in_loop
async def test_idle_connections_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 0.05)
    async with far_side() as side, target() as http:
        await asyncio.gather(*(post(http, side.url()) for _ in range(3)))
        await until(lambda: side.open_connections == 0)


@in_loop
async def test_no_more_than_the_bound_is_in_flight() -> None:
    async with far_side() as side, target(calls_in_flight_max=3) as http:
        side.gate = asyncio.Event()
        calls = [asyncio.create_task(post(http, side.url())) for _ in range(9)]
        await until(lambda: side.waiting == 3)
        assert http.calls_in_flight == 9
        assert side.connections == 3
        side.gate.set()
        outcomes = await asyncio.gather(*calls)
        assert {outcome.verdict for outcome in outcomes} == {Verdict.DELIVERED}
        assert http.calls_in_flight == 0
    assert side.connections == 3


@in_loop
async def test_kept_connections_to_many_hosts_stay_within_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 3_600)
    async with (
        far_side() as first,
        far_side() as second,
        far_side() as third,
        target(calls_in_flight_max=2) as http,
    ):
        for side in (first, second, third):
            await post(http, side.url())
        await until(lambda: first.open_connections == 0)
        assert (second.open_connections, third.open_connections) == (1, 1)


# Where callbacks may not go.


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0177.1",
        "0x7f.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "localhost",
    ],
)
@in_loop
async def test_a_host_that_is_not_public_is_refused_without_a_connection(host: str) -> None:
    async with far_side() as side, target(allowed=()) as http:
        outcome = await post(http, side.url(host=host))
    assert outcome.verdict is Verdict.STOP
    assert outcome.note == "refused-address: the host leads where callbacks may not go"
    assert side.connections == 0


@pytest.mark.parametrize("addresses", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"]])
@in_loop
async def test_one_forbidden_address_among_several_refuses_the_host(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    names(monkeypatch, mixed_example=addresses)
    async with far_side() as side, target() as http:
        outcome = await post(http, side.url(host="mixed.example"))
    assert outcome.note.startswith("refused-address")
    assert side.connections == 0


@in_loop
async def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = ["127.0.0.1"]
    asked = names(monkeypatch, turncoat_example=found)
    async with far_side() as side, target() as http:
        assert (await post(http, side.url(host="turncoat.example"))).verdict is Verdict.DELIVERED
        assert asked == ["turncoat.example"]
        assert side.received[0].headers["host"] == f"turncoat.example:{side.port}"


@in_loop
async def test_a_resolver_that_changes_its_mind_is_refused_despite_a_kept_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    found = ["127.0.0.1"]
    names(monkeypatch, turncoat_example=found)
    async with far_side() as side, target() as http:
        url = side.url(host="turncoat.example")
        assert (await post(http, url)).verdict is Verdict.DELIVERED
        found[:] = ["10.0.0.1"]
        assert (await post(http, url)).note.startswith("refused-address")
    assert len(side.received) == 1


@in_loop
async def test_a_kept_connection_to_an_address_no_longer_named_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    found = ["127.0.0.1"]
    names(monkeypatch, moving_example=found)
    async with far_side() as side, target() as http:
        url = side.url(host="moving.example")
        await post(http, url)
        found[:] = ["127.0.0.2"]
        assert (await post(http, url)).verdict is Verdict.RETRY  # nobody listens there
    assert side.connections == 1


@in_loop
async def test_calls_to_one_host_share_one_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = names(monkeypatch, shared_example=["127.0.0.1"])
    async with far_side() as side, target() as http:
        await asyncio.gather(*(post(http, side.url(host="shared.example")) for _ in range(6)))
        await post(http, side.url(host="shared.example"))
    assert asked == ["shared.example"]


@in_loop
async def test_a_host_that_does_not_resolve_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    names(monkeypatch, missing_example=failure)
    async with target() as http:
        outcome = await post(http, "http://missing.example/")
    note = "the host does not resolve: Name or service not known"
    assert outcome == Outcome(Verdict.RETRY, note)


@in_loop
async def test_the_next_address_is_tried_when_one_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names(monkeypatch, twofold_example=["127.0.0.9", "127.0.0.1"])
    async with far_side() as side, target() as http:
        outcome = await post(http, side.url(host="twofold.example"))
    assert outcome.verdict is Verdict.DELIVERED


@in_loop
async def test_a_slow_lookup_ends_with_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(10) and [])
    async with target() as http:
        outcome = await post(http, "http://slow.example/", seconds=SHORT_SECONDS)
        release.set()
    assert outcome.verdict is Verdict.RETRY


# TLS.


@dataclass(frozen=True)
class Certificates:
    authority: Path
    server: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server)
        return context


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )
    for extension in extensions:
        critical = not isinstance(extension, x509.SubjectAlternativeName)
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _ca_usage() -> x509.KeyUsage:
    signs = {"key_cert_sign": True, "crl_sign": True}
    others = (
        "digital_signature content_commitment key_encipherment data_encipherment "
        "key_agreement encipher_only decipher_only"
    )
    return x509.KeyUsage(**signs, **dict.fromkeys(others.split(), False))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A server certificate for receiver.example and 127.0.0.1, and the authority behind it."""
    folder = tmp_path_factory.mktemp("tls")
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(
        "authority",
        ca_key,
        "authority",
        ca_key,
        x509.BasicConstraints(True, 0),
        _ca_usage(),
    )
    server = _certificate(
        "receiver",
        key,
        "authority",
        ca_key,
        x509.SubjectAlternativeName(
            [
                x509.DNSName("receiver.example"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            ]
        ),
    )
    pem = serialization.Encoding.PEM
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    (folder / "server.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + server.public_bytes(pem)
    )
    return Certificates(folder / "authority.pem", folder / "server.pem")


async def call_over_tls(
    certificates: Certificates, host: str, calls: int = 1
) -> tuple[list[Outcome], FarSide]:
    async with far_side(tls=certificates.context()) as side, target() as http:
        url = f"https://{host}:{side.port}/"
        return [await post(http, url) for _ in range(calls)], side


@pytest.mark.parametrize("host", ["receiver.example", "127.0.0.1"])
@in_loop
async def test_tls_checks_the_name_of_the_url_and_keeps_the_connection(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates, host: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    names(monkeypatch, receiver_example=["127.0.0.1"])
    outcomes, side = await call_over_tls(certificates, host, calls=4)
    assert {outcome.verdict for outcome in outcomes} == {Verdict.DELIVERED}
    assert side.connections < 4


@in_loop
async def test_tls_refuses_a_certificate_for_another_name(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    names(monkeypatch, other_example=["127.0.0.1"])
    (outcome,), side = await call_over_tls(certificates, "other.example")
    assert outcome.verdict is Verdict.RETRY
    assert "Hostname mismatch" in outcome.note
    assert not side.received


@in_loop
async def test_tls_refuses_an_authority_that_the_system_does_not_trust(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    names(monkeypatch, receiver_example=["127.0.0.1"])
    (outcome,), side = await call_over_tls(certificates, "receiver.example")
    assert outcome.verdict is Verdict.RETRY
    assert outcome.note.startswith("no connection: TLS: unable to get")
    assert not side.received


@in_loop
async def test_a_far_side_that_speaks_no_tls_is_tried_again() -> None:
    class Plain(FarSide):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

    side = Plain()
    server = await asyncio.start_server(side.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with target() as http:
        outcome = await post(http, f"https://127.0.0.1:{port}/")
    server.close()
    assert outcome.verdict is Verdict.RETRY
    assert outcome.note.startswith("no connection: ")
