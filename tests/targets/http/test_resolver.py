"""Answers of name servers, and what becomes of them."""

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.targets.http import resolver
from duewheel.targets.http.resolver import RefusedAddress, Resolver, look_up
from tests.support.cases import each_case
from tests.targets.far_side import in_loop
from tests.targets.name_server import (
    AAAA,
    CNAME,
    NO_SUCH_NAME,
    SERVER_FAILED,
    address,
    asked_for,
    name_servers,
    reply,
    well,
)

V4, V6 = address("192.0.2.7"), address("2001:db8::7")
ALIAS = (CNAME, b"\x05other\xc0\x14")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "TRIES_SECONDS", (0.1, 0.1))


@in_loop
async def test_the_addresses_behind_an_alias_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    two = V4, address("192.0.2.8")
    async with name_servers(monkeypatch, lambda _, query: [reply(query, ALIAS, *two)]) as (one,):
        assert await look_up("Well.Example.") == ("192.0.2.7", "192.0.2.8")
    assert one.asked == ["well.example"]


@in_loop
async def test_a_name_without_ipv4_addresses_has_its_ipv6_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(_: str, query: bytes) -> list[bytes]:
        return [reply(query, ALIAS, *([V6] if asked_for(query)[1] == AAAA else []))]

    async with name_servers(monkeypatch, answer):
        assert await look_up("well.example") == ("2001:db8::7",)


@in_loop
async def test_a_name_that_is_not_there_and_one_that_cannot_be_asked_for_do_not_resolve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with name_servers(monkeypatch, lambda _, q: [reply(q, code=NO_SUCH_NAME)]):
        for name in ("missing.example", "a..b", "a" * 64 + ".example", "a." * 130):
            with pytest.raises(socket.gaierror, match="Name or service not known"):
                await look_up(name)


@in_loop
async def test_a_server_that_fails_hangs_or_writes_nonsense_is_followed_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wrong in (
        lambda _, query: [],
        lambda _, query: [reply(query, code=SERVER_FAILED)],
        lambda _, query: [reply(query, V4)[:-3]],
        lambda _, query: [query],
    ):
        async with name_servers(monkeypatch, wrong, well) as servers:
            assert await look_up("well.example") == ("127.0.0.1",)
            assert [len(one.asked) for one in servers] == [1, 1]
        async with name_servers(monkeypatch, wrong):
            with pytest.raises(socket.gaierror, match="Temporary failure"):
                await look_up("well.example")


@in_loop
async def test_an_answer_to_another_question_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(_: str, query: bytes) -> list[bytes]:
        number = bytes([query[0] ^ 1, query[1]])
        elsewhere = query.replace(b"\x04well", b"\x04evil")
        forged = [reply(number + query[2:], V4), reply(elsewhere, V4), b"", query[:2]]
        return [*forged, reply(query, address("192.0.2.9"))]

    async with name_servers(monkeypatch, answer):
        assert await look_up("well.example") == ("192.0.2.9",)


@in_loop
async def test_calls_at_the_same_time_share_a_look_up_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for answer in (
        lambda _, query: [reply(query, code=NO_SUCH_NAME)],
        lambda _, query: [reply(query, code=SERVER_FAILED)],
        lambda _, query: [reply(query, address("10.0.0.1"))],
    ):
        async with name_servers(monkeypatch, answer) as (one,):
            target = Resolver(())
            calls = [target.addresses_of("wrong.example") for _ in range(50)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(each, OSError | RefusedAddress) for each in outcomes)
            assert len(one.asked) <= 2


@in_loop
async def test_names_of_the_machine_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "local_names", lambda: {"localhost": ("127.0.0.1", "::1")})
    async with name_servers(monkeypatch) as (one,):
        assert await look_up("localhost") == ("127.0.0.1", "::1")
    assert one.asked == []


@each_case("text", ["127.0.0.1 localhost  LOCAL # me\n::1 localhost\n\n# 10.0.0.1 no"])
def test_the_file_of_hosts_is_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        resolver, "_lines", lambda _: [x.partition("#")[0] for x in text.split("\n")]
    )
    found = resolver.local_names.__wrapped__()
    assert found == {"localhost": ("127.0.0.1", "::1"), "local": ("127.0.0.1",)}


QUERY = resolver._query("well.example", 1)


@given(st.binary(max_size=60), st.integers(0, 80))
def test_no_answer_breaks_its_reader(noise: bytes, kept: int) -> None:
    for answer in (QUERY[:2] + noise, reply(QUERY, ALIAS, V4)[:kept] + noise):
        found = resolver._addresses_in(answer, 1)
        assert found is None or all(map(socket.inet_aton, found))
