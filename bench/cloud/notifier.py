"""Deliver, as workflows/delivery/deliver_message.py does: lease, read, announce the next page,
call, settle.

Leases, backoff and near entries use the service's own rules; leases are in memory.
"""

import heapq
from collections.abc import Iterator, Sequence
from random import Random

from msgspec.structs import replace

from bench import limits
from bench.cloud.assumed import (
    READ_CPU_MS,
    REQUEST_CPU_MS,
    SETTLE_CPU_MS,
    TASK_UNITS_READ,
    Knobs,
)
from bench.cloud.calls import Calls, PageCalls, Record
from bench.cloud.functions import Ended, Environment, Failed
from bench.cloud.links import DirectLink, Queue
from bench.cloud.loop import Loop, Signal, Story
from bench.cloud.table import GivenUp, Table
from bench.cloud.wheel_state import Entry, WheelState
from duewheel.rules.callbacks import retry
from duewheel.rules.delivery.page_lease import (
    HIDDEN_MS,
    TRIES_MAX,
    LeaseHeld,
    PageFinished,
    PageLease,
    needs_done_mark,
)
from duewheel.rules.delivery.priority import BACKLOG_MS, RISES_EVERY_MS, deferred_seconds
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import (
    address_named,
    first_page,
    is_slow_page,
    next_page,
    slow_page,
)
from duewheel.rules.wheel.queue_messages import DirectMessage, Message, PageMessage
from duewheel.stores.dynamodb import WRITES_PER_BATCH, chunks
from duewheel.workflows.delivery.deliver_message import BEGIN_RESERVE_MS
from duewheel.workflows.delivery.hold import FAILED_COMES_AFTER_SECONDS
from duewheel.workflows.delivery.settle_batch import LINGER_SECONDS, WRITES_AT_ONCE


class RunFailed(Exception):
    """The message comes back after this time."""

    def __init__(self, after_ms: float = FAILED_COMES_AFTER_SECONDS * 1000) -> None:
        self.after_ms = after_ms


