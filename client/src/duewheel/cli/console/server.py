"""The proxy's HTTP server: reads a request, has it checked, writes the answer.

Invariant: it binds 127.0.0.1 only. After a refusal the connection is closed, since the rest of the
request has not been read.
"""

import re
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import name as system
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs

from duewheel.cli.console import passing
from duewheel.cli.console.entrance import HOST, Entrance
from duewheel.cli.console.peers import may_be_ours
from duewheel.cli.console.replies import ALWAYS, Refused, Reply, problem, way_in

BODY_MAX_BYTES = 10 * 1024 * 1024  # the limit of API Gateway
IDLE_SECONDS = 60
A_LENGTH = re.compile(r"[0-9]{1,18}")
NO_PASS = (
    "This is not open to you. Open the address that duewheel console has printed, in the browser "
    "that is to have the console. It opens once: if it has been opened, and not by you, end the "
    "command with Ctrl-C; for another browser start it again."
)


class ConsoleServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = system == "posix"  # elsewhere others could bind the port

    def __init__(self, port: int, service: passing.Service) -> None:
        super().__init__((HOST, port), _Handler)
        self.service = service
        self.entrance = Entrance(self.server_port)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # the parent class would look up this machine's name in the DNS
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return may_be_ours(client_address, (HOST, self.server_port))

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client has closed it
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ConsoleServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body are sent in one segment
    timeout = IDLE_SECONDS

    def handle_any(self) -> None:
        try:
            reply = self._answer()
        except Refused as refused:
            self.close_connection = True
            reply = refused.reply
        self._write(reply)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

    def _answer(self) -> Reply:
        """Check the client first: the request of a client without the cookie is not read any
        further."""
        entrance = self.server.entrance
        if self.headers.defects:
            raise Refused(HTTPStatus.BAD_REQUEST, "The headers cannot be read.")
        if not entrance.is_own_host(self.headers):
            raise Refused(HTTPStatus.FORBIDDEN, "The console is not at this address.")
        path, _, query = self.path.partition("?")
        has_pass = entrance.has_pass(self.headers)
        if path == "/" and self.command == "GET" and (has_pass or self._brings_token(query)):
            return way_in(entrance.cookie)
        if not has_pass:
            is_call = path.startswith("/v1/")
            raise Refused(HTTPStatus.FORBIDDEN, NO_PASS, is_for_people=not is_call)
        target = passing.target_of(self.path)
        self._check_origin(target)
        headers = passing.sent_headers(self.headers)
        return self.server.service.answer(self.command, target, headers, self._read_body())

    def _brings_token(self, query: str) -> bool:
        return any(map(self.server.entrance.takes, parse_qs(query).get("token", [])))

    def _check_origin(self, target: str) -> None:
        if passing.is_of_the_console(target):
            if self.command not in passing.READS:
                raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "Files are only read.")
        elif not self.server.entrance.is_same_origin(self.headers):
            detail = "Calls are passed on for pages of this very address alone."
            raise Refused(HTTPStatus.FORBIDDEN, detail)

    def _read_body(self) -> bytes:
        if "transfer-encoding" in self.headers:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "A body needs a length.")
        lengths = self.headers.get_all("content-length", ["0"])
        if len(lengths) != 1 or not A_LENGTH.fullmatch(lengths[0]):
            raise Refused(HTTPStatus.BAD_REQUEST, "This is no length of a body.")
        length = int(lengths[0])
        if length > BODY_MAX_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "API Gateway takes up to 10 MB.")
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionAbortedError
        return body

    def _write(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        for name, text in (*reply.headers, *ALWAYS):
            self.send_header(name, text)
        has_body = reply.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        if has_body and self.command != "HEAD":
            self.send_header("content-length", str(len(reply.body)))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if has_body and self.command != "HEAD":
            self.wfile.write(reply.body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.close_connection = True
        self._write(problem(code, "This is no request that can be answered."))

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests: a line could hold the token."""
