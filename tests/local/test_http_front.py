"""What goes over the wire on loopback."""

import http.client
import socket
from collections.abc import Iterator

import pytest

from local.http_api import Reply, Request
from local.http_front import BODY_MAX_BYTES, HttpFront


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


def test_a_connection_is_kept_for_the_next_request(
    connection: http.client.HTTPConnection,
) -> None:
    sockets = set()
    for number in range(3):
        connection.request("POST", f"/{number}", b"x")
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"x")
        sockets.add(connection.sock)
    assert len(sockets) == 1


def test_a_chunked_body_is_put_together(connection: http.client.HTTPConnection, echo: Echo) -> None:
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


def test_a_body_over_10_mb_is_refused_before_it_is_read(front: HttpFront, echo: Echo) -> None:
    with socket.create_connection(("127.0.0.1", front.port), timeout=10) as wire:
        length = BODY_MAX_BYTES + 1
        wire.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        reply = b"".join(iter(lambda: wire.recv(4096), b""))
    assert reply.startswith(b"HTTP/1.1 413")
    assert reply.endswith(b'{"message":"Request Entity Too Large"}')
    assert not echo.requests


@pytest.mark.parametrize("length", ["-1", "x"])
def test_a_length_that_is_none_is_refused(front: HttpFront, length: str) -> None:
    with socket.create_connection(("127.0.0.1", front.port), timeout=10) as wire:
        wire.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        assert wire.recv(12) == b"HTTP/1.1 400"


def test_whatever_fails_behind_it_is_answered(connection: http.client.HTTPConnection) -> None:
    connection.request("DELETE", "/")
    assert connection.getresponse().status == 500
