"""A receiver of callbacks in a process of its own: it answers every request with 200, at once, and
says how many there were."""

import asyncio
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def serve(pipe: Connection, answered: "Synchronized[int]") -> None:
    """Says its port, and serves until it is ended."""
    asyncio.run(_serve(pipe, answered))


async def _serve(pipe: Connection, answered: "Synchronized[int]") -> None:
    server = await asyncio.start_server(partial(_answer, answered), "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


async def _answer(
    answered: "Synchronized[int]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(_length(head))
            answered.value += 1
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
