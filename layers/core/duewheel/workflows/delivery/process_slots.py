"""The call slots of a process, which the calls of all businesses share.

Calls that wait stand in the order of their places. A slot goes to the business of the first one,
and there to the call of the smallest order. So a business may put its own calls into another order,
and delays no other business by that.
"""

import asyncio
from collections import defaultdict
from heapq import heappop, heappush
from itertools import count

Place = tuple[int, int]
Waiter = tuple[int, int, asyncio.Future[None]]


class ProcessSlots:
    """Of equal places and orders the call that came first is served. A slot that is released while
    some wait goes to one of them, so a newcomer cannot take it."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._places: list[tuple[Place, int, str]] = []
        self._waiting: dict[str, list[Waiter]] = defaultdict(list)  # by business
        self._came = count()

    async def acquire(self, biz_type: str, place: Place, order: int) -> None:
        if self._free:
            self._free -= 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        number = next(self._came)
        heappush(self._places, (place, number, biz_type))
        heappush(self._waiting[biz_type], (order, number, slot))
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():  # it got the slot, and cannot use it
                self.release()
            raise

    def release(self) -> None:
        while self._places:
            _, _, biz_type = heappop(self._places)
            waiting = self._waiting[biz_type]
            while waiting:
                _, _, slot = heappop(waiting)
                if not slot.done():
                    slot.set_result(None)
                    return
        self._waiting.clear()
        self._free += 1
