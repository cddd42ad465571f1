"""Dispatch: from the time pointer to now, or as far ahead as is wanted, every occupied second's
slices are handed over, each to come up when it opens.

The pointer may only pass a second when either link has accepted all of its slices.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules import wheel
from duewheel.rules.messages import PageMessage
from duewheel.stores.slices import SliceStore
from duewheel.workflows.hand_over import HandOver

STRIDE_SECONDS = 300  # how many seconds are taken at once when the pointer is far behind
PROBES_AT_ONCE = 16


class Dispatch(Struct, frozen=True):
    clock: Clock
    slices: SliceStore
    hand_over: HandOver
    aws_ms: Callable[[], int]
    lead_ms: int
    probers: ThreadPoolExecutor

    def tick(self, dispatched: int, ahead_ms: int = 0) -> int:
        """Dispatch what has come up behind `dispatched`, or will have; returns the last second
        handed over."""
        last = min(self.last_second(ahead_ms), dispatched + STRIDE_SECONDS)
        seconds = range(dispatched + 1, last + 1)
        refused = self.hand_over.send(self._messages(seconds), self._delay_seconds)
        if refused:
            return min(message.second for message in refused) - 1
        return max(dispatched, last)

    def last_second(self, ahead_ms: int) -> int:
        """That may be dispatched now: the last one that has come up so much later."""
        now_ms, aws_ms = self.clock.now_ms() + ahead_ms, self.aws_ms() + ahead_ms
        return wheel.dispatchable_second(now_ms, self.lead_ms, aws_ms)

    def next_tick_ms(self, dispatched: int) -> int:
        return wheel.opens_ms(dispatched + 1, self.lead_ms)

    def _delay_seconds(self, message: PageMessage) -> int:
        return wheel.delay_seconds(message.second * 1000, self.clock.now_ms(), self.lead_ms)

    def _messages(self, seconds: range) -> Iterable[PageMessage]:
        # One second is the rule; threads are for catching up.
        counts = fan_out(self.probers, self.slices.slices_to_dispatch, seconds)
        for second, shards in zip(seconds, counts, strict=True):
            for shard in range(shards):
                yield PageMessage(second, shard)
