"""The local HTTP server, tested byte by byte on loopback."""

import http.client
import socket
from collections.abc import Iterator

import pytest

from local.aws.http_api import Reply, Request
from local.http_front import BODY_MAX_BYTES, HttpFront
from tests.support.cases import each_case


class Echo:
    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status = 200

    def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        if request.method == "DELETE":
            raise RuntimeError("no")
        return Reply(self.status, request.body or b"nothing", (("X-Path", request.target),))


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def front(echo: Echo) -> Iterator[HttpFront]:
    front = HttpFront(0, echo)
    front.start()
    yield front
    front.stop()


@pytest.fixture
def connection(front: HttpFront) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=10)
    yield connection
    connection.close()


def test_only_loopback_is_bound(front: HttpFront) -> None:
    assert front._server.server_address[0] == "127.0.0.1"


def test_a_connection_is_reused_for_the_next_request(
    connection: http.client.HTTPConnection,
) -> None:
    sockets = set()
    for number in range(3):
        connection.request("POST", f"/{number}", b"x")
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"x")
        sockets.add(connection.sock)
    assert len(sockets) == 1


def test_a_chunked_body_is_joined(connection: http.client.HTTPConnection, echo: Echo) -> None:
    connection.request("PUT", "/", iter([b"ab", b"cd"]), encode_chunked=True)
    assert connection.getresponse().read() == b"abcd"
    assert echo.requests[0].body == b"abcd"


def test_a_head_request_gets_no_body(connection: http.client.HTTPConnection) -> None:
    connection.request("HEAD", "/")
    reply = connection.getresponse()
    assert (reply.read(), reply.headers["Content-Length"]) == (b"", "7")


def test_a_204_has_no_body_and_no_length(
    connection: http.client.HTTPConnection, echo: Echo
) -> None:
    echo.status = 204
    connection.request("POST", "/", b"x")
    reply = connection.getresponse()
    assert (reply.read(), reply.headers["Content-Length"]) == (b"", None)


@each_case("method", ["TRACE", "QUERY", "PROPFIND", "get", "A-Z_1"])
def test_every_method_is_passed_on(front: HttpFront, echo: Echo, method: str) -> None:
    """As API Gateway does, whose `ANY` is any."""
    assert b" 200 " in asked(front, f"{method} /x HTTP/1.1\r\nContent-Length: 1", b"b")
    assert (echo.requests[-1].method, echo.requests[-1].body) == (method, b"b")


@each_case("method", ["G@T", "GET\x00", "(GET)", "G\xc9T"])
def test_a_method_that_is_no_word_is_refused(front: HttpFront, echo: Echo, method: str) -> None:
    assert asked(front, f"{method} / HTTP/1.1").startswith(b"HTTP/1.1 400")
    assert not echo.requests


def asked(front: HttpFront, head: str, body: bytes = b"", host: str | None = None) -> bytes:
    """Send these bytes; returns the answer up to the end of the connection."""
    own = f"127.0.0.1:{front.port}" if host is None else host
    with socket.create_connection(("127.0.0.1", front.port), timeout=10) as wire:
        lines = f"{head}\r\nHost: {own}\r\nConnection: close\r\n\r\n"
        wire.sendall(lines.encode("latin-1") + body)
        wire.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: wire.recv(4096), b""))


def test_a_body_over_10_mb_is_refused_before_it_is_read(front: HttpFront, echo: Echo) -> None:
    for size in (
        f"Content-Length: {BODY_MAX_BYTES + 1}",
        f"Transfer-Encoding: chunked\r\n\r\n{BODY_MAX_BYTES + 1:x}",
        f"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n{BODY_MAX_BYTES:x}",
        f"Transfer-Encoding: chunked\r\n\r\n{'f' * 16}",
    ):
        own = f"POST / HTTP/1.1\r\nHost: localhost:{front.port}"
        with socket.create_connection(("127.0.0.1", front.port), timeout=10) as wire:
            wire.sendall(f"{own}\r\n{size}\r\n\r\n".encode())
            reply = b"".join(iter(lambda: wire.recv(4096), b""))
        assert reply.startswith(b"HTTP/1.1 413")
        assert reply.endswith(b'{"message":"Request Entity Too Large"}')
    assert not echo.requests


