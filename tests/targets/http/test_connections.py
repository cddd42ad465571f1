"""Kept connections: when they are reused, how long they live, and how many there may be."""

import asyncio
import socket

import pytest

from duewheel.clock import SystemClock
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.targets.http.target import IDLE_SECONDS, HttpTarget
from tests.support.clock import ManualClock
from tests.targets.far_side import (
    LOOPBACK,
    OK,
    far_side,
    in_loop,
    post,
    target,
    until,
)


@in_loop
async def test_connections_are_kept_and_reused() -> None:
    async with far_side() as side, target() as http:
        for _ in range(5):
            assert (await post(http, side.url())).verdict is Verdict.DELIVERED
    assert side.connections == 1


@in_loop
async def test_a_connection_closed_by_the_server_is_not_reused() -> None:
    async with far_side() as side, target() as http:
        for _ in range(3):
            assert (await post(http, side.url())).verdict is Verdict.DELIVERED
            side.writers[-1].close()
            await until(lambda: side.open_connections == 0)
    assert side.connections == 3


def test_a_connection_closed_while_the_loop_did_not_run_is_not_reused() -> None:
    loop = asyncio.new_event_loop()
    http = HttpTarget(clock=SystemClock(), allowed_private_cidrs=LOOPBACK)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        for _ in range(2):
            call = loop.create_task(post(http, url))
            connection = loop.run_until_complete(loop.run_in_executor(None, server.accept))[0]
            loop.run_until_complete(loop.run_in_executor(None, connection.recv, 65_536))
            connection.sendall(OK)
            assert loop.run_until_complete(call).verdict is Verdict.DELIVERED
            connection.close()  # the loop does not run now
    loop.run_until_complete(http.close())
    loop.close()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\n",
        OK + b"garbage",
    ],
)
@in_loop
async def test_a_connection_in_an_unclear_state_is_not_reused(reply: bytes) -> None:
    async with far_side(reply) as side, target() as http:
        for _ in range(2):
            assert await post(http, side.url()) == Outcome(Verdict.DELIVERED, "ok", status_code=200)
    assert side.connections == 2


@in_loop
async def test_unrequested_bytes_on_a_kept_connection_are_not_read_as_a_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duewheel.targets.http.target.IDLE_SECONDS", 3_600)
    async with far_side() as side, target() as http:
        await post(http, side.url())
        side.writers[0].write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
        await until(lambda: side.open_connections == 0)
        assert (await post(http, side.url())).note == "ok"
    assert side.connections == 2


@in_loop
async def test_idle_connections_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duewheel.targets.http.target.IDLE_SECONDS", 0.05)
    async with far_side() as side, target() as http:
        await asyncio.gather(*(post(http, side.url()) for _ in range(3)))
        await until(lambda: side.open_connections == 0)


@in_loop
async def test_a_connection_that_aged_in_a_frozen_process_is_not_reused() -> None:
    """As in a process that Lambda has frozen and thawed: only the time of day moved on."""
    clock = ManualClock()
    async with far_side() as side, target(clock=clock) as http:
        await post(http, side.url())
        clock.advance_ms(round(IDLE_SECONDS * 1000))
        await post(http, side.url())
        assert side.connections == 1

        clock.advance_ms(round(IDLE_SECONDS * 1000) + 1)
        await post(http, side.url())
    assert side.connections == 2


@in_loop
async def test_the_number_of_calls_in_flight_is_bounded() -> None:
    async with far_side() as side, target(calls_in_flight_max=3) as http:
        side.gate = asyncio.Event()
        calls = [asyncio.create_task(post(http, side.url())) for _ in range(9)]
        await until(lambda: side.waiting == 3)
        assert http.calls_in_flight == 9
        assert side.connections == 3
        side.gate.set()
        outcomes = await asyncio.gather(*calls)
        assert {outcome.verdict for outcome in outcomes} == {Verdict.DELIVERED}
        assert http.calls_in_flight == 0
    assert side.connections == 3


@in_loop
async def test_kept_connections_to_many_hosts_stay_within_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duewheel.targets.http.target.IDLE_SECONDS", 3_600)
    async with (
        far_side() as first,
        far_side() as second,
        far_side() as third,
        target(calls_in_flight_max=2) as http,
    ):
        for side in (first, second, third):
            await post(http, side.url())
        await until(lambda: first.open_connections == 0)
        assert (second.open_connections, third.open_connections) == (1, 1)
