"""Sweep, as workflows/sweep/run_sweep.py does: a run a minute, second by second, which resends lost
pages, and takes those apart that were begun too often.

It reads one second after the other on one processor, which limits its speed.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from bench.cloud.assumed import (
    REQUEST_CPU_MS,
    SWEEP_CPU_MS,
    SWEEPER_TIMEOUT_MS,
    TASK_UNITS_READ,
    Knobs,
)
from bench.cloud.functions import Processor
from bench.cloud.links import DirectLink, Queue
from bench.cloud.loop import Loop, Story
from bench.cloud.scheduler import Scheduler
from bench.cloud.table import GivenUp, Table
from bench.cloud.wheel_state import Entry, WheelState
from duewheel.rules.delivery.page_lease import TRIES_MAX, PageLease
from duewheel.rules.sweep import horizon
from duewheel.rules.wheel.addresses import SHARDS_MAX, first_page, next_page
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.rules.wheel.timing import RUN_EVERY_SECONDS
from duewheel.workflows.sweep.run_sweep import RESERVE_MS

_EACH_MS = RUN_EVERY_SECONDS * 1000
_RESEND_AFTER_MS = 60_000


@dataclass
class Sweeper:
    loop: Loop
    knobs: Knobs
    table: Table
    link: Queue | DirectLink
    state: WheelState
    scheduler: Scheduler
    position: int
    notes: horizon.Notes = ()
    takes_all_as_done: bool = False  # to measure its speed alone
    resent: int = 0
    rescued: int = 0  # tasks of pages that were taken apart
    open: set[int] = field(default_factory=set)

    def each_minute(self) -> Story[None]:
        while True:
            began_ms = self.loop.now_ms
            with suppress(GivenUp):  # the next run continues where this one stopped
                yield from self._run(began_ms + SWEEPER_TIMEOUT_MS - RESERVE_MS)
            # One run sweeps; another that begins meanwhile ends at once.
            while began_ms <= self.loop.now_ms:
                began_ms += _EACH_MS
            yield began_ms

    def _run(self, until_ms: float) -> Story[None]:
        now_ms, lag_ms = int(self.loop.now_ms), self.knobs.sweep_lag_ms
        dispatched = self.scheduler.dispatched
        self.notes = horizon.noted(self.notes, dispatched, now_ms, lag_ms)
        bound = horizon.sweepable_second(self.notes, now_ms, lag_ms)
        processor = Processor(self.knobs.sweeper_mb)
        for second in sorted(self.open):
            yield from self._look(second, processor)
        while bound is not None and self.position < bound and self.loop.now_ms < until_ms:
            self.position += 1
            yield from self._look(self.position, processor)

    def _look(self, second: int, processor: Processor) -> Story[None]:
        """Unfinished pages are open, and checked again in the next run."""
        unfinished: list[PageLease] = []
        is_read = True
        for shard in range(self.state.shards.get(second, 1)):
            entries = len(self.state.slices.get((second, shard), ()))
            yield processor.done_ms(self.loop.now_ms, REQUEST_CPU_MS + SWEEP_CPU_MS * entries)
            units = max(0.5, entries * TASK_UNITS_READ / 2)
            try:
                yield from self.table.read(self.state.slot(second, shard), units)
            except GivenUp:  # a slice that fails is read again in the next run; the others go on
                is_read = False
                continue
            unfinished += self._unfinished(second, shard)
        self.open.discard(second)
        if unfinished or not is_read:
            self.open.add(second)
            yield from self._send_again(unfinished, processor)

    def _unfinished(self, second: int, shard: int) -> Iterator[PageLease]:
        page = first_page()
        if self.takes_all_as_done or not self.state.is_occupied(second, shard):
            return
        while True:
            lease = self.state.leases.get(
                (second, shard, page), PageLease(second, shard, page=page)
            )
            entries, goes_on = self.state.page(second, shard, page, self.knobs.page_size)
            if not (lease.done or all(entry.is_settled for entry in entries)):
                yield lease
                return  # this page announces the pages behind it
            if not goes_on:
                return
            page = next_page(page)

    def _send_again(self, unfinished: list[PageLease], processor: Processor) -> Story[None]:
        """Resends pages that no run holds, each at most once a minute."""
        now_ms = int(self.loop.now_ms)
        for lease in unfinished:
            if lease.until_ms >= now_ms or lease.resent_ms > now_ms - _RESEND_AFTER_MS:
                continue
            key = lease.second, lease.shard, lease.page
            if lease.tries >= TRIES_MAX:
                yield from self._take_apart(lease, processor)
                continue
            self.state.leases[key] = replace(lease, resent_ms=now_ms)
            self.resent += 1
            shards = SHARDS_MAX if lease.shard == 0 else None
            yield from self.link.send([PageMessage(*key, shards=shards)])

    def _take_apart(self, lease: PageLease, processor: Processor) -> Story[None]:
        """Closes the page, and gives its unsettled tasks entries of their own."""
        slot = self.state.slot(lease.second, lease.shard)
        yield from self.table.write_surely(slot)
        key = lease.second, lease.shard, lease.page
        self.state.leases[key] = replace(lease, done=True)
        entries, goes_on = self.state.page(*key, self.knobs.page_size)
        for entry in entries:
            if not entry.is_settled:
                self.rescued += 1
                yield processor.done_ms(self.loop.now_ms, 2 * REQUEST_CPU_MS)
                self.loop.start(self._rescue(entry, slot, lease.shard))
        if goes_on:
            page = PageMessage(lease.second, lease.shard, page=next_page(lease.page))
            yield from self.link.send([page])

    def _rescue(self, entry: Entry, slot: str, shard: int) -> Story[None]:
        for _ in range(2):  # the entry, and the home that names it
            yield from self.table.write_surely(slot)
        yield from self.link.send([self.state.rescue(entry, int(self.loop.now_ms), shard)])
