"""Egress rules: callbacks connect only to public addresses, and only to the address that was
checked."""

import asyncio
import socket

import pytest

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.targets.http import resolver
from tests.targets.far_side import (
    SHORT_SECONDS,
    far_side,
    in_loop,
    names,
    post,
    target,
)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0177.1",
        "0x7f.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "localhost",
    ],
)
@in_loop
async def test_a_host_that_is_not_public_is_refused_without_a_connection(host: str) -> None:
    async with far_side() as side, target(allowed=()) as http:
        outcome = await post(http, side.url(host=host))
    assert outcome.verdict is Verdict.STOP
    assert outcome.note == "refused-address: the host leads where callbacks may not go"
    assert side.connections == 0


@pytest.mark.parametrize("addresses", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"]])
@in_loop
async def test_one_forbidden_address_among_several_refuses_the_host(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    names(monkeypatch, mixed_example=addresses)
    async with far_side() as side, target() as http:
        outcome = await post(http, side.url(host="mixed.example"))
    assert outcome.note.startswith("refused-address")
    assert side.connections == 0


@in_loop
async def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = ["127.0.0.1"]
    asked = names(monkeypatch, turncoat_example=found)
    async with far_side() as side, target() as http:
        assert (await post(http, side.url(host="turncoat.example"))).verdict is Verdict.DELIVERED
        assert asked == ["turncoat.example"]
        assert side.received[0].headers["host"] == f"turncoat.example:{side.port}"


@in_loop
async def test_a_changed_forbidden_address_is_refused_despite_a_kept_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    found = ["127.0.0.1"]
    names(monkeypatch, turncoat_example=found)
    async with far_side() as side, target() as http:
        url = side.url(host="turncoat.example")
        assert (await post(http, url)).verdict is Verdict.DELIVERED
        found[:] = ["10.0.0.1"]
        assert (await post(http, url)).note.startswith("refused-address")
    assert len(side.received) == 1


@in_loop
async def test_a_kept_connection_to_an_address_no_longer_named_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    found = ["127.0.0.1"]
    names(monkeypatch, moving_example=found)
    async with far_side() as side, target() as http:
        url = side.url(host="moving.example")
        await post(http, url)
        found[:] = ["127.0.0.2"]
        assert (await post(http, url)).verdict is Verdict.RETRY  # no server listens there
    assert side.connections == 1


@in_loop
async def test_calls_to_one_host_share_one_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = names(monkeypatch, shared_example=["127.0.0.1"])
    async with far_side() as side, target() as http:
        await asyncio.gather(*(post(http, side.url(host="shared.example")) for _ in range(6)))
        await post(http, side.url(host="shared.example"))
    assert asked == ["shared.example"]


@in_loop
async def test_a_host_that_does_not_resolve_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    names(monkeypatch, missing_example=failure)
    async with target() as http:
        outcome = await post(http, "http://missing.example/")
    note = "the host does not resolve: Name or service not known"
    assert outcome == Outcome(Verdict.RETRY, note)


@in_loop
async def test_the_next_address_is_tried_when_one_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names(monkeypatch, twofold_example=["127.0.0.9", "127.0.0.1"])
    async with far_side() as side, target() as http:
        outcome = await post(http, side.url(host="twofold.example"))
    assert outcome.verdict is Verdict.DELIVERED


@in_loop
async def test_a_slow_lookup_ends_with_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(_: str) -> tuple[str, ...]:
        await asyncio.sleep(10)
        return ()

    monkeypatch.setattr(resolver, "look_up", look_up)
    async with target() as http:
        outcome = await post(http, "http://slow.example/", seconds=SHORT_SECONDS)
    assert outcome.verdict is Verdict.RETRY
