"""One HTTP/1.1 reply, read from bytes as they come, without touching a socket.

The parser is llhttp (httptools); this adds the bound: whatever the far side sends, no more
than REPLY_BYTES_MAX of it is looked at and BODY_START_BYTES of its body kept.
"""

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

REPLY_BYTES_MAX = 65_536
BODY_START_BYTES = 256


class ReplyFailed(Exception):
    """No whole reply came; the message says why."""


class Reply(Struct, frozen=True):
    status_code: int
    headers: dict[str, str]  # names in lower case
    body_start: bytes


class ReplyReader:
    def __init__(self) -> None:
        self.leaves_connection_usable = False
        self._received_bytes = 0
        self._is_whole = False
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
            self.leaves_connection_usable = False  # what came after it is malformed
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
        room = BODY_START_BYTES - len(self._body_start)
        if room > 0 and not self._is_whole:
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
        return Reply(self._status, self._headers, self._body_start)
