"""A web page in the browser of a developer whose local stack is running. It can have the browser
send requests to every port of the machine, under any name, and must reach neither the stack nor
other services through it."""

import http.client
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from local.stack import LocalStack
from tests.support.service import Service

NAME_OF_LOOPBACK = "evil.example"
PAGES = {  # the headers that the browser sends, in any case
    "a form": {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
    "a script of an old browser": {"Origin": "http://evil.example"},
    "an image": {"Sec-Fetch-Site": "cross-site"},
    "a frame without an origin": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "another port's page": {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
    "a name that leads here": {"Host": NAME_OF_LOOPBACK, "Sec-Fetch-Site": "same-origin"},
    "such a name in an old browser": {
        "Host": NAME_OF_LOOPBACK,
        "Origin": f"http://{NAME_OF_LOOPBACK}",
    },
}


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(frozen=True, asks_for_keys=True) as running:
        yield running


@pytest.fixture
def neighbour() -> Iterator[tuple[str, list[str]]]:
    """A service on the same machine that trusts every caller."""
    done: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            done.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", done
    server.shutdown()
    thread.join()
    server.server_close()


def sent(stack: LocalStack, line: str, body: Any, page: dict[str, str]) -> int:
    """A request that a page can send without a preflight: `text/plain` needs no permission."""
    connection = http.client.HTTPConnection("127.0.0.1", int(stack.url.rpartition(":")[2]))
    method, _, path = line.partition(" ")
    connection.request(method, path, json.dumps(body), {"Content-Type": "text/plain", **page})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_a_page_of_another_site_cannot_use_the_stack(
    stack: LocalStack, neighbour: tuple[str, list[str]], page: dict[str, str]
) -> None:
    url, done = neighbour
    owner = Service(stack.url, stack.admin_key)
    before = owner.call("GET", "/_local/clock")
    task = {"biz_type": "orders", "delay_seconds": 0, "callback": {"url": f"{url}/shut-down"}}
    statuses = {
        sent(stack, line, body, page)
        for line, body in (
            ("POST /_local/ingest", task),
            ("POST /_local/clock", {"advance_seconds": 60}),
            ("PUT /_local/received/orders", {"status": 503}),
            ("POST /_local/inbox/orders", {}),
            ("GET /_local/received/orders", None),
        )
    }
    assert owner.call("GET", "/_local/clock") == before
    owner.call("POST", "/_local/clock", {"advance_seconds": 5})
    assert done == []
    assert owner.call("GET", "/_local/received/orders") == (200, {"requests": []})
    assert statuses == {403}


def test_the_owner_can_use_the_stack(stack: LocalStack, neighbour: tuple[str, list[str]]) -> None:
    """With a program, and with the stack's own pages."""
    url, done = neighbour
    for headers in ({}, {"Origin": stack.url, "Sec-Fetch-Site": "same-origin"}):
        task = {"biz_type": "orders", "delay_seconds": 0, "callback": {"url": f"{url}/close"}}
        assert sent(stack, "POST /_local/ingest", task, headers) == 202
        assert sent(stack, "POST /_local/clock", {"advance_seconds": 5}, headers) == 200
    assert done == ["/close", "/close"]
