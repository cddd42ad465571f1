"""A business uses host names whose look-ups hang: only its own calls are delayed."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import BIZ_TYPE
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.targets.http import resolver
from duewheel.targets.http.resolver import LOOKUPS_MAX, LOOKUPS_OF_A_BUSINESS_MAX
from duewheel.targets.http.target import HttpTarget
from tests.targets.far_side import LONG_SECONDS, far_side, in_loop, target, until

HOSTILE = 32 * LOOKUPS_OF_A_BUSINESS_MAX


class NameServers:
    """Names below `.hangs` are answered when `let_go` is set, all others immediately."""

    def __init__(self) -> None:
        self.looked_up: list[str] = []
        self.let_go = threading.Event()

    def getaddrinfo(self, host: str, *_: Any, **__: Any) -> list[tuple[Any, ...]]:
        self.looked_up.append(host)
        if host.endswith(".hangs"):
            self.let_go.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]


@pytest.fixture
def name_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServers]:
    servers = NameServers()
    monkeypatch.setattr(socket, "getaddrinfo", servers.getaddrinfo)
    yield servers
    servers.let_go.set()


async def call(http: HttpTarget, url: str, biz_type: str) -> Outcome:
    return await http.call(HttpCallback(url), {BIZ_TYPE: biz_type}, b"{}", LONG_SECONDS)


def hanging(http: HttpTarget, biz_type: str, count: int) -> list[asyncio.Task[Outcome]]:
    urls = [f"http://{number}.{biz_type}.hangs/" for number in range(count)]
    return [asyncio.create_task(call(http, url, biz_type)) for url in urls]


@in_loop
async def test_hanging_names_of_one_business_do_not_delay_look_ups_of_others(
    name_servers: NameServers,
) -> None:
    async with far_side() as side, target(calls_in_flight_max=1_000) as http:
        calls = hanging(http, "hostile", HOSTILE)
        await until(lambda: len(name_servers.looked_up) == LOOKUPS_OF_A_BUSINESS_MAX)
        outcome = await call(http, side.url(host="well.example"), "orders")
        assert outcome.verdict is Verdict.DELIVERED
        assert name_servers.looked_up[LOOKUPS_OF_A_BUSINESS_MAX:] == ["well.example"]
        name_servers.let_go.set()
        await asyncio.gather(*calls)


@in_loop
async def test_a_call_whose_look_up_could_not_begin_does_not_count_as_begun(
    name_servers: NameServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with far_side() as side, target(calls_in_flight_max=1_000) as http:
        calls = hanging(http, "hostile", LOOKUPS_OF_A_BUSINESS_MAX)
        await until(lambda: len(name_servers.looked_up) == LOOKUPS_OF_A_BUSINESS_MAX)
        monkeypatch.setattr("duewheel.targets.http.target.BEGIN_SECONDS_MAX", 0.01)
        outcome = await call(http, side.url(host="well.example"), "hostile")
        assert not outcome.was_begun
        assert "well.example" not in name_servers.looked_up
        name_servers.let_go.set()
        await asyncio.gather(*calls)
        assert (await call(http, side.url(host="well.example"), "hostile")).was_begun


@in_loop
async def test_look_ups_of_all_businesses_together_are_limited_to_the_threads(
    name_servers: NameServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "LOOKUPS_MAX", 2 * LOOKUPS_OF_A_BUSINESS_MAX)
    async with far_side() as side, target(calls_in_flight_max=1_000) as http:
        calls = [c for n in range(3) for c in hanging(http, f"b{n}", LOOKUPS_OF_A_BUSINESS_MAX)]
        await until(lambda: len(name_servers.looked_up) == 2 * LOOKUPS_OF_A_BUSINESS_MAX)
        monkeypatch.setattr("duewheel.targets.http.target.BEGIN_SECONDS_MAX", 0.01)
        assert not (await call(http, side.url(host="well.example"), "orders")).was_begun
        name_servers.let_go.set()
        await asyncio.gather(*calls)
    assert LOOKUPS_MAX == HOSTILE
