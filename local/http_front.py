"""The HTTP server on loopback: only reads requests and writes replies.

Invariant: it binds 127.0.0.1 only, and answers no page of another site. A body is read whole, or
its request is not answered. A thread per connection, kept open between requests; hundreds of
callbacks at once come back to the inbox this way.
"""

import logging
import re
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Any

from local.aws.http_api import Reply, Request, gateway_reply
from local.control import browsers

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
BODY_MAX_BYTES = 10 * 1024 * 1024
LINE_MAX_BYTES = 1_024
TRAILERS_MAX = 100
A_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
A_LENGTH = re.compile(r"[0-9]{1,18}")
A_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[^\r\n]*)?\r\n")


class HttpFront:
    def __init__(self, port: int, answer: Callable[[Request], Reply]) -> None:
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
        self._server = _Server((HOST, port), handler)
        self._thread = Thread(target=self._serve, name="http front", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.1)


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # the parent class would look the machine's name up in the DNS
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client has closed the connection
            log.exception("a request from %s failed", client_address)


class _TooLarge(Exception):
    """The body is larger than API Gateway accepts; it is not read to its end."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one segment
    timeout = 120
    answer: Callable[[Request], Reply]
    server: _Server

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Every method has a handler: which are allowed is a matter of the route."""
        if name.startswith("do_"):
            return self.handle_any
        raise AttributeError(name)

    def handle_any(self) -> None:
        target, port = self.path, self.server.server_port
        if self.headers.defects or not A_METHOD.fullmatch(self.command):
            self._refuse(400, "Bad Request")
            return
        if (why := browsers.refused(self.command, target, self.headers, port)) is not None:
            self._refuse(403, why)
            return
        try:
            body = self._read_body()
        except _TooLarge:
            self._refuse(413, "Request Entity Too Large")
            return
        except ValueError:
            self._refuse(400, "Bad Request")
            return
        headers = tuple(self.headers.items())
        request = Request(self.command, self.path, headers, body, self.client_address[0])
        try:
            reply = self.answer(request)
        except Exception:  # the client gets an answer all the same
            log.exception("%s %s failed", request.method, request.raw_path)
            reply = gateway_reply(500, "Internal Server Error")
        self._write(reply)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self._refuse(code, message or HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged; errors are logged where they happen."""

    def _refuse(self, status: int, message: str) -> None:
        """Close the connection: the rest of the request was not read."""
        self.close_connection = True
        self._write(gateway_reply(status, message))

    def _read_body(self) -> bytes:
        codings = self.headers.get_all("Transfer-Encoding", [])
        lengths = self.headers.get_all("Content-Length", ["0"])
        if codings:
            if [coding.lower() for coding in codings] != ["chunked"] or lengths != ["0"]:
                raise ValueError("a body whose end is in doubt")
            return self._read_chunks()
        if len(lengths) != 1 or not A_LENGTH.fullmatch(lengths[0]):
            raise ValueError("no length")
        return self._read_whole(int(lengths[0]))

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := self._chunk_size():
            body += self._read_whole(size, already=len(body))
            if self.rfile.read(2) != b"\r\n":
                raise ValueError("a chunk of another size")
        for _ in range(TRAILERS_MAX):  # functions do not get them
            if self._read_line() == b"\r\n":
                return bytes(body)
        raise ValueError("trailers without end")

    def _chunk_size(self) -> int:
        found = A_CHUNK.fullmatch(self._read_line())
        if found is None:
            raise ValueError("no size of a chunk")
        return int(found[1], 16)

    def _read_line(self) -> bytes:
        line = self.rfile.readline(LINE_MAX_BYTES)
        if not line:
            raise ConnectionAbortedError
        return line

    def _read_whole(self, size: int, already: int = 0) -> bytes:
        if size > BODY_MAX_BYTES - already:
            raise _TooLarge
        read = self.rfile.read(size)
        if len(read) < size:
            raise ConnectionAbortedError
        return read

    def _write(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        has_body = reply.status not in (204, 304)
        if has_body:
            self.send_header("Content-Length", str(len(reply.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if has_body and self.command != "HEAD":
            self.wfile.write(reply.body)
        self.wfile.flush()
