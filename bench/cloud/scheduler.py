"""Dispatch, as workflows/wheel/dispatch.py does: probes, and a message a slice.

A run a minute dispatches ahead, in messages that the queue delays. Asynchronous invocation delays
none: where it is the link, each second is dispatched when it opens, as while the queue refuses.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bench import limits
from bench.cloud.assumed import REQUEST_CPU_MS, Knobs, Link
from bench.cloud.functions import Processor
from bench.cloud.links import DirectLink, Queue
from bench.cloud.loop import Loop, Story
from bench.cloud.table import GivenUp, Table
from bench.cloud.wheel_state import WheelState
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.stores.dynamodb import chunks
from duewheel.workflows.wheel.dispatch import PHASE_MS, STRIDE_SECONDS

_EACH_MS = timing.RUN_EVERY_SECONDS * 1000
_BATCH = int(limits.SQS_BATCH_MESSAGES.value)


@dataclass
class Scheduler:
    loop: Loop
    knobs: Knobs
    table: Table
    link: Queue | DirectLink
    state: WheelState
    dispatched: int  # the last second that has been dispatched

    def lead(self, last_second: int) -> Story[None]:
        """Until this second is dispatched."""
        processor, next_run_ms = Processor(self.knobs.scheduler_mb), self.loop.now_ms
        is_ahead = self.knobs.link is Link.QUEUE
        while self.dispatched < last_second:
            yield from self._run(processor, timing.AHEAD_MS if is_ahead else 0)
            next_run_ms += _EACH_MS
            opens_ms = timing.opens_ms(self.dispatched + 1, self.knobs.lead_ms)
            yield max(self.loop.now_ms, next_run_ms if is_ahead else opens_ms)

    def _run(self, processor: Processor, ahead_ms: int) -> Story[None]:
        now_ms = int(self.loop.now_ms) + ahead_ms
        last = timing.dispatchable_second(now_ms, self.knobs.lead_ms, now_ms)
        while self.dispatched < last:
            seconds = range(self.dispatched + 1, min(last, self.dispatched + STRIDE_SECONDS) + 1)
            probed = yield from self._probe(processor, seconds)
            yield from self._send(processor, probed)

    def _probe(self, processor: Processor, seconds: range) -> Story[dict[PageMessage, int]]:
        """The messages, each with the instant at which it is to arrive."""
        probed: dict[PageMessage, int] = {}
        for second in seconds:
            yield processor.done_ms(self.loop.now_ms, REQUEST_CPU_MS)
            yield from self._read(second)
            is_quick = bool(probed) and self.state.shards.get(second, 1) == 1
            before_ms = self.knobs.wake_ms if is_quick else self.knobs.lead_ms
            wanted_ms = self.state.first_ms(second) - before_ms
            probed |= dict.fromkeys(self._messages(second), wanted_ms)
            self.dispatched = second
        return probed

    def _read(self, second: int) -> Story[None]:
        while True:
            try:
                yield from self.table.read(self.state.slot(second, 0), 0.5)
                return
            except GivenUp:  # the leader continues with the next tick
                continue

    def _send(self, processor: Processor, probed: dict[PageMessage, int]) -> Story[None]:
        """The queue delays by whole seconds, so each message is sent in the tenth of a second in
        which its delay is to end. Without delays, when it is needed."""
        now_ms = int(self.loop.now_ms)
        phases: dict[int, list[PageMessage]] = {}
        for message, wanted_ms in probed.items():
            early_ms = max(0, wanted_ms - now_ms)
            if self.knobs.link is Link.QUEUE:
                early_ms = early_ms % 1000 // PHASE_MS * PHASE_MS
            phases.setdefault(early_ms, []).append(message)
        for phase_ms, messages in sorted(phases.items()):
            yield max(self.loop.now_ms, now_ms + phase_ms)
            for batch in chunks(messages, _BATCH):
                delays_ms = [self._delay_ms(probed[message]) for message in batch]
                yield processor.done_ms(self.loop.now_ms, REQUEST_CPU_MS)
                yield from self.link.send(batch, delays_ms)

    def _delay_ms(self, wanted_ms: int) -> int:
        return 1000 * timing.delay_seconds(wanted_ms, int(self.loop.now_ms))

    def _messages(self, second: int) -> Iterator[PageMessage]:
        shards = self.state.shards.get(second, 1)
        if shards > 1 or self.state.is_occupied(second, 0):
            yield PageMessage(second, 0, shards=shards if shards > 1 else None)
            for shard in range(1, shards):
                yield PageMessage(second, shard)
