"""Deliver one queue message: read its page, make the callbacks, settle.

A message is done only if each entry it covers was called and settled, was dropped because its home
does not name it, was placed later, or was passed on in a message of its own, to the slow lane or to
another notifier. Anything else raises, and SQS delivers the message again.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import PAGES, counts
from duewheel.rules.delivery.page_lease import (
    LeaseHeld,
    PageFinished,
    PageLease,
    needs_done_mark,
    still_ours,
)
from duewheel.rules.tasks.lifecycle import FoundEntry
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import (
    Address,
    address_from,
    address_named,
    has_rest_page,
    is_of_slice,
    is_passed_on,
    next_page,
    rest_page,
)
from duewheel.rules.wheel.queue_messages import DirectMessage, Message, PageMessage, ReleaseMessage
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.dynamodb import Throttled
from duewheel.stores.sweep.slices import ReadPage, SliceStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.delivery.deliver_entries import DeliverEntries
from duewheel.workflows.delivery.hold import Hold, KeepHold
from duewheel.workflows.delivery.park_tasks import Release
from duewheel.workflows.delivery.settle_batch import Called, Left, NotWritten
from duewheel.workflows.delivery.slow_lane import SlowLane
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.wheel.send_messages import MessageSender, SendRefused

# The time that an invocation must have left to begin a page: for a call, and to settle it.
BEGIN_RESERVE_MS = 20_000
CALLED_CHARACTERS_MAX = 150_000  # a message of SQS holds 1 MiB, and encodes this JSON in JSON again


class Deliver(Struct, frozen=True, kw_only=True):
    """`beside` runs a release in a thread of its own: a release takes most of a run."""

    clock: Clock
    tasks: TaskStore
    slices: SliceStore
    pages: PageLeaseStore
    message_sender: MessageSender
    retry_throttled: RetryThrottled
    keep_hold: KeepHold
    deliver_entries: DeliverEntries
    release: Release
    beside: Callable[[Callable[[], None]], Awaitable[None]]
    slow_lane: SlowLane
    lead_ms: int
    page_size: int
    page_lease_ms: int

    async def __call__(
        self, message: Message, owner: str, deadline_ms: int, hidden: Hold | None = None
    ) -> LeaseHeld | PageFinished:
        """`owner`: of one run and message. `hidden`: keeps the message hidden from other runs."""
        if isinstance(message, ReleaseMessage):
            await self.beside(partial(self.release, message, owner, deadline_ms))
            return PageFinished()
        opens_ms = timing.opens_ms(message.second, self.lead_ms)
        if opens_ms - self.clock.now_ms() > timing.WAIT_SECONDS_MAX * 1000:
            return LeaseHeld(opens_ms)
        match message:
            case PageMessage():
                return await self._page(message, owner, opens_ms, deadline_ms)
            case DirectMessage():
                return await self._direct(message, opens_ms, deadline_ms, hidden)

    async def _page(
        self, message: PageMessage, owner: str, opens_ms: int, deadline_ms: int
    ) -> LeaseHeld | PageFinished:
        page = PageLease(message.second, message.shard, page=message.page, after=message.after)

        def take() -> PageLease | LeaseHeld | PageFinished:
            return self.pages.take(page, owner, self.clock.now_ms(), self.page_lease_ms)

        lease = await self.retry_throttled(take, deadline_ms - BEGIN_RESERVE_MS)
        if not isinstance(lease, PageLease):
            return lease
        keep_hold = self.keep_hold(
            lease.until_ms - self.page_lease_ms,
            lease.until_ms,
            partial(self._renew, lease),
            is_exclusive=is_of_slice(page.page),
        )
        async with keep_hold as hold:
            await self._held_page(message, lease, hold, opens_ms, deadline_ms)
        counts.add(PAGES)
        return PageFinished()

    def _renew(self, lease: PageLease, now_ms: int) -> int | None:
        return self.pages.renew(lease, now_ms, self.page_lease_ms)

    async def _held_page(
        self, message: PageMessage, lease: PageLease, hold: Hold, opens_ms: int, deadline_ms: int
    ) -> None:
        await self.clock.sleep_until_ms(opens_ms)
        if is_passed_on(message.page):
            addresses = [address_from(message.shard, place) for place in message.places]
            entries = await in_thread(self.tasks.find, addresses)
            size, shards = len(addresses), 1
        else:
            page, lease = await self._read_page(message, lease, deadline_ms)
            entries, size, shards = page.entries, page.size, page.shards
        pairs = await self._with_tasks(
            entry for entry in entries if entry.address.place not in lease.rest
        )
        called = self._called(message)
        uncalled = _but(called, pairs)
        of_page = partial(self.slow_lane.of_page, is_sent=bool(message.called))
        lease = await in_thread(of_page, lease, uncalled)
        own = [pair for pair in pairs if pair[0].place not in lease.slow]
        try:
            left = await self.deliver_entries(own, deadline_ms, called, hold)
            lease = await self._pass_on(message, lease, left, deadline_ms)
        except NotWritten as failure:
            if not failure.unsettled:
                raise
            await self._begin_again(message, failure.unsettled, hold)
            return
        if needs_done_mark(lease, size, left.settled, shards):
            await self.retry_throttled(partial(self.pages.mark_done, lease), deadline_ms)

    async def _read_page(
        self, message: PageMessage, lease: PageLease, deadline_ms: int
    ) -> tuple[ReadPage, PageLease]:
        """Read the page, and send the messages of the other shards and of the next page before
        delivering this one."""
        page = await in_thread(
            self.slices.read_page,
            lease.second,
            lease.shard,
            lease.after,
            lease.end,
            self.page_size,
        )
        following = [
            PageMessage(lease.second, shard) for shard in range(message.shards or 1, page.shards)
        ]
        if page.end is not None:
            lease = await self._ended(lease, page.end, deadline_ms)
            next_one = next_page(lease.page)
            following.append(replace(message, page=next_one, after=page.end, shards=None))
        # A message with records comes after a run that sent them.
        if following and not message.called:
            await in_thread(self.message_sender.send_or_raise, *following)
        return page, lease

    async def _ended(self, lease: PageLease, end: str, deadline_ms: int) -> PageLease:
        """Fix where the page ends before the next one is announced."""
        if lease.end is None:
            record_end = partial(self.pages.record_end, lease, end)
            lease = still_ours(
                await self.retry_throttled(record_end, deadline_ms - BEGIN_RESERVE_MS)
            )
        return lease

    async def _pass_on(
        self, message: PageMessage, lease: PageLease, left: Left, deadline_ms: int
    ) -> PageLease:
        """Pass the rest to another invocation. It is recorded first, so that a rerun of this page
        leaves it alone. If the message is lost, its callbacks are repeated. A page that has no rest
        page ends without its rest, which the sweep rescues."""
        entries = left.entries
        if entries and not has_rest_page(lease.page):
            if left.unsettled:
                raise NotWritten(left.unsettled)
            logger.warning(
                "rest of a page left to the sweep",
                action="rest-left",
                second=lease.second,
                shard=lease.shard,
                count=len(entries),
            )
            return lease
        if entries:
            places = (*lease.rest, *(entry.place for entry in entries))
            record_rest = partial(self.pages.record_rest, lease, places)
            try:
                lease = still_ours(await self.retry_throttled(record_rest, deadline_ms))
            except Throttled as throttled:
                raise NotWritten(left.unsettled) from throttled
            logger.info(
                "page passed on",
                action="pass-on",
                second=lease.second,
                shard=lease.shard,
                page=lease.page,
                count=len(entries),
            )
        if lease.rest:
            rest = PageMessage(
                lease.second,
                lease.shard,
                page=rest_page(lease.page),
                places=lease.rest,
                called=self._texts(left.unsettled),
            )
            await in_thread(self.message_sender.send_or_raise, rest)
        return lease

    async def _begin_again(
        self, message: PageMessage, unsettled: Sequence[Task], hold: Hold
    ) -> None:
        """Nothing can be written of the page, and only this run knows which tasks it has called. A
        message in place of this one has their records. It comes when the lease is over, and the
        next run settles them."""
        logger.warning(
            "page begun again with the records of its calls",
            action="begin-again",
            second=message.second,
            shard=message.shard,
            page=message.page,
            count=len(unsettled),
        )
        again = replace(message, called=self._texts(unsettled))
        over_ms = hold.until_ms + 999  # the queue's delay has whole seconds
        delay_seconds = timing.delay_seconds(over_ms, self.clock.now_ms())
        if await in_thread(self.message_sender.send, [again], lambda _: delay_seconds):
            raise SendRefused("the records of a page's calls were not sent")

    async def _direct(
        self, message: DirectMessage, opens_ms: int, deadline_ms: int, hidden: Hold | None
    ) -> LeaseHeld | PageFinished:
        called = self._called(message)
        is_late = timing.is_direct_too_late(message.second, self.clock.now_ms())
        if is_late and not called:
            logger.warning(
                "direct message too late, left to the sweep",
                action="direct-late",
                entries=message.entries,
            )
            return PageFinished()
        await self.clock.sleep_until_ms(opens_ms)
        entries = await in_thread(self.tasks.find, map(address_named, message.entries))
        pairs = await self._with_tasks(entries)
        if is_late:  # but only this run knows what was called
            pairs = [(entry, task) for entry, task in pairs if task and task.home in called]
        slow = await in_thread(self.slow_lane.of_direct, message, _but(called, pairs))
        own = [pair for pair in pairs if pair[0] not in slow]
        try:
            left = await self.deliver_entries(own, deadline_ms, called, hidden)
            entries_left, unsettled = left.entries, left.unsettled
        except NotWritten as failure:
            if not failure.unsettled:
                raise
            entries_left, unsettled = [entry for entry, _ in own], failure.unsettled
        if entries_left:
            names = tuple(entry.name for entry in entries_left)
            rest = replace(message, entries=names, called=self._texts(unsettled))
            await in_thread(self.message_sender.send_or_raise, rest)
        return PageFinished()

    def _called(self, message: PageMessage | DirectMessage) -> Called:
        """Tasks that another run called and could not settle; written by this one, from now on."""
        now_ms = self.clock.now_ms()
        tasks = map(self.tasks.from_text, message.called)
        return {task.home: replace(task, updated_ms=now_ms) for task in tasks}

    def _texts(self, unsettled: Sequence[Task]) -> tuple[str, ...]:
        """As many as fit a message; the callbacks of the others are repeated."""
        texts = [self.tasks.as_text(task) for task in unsettled]
        sizes = accumulate(len(text) for text in texts)
        pairs = zip(texts, sizes, strict=True)
        return tuple(text for text, size in pairs if size <= CALLED_CHARACTERS_MAX)

    async def _with_tasks(self, found: Iterable[FoundEntry]) -> list[tuple[Address, Task | None]]:
        """The entries with their tasks, also those whose homes are elsewhere."""
        entries = list(found)
        elsewhere = [entry.home for entry in entries if entry.task is None]
        homes = await in_thread(self.tasks.get_many, elsewhere) if elsewhere else {}
        return [(entry.address, entry.task or homes.get(entry.home)) for entry in entries]


def _but(
    called: Called, pairs: Sequence[tuple[Address, Task | None]]
) -> list[tuple[Address, Task | None]]:
    return [(entry, task) for entry, task in pairs if task is None or task.home not in called]
