"""Dispatch: send a message for each slice of each occupied second, up to now or some way ahead.

The messages become visible when their slices open. The pointer passes a second only when all of its
messages were accepted, by the queue or by asynchronous invocation. A message that both refuse stops
the pointer. The seconds behind it are dispatched meanwhile, each message once, and the refused
messages are sent again after growing pauses.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, field

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.stores.sweep.slices import SliceStore
from duewheel.workflows.wheel.send_messages import MessageSender

STRIDE_SECONDS = 300  # how many seconds are taken at once when the pointer is far behind
PROBES_AT_ONCE = 16
_PAUSE_MS_MIN = 200
_PAUSE_MS_MAX = 2_000


class LeaseHeld(Struct):
    """Refused messages, which stop the pointer. `until`: up to which second all others were
    accepted."""

    until: int
    messages: list[PageMessage] = field(default_factory=list)
    pause_ms: int = 0
    again_ms: int = 0

    def longer_pause_ms(self) -> int:
        return min(max(2 * self.pause_ms, _PAUSE_MS_MIN), _PAUSE_MS_MAX)


class Dispatch(Struct, frozen=True, kw_only=True):
    clock: Clock
    slices: SliceStore
    message_sender: MessageSender
    aws_ms: Callable[[], int]
    lead_ms: int
    probers: ThreadPoolExecutor
    latest: list[LeaseHeld] = field(default_factory=list)  # since `begin`, at most one

    def begin(self) -> None:
        """A new leader starts with no knowledge of what was refused elsewhere."""
        self.latest.clear()

    def tick(self, dispatched: int, ahead_ms: int = 0) -> int:
        """Dispatch the seconds after `dispatched`, which the tick before returned; returns the last
        second whose messages were accepted."""
        held = self._held(dispatched)
        last = min(self.last_second(ahead_ms), dispatched + STRIDE_SECONDS)
        new = list(self._messages(range(held.until + 1, last + 1)))
        is_again = self.clock.now_ms() >= held.again_ms
        sent = [*held.messages, *new] if is_again else new
        refused = self.message_sender.send(sent, self._delay_seconds) if sent else []
        until = max(held.until, last)
        waiting = refused if is_again else [*held.messages, *refused]
        if not waiting:
            self.latest.clear()
            return until
        pointer = min(message.second for message in waiting) - 1
        pause_ms, again_ms = held.pause_ms, held.again_ms
        if is_again:
            is_any_taken = any(message not in refused for message in held.messages)
            pause_ms = _PAUSE_MS_MIN if is_any_taken else held.longer_pause_ms()
            again_ms = self.clock.now_ms() + pause_ms
        self.latest[:] = [LeaseHeld(until, waiting, pause_ms, again_ms)]
        return pointer

    def _held(self, dispatched: int) -> LeaseHeld:
        return self.latest[0] if self.latest else LeaseHeld(dispatched)

    def last_second(self, ahead_ms: int) -> int:
        """The last second that may be dispatched now, looking `ahead_ms` into the future."""
        now_ms, aws_ms = self.clock.now_ms() + ahead_ms, self.aws_ms() + ahead_ms
        return timing.dispatchable_second(now_ms, self.lead_ms, aws_ms)

    def next_tick_ms(self, dispatched: int) -> int:
        held = self._held(dispatched)
        opens_ms = timing.opens_ms(held.until + 1, self.lead_ms)
        return min(opens_ms, held.again_ms) if held.messages else opens_ms

    def _delay_seconds(self, message: PageMessage) -> int:
        return timing.delay_seconds(message.second * 1000, self.clock.now_ms(), self.lead_ms)

    def _messages(self, seconds: range) -> Iterable[PageMessage]:
        # One second is the rule; threads are for catching up.
        counts = fan_out(self.probers, self.slices.slices_to_dispatch, seconds)
        for second, shards in zip(seconds, counts, strict=True):
            for shard in range(shards):
                yield PageMessage(second, shard)
