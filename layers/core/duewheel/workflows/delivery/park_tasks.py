"""Park tasks that fall due while their business or flow key is paused, and release them when it no
longer is.

To park, the parked item is written first, then the home. A run that crashes in between has parked
nothing: the entries are still named, and their page is run again.

To release, in the order in which they fell due, the entry is put first; then its home names the
entry and is no longer parked; then the parked item is deleted. If a run crashes in between it
leaves an entry that no home names, or a parked item that the next release recognises as done. The
parking record is deleted only when no task is parked and no process can still have the pause in its
cache.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.log import logger
from duewheel.metrics import PARKED, counts
from duewheel.rules.businesses.rate_limit import US_PER_MS, RateLimit
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery import parked_tasks as rules
from duewheel.rules.delivery.parked_tasks import Fate, ParkedItem
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import PARKED_SLOTS
from duewheel.rules.wheel.queue_messages import ReleaseMessage
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.businesses.parking_state import ParkingRecords
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.delivery.parked_items import ParkedStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.tries import Outcome, Tries, changed_or_logged, tried
from duewheel.workflows.wheel.send_messages import MessageSender

WRITERS = 16
BLOCK = 100
PARTS_APART_SECONDS = 1
RESERVE_MS = 10_000  # what the last block takes before the invocation ends, with time to spare


class Park(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    parked: ParkedStore
    writers: ThreadPoolExecutor

    def __call__(self, tasks: Sequence[Task], *, by_key: bool = False) -> Tries[Task]:
        """`by_key`: their flow key is paused, not their business."""
        return Tries(tasks, partial(self._once, by_key=by_key))

    def _once(self, tasks: Sequence[Task], *, by_key: bool) -> list[Outcome]:
        now_ms = self.clock.now_ms()
        parked = [lifecycle.parked(one, now_ms, one.flow_key if by_key else None) for one in tasks]
        self.parked.put(parked)
        return fan_out(self.writers, tried(self._mark), list(zip(tasks, parked, strict=True)))

    def _mark(self, change: tuple[Task, Task]) -> bool:
        is_parked = changed_or_logged(self.tasks, *change)
        counts.add(PARKED, is_parked)
        return is_parked


class Seen(Struct, frozen=True):
    """How far a release got. `by_parts`: there is more than one is to release. `empty_ms`: when
    there was nothing in the slots, if so."""

    unpaused_ms: int | None = None
    goes_on: bool = False
    by_parts: bool = False
    empty_ms: int | None = None


class Release(Struct, frozen=True, kw_only=True):
    clock: Clock
    records: ParkingRecords
    businesses: BusinessStore
    parked: ParkedStore
    reschedule: Reschedule
    turns: RateLimitStore
    message_sender: MessageSender
    retry_throttled: RetryThrottled
    lease_ms: int

    def __call__(self, message: ReleaseMessage, me: str, deadline_ms: int) -> None:
        """One run at a time, or one for each slot. Two at once would only waste turns."""
        if message.part is not None:
            self._release_part(message, message.part, me, deadline_ms)
            return
        parking = self.records.take(message.scope, me, self.clock.now_ms(), self.lease_ms)
        if parking is None:
            return
        seen = self._work_off(message, deadline_ms)
        if seen.empty_ms is not None and rules.is_over(parking, seen.empty_ms, self._parkers_gone):
            self.records.forget(parking, me)
            return
        known_ms = parking.unpaused_ms if seen.unpaused_ms else None
        self.records.give_back(parking, me, known_ms or seen.unpaused_ms)
        # If both links refuse, the sweeper sends it.
        if seen.by_parts:
            parts = [replace(message, part=part) for part in range(PARKED_SLOTS)]
            self.message_sender.send(parts, _delay_seconds)
        elif seen.goes_on:
            self.message_sender.send([message])

    def _release_part(self, message: ReleaseMessage, part: int, me: str, deadline_ms: int) -> None:
        """Release one slot. This shows nothing about the other slots, so it ends no parking."""
        now_ms = self.clock.now_ms()
        if self.records.take(message.scope, me, now_ms, self.lease_ms, part) is None:
            return
        seen = self._work_off(message, deadline_ms)
        self.records.give_back_part(message.scope, part, me)
        if seen.goes_on:
            self.message_sender.send([message])

    @property
    def _parkers_gone(self) -> int:
        """How long after a pause a notifier may still park: one that has just read it keeps it
        for so long, and then works for no longer than a lease."""
        return KEPT_MS + self.lease_ms

    def _work_off(self, message: ReleaseMessage, deadline_ms: int) -> Seen:
        part = message.part
        after: str | None = None
        unpaused_ms: int | None = None
        line_ms = 0
        blocks = 0
        while True:
            business = self._unpaused(message)
            if business is None:
                return Seen()
            unpaused_ms = unpaused_ms or self.clock.now_ms()
            if self.clock.now_ms() > deadline_ms - RESERVE_MS:
                return Seen(unpaused_ms, goes_on=True)
            # With a limit, places in its line are given to one after the other.
            line = _line_of(business, message)
            if part is None and blocks >= rules.BLOCKS_IN_LINE and line is None:
                return Seen(unpaused_ms, by_parts=True)
            read_ms = self.clock.now_ms()
            block = self.parked.block(message.scope, after, BLOCK, part)
            if block.is_empty:
                return Seen(unpaused_ms, empty_ms=read_ms if after is None else None)
            # A repeat recognises the tasks that an earlier try has released.
            release = partial(self._release, block.items, message, line, line_ms)
            line_ms = self.retry_throttled.on_this_thread(release, deadline_ms)
            if block.after is None:
                return Seen(unpaused_ms)
            after, blocks = block.after, blocks + 1

    def _unpaused(self, message: ReleaseMessage) -> Business | None:
        """The business; None while it or the flow key is paused, or if its record is unreadable."""
        try:
            business = self.businesses.read_whole(message.biz_type)
        except UnreadableItem:
            return None  # the read has reported it
        is_paused = business.paused or business.pauses(message.flow_key)
        return None if is_paused else business

    def _release(
        self,
        items: Sequence[ParkedItem],
        message: ReleaseMessage,
        line: tuple[str, RateLimit] | None,
        line_ms: int,
    ) -> int:
        """`line_ms` is where the line ends of those that need no turns; returns where it does
        with these behind it."""
        homes = self.parked.homes(items)
        fates = {
            item: rules.fate_of(item, homes[item.home]) for item in items if item.home in homes
        }
        releases: dict[ParkedItem, Task] = {}
        for item, fate in fates.items():
            task = homes[item.home]
            if fate is Fate.RELEASE and task is not None:
                releases[item] = task
        changes, line_ms = self._changes(list(releases.values()), line, line_ms, message.part)
        named = self.reschedule.each(changes)
        done = {
            before.home for (before, _), is_named in zip(changes, named, strict=True) if is_named
        }
        over = [item for item, fate in fates.items() if fate is Fate.DROP]
        over += [item for item in releases if item.home in done]
        self.parked.delete(over)
        logger.info(
            "released",
            action="released",
            biz_type=message.biz_type,
            flow_key=message.flow_key,
            count=len(done),
            dropped=len(over) - len(done),
        )
        return line_ms

    def _changes(
        self,
        tasks: Sequence[Task],
        line: tuple[str, RateLimit] | None,
        line_ms: int,
        part: int | None,
    ) -> tuple[list[rules.Release], int]:
        """The places are so far ahead that each entry falls due on time."""
        now_ms = self.clock.now_ms()
        due = [task for task in tasks if rules.is_called_on_release(task, now_ms)]
        others = [task for task in tasks if not rules.is_called_on_release(task, now_ms)]
        changes = rules.as_they_are(others, now_ms)
        from_ms = max(
            line_ms, self.reschedule.entry_writer.placement().first_timely_ms() + _behind_ms(part)
        )
        if line is None or not due:
            changes += rules.in_line(due, from_ms, now_ms, part)
            return changes, from_ms + rules.line_length_ms(len(due), part)
        places = self.turns.line_up(*line, len(due), from_ms * US_PER_MS)
        return [*changes, *rules.at_their_places(due, places, now_ms)], line_ms


def _line_of(business: Business, message: ReleaseMessage) -> tuple[str, RateLimit] | None:
    """Where the tasks line up: for turns of their flow key, or else of their business."""
    key_rate = business.key_rate(message.flow_key)
    if key_rate is not None:
        return message.scope, key_rate
    return None if business.call_rate is None else (business.biz_type, business.call_rate)


def _behind_ms(part: int | None) -> int:
    """Parts get places behind those that were released in line."""
    return 0 if part is None else rules.BLOCKS_IN_LINE * BLOCK * rules.APART_MS


def _delay_seconds(message: ReleaseMessage) -> int:
    """So far apart that one batch never has two of them, which would share one notifier's
    processor."""
    return (message.part or 0) * PARTS_APART_SECONDS
