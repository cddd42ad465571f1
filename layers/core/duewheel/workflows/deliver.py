"""Deliver: from a queue message to callbacks made and settled.

A message is done only when every entry it covers was called and settled, was dropped
because its home does not name it, was placed later, or was passed on, to the slow lane or to
another notifier, in a message of its own. Anything else raises, and the message comes back.
"""

import asyncio
from collections.abc import Iterable, Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules import wheel
from duewheel.rules.addresses import (
    Address,
    address_from,
    address_named,
    is_passed_on,
    next_page,
    rest_page,
)
from duewheel.rules.entry_decision import FoundEntry
from duewheel.rules.messages import DirectMessage, Message, PageMessage, ReleaseMessage
from duewheel.rules.page_lease import Finished, Held, PageLease, still_ours
from duewheel.rules.task import Task
from duewheel.stores.pages import PageStore
from duewheel.stores.slices import SliceStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.call_page import CallPage
from duewheel.workflows.hand_over import HandOver
from duewheel.workflows.release import Release
from duewheel.workflows.slow_lane import SlowLane


class Deliver(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    slices: SliceStore
    pages: PageStore
    hand_over: HandOver
    call_page: CallPage
    release: Release
    slow_lane: SlowLane
    lead_ms: int
    page_size: int
    page_lease_ms: int

    async def __call__(self, message: Message, owner: str, deadline_ms: int) -> Held | Finished:
        if isinstance(message, ReleaseMessage):
            await asyncio.to_thread(self.release, message, owner, deadline_ms)
            return Finished()
        opens_ms = wheel.opens_ms(message.second, self.lead_ms)
        if opens_ms - self.clock.now_ms() > wheel.WAIT_SECONDS_MAX * 1000:
            return Held(opens_ms)
        match message:
            case PageMessage():
                return await self._page(message, owner, opens_ms, deadline_ms)
            case DirectMessage():
                return await self._direct(message, opens_ms, deadline_ms)

    async def _page(
        self, message: PageMessage, owner: str, opens_ms: int, deadline_ms: int
    ) -> Held | Finished:
        page = PageLease(message.second, message.shard, message.page, message.after)
        lease = await asyncio.to_thread(
            self.pages.take, page, owner, self.clock.now_ms(), self.page_lease_ms
        )
        if not isinstance(lease, PageLease):
            return lease
        await self.clock.sleep_until_ms(opens_ms)
        if is_passed_on(message.page):
            addresses = [address_from(message.shard, place) for place in message.places]
            entries = await asyncio.to_thread(self.tasks.find, addresses)
        else:
            entries, lease = await self._read_page(lease)
        owed = await self._owed(entry for entry in entries if entry.address.place not in lease.rest)
        lease = await asyncio.to_thread(self.slow_lane.of_page, lease, owed)
        own = [pair for pair in owed if pair[0].place not in lease.slow]
        passed_on = await self.call_page(own, deadline_ms)
        await self._pass_on(lease, passed_on)
        await asyncio.to_thread(self.pages.mark_done, lease)
        return Finished()

    async def _read_page(self, lease: PageLease) -> tuple[list[FoundEntry], PageLease]:
        """Read the page, and send the next one on its way before delivering this one."""
        entries, end = await asyncio.to_thread(
            self.slices.read_page,
            lease.second,
            lease.shard,
            lease.after,
            lease.end,
            self.page_size,
        )
        if end is None:
            return entries, lease
        if lease.end is None:
            lease = still_ours(await asyncio.to_thread(self.pages.record_end, lease, end))
        following = PageMessage(lease.second, lease.shard, next_page(lease.page), after=end)
        await asyncio.to_thread(self.hand_over.send_surely, following)
        return entries, lease

    async def _pass_on(self, lease: PageLease, entries: Sequence[Address]) -> None:
        """Hand the rest to another invocation: recorded first, so that a rerun of this page
        leaves it alone."""
        if entries:
            places = (*lease.rest, *(entry.place for entry in entries))
            lease = still_ours(await asyncio.to_thread(self.pages.record_rest, lease, places))
            logger.info("page passed on", action="pass-on", page=lease.page, count=len(entries))
        if lease.rest:
            rest = PageMessage(lease.second, lease.shard, rest_page(lease.page), places=lease.rest)
            await asyncio.to_thread(self.hand_over.send_surely, rest)

    async def _direct(
        self, message: DirectMessage, opens_ms: int, deadline_ms: int
    ) -> Held | Finished:
        if wheel.is_direct_too_late(message.second, self.clock.now_ms()):
            logger.warning(
                "direct message too late, left to the sweep",
                action="direct-late",
                entries=message.entries,
            )
            return Finished()
        await self.clock.sleep_until_ms(opens_ms)
        entries = await asyncio.to_thread(self.tasks.find, map(address_named, message.entries))
        owed = await self._owed(entries)
        slow = await asyncio.to_thread(self.slow_lane.of_direct, message, owed)
        own = [pair for pair in owed if pair[0] not in slow]
        passed_on = await self.call_page(own, deadline_ms)
        if passed_on:
            rest = DirectMessage(message.second, tuple(entry.name for entry in passed_on))
            await asyncio.to_thread(self.hand_over.send_surely, rest)
        return Finished()

    async def _owed(self, found: Iterable[FoundEntry]) -> list[tuple[Address, Task | None]]:
        """The entries with their tasks, wherever those have their homes."""
        entries = list(found)
        elsewhere = [entry.home for entry in entries if entry.task is None]
        homes = await asyncio.to_thread(self.tasks.get_many, elsewhere) if elsewhere else {}
        return [(entry.address, entry.task or homes.get(entry.home)) for entry in entries]
