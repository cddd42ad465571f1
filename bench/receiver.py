"""A receiver of callbacks in a process of its own: it answers every request with 200, at once."""

import asyncio
from multiprocessing.connection import Connection

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def serve(pipe: Connection) -> None:
    """Says its port, and serves until it is ended."""
    asyncio.run(_serve(pipe))


async def _serve(pipe: Connection) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(_length(head))
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
