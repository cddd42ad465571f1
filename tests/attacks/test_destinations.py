"""Callbacks to forbidden destinations, by every request that contains a URL, and by redirects,
names and proxies during the call."""

import asyncio
import itertools
from typing import Any

import pytest

from duewheel.rules.callbacks.outcome import Verdict
from duewheel.targets.http import resolver
from tests.attacks.conftest import APP_TIMER, TASK, TIMER, attack, made, stored_items
from tests.support.cases import each_case
from tests.support.clock import ManualClock
from tests.targets.far_side import LOOPBACK, far_side, in_loop, names, post, target

NO_DESTINATIONS = (
    "file:///etc/passwd",
    "gopher://receiver.example:70/_GET",
    "ftp://receiver.example/",
    "//receiver.example/",
    "http://receiver.example@169.254.169.254/",
    "http://receiver.example:80@169.254.169.254/",
    "http://169.254.169.254\\@receiver.example/",
    "http://169.254.169.254#@receiver.example/",
    "http://receiver.example/ HTTP/1.1\r\nhost: other.example\r\n\r\nGET /",
    "http://receiver.example/\tx",
    "http://receiver.example\u2028/",
    "http://[fe80::1%25eth0]/",
    "http://[::ffff:169.254.169.254",
    "http://receiver.example:65537/",
    "http://1.2.3.4.5/",
    "http://receiver。example\u200d/",
)
# As wide as an operator could allow them, except for the addresses themselves.
ALL_PRIVATE = ("0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1")
METADATA = (
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.254.169.254.",
    "１６９。254。169。254",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:aa02]",
    "[::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[fd00:ec2::254]",
    "[fd00:ec2:0:0:0:0:0:23]",
)


def requests_with_url(url: str) -> list[tuple[Any, ...]]:
    """Every request that contains a URL."""
    callback = {"url": url}
    on_outcome = {"outcomes": ["dead"], "callback": callback}
    param = {**APP_TIMER["notifyHTTPParam"], "url": url}
    return [
        ("POST", "/v1/tasks", {**TASK, "callback": callback}),
        ("POST", "/v1/tasks/batch", {"tasks": [{**TASK, "callback": callback}]}),
        ("PUT", "/v1/businesses/orders/tasks/k", {"delay_seconds": 9, "callback": callback}),
        ("PATCH", "/v1/tasks/{task}", {"callback": callback}),
        ("PUT", "/v1/businesses/orders", {"callback": callback}),
        ("PUT", "/v1/businesses/orders", {"on_outcome": on_outcome}),
        ("POST", "/v1/tasks", {**TASK, "on_outcome": on_outcome}),
        ("POST", "/v1/timers", {**TIMER, "on_outcome": on_outcome}),
        ("PATCH", "/v1/timers/{timer}", {"on_outcome": on_outcome}),
        ("POST", "/v1/timers", {**TIMER, "callback": callback}),
        ("PATCH", "/v1/timers/{timer}", {"callback": callback}),
        ("POST", "/api/timer/v1/def", {**APP_TIMER, "notifyHTTPParam": param}),
    ]


@each_case("url", NO_DESTINATIONS)
def test_no_request_accepts_a_forbidden_destination(wired: ManualClock, url: str) -> None:
    task, timer = made("POST", "/v1/tasks", TASK), made("POST", "/v1/timers", TIMER)
    before = stored_items()
    for method, path, body in requests_with_url(url):
        named = path.format(task=task["task_id"], timer=timer["timer_id"])
        _, answer, _ = attack(method, named, body)
        (result,) = answer.get("results", [answer])
        assert 422 in (result.get("status"), result.get("code")), (method, path, answer)
    assert stored_items() == before


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses to which a connection was begun."""
    to: list[str] = []
    begin = asyncio.SelectorEventLoop.sock_connect

    def watched(loop: Any, sock: Any, address: tuple[str, int]) -> Any:
        to.append(address[0])
        return begin(loop, sock, address)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", watched)
    return to


@pytest.mark.parametrize("host", METADATA)
@pytest.mark.parametrize("scheme", ["http", "https"])
@in_loop
async def test_no_spelling_of_an_address_reaches_the_metadata_services(
    connected: list[str], host: str, scheme: str
) -> None:
    async with target(allowed=ALL_PRIVATE) as http:
        outcome = await post(http, f"{scheme}://{host}/latest/meta-data/")
    assert outcome.verdict is Verdict.STOP
    assert outcome.note.startswith("refused-address")
    assert connected == []


@pytest.mark.parametrize(
    "found",
    [
        ["169.254.169.254"],
        ["::ffff:169.254.169.254"],
        ["93.184.215.14", "169.254.169.254"],
        ["fe80::1%eth0"],
        ["not an address"],
    ],
)
@in_loop
async def test_no_name_reaches_the_metadata_services(
    monkeypatch: pytest.MonkeyPatch, connected: list[str], found: list[str]
) -> None:
    names(monkeypatch, receiver_example=found)
    async with target(allowed=ALL_PRIVATE) as http:
        outcome = await post(http, "http://receiver.example/")
    assert outcome.note.startswith("refused-address")
    assert connected == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@in_loop
async def test_a_redirect_is_not_followed(connected: list[str], status: int) -> None:
    reply = (
        f"HTTP/1.1 {status} Go\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"
    )
    async with far_side(reply.encode()) as side, target() as http:
        outcome = await post(http, side.url())
    assert (outcome.verdict, outcome.status_code) == (Verdict.STOP, status)
    assert connected == ["127.0.0.1"]


@in_loop
async def test_only_the_checked_address_is_called_when_the_resolver_changes_its_answer(
    monkeypatch: pytest.MonkeyPatch, connected: list[str]
) -> None:
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    answers = itertools.cycle(["127.0.0.1", "169.254.169.254"])

    async def look_up(_: str) -> tuple[str, ...]:
        return (next(answers),)

    monkeypatch.setattr(resolver, "look_up", look_up)
    reply = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    async with far_side(reply) as side, target(allowed=LOOPBACK) as http:
        url = side.url(host="turncoat.example")
        verdicts = [(await post(http, url)).verdict for _ in range(6)]
    assert verdicts == [Verdict.DELIVERED, Verdict.STOP] * 3
    assert connected == ["127.0.0.1"] * 3


@in_loop
async def test_a_proxy_of_the_environment_is_not_used(
    monkeypatch: pytest.MonkeyPatch, connected: list[str]
) -> None:
    """A proxy would resolve the name again after the check."""
    async with far_side() as proxy, far_side() as side, target() as http:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url("/"))
        await post(http, side.url())
    assert (proxy.connections, side.connections) == (0, 1)
