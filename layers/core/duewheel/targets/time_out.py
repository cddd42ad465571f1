"""The time-outs of calls. A late event loop finds a reply and the end of its time together: then
the reply counts, since the delay is this process's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LOOKS = 2  # at the network; what has come wakes its call at once


@asynccontextmanager
async def time_out(seconds: float) -> AsyncIterator[None]:
    """Raises TimeoutError if what comes within this time does not end the block."""
    loop = asyncio.get_running_loop()
    ends: asyncio.Handle

    def end(looks: int) -> None:
        nonlocal ends
        if looks:
            ends = loop.call_soon(end, looks - 1)
        else:
            scope.reschedule(loop.time())

    async with asyncio.timeout(None) as scope:
        ends = loop.call_later(seconds, end, _LOOKS)
        try:
            yield
        finally:
            ends.cancel()
