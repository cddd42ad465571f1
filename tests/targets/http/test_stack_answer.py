"""What reaches the storage that takes the answer to a stack."""

import ssl
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import cast

import pytest
from msgspec import Struct, field

from duewheel.targets.http.stack_answer import (
    PAUSES_SECONDS,
    TIMEOUT_SECONDS,
    AnswerNotTaken,
    AnswerRefused,
    AnswerStack,
    connected,
)
from tests.support.clock import ManualClock

TARGET = "/arn%3Aaws%3Acloudformation%7CNightly?X-Amz-Expires=7200&X-Amz-Signature=0f5a"


class FarSide(Struct):
    port: int = 0
    statuses: list[int] = field(default_factory=list)
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def far_side() -> Iterator[FarSide]:
    far_side = FarSide()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            far_side.seen.append(
                (
                    self.command,
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    body,
                )
            )
            self.send_response(far_side.statuses.pop(0) if far_side.statuses else 200)
            self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    far_side.port = server.server_port
    Thread(target=server.serve_forever, daemon=True).start()
    yield far_side
    server.shutdown()
    server.server_close()


def answer_stack(clock: ManualClock, port: int) -> AnswerStack:
    def connection(host: str) -> HTTPSConnection:
        assert host == "bucket.s3.amazonaws.com"
        return cast("HTTPSConnection", HTTPConnection("127.0.0.1", port, timeout=5))

    return AnswerStack(clock, connection)


def put(clock: ManualClock, port: int) -> None:
    answer_stack(clock, port)("bucket.s3.amazonaws.com", TARGET, b'{"Status":"SUCCESS"}')


def test_the_url_is_used_as_it_was_signed(far_side: FarSide, clock: ManualClock) -> None:
    put(clock, far_side.port)
    ((method, path, headers, body),) = far_side.seen
    assert (method, path, body) == ("PUT", TARGET, b'{"Status":"SUCCESS"}')
    assert headers["content-type"] == "", "the signature is of an empty one"
    assert headers["content-length"] == "20"


@pytest.mark.parametrize("status", [301, 307, 400, 403, 404])
def test_a_redirect_or_a_refusal_is_final_and_not_followed(
    far_side: FarSide, clock: ManualClock, status: int
) -> None:
    far_side.statuses = [status]
    with pytest.raises(AnswerRefused, match=f"^status {status}$"):
        put(clock, far_side.port)
    assert len(far_side.seen) == 1


def test_it_is_tried_again_as_often_as_there_are_pauses(
    far_side: FarSide, clock: ManualClock
) -> None:
    far_side.statuses, began_ms = [500, 503, 429], clock.now_ms()
    put(clock, far_side.port)
    assert len(far_side.seen) == 4
    assert clock.now_ms() - began_ms == sum(PAUSES_SECONDS) * 1000
    far_side.statuses = [500] * 9
    with pytest.raises(AnswerNotTaken, match=r"^status 500$"):
        put(clock, far_side.port)
    assert len(far_side.seen) == 8


def test_a_far_side_that_is_not_there_is_named_without_the_url(clock: ManualClock) -> None:
    with pytest.raises(AnswerNotTaken, match=r"^ConnectionRefusedError$"):
        put(clock, 1)


def test_a_connection_demands_the_certificate_of_its_host() -> None:
    connection = connected("bucket.s3.amazonaws.com")
    context: ssl.SSLContext = connection._context  # type: ignore[attr-defined]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert (connection.host, connection.port) == ("bucket.s3.amazonaws.com", 443)
    assert connection.timeout == TIMEOUT_SECONDS