class Notifier:
    def __init__(
        self,
        loop: Loop,
        random: Random,
        knobs: Knobs,
        table: Table,
        link: Queue | DirectLink,
        state: WheelState,
        record: Record,
        slow_link: Queue | None = None,
    ) -> None:
        """`slow_link`: to the notifiers to which late pages pass tasks of low priority."""
        self._loop = loop
        self._random = random
        self._knobs = knobs
        self._table = table
        self._link = link
        self._slow_link = slow_link
        self._state = state
        self._record = record
        self._calls = Calls(loop, random, knobs, record)

    def handle(self, environment: Environment, messages: Sequence[Message], ended: Ended) -> None:
        """All messages of a run side by side, as in functions/notifier/app.py."""
        failed: list[Failed] = []
        left = len(messages)

        def one_over() -> None:
            nonlocal left
            left -= 1
            if not left:
                ended(failed)

        def deliver(message: Message) -> Story[None]:
            try:
                yield from self._deliver(environment, message)
            except RunFailed as reason:
                failed.append(Failed(message, reason.after_ms))
            except GivenUp:
                failed.append(Failed(message, RunFailed().after_ms))
            one_over()

        # The visibility of the messages is shortened in parallel.
        environment.processor.done_ms(self._loop.now_ms, REQUEST_CPU_MS)
        for message in messages:
            self._loop.start(deliver(message))

    def _deliver(self, environment: Environment, message: Message) -> Story[None]:
        match message:
            case PageMessage():
                yield from self._page(environment, message)
            case DirectMessage():
                yield from self._direct(environment, message)
            case _:
                raise AssertionError("the model knows no other message")

    def _page(self, environment: Environment, message: PageMessage) -> Story[None]:
        second, shard = message.second, message.shard
        slot = self._state.slot(second, shard)
        deadline_ms = self._deadline_ms(environment)
        yield from self._compute(environment, REQUEST_CPU_MS)
        yield from self._table.write_patiently(slot, deadline_ms - BEGIN_RESERVE_MS)
        lease = self._take(message)
        if not isinstance(lease, PageLease):
            if isinstance(lease, LeaseHeld):
                raise RunFailed(lease.until_ms - self._loop.now_ms + 1_000)
            return
        yield max(self._loop.now_ms, timing.opens_ms(second, self._knobs.lead_ms))
        size = self._knobs.page_size
        entries, goes_on = self._state.page(second, shard, message.page, size)
        yield from self._table.read(slot, max(1, len(entries) * TASK_UNITS_READ))
        yield from self._compute(environment, REQUEST_CPU_MS + READ_CPU_MS * len(entries))
        following = list(self._other_shards(message))
        if goes_on:
            yield from self._compute(environment, REQUEST_CPU_MS)
            yield from self._table.write_patiently(slot, deadline_ms - BEGIN_RESERVE_MS)
            following.append(replace(message, page=next_page(message.page), shards=None))
        for batch in chunks(following, int(limits.SQS_BATCH_MESSAGES.value)):
            yield from self._compute(environment, REQUEST_CPU_MS)
            yield from self._link.send(batch)
        entries = yield from self._gives_way(environment, message, entries)
        if self._random.random() < self._knobs.dying_notifiers:
            raise RunFailed(HIDDEN_MS - (self._loop.now_ms - environment.begun_ms))
        owed, failed_before = _owed(entries), sum(entry.attempts for entry in entries)
        unsettled = yield from self._call_and_settle(environment, entries, slot)
        yield from self._pass_on(second, shard, unsettled, slot, deadline_ms)
        failed = sum(entry.attempts for entry in entries) - failed_before
        ended = replace(lease, end="" if goes_on else None)
        delivered = len(owed) - len(unsettled) - failed
        shards = self._state.shards.get(second, 1) if shard == 0 else 1
        if needs_done_mark(ended, len(entries), delivered, shards):
            yield from self._compute(environment, REQUEST_CPU_MS)
            yield from self._table.write_patiently(slot, deadline_ms)
            key = second, shard, message.page
            self._state.leases[key] = replace(self._state.leases[key], done=True)

    def _gives_way(
        self, environment: Environment, message: PageMessage, entries: list[Entry]
    ) -> Story[list[Entry]]:
        """As workflows/delivery/slow_lane.py: returns those that stay."""
        is_late = self._loop.now_ms > message.second * 1000 + BACKLOG_MS
        if self._slow_link is None or not is_late or is_slow_page(message.page):
            return entries
        low = [entry for entry in entries if self._is_low(entry)]
        if not low:
            return entries
        page = slow_page(message.page)
        slot = self._state.slot(message.second, message.shard)
        for _ in range(2):  # the record, and the message
            yield from self._compute(environment, REQUEST_CPU_MS)
        yield from self._table.write_surely(slot)
        self._state.slow[message.second, message.shard, page] = low
        late_ms = int(self._loop.now_ms) - message.second * 1000
        passed = PageMessage(message.second, message.shard, page=page)
        yield from self._slow_link.send([passed], [1000 * deferred_seconds(late_ms)])
        return [entry for entry in entries if not self._is_low(entry)]

    def _is_low(self, entry: Entry) -> bool:
        late_ms = self._loop.now_ms - entry.due_ms
        return entry.below == 2 and late_ms < RISES_EVERY_MS and not entry.is_settled

    def _other_shards(self, message: PageMessage) -> Iterator[PageMessage]:
        """Those of which the sender sends no messages."""
        if message.shard == 0 and message.page == first_page():
            for shard in range(message.shards or 1, self._state.shards.get(message.second, 1)):
                yield PageMessage(message.second, shard)

    def _take(self, message: PageMessage) -> PageLease | LeaseHeld | PageFinished:
        """The condition of stores/delivery/page_leases.py. Each run of the model is an owner."""
        now_ms = int(self._loop.now_ms)
        key = message.second, message.shard, message.page
        seen = self._state.leases.get(
            key, PageLease(message.second, message.shard, page=message.page)
        )
        if seen.done or seen.tries >= TRIES_MAX:
            return PageFinished()
        if seen.until_ms >= now_ms:
            return LeaseHeld(seen.until_ms)
        until_ms = now_ms + self._knobs.page_lease_ms
        self._state.leases[key] = replace(seen, until_ms=until_ms, tries=seen.tries + 1)
        return self._state.leases[key]

    def _direct(self, environment: Environment, message: DirectMessage) -> Story[None]:
        (name,) = message.entries
        if name in self._state.passed_on:
            called, shard = self._state.passed_on.pop(name)
            slot = self._state.slot(message.second, shard)
            unsettled = yield from self._settle(environment, called, slot)
            deadline_ms = self._deadline_ms(environment)
            yield from self._pass_on(message.second, shard, unsettled, slot, deadline_ms)
            return
        if timing.is_direct_too_late(message.second, int(self._loop.now_ms)):
            return
        yield max(self._loop.now_ms, timing.opens_ms(message.second, self._knobs.lead_ms))
        shard = address_named(name).shard
        slot = self._state.slot(message.second, shard)
        yield from self._compute(environment, REQUEST_CPU_MS)
        yield from self._table.read(slot, 2)  # the re-entry and its home
        entries = [self._state.direct[name]]
        unsettled = yield from self._call_and_settle(environment, entries, slot)
        deadline_ms = self._deadline_ms(environment)
        yield from self._pass_on(message.second, shard, unsettled, slot, deadline_ms)

    def _pass_on(
        self, second: int, shard: int, unsettled: list[Entry], slot: str, deadline_ms: float
    ) -> Story[None]:
        """Called and unsettled tasks, as in workflows/delivery/deliver_message.py, of a page or of
        a direct message."""
        for called in chunks(unsettled, WRITES_PER_BATCH):
            yield from self._table.write_patiently(slot, deadline_ms)
            message = self._state.pass_on(second, shard, list(called))
            yield from self._link.send([message])

    def _call_and_settle(
        self, environment: Environment, entries: Sequence[Entry], slot: str
    ) -> Story[list[Entry]]:
        """Returns those that were called and could not be settled."""
        owed = _owed(entries)
        page = self._calls.begin(environment, owed)
        left, unsettled = len(owed), list[Entry]()
        writing, written = 0, Signal()

        def write(batch: Sequence[Entry]) -> Story[None]:
            nonlocal writing
            delivered = self._delivered(environment, batch, slot)
            unsettled.extend((yield from self._settle(environment, delivered, slot)))
            self._calls.settled(environment, len(batch))
            writing -= 1
            self._loop.fire(written)

        while left:
            yield from self._first_ended(page)
            if writing and not (self._is_whole(page) and writing < WRITES_AT_ONCE):
                written = Signal()
                if writing < WRITES_AT_ONCE and len(page.ended) >= WRITES_PER_BATCH:
                    whole_ms = sorted(page.ended)[WRITES_PER_BATCH - 1][0]
                    self._loop.at(whole_ms, self._loop.fire, written)
                yield written
                continue
            batch = yield from self._ended_together(page, is_alone=len(owed) == 1)
            left -= len(batch)
            writing += 1
            self._loop.start(write(batch))
        while writing:
            written = Signal()
            yield written
        return unsettled

    def _first_ended(self, page: PageCalls) -> Story[None]:
        if not page.ended:
            page.begun = Signal()
            yield page.begun
        if page.is_cut:
            raise RunFailed
        yield max(self._loop.now_ms, page.ended[0][0])

    def _is_whole(self, page: PageCalls) -> bool:
        return sum(ended[0] <= self._loop.now_ms for ended in page.ended) >= WRITES_PER_BATCH

    def _ended_together(self, page: PageCalls, *, is_alone: bool) -> Story[list[Entry]]:
        """As workflows/delivery/settle_batch.py collects them."""
        if not self._is_whole(page):
            yield self._loop.now_ms + (not is_alone) * LINGER_SECONDS * 1000
        batch: list[Entry] = []
        while page.ended and page.ended[0][0] <= self._loop.now_ms:
            batch.append(heapq.heappop(page.ended)[2])
            if len(batch) == WRITES_PER_BATCH:
                break
        return batch

    def _delivered(
        self, environment: Environment, batch: Sequence[Entry], slot: str
    ) -> list[Entry]:
        """The rest is tried again."""
        failing = self._knobs.failing_callbacks
        delivered = []
        for entry in batch:
            if self._random.random() < failing:
                self._loop.start(self._try_again(environment, entry, slot))
            else:
                delivered.append(entry)
        return delivered

    def _settle(
        self, environment: Environment, delivered: list[Entry], slot: str
    ) -> Story[list[Entry]]:
        """Returns those that the table throttled."""
        if not delivered:
            return []
        yield from self._compute(environment, REQUEST_CPU_MS + SETTLE_CPU_MS * len(delivered))
        deadline_ms = self._deadline_ms(environment)
        left = yield from self._table.write_batch(slot, len(delivered), deadline_ms)
        settled = delivered[: len(delivered) - left]
        for entry in settled:
            entry.is_settled = True
        self._record.settled += len(settled)
        self._record.settled_ms = max(self._record.settled_ms, self._loop.now_ms)
        return delivered[len(settled) :]

    def _deadline_ms(self, environment: Environment) -> float:
        return environment.begun_ms + self._knobs.notifier_timeout_ms

    def _try_again(self, environment: Environment, entry: Entry, slot: str) -> Story[None]:
        """As workflows/delivery/fail_attempt.py: a new entry, the home, then a message if near."""
        entry.is_settled = True
        entry.attempts += 1
        delay_ms = retry.delay_ms(retry.DEFAULT_RETRY, entry.attempts, self._random.random())
        if delay_ms is None:
            self._record.settled += 1
            return
        now_ms = int(self._loop.now_ms)
        next_ms = now_ms + delay_ms
        lead_ms = self._knobs.lead_ms
        near = timing.is_near(next_ms // 1000, now_ms, lead_ms, 0)
        for _ in range(2):
            yield from self._compute(environment, REQUEST_CPU_MS)
            yield from self._table.write_surely(slot)
        message = self._state.put_again(entry, next_ms, direct=near)
        if message is not None:
            seconds = timing.delay_seconds(next_ms - lead_ms, now_ms)
            yield from self._link.send([message], [seconds * 1000])
            return
        announced = environment.writer.announce(next_ms, now_ms, lead_ms)
        if announced:
            yield from self._link.send(list(announced), list(announced.values()))

    def _compute(self, environment: Environment, cpu_ms: float) -> Story[None]:
        yield environment.processor.done_ms(self._loop.now_ms, cpu_ms)


def _owed(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if not entry.is_settled]
