"""Dispatch, as workflows/wheel/dispatch.py does: tick by tick, probes, a message a slice."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench import limits
from bench.cloud.assumed import REQUEST_CPU_MS, Knobs
from bench.cloud.functions import Processor
from bench.cloud.links import DirectLink, Queue
from bench.cloud.loop import Loop, Story
from bench.cloud.table import GivenUp, Table
from bench.cloud.wheel_state import WheelState
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.stores.dynamodb import chunks
from duewheel.workflows.wheel.dispatch import STRIDE_SECONDS


@dataclass
class Scheduler:
    loop: Loop
    knobs: Knobs
    table: Table
    link: Queue | DirectLink
    state: WheelState
    dispatched: int  # the last second that has been dispatched

    def lead(self, last_second: int) -> Story[None]:
        lead_ms, processor = self.knobs.lead_ms, Processor(self.knobs.scheduler_mb)
        batch = int(limits.SQS_BATCH_MESSAGES.value)
        while self.dispatched < last_second:
            now_ms = int(self.loop.now_ms)
            due = timing.dispatchable_second(now_ms, lead_ms, now_ms)
            seconds = range(self.dispatched + 1, min(due, self.dispatched + STRIDE_SECONDS) + 1)
            for second in seconds:
                yield processor.done_ms(self.loop.now_ms, REQUEST_CPU_MS)
                try:
                    yield from self.table.read(self.state.slot(second, 0), 0.5)
                except GivenUp:  # the leader continues with the next tick
                    break
                yield max(self.loop.now_ms, self.state.first_ms(second) - lead_ms)
                for messages in chunks(list(self._messages(second)), batch):
                    yield processor.done_ms(self.loop.now_ms, REQUEST_CPU_MS)
                    yield from self.link.send(messages)
                self.dispatched = second
            yield max(self.loop.now_ms, timing.opens_ms(self.dispatched + 1, lead_ms))

    def _messages(self, second: int) -> Iterator[PageMessage]:
        shards = self.state.shards.get(second, 1)
        if shards > 1 or self.state.is_occupied(second, 0):
            for shard in range(shards):
                yield PageMessage(second, shard)
