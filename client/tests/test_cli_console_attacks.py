"""`duewheel console` acts with its caller's credentials: what must not come in, or get through."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

from duewheel import BearerKey
from duewheel.cli.console.passing import Service
from duewheel.cli.console.peers import TABLES
from duewheel.cli.console.server import ConsoleServer
from tests.console_support import Proxy, Upstream, proxied, upstream

NOBODY = 65_534


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Upstream, Proxy]]:
    with upstream() as told, proxied(told.url, BearerKey("dw_of_the_caller")) as proxy:
        yield told, proxy


@pytest.fixture
def service(running: tuple[Upstream, Proxy]) -> Upstream:
    told, _ = running
    told.received.clear()
    told.headers = {}
    return told


@pytest.fixture
def proxy(running: tuple[Upstream, Proxy]) -> Proxy:
    return running[1]


def refused(answer: httpx.Response, status: int = 403) -> None:
    assert answer.status_code == status, answer.text
    assert "dw_of_the_caller" not in answer.text + str(answer.headers)


TARGETS = ["/", "/console", "/console/app.js", "/v1/wheel", "/_local/clock", "//evil", "*"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_without_the_cookie_nothing_is_open(
    service: Upstream, proxy: Proxy, method: str, target: str
) -> None:
    refused(proxy.ask(f"{method} {target}", {"Cookie": None}))
    refused(proxy.ask(f"{method} {target}", {"Cookie": proxy.cookie + "x"}))
    refused(proxy.ask(f"{method} {target}", {"Cookie": proxy.cookie.partition("=")[2]}))
    assert service.received == []


def test_strangers_are_told_so_in_a_page_and_scripts_in_a_problem(proxy: Proxy) -> None:
    page = proxy.ask("GET /console", {"Cookie": None})
    assert page.headers["content-type"].startswith("text/html")
    assert "not open to you" in page.text
    problem = proxy.ask("GET /v1/wheel", {"Cookie": None})
    assert problem.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("token", ["", "wrong", "%00", "ü", "%C3%BC"])
def test_a_wrong_token_gives_no_cookie(service: Upstream, token: str) -> None:
    with proxied(service.url) as proxy:
        for query in (f"token={token}", f"token={token}&token={token}", f"Token={proxy.token}"):
            answer = proxy.ask(f"GET /?{query}", {"Cookie": None})
            refused(answer)
            assert "set-cookie" not in answer.headers
        assert proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None}).status_code == 200


def test_the_token_is_good_once(service: Upstream) -> None:
    with proxied(service.url) as proxy, ThreadPoolExecutor(8) as many:
        line = f"GET /?token={proxy.token}"
        answers = list(many.map(lambda _: proxy.ask(line, {"Cookie": None}), range(20)))
        assert sorted(answer.status_code for answer in answers) == [200, *[403] * 19]
        assert sum("set-cookie" in answer.headers for answer in answers) == 1


@pytest.mark.parametrize("line", ["HEAD /?token=", "POST /?token=", "GET /console?token="])
def test_the_token_opens_nothing_elsewhere_and_is_not_used_up(service: Upstream, line: str) -> None:
    with proxied(service.url) as proxy:
        refused(proxy.ask(line + proxy.token, {"Cookie": None}))
        assert proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None}).status_code == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(service: Upstream) -> None:
    with proxied(service.url) as proxy:
        answer = proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None})
    cookie = answer.headers["set-cookie"]
    assert proxy.token not in cookie
    assert cookie.split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Strict"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


def test_the_cookie_of_another_proxy_is_none(service: Upstream, proxy: Proxy) -> None:
    with proxied(service.url) as other:
        refused(other.ask("GET /v1/wheel", {"Cookie": proxy.cookie}))
        both = f"{proxy.cookie}; {other.cookie}"
        assert other.ask("GET /v1/wheel", {"Cookie": both}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "localhost.evil.example:{port}",
        "[::1]:{port}",
        "0.0.0.0:{port}",
        "",
        None,
        "127.0.0.1:{port}\r\nHost: evil.example",
        "127.0.0.1:{port}\r\n evil.example",
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(
    service: Upstream, proxy: Proxy, host: str | None
) -> None:
    named = host.format(port=proxy.port) if host else host
    for target in ("/console", "/v1/wheel"):
        refused(proxy.ask(f"GET {target}", {"Host": named}))
    assert service.received == []


def test_the_token_is_not_taken_under_another_name(service: Upstream) -> None:
    with proxied(service.url) as proxy:
        refused(
            proxy.ask(f"GET /?token={proxy.token}", {"Host": "evil.example", "Cookie": None}),
        )
        assert proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None}).status_code == 200


@pytest.mark.parametrize(
    "said",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of this machine
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": None},
        {"Sec-Fetch-Site": None, "Origin": "null"},
        {"Sec-Fetch-Site": None, "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": None, "Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": None, "Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": None, "Origin": "http://localhost:{port}"},
        {"Sec-Fetch-Site": None, "Origin": "https://127.0.0.1:{port}"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-origin\r\nSec-Fetch-Site: cross-site"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_calls_of_other_sites_are_refused(
    service: Upstream, proxy: Proxy, method: str, said: dict[str, str | None]
) -> None:
    named = {name: text.format(port=proxy.port) if text else text for name, text in said.items()}
    refused(proxy.ask(f"{method} /v1/businesses/orders", named))
    assert service.received == []


@pytest.mark.parametrize(
    "said",
    [
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://{host}"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},  # under a strict referrer policy
        {"Sec-Fetch-Site": None, "Origin": "http://{host}"},  # an old browser
    ],
)
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_calls_of_its_own_pages_are_passed_on(
    service: Upstream, proxy: Proxy, name: str, said: dict[str, str | None]
) -> None:
    host = f"{name}:{proxy.port}"
    headers = {each: text.format(host=host) if text else text for each, text in said.items()}
    answer = proxy.ask("POST /v1/tasks", {"Host": host, **headers}, b"{}")
    assert answer.status_code == 200
    assert len(service.received) == 1


@pytest.mark.parametrize(
    "target",
    [
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
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_but_calls_and_files_is_reached(
    service: Upstream, proxy: Proxy, method: str, target: str
) -> None:
    answer = proxy.ask(f"{method} {target}")
    is_way_in = method == "GET" and target.startswith("/?")
    assert answer.status_code in ((200,) if is_way_in else (400, 404)), answer.text
    assert service.received == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_files_are_only_read(service: Upstream, proxy: Proxy, method: str) -> None:
    refused(proxy.ask(f"{method} /console/app.js"), 405)
    assert service.received == []


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "PROPFIND", "get"])
def test_other_methods_are_not_known(service: Upstream, proxy: Proxy, method: str) -> None:
    refused(proxy.ask(f"{method} /v1/wheel"), 501)
    assert service.received == []


def test_headers_of_the_browser_and_those_that_mislead_stay_here(
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
    assert request.headers.get_list("authorization") == ["Bearer dw_of_the_caller"]
    assert request.headers["connection"] == "keep-alive"
    assert request.headers["host"] == service.url.removeprefix("http://")
    never = {"cookie", "sec-fetch-site", *map(str.lower, smuggled)} - {
        "authorization",
        "connection",
    }
    assert never & set(request.headers) == set()


def test_no_answer_opens_this_origin_or_sets_anything_in_it(
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
def test_a_body_whose_length_is_too_much_or_in_doubt_is_not_read(
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
def test_headers_that_cannot_be_read_one_way_are_refused(
    service: Upstream, proxy: Proxy, line: str
) -> None:
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: {proxy.host}\r\nCookie: {proxy.cookie}\r\n"
    head += f"Sec-Fetch-Site: same-origin\r\n{line}\r\nContent-Length: 0\r\n\r\n"
    refused(proxy.raw(head.encode("latin-1")), 400)
    assert service.received == []


def test_what_is_sent_behind_a_refusal_is_no_request(service: Upstream, proxy: Proxy) -> None:
    inside = f"GET /v1/wheel HTTP/1.1\r\nHost: {proxy.host}\r\nCookie: {proxy.cookie}\r\n"
    inside += "Sec-Fetch-Site: same-origin\r\n\r\n"
    headers: dict[str, str | None] = {"Sec-Fetch-Site": "cross-site"}
    refused(proxy.ask("POST /v1/tasks", headers, inside.encode()))
    refused(proxy.ask("POST /v1/tasks", {"Cookie": None}, inside.encode()))
    assert service.received == []


def test_an_answer_of_the_oldest_http_is_none(service: Upstream, proxy: Proxy) -> None:
    """Without headers nobody can be known."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as connection:
        connection.sendall(b"GET /v1/wheel\r\n")
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(30)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert b"ok" not in answer
    assert service.received == []


