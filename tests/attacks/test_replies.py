"""Receivers with hostile answers: each answer becomes one outcome, in bounded time."""

import asyncio
import base64
import gzip
import html
import json
from collections.abc import Callable
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.outcome import NOTE_BYTES_MAX, Outcome, Verdict, outcome_of_answer
from duewheel.rules.callbacks.retry import RETRY_AFTER_SECONDS_MAX
from duewheel.rules.callbacks.secret_headers import filled
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at
from duewheel.targets.by_type import Targets
from duewheel.targets.http.connection import REPLY_BYTES_MAX
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.targets.far_side import SHORT_SECONDS, far_side, in_loop, post, target, until

BUSY = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n"
HUGE = "9" * 20
NUMBERS = st.sampled_from(["0", "1", "-1", "31", "99", "2000", "9999", "10000", HUGE, "-" + HUGE])
DATES = st.builds(
    "{}, {} {} {} {}:{}:{} {}".format,
    st.sampled_from(["Mon", "", HUGE]),
    NUMBERS,
    st.sampled_from(["Jan", "Dec", "13"]),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.sampled_from(["GMT", "+0000", "-9999", "+" + HUGE, ""]),
)


@given(DATES)
def test_a_retry_after_with_any_date_is_handled(date: str) -> None:
    outcome = outcome_of_answer(503, {"retry-after": date}, b"", NOON_MS)
    seconds = outcome.retry_after_seconds
    assert seconds is None or 0 <= seconds <= RETRY_AFTER_SECONDS_MAX


@pytest.mark.parametrize(
    "reply",
    [
        BUSY + b"retry-after: Mon, 01 Jan 99999999999999999999 00:00:00 GMT\r\n\r\n",
        BUSY + b"retry-after: Mon, 01 Jan 2000 00:00:00 +99999999999999999999\r\n\r\n",
        BUSY + b"retry-after: " + b"9" * 5_000 + b"\r\n\r\n",
        BUSY + b"a:\r\n" * 15_000 + b"\r\n",
        b"HTTP/1.1 999 \xff\xfe\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"x" * 99_999 + b"\r\n",
        b"HTTP/1.1 503 Busy\r\ncontent-length: 18446744073709551615\r\n\r\n" + b"x" * 99_999,
        b"HTTP/1.1 503 Busy\r\ncontent-length: 18446744073709551616\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\ntransfer-encoding: gzip, chunked\r\ncontent-length: 5\r\n\r\nabcde",
    ],
    ids=lambda reply: reply[18:60].decode("latin-1"),
)
@in_loop
async def test_a_hostile_reply_is_a_failed_attempt_and_affects_no_other_call(reply: bytes) -> None:
    async with far_side(reply) as hostile, far_side() as other, target() as http:
        outcome, beside = await asyncio.gather(post(http, hostile.url()), post(http, other.url()))
    assert outcome.verdict is Verdict.RETRY
    assert outcome.note.isprintable()
    assert beside.verdict is Verdict.DELIVERED


@in_loop
async def test_a_reply_that_never_ends_is_stopped_by_the_timeout_of_the_call() -> None:
    """Each byte is in time; the whole reply never is."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nx: ")
        while not writer.is_closing():
            writer.write(b"y")
            await asyncio.sleep(SHORT_SECONDS / 30)
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, target() as http:
        outcome = await post(http, f"http://127.0.0.1:{port}/", seconds=SHORT_SECONDS)
        assert outcome == Outcome(Verdict.RETRY, "no whole reply within 0.15 s")
        await ended.wait()


@in_loop
async def test_a_compressed_reply_is_not_unpacked() -> None:
    """An unpacked reply could be a thousand times as large; its first bytes are recorded
    unchanged."""
    bomb = gzip.compress(b"0" * 50_000_000)
    assert len(bomb) < REPLY_BYTES_MAX
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(bomb)}\r\n\r\n"
    async with far_side(head.encode() + bomb) as side, target() as http:
        outcome = await post(http, side.url())
        await until(lambda: len(side.received) == 1)
    assert side.received[0].headers["accept-encoding"] == "identity"
    assert outcome.verdict is Verdict.DELIVERED
    assert "\\x08" in outcome.note
    assert "0000" not in outcome.note
    assert len(outcome.note) <= NOTE_BYTES_MAX


@in_loop
async def test_a_receiver_that_echoes_a_secret_does_not_reveal_it_to_readers_of_the_task() -> None:
    for secret in ("canary-0123456789", "canary" * 60):  # only the beginning of the second is kept
        body = b"you sent Bearer " + secret.encode()
        answer = b"HTTP/1.1 500 Oops\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        async with far_side(answer) as side, target() as http:
            callback = HttpCallback(side.url(), headers=(("authorization", f"Bearer {secret}"),))
            outcome = await http.call(callback, {}, b"{}", SHORT_SECONDS)
        assert outcome.status_code == 500
        assert secret[:5] not in outcome.note


TASK = Task.at(address_at(0, bytes(TOKEN_BYTES)), "orders", 0, 0)
NAMED = 'canary/0123="45&67?89'
IN_BASE64 = base64.b64encode(f"user:{NAMED}".encode()).decode()
HEADERS = {
    "bare": ("x-api-key", "{{secret:n}}", NAMED),
    "of a scheme": ("authorization", "Bearer {{secret:n}}", NAMED),
    "of an unknown scheme": ("authorization", "Foo {{secret:n}}", NAMED),
    "a part of a cookie": ("cookie", "session={{secret:n}}", NAMED),
    "in a list": ("x-signature", "v=1,s:{{secret:n}}", NAMED),
    "in base64": ("authorization", "Basic {{secret:n}}", IN_BASE64),
    "in base64, of an unknown scheme": ("authorization", "Foo {{secret:n}}", IN_BASE64),
}
REPEATED: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "as JSON": lambda secret: json.dumps({"you sent": secret}),
    "as JSON with slashes escaped": lambda secret: json.dumps(secret).replace("/", "\\/"),
    "as JSON within HTML": lambda secret: json.dumps(secret).replace("&", "\\u0026"),
    "in a URL": lambda secret: quote(secret, safe=""),
    "in a form": lambda secret: urlencode({"q": secret}).lower(),
    "as HTML": lambda secret: f"<p>{html.escape(secret)}</p>",
    "cut off in an escape": lambda secret: quote(secret).partition("3D")[0],
}


@each_case("repeat", REPEATED)
@each_case("sent", HEADERS)
@in_loop
async def test_no_form_in_which_a_receiver_repeats_a_named_secret_is_kept(
    sent: str, repeat: str
) -> None:
    name, value, secret = HEADERS[sent]
    said = REPEATED[repeat](NAMED)
    head = f"HTTP/1.1 500 Oops\r\ncontent-length: {len(said)}\r\nx-echo: {said}\r\n\r\n"
    async with far_side(f"{head}{said}".encode()) as side, target() as http:
        callback = filled(HttpCallback(side.url(), headers=((name, value),)), {"n": secret})
        call = Targets(http, {}, lambda: b"seal").call
        outcome = await call(callback, TASK, 0, SHORT_SECONDS, wants_answer=True)
    assert side.received[0].headers[name] == value.replace("{{secret:n}}", secret)
    assert outcome.status_code == 500
    assert outcome.answer is not None
    kept = str((outcome.note, outcome.answer.body, outcome.answer.headers["x-echo"]))
    assert "canary" not in kept
    assert "(secret)" in kept
