"""Connections kept for the next call to the same origin.

Kept shortly: less than the 5 s after which common servers close an idle connection, so that
a request seldom meets one that is being closed. A request lost that way is not repeated
here, for it may have been processed; it counts as a failed attempt.
"""

import asyncio
from collections.abc import Collection

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.targets.http.connection import HttpConnection

IDLE_SECONDS = 4.0

Origin = tuple[str, str, int]  # scheme, host, port


class _Kept(Struct, frozen=True):
    origin: Origin
    connection: HttpConnection
    idle_since: float  # by the event loop
    idle_since_ms: int


class KeptConnections:
    def __init__(self, count_max: int, clock: Clock) -> None:
        self._clock = clock
        self._count_max = count_max
        self._kept: list[_Kept] = []  # in the order in which they became idle
        self._timer: asyncio.TimerHandle | None = None

    def take(self, origin: Origin, addresses: Collection[str]) -> HttpConnection | None:
        """The one used last, if it is still open and leads to one of `addresses`."""
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        oldest_ms = self._clock.now_ms() - IDLE_SECONDS * 1000
        for position in range(len(self._kept) - 1, -1, -1):
            kept = self._kept[position]
            if kept.idle_since < oldest or kept.idle_since_ms < oldest_ms:
                break
            if kept.origin != origin or kept.connection.address not in addresses:
                continue
            del self._kept[position]
            if kept.connection.is_sound and not kept.connection.has_something_to_read():
                return kept.connection
            kept.connection.abort()
        return None

    def keep(self, origin: Origin, connection: HttpConnection) -> None:
        if len(self._kept) >= self._count_max:
            self._kept.pop(0).connection.abort()
        loop = asyncio.get_running_loop()
        self._kept.append(_Kept(origin, connection, loop.time(), self._clock.now_ms()))
        if self._timer is None:
            self._timer = loop.call_later(IDLE_SECONDS, self._drop_idle)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._kept:
            self._kept.pop().connection.abort()

    def _drop_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._kept and self._kept[0].idle_since + IDLE_SECONDS <= loop.time():
            self._kept.pop(0).connection.abort()
        if self._kept:
            self._timer = loop.call_at(self._kept[0].idle_since + IDLE_SECONDS, self._drop_idle)
