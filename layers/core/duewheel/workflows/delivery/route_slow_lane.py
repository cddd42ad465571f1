"""Pass the tasks of slow businesses to the slow lane, by id, before anything else is waited for.

What a page passes is recorded in its lease first, and once recorded it stands: a page that is
begun again sends the same again, leaves it alone and calls all the rest itself. What arrives in
the slow lane is called there, whatever is known of its business by then.
"""

from collections.abc import Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.delivery.page_lease import PageLease, still_ours
from duewheel.rules.tasks.entry_decision import Decision, decide
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address, direct_page, is_slow_page, slow_page
from duewheel.rules.wheel.lane import Lane
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.workflows.wheel.send_messages import MessageSender

Owed = Sequence[tuple[Address, Task | None]]


class SlowLane(Struct, frozen=True):
    clock: Clock
    known: BusinessCache
    pages: PageLeaseStore
    message_sender: MessageSender
    page_lease_ms: int

    def of_page(self, lease: PageLease, owed: Owed) -> PageLease:
        """The lease, with what of it belongs to the slow lane, which has been sent there."""
        if is_slow_page(lease.page):
            return lease
        if not lease.slow and (slow := self._slow_ones(owed)):
            lease = still_ours(self.pages.record_slow(lease, _places(slow)))
        self._send(lease)
        return lease

    def of_direct(self, message: DirectMessage, owed: Owed) -> set[Address]:
        """Those that have been sent to the slow lane. A direct message has no lease: what it
        passes on gets one of its own, for each shard."""
        slow: dict[int, list[Address]] = {}
        for entry in self._slow_ones(owed):
            slow.setdefault(entry.shard, []).append(entry)
        passed: set[Address] = set()
        for shard, entries in slow.items():
            page = PageLease(message.second, shard, direct_page(message.entries))
            recorded = self.pages.record_direct(
                page, _places(entries), self.clock.now_ms(), self.page_lease_ms
            )
            self._send(recorded)
            passed.update(entry for entry in entries if entry.place in recorded.slow)
        return passed

    def _slow_ones(self, owed: Owed) -> list[Address]:
        """Those that would be called now, and are slow; what is dropped, parked, planned or placed
        later costs no call, and is seen to where it stands."""
        live = [(entry, task) for entry, task in owed if task is not None and task.plan is None]
        businesses = self.known.many({task.biz_type for _, task in live})
        now_ms = self.clock.now_ms()
        slow = {
            biz_type
            for biz_type, business in businesses.items()
            if business.lane_at(now_ms).lane is Lane.SLOW and not business.paused
        }
        return [
            entry
            for entry, task in live
            if task.biz_type in slow and decide(entry, task, now_ms) is Decision.DELIVER
        ]

    def _send(self, lease: PageLease) -> None:
        """Nobody else waits for this: what neither link takes is found by the sweep."""
        if not lease.slow:
            return
        page = slow_page(lease.page)
        message = PageMessage(lease.second, lease.shard, page, places=lease.slow)
        if self.message_sender.send([message]):
            logger.error(
                "slow page left to the sweep",
                action="slow-refused",
                second=lease.second,
                page=page,
                count=len(lease.slow),
            )


def _places(entries: Sequence[Address]) -> tuple[str, ...]:
    return tuple(entry.place for entry in entries)
