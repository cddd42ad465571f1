"""HTTP/1.1 over one connection to one checked address: one request and its reply at a time.

No value of a header can end its line: a header that is not plain is refused here again. The parser
of replies is llhttp (httptools). This module adds bounds: it parses at most REPLY_BYTES_MAX of a
reply, and keeps a part of its body. A connection in a doubtful state is never used again.
"""

import asyncio
import re
import select
from collections.abc import Mapping, Sequence
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from duewheel import __version__
from duewheel.rules.callbacks.requests import is_of_the_delivery
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.callbacks.url import CallbackUrl

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TEXT = "text/plain; charset=utf-8"
_VALUE = re.compile(r"[\t\x20-\x7e]*")
REPLY_BYTES_MAX = 65_536
BODY_START_BYTES = 256


def request_bytes(
    url: CallbackUrl, callback: HttpCallback, service_headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """Headers of the callback that the delivery sets itself are left out. One name may have several
    lines. Raises ValueError if the request cannot be sent."""
    if callback.method == "GET":
        body = None
    usual = {"host": url.authority, "user-agent": f"duewheel/{__version__}", "accept": "*/*"}
    if body is not None:
        usual["content-type"] = _TEXT if callback.is_raw else "application/json"
    decided = {name.lower(): value for name, value in service_headers.items()}
    decided["accept-encoding"] = "identity"
    if callback.method != "GET":
        decided["content-length"] = str(len(body or b""))
    own = [(name.lower(), value) for name, value in callback.headers]
    own = [header for header in own if not is_of_the_delivery(header[0])]
    named = {*decided, *(name for name, _ in own)}
    headers = [header for header in usual.items() if header[0] not in named]
    headers += [*own, *decided.items()]
    _check([callback.method, *(name for name, _ in headers)], headers)
    lines = [f"{callback.method} {url.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + (body or b"")


def _check(tokens: Sequence[str], headers: Sequence[tuple[str, str]]) -> None:
    """All texts are checked together; one by one only for the message."""
    if not all(tokens) or not _TOKEN.fullmatch("".join(tokens)):
        wrong = next(text for text in tokens if not _TOKEN.fullmatch(text))
        raise ValueError(f"{wrong!r} is no method or header name")
    if not _VALUE.fullmatch("".join([value for _, value in headers])):
        wrong = next(name for name, value in headers if not _VALUE.fullmatch(value))
        raise ValueError(f"the header {wrong} has a value that is not plain ASCII")


class ReplyFailed(Exception):
    """No whole reply came; the message says why."""


class Reply(Struct, frozen=True):
    status_code: int
    headers: dict[str, str]  # names in lower case
    body_start: bytes
    is_whole: bool = True  # whether `body_start` is all of the body


class ReplyReader:
    def __init__(self, body_bytes: int = BODY_START_BYTES) -> None:
        self._body_bytes = body_bytes
        self.leaves_connection_usable = False
        self._received_bytes = 0
        self._is_whole = False
        self._is_cut = False
        self._start_reply()
        self._parser = HttpResponseParser(self)

    def feed(self, data: bytes) -> Reply | None:
        """The reply once it is whole, or long enough to be judged; raises ReplyFailed."""
        room = REPLY_BYTES_MAX - self._received_bytes
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data[:room])
        except HttpParserUpgrade:
            raise ReplyFailed("the reply switches to another protocol") from None
        except HttpParserError as error:
            if not self._is_whole:
                raise ReplyFailed(f"the reply is malformed: {error}") from error
            self.leaves_connection_usable = False  # the bytes after it are malformed
        if self._is_whole:
            return self._reply()
        if len(data) < room:
            return None
        if not self._has_head:
            raise ReplyFailed(f"the reply's head is longer than {REPLY_BYTES_MAX:,} bytes")
        return self._reply()

    def end(self) -> Reply:
        """The connection is closed: the reply, if that is how it ends; raises ReplyFailed."""
        if self._has_head and self._ends_with_connection:
            return self._reply()
        if self._has_head:
            raise ReplyFailed(f"the connection closed within the reply (status {self._status})")
        raise ReplyFailed("the connection closed before a reply")

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self._is_whole:
            self.leaves_connection_usable = False  # more than one reply

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # trailers are no headers
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if not self._is_whole:
            self._status = self._parser.get_status_code()
            self._has_head = self._status >= 200

    def on_body(self, body: bytes) -> None:
        if self._is_whole:
            return
        room = self._body_bytes - len(self._body_start)
        if len(body) > room:
            self._is_cut = True
        if room > 0:
            self._body_start += body[:room]

    def on_message_complete(self) -> None:
        if self._is_whole:
            return
        if not self._has_head:
            self._start_reply()  # that was an interim one
            return
        self._is_whole = True
        self.leaves_connection_usable = self._parser.should_keep_alive()

    def _start_reply(self) -> None:
        self._has_head = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body_start = b""

    @property
    def _ends_with_connection(self) -> bool:
        coding = self._headers.get("transfer-encoding", "").strip().lower()
        return "content-length" not in self._headers and not coding.endswith("chunked")

    def _reply(self) -> Reply:
        is_whole = not self._is_cut and (self._is_whole or self._ends_with_connection)
        return Reply(self._status, self._headers, self._body_start, is_whole)


class HttpConnection(asyncio.Protocol):
    def __init__(self, address: str) -> None:
        self.address = address
        self.is_sound = True  # between two exchanges, with nothing unsent or unread
        self._transport: asyncio.Transport
        self._reader: ReplyReader
        self._reply: asyncio.Future[Reply] | None = None

    async def exchange(self, request: bytes, body_bytes: int = BODY_START_BYTES) -> Reply:
        """Raises ReplyFailed. `body_bytes`: of the reply's body, that are kept. Only a connection
        that is sound afterwards may be used again."""
        self.is_sound = False
        if self._transport.is_closing():
            raise ReplyFailed("the connection closed before the request was sent")
        self._reader = ReplyReader(body_bytes)
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            reply = await self._reply
        finally:
            self._reply = None
        self.is_sound = (
            self._reader.leaves_connection_usable
            and not self._transport.is_closing()
            and self._transport.get_write_buffer_size() == 0
        )
        return reply

    def has_something_to_read(self) -> bool:
        """Read from the socket: an event loop that was frozen has not noticed a closed
        connection."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def abort(self) -> None:
        self.is_sound = False
        self._transport.abort()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._reply is None or self._reply.done():
            self.abort()  # unexpected data
            return
        try:
            reply = self._reader.feed(data)
        except ReplyFailed as failure:
            self._reply.set_exception(failure)
        else:
            if reply is not None:
                self._reply.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_sound = False
        if self._reply is None or self._reply.done():
            return
        try:
            self._reply.set_result(self._reader.end())
        except ReplyFailed as failure:
            self._reply.set_exception(failure)
