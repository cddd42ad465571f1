"""A name server on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from struct import pack

import pytest

from duewheel.targets.http import resolver

A, CNAME, AAAA = 1, 5, 28
NO_SUCH_NAME, SERVER_FAILED = 3, 2

Answer = Callable[[str, bytes], list[bytes]]  # of a name and the query: the datagrams


def reply(query: bytes, *records: tuple[int, bytes], code: int = 0) -> bytes:
    question = query[12 : query.index(b"\0", 12) + 5]
    head = query[:2] + pack("!5H", 0x8180 | code, 1, len(records), 0, 0)
    pointer = b"\xc0\x0c"
    bodies = [pointer + pack("!2HIH", kind, 1, 60, len(body)) + body for kind, body in records]
    return head + question + b"".join(bodies)


def address(text: str) -> tuple[int, bytes]:
    packed = ip_address(text).packed
    return (A if len(packed) == 4 else AAAA), packed


def asked_for(query: bytes) -> tuple[str, int]:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += query[at] + 1
    return ".".join(labels), int.from_bytes(query[at + 1 : at + 3])


class NameServer(asyncio.DatagramProtocol):
    def __init__(self, answer: Answer) -> None:
        self.asked: list[str] = []
        self._answer = answer

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        name, _ = asked_for(data)
        self.asked.append(name)
        for datagram in self._answer(name, data):
            self._transport.sendto(datagram, sender)


def well(name: str, query: bytes) -> list[bytes]:
    """Names below `.hangs` have no answer, all others are at 127.0.0.1."""
    if name.endswith(".hangs"):
        return []
    return [reply(query, *([address("127.0.0.1")] if asked_for(query)[1] == A else []))]


@asynccontextmanager
async def name_servers(
    monkeypatch: pytest.MonkeyPatch, *answers: Answer
) -> AsyncIterator[list[NameServer]]:
    servers = [NameServer(answer) for answer in answers or (well,)]
    transports = []
    loop = asyncio.get_running_loop()
    for server in servers:
        made = await loop.create_datagram_endpoint(lambda one=server: one, ("127.0.0.1", 0))  # type: ignore[misc]
        transports.append(made[0])
    places = tuple(one.get_extra_info("sockname") for one in transports)
    monkeypatch.setattr(resolver, "name_servers", lambda: places)
    try:
        yield servers
    finally:
        for transport in transports:
            transport.close()
