"""The HTTP server on loopback: reads requests, writes replies, knows nothing else.

Invariant: it binds 127.0.0.1 only. A thread per connection, kept open between
requests; hundreds of callbacks at once come back to the inbox this way.
"""

import logging
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Any

from local.http_api import Reply, Request, gateway_reply

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
BODY_MAX_BYTES = 10 * 1024 * 1024


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
        TCPServer.server_bind(self)  # the parent would ask the DNS who this machine is
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # whoever hung up wants no answer
            log.exception("a request from %s failed", client_address)


class _TooLarge(Exception):
    """The body is larger than API Gateway takes; it is not read to its end."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one segment
    timeout = 120
    answer: Callable[[Request], Reply]

    def handle_any(self) -> None:
        try:
            body = self._read_body()
        except _TooLarge:
            self.close_connection = True
            self._write(gateway_reply(413, "Request Entity Too Large"))
            return
        except ValueError:
            self.close_connection = True
            self._write(gateway_reply(400, "Bad Request"))
            return
        headers = tuple(self.headers.items())
        request = Request(self.command, self.path, headers, body, self.client_address[0])
        try:
            reply = self.answer(request)
        except Exception:  # whoever asked gets an answer all the same
            log.exception("%s %s failed", request.method, request.raw_path)
            reply = gateway_reply(500, "Internal Server Error")
        self._write(reply)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.close_connection = True
        self._write(gateway_reply(code, message or HTTPStatus(code).phrase))

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are the caller's business; what fails is logged where it fails."""

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._read_chunks()
        length = int(self.headers.get("Content-Length") or 0)
        if length < 0:
            raise ValueError("a length below nothing")
        if length > BODY_MAX_BYTES:
            raise _TooLarge
        return self.rfile.read(length)

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int(self.rfile.readline(100).split(b";")[0], 16):
            if len(body) + size > BODY_MAX_BYTES:
                raise _TooLarge
            body += self.rfile.read(size)
            self.rfile.readline(3)
        while self.rfile.readline(65_537).strip():
            pass  # trailers say nothing that a function would see
        return bytes(body)

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
