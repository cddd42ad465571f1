"""Requests that `duewheel console` does not pass on: other paths and headers, and requests that two
servers could read differently."""

import socket
from itertools import product

import pytest

from tests.console_support import KEY, Proxy, Upstream, refused

TARGETS = [
    "/console/../_local/clock",
    "/v1/../_local/clock",
    "/v1/%2e%2e/_local/clock",
    "/v1/.%2E/_local/clock",
    "/v1/%252e%252e/_local/clock",
    "/v1/..%2f_local%2fclock",
    "/v1/..%5c_local%5cclock",
    "/v1/..\\_local\\clock",
    "/v1/tasks/%00",
    "/v1/tasks/%0d%0aHost:%20evil",
    "/v1/tasks/%ff",
    "/v1/tasks/\xff",
    "/v1/./wheel",
    "/v1//wheel",
    "/v1/",
    "/v1",
    "/V1/wheel",
    "/v1evil/wheel",
    "/v1.evil.example/",
    "/v1@evil.example/",
    "/%76%31%2fwheel",
    "/console/",
    "/console/%2e%2e",
    "/console.html",
    "/_local/clock",
    "/_local/inbox/a",
    "/api/timer/v1/def",
    "//evil.example/v1/wheel",
    "///evil.example/v1/wheel",
    "/\\evil.example/v1/wheel",
    "http://evil.example/v1/wheel",
    "http://127.0.0.1/v1/wheel",
    "evil.example:443",
    "@evil.example/v1/wheel",
    ".evil.example/v1/wheel",
    "v1/wheel",
    "*",
    "?token=",
    "/?token=wrong&x=/v1/wheel",
]


def test_targets_other_than_calls_and_files_are_refused(service: Upstream, proxy: Proxy) -> None:
    for method, target in product(("GET", "POST"), TARGETS):
        answer = proxy.ask(f"{method} {target}")
        is_way_in = method == "GET" and target.startswith("/?")
        expected = (200,) if is_way_in else (400, 404)
        assert answer.status_code in expected, (method, target, answer.text)
    assert service.received == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_files_accept_reads_alone(service: Upstream, proxy: Proxy, method: str) -> None:
    refused(proxy.ask(f"{method} /console/app.js"), 405)
    assert service.received == []


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "PROPFIND", "get"])
def test_other_methods_are_refused(service: Upstream, proxy: Proxy, method: str) -> None:
    refused(proxy.ask(f"{method} /v1/wheel"), 501)
    assert service.received == []


def test_headers_of_the_browser_and_of_proxies_are_not_passed_on(
    service: Upstream, proxy: Proxy
) -> None:
    smuggled = {
        "Authorization": "Bearer dw_of_another",
        "Origin": f"http://{proxy.host}",
        "Referer": f"http://{proxy.host}/console",
        "X-Amz-Security-Token": "theirs",
        "X-Amz-Date": "20000101T000000Z",
        "X-Forwarded-For": "10.0.0.1",
        "X-Forwarded-Host": "evil.example",
        "X-HTTP-Method-Override": "DELETE",
        "Forwarded": "host=evil.example",
        "Duewheel-Attempt": "1",
        "Connection": "keep-alive, authorization, if-match",
        "Keep-Alive": "timeout=1",
        "TE": "trailers",
        "Upgrade": "websocket",
        "Proxy-Authorization": "Basic eDp5",
    }
    assert proxy.ask("POST /v1/tasks", smuggled, b"{}").status_code == 200
    (request,) = service.received
    assert request.headers.get_list("authorization") == [f"Bearer {KEY}"]
    assert request.headers["connection"] == "keep-alive"
    assert request.headers["host"] == service.url.removeprefix("http://")
    never = {"cookie", "sec-fetch-site", *map(str.lower, smuggled)} - {
        "authorization",
        "connection",
    }
    assert never & set(request.headers) == set()


