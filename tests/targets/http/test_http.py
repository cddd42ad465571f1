"""The requests of the HTTP target, and the outcomes of replies and failures."""

import asyncio
import socket
import time
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel import __version__
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import SentTask
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.callbacks.url import parse_callback_url
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at
from duewheel.targets.by_type import Targets
from duewheel.targets.http.connection import REPLY_BYTES_MAX, request_bytes
from tests.targets.far_side import (
    CLOSE,
    HANG,
    LONG_SECONDS,
    OK,
    SHORT_SECONDS,
    FarSide,
    Received,
    far_side,
    in_loop,
    post,
    target,
    until,
)


@in_loop
async def test_a_call_sends_method_target_headers_and_body() -> None:
    async with far_side() as side, target() as http:
        callback = HttpCallback(side.url("/a?b=c"), "PUT", (("X-Team", "billing"),))
        outcome = await http.call(callback, {"webhook-id": "t1"}, b'{"n":1.0}', LONG_SECONDS)
    assert outcome == Outcome(Verdict.DELIVERED, "ok", status_code=200)
    (request,) = side.received
    assert request.line == "PUT /a?b=c HTTP/1.1"
    assert request.body == b'{"n":1.0}'
    assert request.headers == {
        "host": f"127.0.0.1:{side.port}",
        "user-agent": f"duewheel/{__version__}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": "9",
        "x-team": "billing",
        "webhook-id": "t1",
    }


def test_a_header_of_several_values_is_sent_as_several_lines() -> None:
    url = parse_callback_url("http://receiver.example/")
    headers = (("X-Team", "billing"), ("accept", "text/plain"), ("x-team", "orders"))
    lines = request_bytes(url, HttpCallback("", "GET", headers), {}, None).decode().split("\r\n")
    assert [line for line in lines if line.startswith(("x-team", "accept:"))] == [
        "x-team: billing",
        "accept: text/plain",
        "x-team: orders",
    ]


def test_stored_headers_that_resemble_the_services_own_are_not_sent() -> None:
    """CGI and WSGI do not distinguish hyphens and underscores."""
    url = parse_callback_url("http://receiver.example/")
    names = ("webhook_id", "Webhook.Signature", "DUEWHEEL_ATTEMPT", "transfer_encoding", "x_team")
    callback = HttpCallback("", "GET", tuple((name, "forged") for name in names))
    sent = request_bytes(url, callback, {"webhook-id": "t1"}, None).decode()
    assert [line for line in sent.split("\r\n") if "forged" in line] == ["x_team: forged"]


@in_loop
async def test_the_services_headers_win_over_the_callbacks_in_any_case() -> None:
    async with far_side() as side, target() as http:
        callback = HttpCallback(
            side.url(),
            headers=(
                ("Webhook-Id", "forged"),
                ("Host", "other.example"),
                ("Content-Length", "7"),
                ("Accept-Encoding", "gzip"),
                ("Content-Type", "text/plain"),
                ("User-Agent", "mine"),
            ),
        )
        await http.call(callback, {"webhook-id": "t1"}, b"abc", LONG_SECONDS)
    headers = side.received[0].headers
    assert headers["webhook-id"] == "t1"
    assert headers["host"] == f"127.0.0.1:{side.port}"
    assert headers["content-length"] == "3"
    assert headers["accept-encoding"] == "identity"
    assert headers["content-type"] == "text/plain"
    assert headers["user-agent"] == "mine"


