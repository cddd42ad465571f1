"""The slow lane: detect slow calls, publish which businesses hold pages up, and route their tasks.
Tasks of low priority are routed, too, if their page is late: the pages behind it need notifiers.
Their message is delayed.

Tasks are routed by id, before the page waits for anything. What a page routes is recorded in its
lease first. A page that is begun again sends the recorded tasks again, unless its message has the
records of calls, and calls all others itself. The slow lane calls all tasks that it gets, even if
their business is not slow any more.

A published state expires by itself. Calls in the slow lane are measured as well; while they are
slow they renew it. A failed publication fails no page. A business that is alone in the service
stays in the main lane: no other business waits for its calls.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.businesses.lanes import (
    PUBLISH_EVERY_MS,
    SLOW_FOR_MS,
    BusinessLane,
    Pace,
    should_publish,
    with_call,
)
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.delivery.page_lease import PageLease, still_ours
from duewheel.rules.delivery.priority import BACKLOG_MS, Rank, deferred_seconds, rank
from duewheel.rules.tasks.lifecycle import Decision, decide
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address, direct_page, is_slow_page, slow_page
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage
from duewheel.stores.businesses.cache import KNOWN_MAX, BusinessCache
from duewheel.stores.businesses.health import HealthStore, HealthUnavailable
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.sweep.seen_businesses import SeenBusinesses
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.wheel.send_messages import MessageSender

EntryTasks = Sequence[tuple[Address, Task | None]]
PUBLISH_RESERVE_MS = 15_000  # at least so much of the run must be left, since a write may hang
BEAT_SECONDS = 0.05
ON_TIME_SECONDS = 0.1  # between two beats, at most


class SlowLane(Struct, frozen=True, kw_only=True):
    clock: Clock
    known: BusinessCache
    pages: PageLeaseStore
    message_sender: MessageSender
    page_lease_ms: int

    def of_page(self, lease: PageLease, pairs: EntryTasks, *, is_sent: bool = False) -> PageLease:
        """Send the slow tasks of a page; returns the lease with what was sent. `is_sent`: a run
        before has sent those that are recorded, so a message with records of their calls may be
        under way, which another one must not precede."""
        if is_slow_page(lease.page) or (lease.slow and is_sent):
            return lease
        delay_seconds = 0
        if not lease.slow:
            slow, delay_seconds = self._slow_ones(lease.second, pairs)
            if slow:
                lease = still_ours(self.pages.record_slow(lease, _places(slow)))
        self._send(lease, delay_seconds)
        return lease

    def of_direct(self, message: DirectMessage, pairs: EntryTasks) -> set[Address]:
        """Send slow tasks of direct messages; returns those sent. They have no lease, so each shard
        gets one."""
        slow: dict[int, list[Address]] = {}
        entries_passed, delay_seconds = self._slow_ones(message.second, pairs)
        for entry in entries_passed:
            slow.setdefault(entry.shard, []).append(entry)
        passed: set[Address] = set()
        for shard, entries in slow.items():
            page = PageLease(message.second, shard, page=direct_page(message.entries))
            recorded = self.pages.record_direct(
                page, _places(entries), self.clock.now_ms(), self.page_lease_ms
            )
            self._send(recorded, delay_seconds)
            passed.update(entry for entry in entries if entry.place in recorded.slow)
        return passed

    def _slow_ones(self, second: int, pairs: EntryTasks) -> tuple[list[Address], int]:
        """Tasks that would be called now: those of slow businesses and, of a page of this second
        that is late, those of low priority; and the delay of their message, if all are of the
        latter. Tasks to be dropped, parked, planned or placed later cost no call and stay."""
        live = [(entry, task) for entry, task in pairs if task is not None and task.plan is None]
        businesses = self.known.many({task.biz_type for _, task in live})
        now_ms = self.clock.now_ms()
        late_ms = now_ms - second * 1000
        running = {name: one for name, one in businesses.items() if not one.paused}
        slow = {name for name, one in running.items() if one.lane_at(now_ms) is BusinessLane.SLOW}

        def is_low(task: Task) -> bool:
            business = running.get(task.biz_type)
            return business is not None and rank(task, business, now_ms) is Rank.LOW

        passed = [
            (entry, task)
            for entry, task in live
            if (task.biz_type in slow or (late_ms > BACKLOG_MS and is_low(task)))
            and decide(entry, task, now_ms) is Decision.DELIVER
        ]
        are_low = not any(task.biz_type in slow for _, task in passed)
        entries = [entry for entry, _ in passed]
        return entries, deferred_seconds(late_ms) if entries and are_low else 0

    def _send(self, lease: PageLease, delay_seconds: int) -> None:
        """No run waits for this message: if both links refuse it, the sweep finds its tasks."""
        if not lease.slow:
            return
        page = slow_page(lease.page)
        message = PageMessage(lease.second, lease.shard, page=page, places=lease.slow)
        if self.message_sender.send([message], lambda _: delay_seconds):
            logger.error(
                "slow page left to the sweep",
                action="slow-refused",
                second=lease.second,
                page=page,
                count=len(lease.slow),
            )


def _places(entries: Sequence[Address]) -> tuple[str, ...]:
    return tuple(entry.place for entry in entries)


class LoopLag:
    """How long the event loop was late while calls were under way. If a beat is late, a reply may
    have waited for its turn since the beat before, so all of that time counts."""

    def __init__(self) -> None:
        self._calls = 0
        self._seconds = 0.0
        self._beat_at = 0.0
        self._next: asyncio.TimerHandle

    @contextmanager
    def watched(self) -> Iterator[None]:
        if not self._calls:
            self._wait_for_beat()
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._next.cancel()

    def ms(self) -> int:
        """The sum so far."""
        since = asyncio.get_running_loop().time() - self._beat_at
        return round((self._seconds + (since if since > ON_TIME_SECONDS else 0)) * 1000)

    def _beat(self) -> None:
        since = asyncio.get_running_loop().time() - self._beat_at
        if since > ON_TIME_SECONDS:
            self._seconds += since
        self._wait_for_beat()

    def _wait_for_beat(self) -> None:
        loop = asyncio.get_running_loop()
        self._beat_at = loop.time()
        self._next = loop.call_at(self._beat_at + BEAT_SECONDS, self._beat)


class DetectSlowCalls(Struct, frozen=True, kw_only=True):
    """Belongs to one event loop."""

    clock: Clock
    known: BusinessCache
    seen: SeenBusinesses
    health_store: HealthStore
    _lag: LoopLag = field(default_factory=LoopLag)
    _paces: dict[str, Pace] = field(default_factory=dict)
    _tried_ms: dict[str, int] = field(default_factory=dict)  # to publish

    async def timed(self, biz_type: str, call: Awaitable[Outcome]) -> Outcome:
        """Make a call, and note how long its receiver took: what the event loop was late by is
        left out."""
        with self._lag.watched():
            began_ms, lag_before_ms = self.clock.now_ms(), self._lag.ms()
            outcome = await call
            now_ms, lag_ms = self.clock.now_ms(), self._lag.ms() - lag_before_ms
        pace = with_call(self._paces.pop(biz_type, None), now_ms - began_ms - lag_ms, now_ms)
        self._paces[biz_type] = pace  # moves it to the end, as the most recent
        if len(self._paces) > KNOWN_MAX:
            gone = next(iter(self._paces))
            del self._paces[gone]
            self._tried_ms.pop(gone, None)
        return outcome

    async def publish(self, biz_type: str, deadline_ms: int) -> None:
        """If its calls are slow. If the invocation is about to end, leave it to the next call."""
        pace = self._paces.get(biz_type)
        if pace is None or not pace.is_slow:
            return
        now_ms = self.clock.now_ms()
        was_just_tried = now_ms < self._tried_ms.get(biz_type, 0) + PUBLISH_EVERY_MS
        slow_until_ms = self.known.health_of(biz_type).slow_until_ms
        has_time = now_ms < deadline_ms - PUBLISH_RESERVE_MS
        if has_time and not was_just_tried and should_publish(slow_until_ms, now_ms):
            self._tried_ms[biz_type] = now_ms
            await in_thread(self._publish, biz_type, now_ms)

    def _publish(self, biz_type: str, now_ms: int) -> None:
        if self._is_alone(biz_type, now_ms):
            return
        try:
            health = self.health_store.note_slow(biz_type, now_ms + SLOW_FOR_MS)
        except HealthUnavailable as error:
            logger.warning(
                "slow calls not published",
                action="slow-untold",
                biz_type=biz_type,
                error=str(error),
            )
            return
        self.known.put_health(biz_type, health)
        logger.info("calls are slow", action="slow", biz_type=biz_type)

    def _is_alone(self, biz_type: str, now_ms: int) -> bool:
        """The sweep notes a new business minutes after its first task, this process at once."""
        has_met = self.known.has_read_other(biz_type, now_ms - SLOW_FOR_MS)
        return not has_met and not self.seen.has_other(biz_type)
