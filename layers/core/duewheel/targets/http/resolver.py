"""Resolve names to addresses that may be called.

The connection uses the addresses returned here and is not resolved again, so an answer that changes
between check and connection changes nothing. One forbidden address among several refuses the name:
the far side decides which of them comes first.

Name servers are asked in the event loop by UDP: for A records and, if there are none, for AAAA
records. A name is looked up as it is written, without a search list. A look-up costs nothing but a
socket, and ends with its call: names that hang, however many, delay only their own calls. The
functions of the operating system would hold a thread for each, until its name servers give up.
"""

import asyncio
import secrets
import socket
from collections.abc import Iterator, Sequence
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from struct import error as TooShort
from struct import pack, unpack_from
from weakref import WeakValueDictionary

from duewheel.rules.callbacks.egress import IpNetwork, is_reachable
from duewheel.targets.time_out import time_out

CACHE_SECONDS = 5.0
FAILURE_SECONDS = 0.5  # for the calls that wait for the look-up
_HOSTS_CACHED_MAX = 1_000
TRIES_SECONDS = (1.0, 2.0, 4.0)  # each try asks all servers, one after the other
_SERVERS_MAX = 3
_ADDRESSES_MAX = 64
_FAMILIES = {1: socket.AF_INET, 28: socket.AF_INET6}  # A, AAAA
_ANSWER_BYTES_MAX = 1_232  # by EDNS: it comes in one packet; of a longer answer the beginning
_NO_SUCH_NAME = 3

Server = tuple[str, int]


class RefusedAddress(Exception):
    """The host is, or leads to, an address that callbacks may not reach."""


_Found = tuple[str, ...] | OSError | RefusedAddress


class Resolver:
    def __init__(self, allowed: Sequence[IpNetwork]) -> None:
        self._allowed = allowed
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._cache: dict[str, tuple[float, _Found]] = {}

    async def addresses_of(self, host: str) -> tuple[str, ...]:
        """The checked addresses of a host. Raises RefusedAddress; OSError if the name does not
        resolve."""
        if _is_literal(host):
            return self._checked((host,))
        found = self._known(host) or await self._looked_up(host)
        if isinstance(found, Exception):
            raise type(found)(*found.args)
        return found

    async def _looked_up(self, host: str) -> _Found:
        lock = self._locks.setdefault(host, asyncio.Lock())
        async with lock:  # one look-up serves all calls that wait for it
            if (known := self._known(host)) is not None:
                return known
            kept_seconds = CACHE_SECONDS
            try:
                found: _Found = self._checked(await look_up(host))
            except (OSError, RefusedAddress) as failure:
                found = failure.with_traceback(None)
                kept_seconds = min(CACHE_SECONDS, FAILURE_SECONDS)
            if len(self._cache) >= _HOSTS_CACHED_MAX:
                self._cache.clear()
            self._cache[host] = (asyncio.get_running_loop().time() + kept_seconds, found)
            return found

    def _known(self, host: str) -> _Found | None:
        expires, found = self._cache.get(host, (0.0, ()))
        return found if asyncio.get_running_loop().time() < expires else None

    def _checked(self, addresses: tuple[str, ...]) -> tuple[str, ...]:
        if not all(is_reachable(address, self._allowed) for address in addresses):
            raise RefusedAddress
        return addresses


async def look_up(host: str) -> tuple[str, ...]:
    """Raises OSError if the name does not resolve."""
    name = host.rstrip(".").lower()
    if name in (local := local_names()):
        return local[name]
    for kind in _FAMILIES:
        if found := await _records(name, kind):
            return tuple(dict.fromkeys(found))
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def _records(name: str, kind: int) -> list[str]:
    query = _query(name, kind)
    for seconds in TRIES_SECONDS:
        for server in name_servers():
            try:
                async with time_out(seconds):
                    answer = await _asked(server, query)
            except OSError:  # a timeout is one, too
                continue
            if (found := _addresses_in(answer, kind)) is not None:
                return found
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


class _Answer(asyncio.DatagramProtocol):
    """The first datagram that answers the question, from a socket that takes those of the server
    alone. Its port and the number of the query are random, against forged answers."""

    def __init__(self, query: bytes) -> None:
        self.begins = query[:2]
        self.question = _question(query).lower()
        self.whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, _: object) -> None:
        is_its_own = data[:2] == self.begins and _question(data).lower() == self.question
        if is_its_own and not self.whole.done():
            self.whole.set_result(data)

    def error_received(self, error: Exception) -> None:
        if not self.whole.done():
            self.whole.set_exception(error)


async def _asked(server: Server, query: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    transport, answer = await loop.create_datagram_endpoint(
        lambda: _Answer(query), remote_addr=server
    )
    try:
        transport.sendto(query)
        return await answer.whole
    finally:
        transport.close()


def _query(name: str, kind: int) -> bytes:
    """Raises OSError for a name that no name server can have."""
    labels = [label.encode("ascii") for label in name.split(".")]
    if len(name) > 253 or not all(0 < len(label) < 64 for label in labels):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    head = pack("!6H", secrets.randbelow(1 << 16), 0x0100, 1, 0, 0, 1)  # recursion is desired
    encoded = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    edns = pack("!BHHIH", 0, 41, _ANSWER_BYTES_MAX, 0, 0)
    return head + encoded + pack("!2H", kind, 1) + edns


def _question(message: bytes) -> bytes:
    """As written: a question has no compressed name."""
    end = message.find(b"\0", 12)
    return message[12 : end + 5]


def _addresses_in(answer: bytes, kind: int) -> list[str] | None:
    """None if the server has failed, or its answer is malformed."""
    try:
        flags, _, count = unpack_from("!3H", answer, 2)
        code = flags & 0xF
        if code == _NO_SUCH_NAME:
            return []
        if code or not flags & 0x8000:
            return None
        family = _FAMILIES[kind]
        bodies = _bodies(answer, 12 + len(_question(answer)), min(count, _ADDRESSES_MAX))
        return [socket.inet_ntop(family, body) for record, body in bodies if record == kind]
    except (TooShort, IndexError, ValueError):
        return None


def _bodies(answer: bytes, at: int, count: int) -> Iterator[tuple[int, bytes]]:
    """Of so many records: those of an alias stand before those of what it leads to."""
    for _ in range(count):
        while (length := answer[at]) and length < 0xC0:
            at += length + 1
        at += 2 if length else 1  # a compressed name ends with a pointer
        record, length = unpack_from("!H6xH", answer, at)
        at += 10
        yield record, answer[at : at + length]
        at += length


@cache
def name_servers() -> tuple[Server, ...]:
    lines = [line.split() for line in _lines("/etc/resolv.conf")]
    found = [line[1] for line in lines if len(line) > 1 and line[0] == "nameserver"]
    return tuple((address, 53) for address in found[:_SERVERS_MAX]) or (("127.0.0.1", 53),)


@cache
def local_names() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for address, *names in filter(None, map(str.split, _lines("/etc/hosts"))):
        for name in names:
            found[name.lower()] = (*found.get(name.lower(), ()), address)
    return found


def _lines(path: str) -> list[str]:
    """Without comments."""
    try:
        return [line.partition("#")[0] for line in Path(path).read_text("utf-8").splitlines()]
    except OSError:
        return []


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