@in_loop
async def test_a_get_has_no_body_and_other_methods_have_one_of_known_length() -> None:
    async with far_side() as side, target() as http:
        await http.call(HttpCallback(side.url(), "GET"), {}, b"{}", LONG_SECONDS)
        await http.call(HttpCallback(side.url(), "DELETE"), {}, b"{}", LONG_SECONDS)
        await http.call(HttpCallback(side.url(), "POST"), {}, None, LONG_SECONDS)
    get, delete, post_ = side.received
    assert "content-length" not in get.headers
    assert "content-type" not in get.headers
    assert (delete.body, delete.headers["content-length"]) == (b"{}", "2")
    assert (post_.body, post_.headers["content-length"]) == (b"", "0")
    assert "content-type" not in post_.headers


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("POST", "x", "a\r\nevil: 1"),
        ("POST", "x", "a\nevil: 1"),
        ("POST", "x", "a\x00"),
        ("POST", "x", "é"),
        ("POST", "x\r\nevil", "1"),
        ("POST", "x:y", "1"),
        ("POST", "", "1"),
        ("POST / HTTP/1.1\r\nevil: 1\r\n", "x", "1"),
    ],
)
@in_loop
async def test_no_header_can_be_smuggled_in(method: str, name: str, value: str) -> None:
    async with far_side() as side, target() as http:
        theirs = HttpCallback(side.url(), method, ((name, value),))
        assert (await http.call(theirs, {}, b"", LONG_SECONDS)).verdict is Verdict.STOP
        if method == "POST":
            ours = await http.call(HttpCallback(side.url()), {name: value}, b"", LONG_SECONDS)
            assert ours.verdict is Verdict.STOP
    assert side.connections == 0


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "http://a/\r\nx: y"])
@in_loop
async def test_an_invalid_url_stops(url: str) -> None:
    async with target() as http:
        outcome = await post(http, url)
    assert outcome.verdict is Verdict.STOP
    assert outcome.note.startswith("cannot be sent: the URL")


@in_loop
async def test_an_ipv6_host_is_called_and_named_in_brackets() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    async with far_side(host="::1") as side, target() as http:
        outcome = await post(http, side.url(host="[::1]"))
    assert outcome.verdict is Verdict.DELIVERED
    assert side.received[0].headers["host"] == f"[::1]:{side.port}"


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n0\r\nz: 9\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabcd",
        b"HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nabcd",
        b"HTTP/1.1 200\r\ncontent-length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nupgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 4\r\n\r\nabcd",
    ],
)
@in_loop
async def test_a_reply_is_read_in_every_framing(reply: bytes) -> None:
    async with far_side(reply) as side, target() as http:
        assert await post(http, side.url()) == Outcome(Verdict.DELIVERED, "abcd", status_code=200)


@in_loop
async def test_a_reply_may_arrive_byte_by_byte() -> None:
    class Drip(FarSide):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._request(reader, 1)
            for byte in b"HTTP/1.1 503 No\r\nretry-after: 7\r\ncontent-length: 3\r\n\r\nnot":
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0)
            writer.close()

    side = Drip()
    server = await asyncio.start_server(side.serve, "127.0.0.1", 0)
    side.port = server.sockets[0].getsockname()[1]
    async with target() as http:
        assert await post(http, side.url()) == Outcome(
            Verdict.RETRY, "not", status_code=503, retry_after_seconds=7.0
        )
    server.close()


@in_loop
async def test_a_reply_without_a_body_leaves_the_connection_usable() -> None:
    async with far_side(b"HTTP/1.1 204 No Content\r\n\r\n") as side, target() as http:
        for _ in range(3):
            assert await post(http, side.url()) == Outcome(Verdict.DELIVERED, "", status_code=204)
    assert side.connections == 1


@in_loop
async def test_a_redirect_is_not_followed() -> None:
    async with far_side() as elsewhere:
        reply = f"HTTP/1.1 307 Go\r\nlocation: {elsewhere.url()}\r\ncontent-length: 0\r\n\r\n"
        async with far_side(reply.encode()) as side, target() as http:
            outcome = await post(http, side.url())
    assert (outcome.verdict, outcome.status_code) == (Verdict.STOP, 307)
    assert elsewhere.connections == 0


@in_loop
async def test_the_stop_header_and_retry_after_reach_the_outcome() -> None:
    answers = {
        "/stop": b"HTTP/1.1 500 No\r\nDuewheel-Stop: true\r\ncontent-length: 0\r\n\r\n",
        "/later": b"HTTP/1.1 429 Slow\r\nRetry-After: 30\r\ncontent-length: 0\r\n\r\n",
    }
    by_path = far_side(lambda request: answers[request.line.split()[1]])
    async with by_path as side, target() as http:
        assert (await post(http, side.url("/stop"))).verdict is Verdict.STOP
        assert (await post(http, side.url("/later"))).retry_after_seconds == 30


