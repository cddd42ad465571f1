"""Route tasks of slow businesses to the slow lane, by id, before the page waits for anything.

What a page routes is recorded in its lease first. A page that is begun again sends the recorded
tasks again and calls all others itself. The slow lane calls what it gets, whatever is known of the
business by then.
"""

from collections.abc import Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.delivery.page_lease import PageLease, still_ours
from duewheel.rules.tasks.lifecycle import Decision, decide
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address, direct_page, is_slow_page, slow_page
from duewheel.rules.wheel.queue_messages import DirectMessage, Lane, PageMessage
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.workflows.wheel.send_messages import MessageSender

Owed = Sequence[tuple[Address, Task | None]]


class SlowLane(Struct, frozen=True, kw_only=True):
    clock: Clock
    known: BusinessCache
    pages: PageLeaseStore
    message_sender: MessageSender
    page_lease_ms: int

    def of_page(self, lease: PageLease, owed: Owed) -> PageLease:
        """Send the slow tasks of a page; returns the lease with what was sent."""
        if is_slow_page(lease.page):
            return lease
        if not lease.slow and (slow := self._slow_ones(owed)):
            lease = still_ours(self.pages.record_slow(lease, _places(slow)))
        self._send(lease)
        return lease

    def of_direct(self, message: DirectMessage, owed: Owed) -> set[Address]:
        """Send slow tasks of direct messages; returns those sent. They have no lease, so each shard
        gets one."""
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
        """Tasks of slow businesses that would be called now. Tasks to be dropped, parked, planned
        or placed later cost no call and stay."""
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
        """No run waits for this message: if both channels refuse it, the sweep finds its tasks."""
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
