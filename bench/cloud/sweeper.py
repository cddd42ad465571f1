"""Sweep, as workflows/sweep/run_sweep.py does: a run a minute, second by second, which resends lost
pages.

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
from bench.cloud.wheel_state import WheelState
from duewheel.rules.delivery.page_lease import PageLease
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
        for shard in range(self.state.shards.get(second, 1)):
            entries = len(self.state.slices.get((second, shard), ()))
            yield processor.done_ms(self.loop.now_ms, REQUEST_CPU_MS + SWEEP_CPU_MS * entries)
            units = max(0.5, entries * TASK_UNITS_READ / 2)
            yield from self.table.read(self.state.slot(second, shard), units)
            unfinished += self._unfinished(second, shard)
        self.open.discard(second)
        if unfinished:
            self.open.add(second)
            yield from self._send_again(unfinished)

    def _unfinished(self, second: int, shard: int) -> Iterator[PageLease]:
        page = first_page()
        if self.takes_all_as_done or not self.state.is_occupied(second, shard):
            return
        while True:
            lease = self.state.leases.get(
                (second, shard, page), PageLease(second, shard, page=page)
            )
            if not lease.done:
                yield lease
                return  # this page announces the pages behind it
            if not self.state.page(second, shard, page, self.knobs.page_size)[1]:
                return
            page = next_page(page)

    def _send_again(self, unfinished: list[PageLease]) -> Story[None]:
        """Resends pages that no run holds, each at most once a minute."""
        now_ms = int(self.loop.now_ms)
        for lease in unfinished:
            if lease.until_ms >= now_ms or lease.resent_ms > now_ms - _RESEND_AFTER_MS:
                continue
            key = lease.second, lease.shard, lease.page
            self.state.leases[key] = replace(lease, resent_ms=now_ms)
            self.resent += 1
            shards = SHARDS_MAX if lease.shard == 0 else None
            yield from self.link.send([PageMessage(*key, shards=shards)])