@pytest.mark.skipif(
    os.geteuid() != 0 or not TABLES[0].exists(), reason="only root on Linux can be somebody else"
)
def test_another_user_gets_nothing_even_with_the_cookie(service: Upstream, proxy: Proxy) -> None:
    head = f"GET /v1/wheel HTTP/1.1\r\nHost: {proxy.host}\r\nCookie: {proxy.cookie}\r\n"
    os.seteuid(NOBODY)
    try:
        theirs = socket.socket()
    finally:
        os.seteuid(0)
    with theirs as connection:
        connection.connect(("127.0.0.1", proxy.port))
        with suppress(ConnectionError):
            connection.sendall(f"{head}Sec-Fetch-Site: same-origin\r\n\r\n".encode())
            assert connection.recv(65_536) == b""
    assert service.received == []


def test_only_this_machine_is_listened_to() -> None:
    with ConsoleServer(0, Service("http://service.example", None)) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_nothing_is_written_about_requests(
    proxy: Proxy, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None})
    proxy.ask("GET /v1/wheel")
    proxy.ask("TRACE /")
    written = capfd.readouterr()
    for secret in (proxy.token, proxy.cookie, "dw_of_the_caller"):
        assert secret not in written.out + written.err
        assert secret not in "".join(f"{record.msg} {record.args}" for record in caplog.records)
