"""A service on a real socket that records its requests, and the proxy before it. Requests are
written byte by byte, since HTTP clients would correct malformed ones."""

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Any

import httpx
import pytest

from duewheel import BearerKey
from duewheel.cli.console.passing import Service
from duewheel.cli.console.server import ConsoleServer
from tests.support import plain_http

NO_MORE: Mapping[str, str | None] = {}
KEY = "dw_of_the_caller"
PAGE = b"<title>The console</title>"


@dataclass
class Upstream:
    """Answers the console's page, and the set answer to all calls."""

    url: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"status": "ok", "version": "1"}'
    received: list[httpx.Request] = field(default_factory=list)

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        url, given = self.url + handler.path, handler.headers.items()
        self.received.append(httpx.Request(handler.command, url, headers=given, content=body))
        is_page = handler.path.startswith("/console")
        answer = PAGE if is_page else self.body
        handler.send_response(200 if is_page else self.status)
        for name, text in {"content-type": "text/html", **self.headers}.items():
            handler.send_header(name, text)
        handler.send_header("content-length", str(len(answer)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(answer)


@contextmanager
def served(server: TCPServer) -> Iterator[str]:
    with server:
        thread = Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def upstream() -> Iterator[Upstream]:
    fake = Upstream("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            fake.handle(self)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with served(Server(("127.0.0.1", 0), Handler)) as fake.url:
        yield fake


class Proxy:
    """A proxy before `url`. Unless a test changes the headers, requests are those of its own
    page."""

    def __init__(self, server: ConsoleServer) -> None:
        self.address = server.entrance.address
        self.port = server.server_port
        self.host = f"127.0.0.1:{self.port}"
        self._cookie = ""

    def ask(
        self, line: str, headers: Mapping[str, str | None] = NO_MORE, body: bytes = b""
    ) -> httpx.Response:
        """`line`: method and target. A header that is None is left out."""
        named = {"Host": self.host, "Sec-Fetch-Site": "same-origin", **headers}
        if "Cookie" not in named:
            named["Cookie"] = self.cookie
        if body and "Content-Length" not in named:
            named["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {text}\r\n" for name, text in named.items() if text is not None)
        return self.raw(f"{line} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body, line.split()[0])

    def raw(self, request: bytes, method: str = "GET") -> httpx.Response:
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            got = HTTPResponse(connection, method=method)
            got.begin()
            return httpx.Response(got.status, headers=got.getheaders(), content=got.read())

    @property
    def cookie(self) -> str:
        if not self._cookie:
            got = self.ask(f"GET /?token={self.token}", {"Cookie": None})
            self._cookie = got.headers["set-cookie"].partition(";")[0]
        return self._cookie

    @property
    def token(self) -> str:
        found = re.search(r"token=(.+)$", self.address)
        assert found is not None
        return found[1]


@contextmanager
def proxied(
    url: str, auth: httpx.Auth | None = None, transport: httpx.BaseTransport | None = None
) -> Iterator[Proxy]:
    server = ConsoleServer(0, Service(url, auth, transport or plain_http()))
    with served(server):
        yield Proxy(server)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Upstream, Proxy]]:
    with upstream() as fake, proxied(fake.url, BearerKey(KEY)) as proxy:
        yield fake, proxy


@pytest.fixture
def service(running: tuple[Upstream, Proxy]) -> Upstream:
    """The service in its initial state."""
    fake, _ = running
    vars(fake).update(vars(Upstream(fake.url)))
    return fake


@pytest.fixture
def proxy(running: tuple[Upstream, Proxy]) -> Proxy:
    return running[1]


def refused(answer: httpx.Response, status: int = 403) -> None:
    assert answer.status_code == status, answer.text
    assert KEY not in answer.text + str(answer.headers)