def test_a_header_that_cannot_be_written_is_left_out_of_the_answer(
    service: Upstream, proxy: Proxy
) -> None:
    service.headers = {"etag": "€".encode().decode("latin-1"), "retry-after": "1"}
    answer = proxy.ask("GET /v1/wheel")
    assert answer.status_code == 200
    assert answer.headers["retry-after"] == "1"
    assert "etag" not in answer.headers


def test_headers_that_open_the_origin_or_set_state_are_removed_from_answers(
    service: Upstream, proxy: Proxy
) -> None:
    service.headers = {
        "set-cookie": "a=b",
        "access-control-allow-origin": "*",
        "access-control-allow-credentials": "true",
        "clear-site-data": '"*"',
        "www-authenticate": "Basic",
        "service-worker-allowed": "/",
        "x-frame-options": "ALLOWALL",
        "cross-origin-resource-policy": "cross-origin",
    }
    for target in ("/v1/wheel", "/console"):
        answer = proxy.ask(f"GET {target}")
        assert answer.headers.get_list("x-frame-options") == ["DENY"]
        assert answer.headers.get_list("cross-origin-resource-policy") == ["same-origin"]
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
        named = set(service.headers) - {"x-frame-options", "cross-origin-resource-policy"}
        assert named & set(answer.headers) == set()
    proxy.ask("GET /v1/wheel")
    assert "cookie" not in service.received[-1].headers


@pytest.mark.parametrize(
    ("lengths", "status"),
    [
        ("10485761", 413),
        ("9" * 18, 413),
        pytest.param("9" * 5000, 400, id="very long"),
        ("-1", 400),
        ("+1", 400),
        ("1_0", 400),
        ("0x10", 400),
        ("", 400),
        ("\xb2", 400),
        ("1\r\nContent-Length: 2", 400),
        ("1\r\nTransfer-Encoding: chunked", 411),
        ("1\r\nTransfer-Encoding: identity", 411),
    ],
)
def test_a_body_of_excessive_or_ambiguous_length_is_refused(
    service: Upstream, proxy: Proxy, lengths: str, status: int
) -> None:
    answer = proxy.ask("POST /v1/tasks", {"Content-Length": lengths})
    refused(answer, status)
    assert answer.headers["connection"] == "close"
    assert service.received == []


def test_the_largest_body_is_passed_on(service: Upstream, proxy: Proxy) -> None:
    body = b"x" * 10 * 1024 * 1024
    assert proxy.ask("POST /v1/tasks/batch", body=body).status_code == 200
    assert service.received[0].content == body


@pytest.mark.parametrize(
    "line",
    ["Accept: a\r\n b", "Accept: \x01", "Accept: \xff", "no colon", "If-Match: a\x00b"],
)
def test_ambiguous_headers_are_refused(service: Upstream, proxy: Proxy, line: str) -> None:
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: {proxy.host}\r\nCookie: {proxy.cookie}\r\n"
    head += f"Sec-Fetch-Site: same-origin\r\n{line}\r\nContent-Length: 0\r\n\r\n"
    refused(proxy.raw(head.encode("latin-1")), 400)
    assert service.received == []


def test_bytes_after_a_refused_request_are_not_read_as_a_request(
    service: Upstream, proxy: Proxy
) -> None:
    inside = f"GET /v1/wheel HTTP/1.1\r\nHost: {proxy.host}\r\nCookie: {proxy.cookie}\r\n"
    inside += "Sec-Fetch-Site: same-origin\r\n\r\n"
    headers: dict[str, str | None] = {"Sec-Fetch-Site": "cross-site"}
    refused(proxy.ask("POST /v1/tasks", headers, inside.encode()))
    refused(proxy.ask("POST /v1/tasks", {"Cookie": None}, inside.encode()))
    assert service.received == []


def test_a_request_of_http_0_9_is_refused(service: Upstream, proxy: Proxy) -> None:
    """It has no headers, so it carries no cookie."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as connection:
        connection.sendall(b"GET /v1/wheel\r\n")
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(30)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert b"ok" not in answer
    assert service.received == []