@in_loop
async def test_a_trailer_is_not_read_as_a_header() -> None:
    reply = (
        b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n"
        b"0\r\nretry-after: 9\r\nduewheel-stop: true\r\n\r\n"
    )
    async with far_side(reply) as side, target() as http:
        assert await post(http, side.url()) == Outcome(Verdict.RETRY, "", status_code=503)


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the reply is malformed"),
        (b"\x16\x03\x01\x02\x00", "the reply is malformed"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "the reply is malformed"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "the reply is malformed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx", "malformed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "malformed"),
        (b"HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * REPLY_BYTES_MAX + b"\r\n\r\n", "head is longer"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 4_000, "head is longer"),
    ],
)
@in_loop
async def test_an_invalid_reply_is_tried_again_and_its_connection_dropped(
    reply: bytes, note: str
) -> None:
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url())
        assert outcome.verdict is Verdict.RETRY
        assert note in outcome.note
        assert outcome.note.isprintable()
        await until(lambda: side.open_connections == 0)


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (CLOSE, "the connection closed before a reply"),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\nab",
            "within the reply",
        ),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n9\r\nab",
            "within the reply (status 200)",
        ),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n", "closed before a reply"),
    ],
)
@in_loop
async def test_an_incomplete_reply_is_tried_again(reply: bytes, note: str) -> None:
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url())
    assert outcome.verdict is Verdict.RETRY
    assert note in outcome.note


@pytest.mark.parametrize(
    "head", [b"content-length: 99999999", b"transfer-encoding: chunked", b"x: y"]
)
@in_loop
async def test_the_outcome_of_an_endless_reply_follows_from_its_status(head: bytes) -> None:
    chunk = b"1000\r\n" + b"z" * 4_096 + b"\r\n"
    reply = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + chunk * 40
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url())
        assert (outcome.verdict, outcome.status_code) == (Verdict.DELIVERED, 200)
        assert len(outcome.note) <= 128
        await until(lambda: side.open_connections == 0)