CHUNKED = "Transfer-Encoding: chunked"


@each_case(
    ("header", "body"),
    [
        ("Content-Length: -1", b""),
        ("Content-Length: +1", b"x"),
        ("Content-Length: 1_0", b"0123456789"),
        ("Content-Length: x", b""),
        ("Content-Length: 1\r\nContent-Length: 2", b"xy"),
        (f"Content-Length: 1\r\n{CHUNKED}", b"0\r\n\r\n"),
        (f"{CHUNKED}\r\n{CHUNKED}", b"0\r\n\r\n"),
        ("Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"),
        ("Transfer-Encoding: identity", b""),
        (CHUNKED, b"-1\r\nabc"),
        (CHUNKED, b"+1\r\na\r\n0\r\n\r\n"),
        (CHUNKED, b"0x1\r\na\r\n0\r\n\r\n"),
        (CHUNKED, b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n"),
        (CHUNKED, b"\r\n"),
        (CHUNKED, b"0" * 17 + b"\r\n\r\n"),
        (CHUNKED, b"1;" + b"x" * 2_000 + b"\r\na\r\n0\r\n\r\n"),
        (CHUNKED, b"1\r\nabc\r\n0\r\n\r\n"),
        (CHUNKED, b"0\r\n" + b"a: b\r\n" * 200 + b"\r\n"),
        ("no colon", b""),
    ],
)
def test_a_body_of_ambiguous_length_is_refused(
    front: HttpFront, echo: Echo, header: str, body: bytes
) -> None:
    assert asked(front, f"POST / HTTP/1.1\r\n{header}", body).startswith(b"HTTP/1.1 400")
    assert not echo.requests


def test_a_negative_chunk_size_is_refused_at_once(front: HttpFront) -> None:
    """Read as a size, it would mean all bytes until the end of the connection, kept in memory."""
    with socket.create_connection(("127.0.0.1", front.port), timeout=10) as wire:
        head = f"POST / HTTP/1.1\r\nHost: localhost:{front.port}\r\n{CHUNKED}\r\n\r\n"
        wire.sendall(f"{head}-1\r\n".encode())
        assert wire.recv(12) == b"HTTP/1.1 400"


@each_case(
    ("header", "body"),
    [
        ("Content-Length: 3", b"ab"),
        (CHUNKED, b"3\r\nab"),
        (CHUNKED, b"2\r\nab\r\n"),
        (CHUNKED, b"2\r\nab\r\n0\r\na: b\r\n"),
    ],
)
def test_an_incomplete_body_is_not_passed_on(
    front: HttpFront, echo: Echo, header: str, body: bytes
) -> None:
    assert asked(front, f"POST / HTTP/1.1\r\n{header}", body) == b""
    assert not echo.requests


def test_a_chunk_may_have_extensions_and_the_body_trailers(front: HttpFront, echo: Echo) -> None:
    body = b"2;a=b\r\nab\r\n00A \r\n0123456789\r\n0\r\nx-sum: 1\r\n\r\n"
    assert b" 200 " in asked(front, f"POST / HTTP/1.1\r\n{CHUNKED}", body)
    assert echo.requests[0].body == b"ab0123456789"


def test_a_request_is_refused_before_its_body_is_read(front: HttpFront, echo: Echo) -> None:
    for host in ("evil.example", "", f"127.0.0.1:{front.port}\r\nHost: evil.example"):
        reply = asked(front, "POST / HTTP/1.1\r\nContent-Length: 9", host=host)
        assert reply.startswith(b"HTTP/1.1 403")
        assert b"evil" not in reply
    reply = asked(front, "POST / HTTP/1.1\r\nOrigin: http://evil.example\r\nContent-Length: 9")
    assert reply.startswith(b"HTTP/1.1 403")
    assert not echo.requests


def test_an_exception_of_the_application_is_answered(
    connection: http.client.HTTPConnection,
) -> None:
    connection.request("DELETE", "/")
    assert connection.getresponse().status == 500
