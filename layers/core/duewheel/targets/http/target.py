"""Deliver by HTTP: one call, one outcome.

Every behaviour of the receiver or the network gives an `Outcome` within the timeout. The host is
resolved for each call. The connection goes to a checked address, or is one that an earlier call
opened to such an address. Redirects are answers and are not followed.

Connections are kept shortly for the next call to the same origin: less than the 5 s after which
common servers close an idle connection, so that a request seldom uses one that is being closed. A
request that is lost this way is not repeated here, since it may have been processed; it is a failed
attempt.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Collection, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.callbacks.egress import allowed_networks
from duewheel.rules.callbacks.outcome import Outcome, Verdict, note_from, outcome_of_answer
from duewheel.rules.callbacks.payload_encoding import secrets_sent
from duewheel.rules.callbacks.secret_headers import without_secrets
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.callbacks.url import CallbackUrl, parse_callback_url
from duewheel.targets.http.connection import (
    BODY_START_BYTES,
    REPLY_BYTES_MAX,
    HttpConnection,
    Reply,
    ReplyFailed,
    request_bytes,
)
from duewheel.targets.http.resolver import RefusedAddress, Resolver
from duewheel.targets.time_out import time_out

IDLE_SECONDS = 4.0

Origin = tuple[str, str, int]  # scheme, host, port
CONNECT_SECONDS_MAX = 3.0
_ADDRESSES_TRIED_MAX = 2  # each with half of the time: long enough for a second SYN


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


class ConnectFailed(Exception):
    """No connection to any of the addresses; the message says why."""


class HttpTarget:
    """Belongs to one event loop."""

    def __init__(
        self,
        *,
        clock: Clock,
        allowed_private_cidrs: tuple[str, ...],
        calls_in_flight_max: int = 128,
    ) -> None:
        self.calls_in_flight = 0  # including those that wait for a place
        self._clock = clock
        self._resolver = Resolver(allowed_networks(allowed_private_cidrs))
        self._places = asyncio.Semaphore(calls_in_flight_max)
        self._kept = KeptConnections(calls_in_flight_max, clock)

    async def call(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Outcome:
        reply = await self.reply(callback, headers, body, timeout_seconds, BODY_START_BYTES)
        return reply if isinstance(reply, Outcome) else self.outcome_of(reply)

    def outcome_of(self, reply: Reply) -> Outcome:
        now_ms = self._clock.now_ms()
        return outcome_of_answer(reply.status_code, reply.headers, reply.body_start, now_ms)

    async def reply(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
        body_bytes: int = REPLY_BYTES_MAX,
    ) -> Reply | Outcome:
        """The reply without the callback's secrets, or the outcome of a call without a reply.
        `body_bytes`: of its body, that are read."""
        try:
            url = parse_callback_url(callback.url)
            request = request_bytes(url, callback, headers, body)
        except ValueError as error:
            return Outcome(Verdict.STOP, note_from(f"cannot be sent: {error}"))
        self.calls_in_flight += 1
        try:
            async with time_out(timeout_seconds), self._places:
                addresses = await self._addresses(url)
                reply = await self._exchange(url, addresses, request, body_bytes)
        except RefusedAddress:
            note = "refused-address: the host leads where callbacks may not go"
            return Outcome(Verdict.STOP, note)
        except TimeoutError:
            return Outcome(Verdict.RETRY, f"no whole reply within {timeout_seconds:g} s")
        except (ConnectFailed, ReplyFailed) as failure:
            return Outcome(Verdict.RETRY, note_from(str(failure)))
        finally:
            self.calls_in_flight -= 1
        body_start = without_secrets(reply.body_start, secrets_sent(callback, headers))
        return replace(reply, body_start=body_start)

    async def close(self) -> None:
        self._kept.close()

    async def _addresses(self, url: CallbackUrl) -> tuple[str, ...]:
        try:
            return await self._resolver.addresses_of(url.host)
        except OSError as error:
            raise ConnectFailed(f"the host does not resolve: {_reason(error)}") from error

    async def _exchange(
        self, url: CallbackUrl, addresses: tuple[str, ...], request: bytes, body_bytes: int
    ) -> Reply:
        origin = (url.scheme, url.host, url.port)
        connection = self._kept.take(origin, addresses) or await self._connect(url, addresses)
        try:
            return await connection.exchange(request, body_bytes)
        finally:
            if connection.is_sound:
                self._kept.keep(origin, connection)
            else:
                connection.abort()

    async def _connect(self, url: CallbackUrl, addresses: tuple[str, ...]) -> HttpConnection:
        try:
            address, connected = await _connected(addresses[:_ADDRESSES_TRIED_MAX], url.port)
            is_tls = url.scheme == "https"
            # The handshake may use the whole timeout: many at once take a small Lambda long.
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(address),
                sock=connected,
                ssl=self._tls if is_tls else None,
                server_hostname=url.host if is_tls else None,
            )
        except OSError as error:
            raise ConnectFailed(f"no connection: {_reason(error)}") from error
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context


async def _connected(addresses: tuple[str, ...], port: int) -> tuple[str, socket.socket]:
    """To the first that answers; the addresses are literal, so nothing is resolved here."""
    failure: OSError = OSError("the host has no address")
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        attempt = socket.socket(family, socket.SOCK_STREAM)
        attempt.setblocking(False)
        try:
            async with time_out(CONNECT_SECONDS_MAX / len(addresses)):
                await asyncio.get_running_loop().sock_connect(attempt, (address, port))
        except OSError as error:  # a timeout is one, too
            attempt.close()
            failure = error
        except BaseException:
            attempt.close()
            raise
        else:
            return address, attempt
    raise failure


def _reason(error: OSError) -> str:
    """Without the address, which callers must not see."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or 'failed'}"
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or type(error).__name__
    return os.strerror(error.errno)
