"""The requests that `duewheel console`, which acts with its user's credentials, accepts."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread, current_thread

import pytest

from duewheel.cli.console import entrance
from duewheel.cli.console.entrance import Entrance
from duewheel.cli.console.passing import Service
from duewheel.cli.console.peers import TABLES
from duewheel.cli.console.server import ConsoleServer
from tests.console_support import KEY, Proxy, Upstream, proxied, refused

EXHAUSTIVE = pytest.mark.exhaustive
NOBODY = 65_534
TARGETS = ["/", "/console", "/console/app.js", "/v1/wheel", "/_local/clock", "//evil", "*"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "method",
    ["GET", *(pytest.param(each, marks=EXHAUSTIVE) for each in ("HEAD", "POST", "OPTIONS"))],
)
def test_every_request_without_the_cookie_is_refused(
    service: Upstream, proxy: Proxy, method: str, target: str
) -> None:
    refused(proxy.ask(f"{method} {target}", {"Cookie": None}))
    refused(proxy.ask(f"{method} {target}", {"Cookie": proxy.cookie + "x"}))
    refused(proxy.ask(f"{method} {target}", {"Cookie": proxy.cookie.partition("=")[2]}))
    assert service.received == []


def test_a_refusal_is_a_page_for_browsers_and_a_problem_for_scripts(proxy: Proxy) -> None:
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


def test_the_token_is_accepted_once(service: Upstream) -> None:
    with proxied(service.url) as proxy, ThreadPoolExecutor(8) as many:
        line = f"GET /?token={proxy.token}"
        answers = list(many.map(lambda _: proxy.ask(line, {"Cookie": None}), range(20)))
        assert sorted(answer.status_code for answer in answers) == [200, *[403] * 19]
        assert sum("set-cookie" in answer.headers for answer in answers) == 1


def test_of_two_concurrent_requests_with_the_token_one_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    way_in = Entrance(1)
    token = way_in.address.partition("=")[2]
    another_is_through = Event()

    def slowly(given: str, kept: str) -> bool:
        """Keep the first comparison running until the second request is there, if it can be."""
        if current_thread().name == "first":
            looking.set()
            another_is_through.wait(0.2)
        return given == kept

    looking = Event()
    monkeypatch.setattr(entrance, "_is_same", slowly)
    taken: list[bool] = []
    first = Thread(target=lambda: taken.append(way_in.takes(token)), name="first")
    first.start()
    looking.wait()
    taken.append(way_in.takes(token))
    another_is_through.set()
    first.join()
    assert sorted(taken) == [False, True]


@pytest.mark.parametrize("line", ["HEAD /?token=", "POST /?token=", "GET /console?token="])
def test_the_token_is_accepted_only_in_a_get_of_the_root(service: Upstream, line: str) -> None:
    with proxied(service.url) as proxy:
        refused(proxy.ask(line + proxy.token, {"Cookie": None}))
        assert proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None}).status_code == 200


def test_the_cookie_is_hidden_from_scripts_and_other_sites(service: Upstream) -> None:
    with proxied(service.url) as proxy:
        answer = proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None})
    cookie = answer.headers["set-cookie"]
    assert proxy.token not in cookie
    assert cookie.split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Strict"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


def test_the_cookie_of_another_proxy_is_refused(service: Upstream, proxy: Proxy) -> None:
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
def test_other_host_names_are_refused_against_dns_rebinding(
    service: Upstream, proxy: Proxy, host: str | None
) -> None:
    named = host.format(port=proxy.port) if host else host
    for target in ("/console", "/v1/wheel"):
        refused(proxy.ask(f"GET {target}", {"Host": named}))
    assert service.received == []


def test_the_token_is_not_accepted_under_another_host_name(service: Upstream) -> None:
    with proxied(service.url) as proxy:
        refused(
            proxy.ask(f"GET /?token={proxy.token}", {"Host": "evil.example", "Cookie": None}),
        )
        assert proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None}).status_code == 200


@pytest.mark.parametrize(
    "browser_headers",
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
@pytest.mark.parametrize(
    "method", ["POST", *(pytest.param(each, marks=EXHAUSTIVE) for each in ("GET", "DELETE"))]
)
def test_calls_of_other_sites_are_refused(
    service: Upstream, proxy: Proxy, method: str, browser_headers: dict[str, str | None]
) -> None:
    named = {
        name: text.format(port=proxy.port) if text else text
        for name, text in browser_headers.items()
    }
    refused(proxy.ask(f"{method} /v1/businesses/orders", named))
    assert service.received == []


@pytest.mark.parametrize(
    "browser_headers",
    [
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://{host}"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},  # under a strict referrer policy
        {"Sec-Fetch-Site": None, "Origin": "http://{host}"},  # an old browser
    ],
)
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_calls_of_the_proxys_own_pages_are_passed_on(
    service: Upstream, proxy: Proxy, name: str, browser_headers: dict[str, str | None]
) -> None:
    host = f"{name}:{proxy.port}"
    headers = {
        each: text.format(host=host) if text else text for each, text in browser_headers.items()
    }
    answer = proxy.ask("POST /v1/tasks", {"Host": host, **headers}, b"{}")
    assert answer.status_code == 200
    assert len(service.received) == 1


@pytest.mark.skipif(
    os.geteuid() != 0 or not TABLES[0].exists(), reason="only root on Linux can be somebody else"
)
def test_another_user_is_refused_even_with_the_cookie(service: Upstream, proxy: Proxy) -> None:
    head = f"GET /v1/wheel HTTP/1.1\r\nHost: {proxy.host}\r\nCookie: {proxy.cookie}\r\n"
    try:
        os.seteuid(NOBODY)
    except OSError:
        pytest.skip("root of a namespace that has no other user")
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


def test_the_proxy_listens_on_the_loopback_address_alone() -> None:
    with ConsoleServer(0, Service("http://service.example", None)) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_requests_are_not_logged(
    proxy: Proxy, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    proxy.ask(f"GET /?token={proxy.token}", {"Cookie": None})
    proxy.ask("GET /v1/wheel")
    proxy.ask("TRACE /")
    written = capfd.readouterr()
    for secret in (proxy.token, proxy.cookie, KEY):
        assert secret not in written.out + written.err
        assert secret not in "".join(f"{record.msg} {record.args}" for record in caplog.records)
