"""One connection to one checked address: a request out, a reply in, one at a time.

A connection whose state is in any doubt is never used again.
"""

import asyncio
import select
from typing import cast

from duewheel.targets.http.reply import Reply, ReplyFailed, ReplyReader


class HttpConnection(asyncio.Protocol):
    def __init__(self, address: str) -> None:
        self.address = address
        self.is_sound = True  # between two exchanges, with nothing unsent or unread
        self._transport: asyncio.Transport
        self._reader: ReplyReader
        self._reply: asyncio.Future[Reply] | None = None

    async def exchange(self, request: bytes) -> Reply:
        """Raises ReplyFailed. Only a connection that is sound afterwards may be used again."""
        self.is_sound = False
        if self._transport.is_closing():
            raise ReplyFailed("the connection closed before the request was sent")
        self._reader = ReplyReader()
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