@pytest.mark.parametrize(
    "reply", [HANG, b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"]
)
@in_loop
async def test_a_reply_that_does_not_end_times_out_and_drops_its_connection(
    reply: bytes | None,
) -> None:
    async with far_side(reply) as side, target() as http:
        outcome = await post(http, side.url(), seconds=SHORT_SECONDS)
        assert outcome == Outcome(Verdict.RETRY, "no whole reply within 0.15 s")
        assert http.calls_in_flight == 0
        await until(lambda: side.open_connections == 0)


@in_loop
async def test_a_refused_connection_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with target() as http:
        outcome = await post(http, f"http://127.0.0.1:{port}/")
    assert outcome == Outcome(Verdict.RETRY, "no connection: Connection refused")


@in_loop
async def test_the_connect_timeout_is_shorter_than_the_total(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("duewheel.targets.http.target.CONNECT_SECONDS_MAX", SHORT_SECONDS)
    async with target() as http:
        monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", never)
        outcome = await post(http, "http://127.0.0.1:9/")
    assert outcome == Outcome(Verdict.RETRY, "no connection: timed out")


@in_loop
async def test_a_reply_that_has_come_counts_when_the_loop_is_late_for_the_timeout() -> None:
    def answer(_: Received) -> bytes:
        time.sleep(2 * SHORT_SECONDS)  # the loop of the caller, too
        return OK

    async with far_side(answer) as side, target() as http:
        outcome = await post(http, side.url(), seconds=SHORT_SECONDS)
    assert outcome.verdict is Verdict.DELIVERED


@in_loop
async def test_a_connection_that_is_there_counts_when_the_loop_is_late_for_its_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duewheel.targets.http.target.CONNECT_SECONDS_MAX", SHORT_SECONDS)
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def slowly(attempt: socket.socket, address: Any) -> None:
        """As to a host that is not this one: the socket says later that it is connected."""
        await connect(attempt, address)
        here, there = socket.socketpair()

        def come() -> None:
            time.sleep(2 * SHORT_SECONDS)
            there.send(b".")

        with here, there:
            here.setblocking(False)
            loop.call_soon(come)
            await loop.sock_recv(here, 1)

    monkeypatch.setattr(loop, "sock_connect", slowly)
    async with far_side() as side, target() as http:
        outcome = await post(http, side.url())
    assert outcome.verdict is Verdict.DELIVERED


@in_loop
async def test_a_cancelled_call_stays_cancelled_and_drops_its_connection() -> None:
    async with far_side(HANG) as side, target() as http:
        call = asyncio.create_task(post(http, side.url()))
        await until(lambda: len(side.received) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert http.calls_in_flight == 0
        await until(lambda: side.open_connections == 0)


# Whole replies


def replied(body: bytes, head: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body


@in_loop
async def test_the_body_of_a_reply_is_read_as_a_whole() -> None:
    body = b"x" * 60_000
    async with far_side(replied(body)) as side, target() as http:
        reply = await http.reply(HttpCallback(side.url()), {}, b"{}", LONG_SECONDS)
    assert not isinstance(reply, Outcome)
    assert (reply.body_start, reply.is_whole) == (body, True)


@in_loop
async def test_a_longer_body_of_a_reply_is_known_to_be_cut_off() -> None:
    async with far_side(replied(b"x" * REPLY_BYTES_MAX)) as side, target() as http:
        reply = await http.reply(HttpCallback(side.url()), {}, b"{}", LONG_SECONDS)
        short = await http.call(HttpCallback(side.url()), {}, b"{}", LONG_SECONDS)
    assert not isinstance(reply, Outcome)
    assert not reply.is_whole
    assert short.verdict is Verdict.DELIVERED


@in_loop
async def test_a_reply_that_ends_with_its_connection_is_whole() -> None:
    answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}"
    async with far_side(answer) as side, target() as http:
        reply = await http.reply(HttpCallback(side.url()), {}, b"{}", LONG_SECONDS)
    assert not isinstance(reply, Outcome)
    assert (reply.body_start, reply.is_whole) == (b"{}", True)


@in_loop
async def test_an_answer_is_read_whole_and_without_the_secrets_of_the_call() -> None:
    secret, body = "0123456789", b"<0123456789>" + b"x" * 3_000
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nx-echo: got {secret}\r\n\r\n"
    async with far_side(head.encode() + body) as side, target() as http:
        callback = HttpCallback(side.url(), headers=(("authorization", f"Bearer {secret}"),))
        targets = Targets(http, {}, lambda: b"seal")
        call = targets.call(callback, TASK, 0, LONG_SECONDS, wants_answer=True)
        outcome = await call
        without = await targets.call(callback, TASK, 0, LONG_SECONDS)
    assert without == replace(outcome, answer=None)
    answer = outcome.answer
    assert answer is not None
    assert (answer.body, answer.is_whole) == (b"<(secret)>" + b"x" * 3_000, True)
    assert answer.headers["x-echo"] == "got (secret)"


@in_loop
async def test_an_answer_is_read_without_the_completion_token() -> None:
    token = SentTask.of(TASK, b"seal").completion_token
    body = f"you sent {token}"
    head = f"HTTP/1.1 202 OK\r\ncontent-length: {len(body)}\r\nx-echo: {token}\r\n\r\n"
    async with far_side(f"{head}{body}".encode()) as side, target() as http:
        call = Targets(http, {}, lambda: b"seal").call
        outcome = await call(HttpCallback(side.url()), TASK, 0, LONG_SECONDS, wants_answer=True)
    assert outcome.answer is not None
    assert outcome.answer.body == b"you sent (secret)"
    assert outcome.answer.headers["x-echo"] == "(secret)"
    assert str(token) not in outcome.note


@in_loop
async def test_a_call_without_a_reply_has_no_answer() -> None:
    async with far_side(CLOSE) as side, target() as http:
        callback = HttpCallback(side.url())
        outcome = await Targets(http, {}, lambda: b"seal").call(
            callback, TASK, 0, LONG_SECONDS, wants_answer=True
        )
    assert (outcome.verdict, outcome.answer) == (Verdict.RETRY, None)


TASK = Task.at(address_at(0, bytes(TOKEN_BYTES)), "orders", 0, 0)
