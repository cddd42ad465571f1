"""A semaphore whose slots go to those that wait by their order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count

Waiter = tuple[int, int, asyncio.Future[None]]


class PrioritySemaphore:
    """Of those that wait, the one with the smallest order gets the next slot, and of equal ones the
    one that came first. A slot that is released while some wait goes to one of them, so a newcomer
    cannot take it."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: list[Waiter] = []
        self._came = count()

    async def acquire(self, order: int) -> None:
        if self._free:
            self._free -= 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (order, next(self._came), slot))
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():  # it got the slot, and cannot use it
                self.release()
            raise

    def release(self) -> None:
        while self._waiting:
            _, _, slot = heappop(self._waiting)
            if not slot.done():
                slot.set_result(None)
                return
        self._free += 1

    @asynccontextmanager
    async def slot(self, order: int) -> AsyncIterator[None]:
        await self.acquire(order)
        try:
            yield
        finally:
            self.release()
