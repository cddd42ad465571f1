"""Dispatch: send a message for each slice of each occupied second, some way ahead of the time.

A message is to reach its notifier shortly before the first task of its slice is due, so that no
notifier is paid for waiting: one lead before, if notifiers may have to be started, for a crowd or
after a pause. The queue delays it until then. While that cannot be done, since the
queue refuses messages, a second is dispatched when it opens, and its message sent at that instant.
Seconds that were dispatched ahead are then probed again when they open: entries have been written
into them since, and the queue may have refused the messages of their writers, too.

The pointer passes a second only when all of its messages were accepted, by the queue or by
asynchronous invocation. A message that both refuse stops the pointer. The seconds behind it are
dispatched meanwhile, each message once, and the refused messages are sent again after growing
pauses.
"""

from collections.abc import Callable, Iterable, Sequence
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
OPENED_BEFORE_SECONDS = 15  # what may have opened since the leader before died: more than a lease
PHASE_MS = 100  # a delayed message of a slice is early by less than this
_PAUSE_MS_MIN = 200
_PAUSE_MS_MAX = 2_000


class Held(Struct, kw_only=True):
    """Messages that stop the pointer, with the instants at which they are to arrive: `early` ones,
    which are not sent yet, and refused ones, which are sent again at `again_ms`. All other messages
    up to the second `until` were accepted. `opened`: the last second that was probed when it
    opened."""

    until: int
    opened: int
    early: dict[PageMessage, int] = field(default_factory=dict)
    refused: dict[PageMessage, int] = field(default_factory=dict)
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
    latest: list[Held] = field(default_factory=list)  # since `begin`, at most one

    def begin(self) -> None:
        """A new leader starts with no knowledge of what was refused elsewhere."""
        self.latest.clear()

    def tick(self, dispatched: int, ahead_ms: int = 0) -> int:
        """Dispatch the seconds after `dispatched`, which the tick before returned; returns the last
        second whose messages were accepted. Without `ahead_ms`, or with messages that were refused,
        probe again what was dispatched ahead and opens now."""
        held = self._held(dispatched)
        last = min(self.last_second(ahead_ms), dispatched + STRIDE_SECONDS)
        opened = held.opened
        is_behind = held.until <= opened
        if is_behind or held.refused or not ahead_ms:
            opened = max(opened, min(last, self.last_second(0)))
        again = range(held.opened + 1, min(opened, held.until) + 1)
        seconds = [*again, *range(held.until + 1, last + 1)]
        waiting = held.early | dict(self._messages(seconds, dispatched))
        now_ms = self.clock.now_ms()
        # Ahead of the time, the queue delays messages that are early.
        early = {m: at for m, at in waiting.items() if at > now_ms and not ahead_ms}
        due = {m: at for m, at in waiting.items() if m not in early}
        is_again = now_ms >= held.again_ms
        sent = held.refused | due if is_again else due
        refused = self._send(sent, in_phases=not held.refused)
        after = Held(
            until=max(held.until, last),
            opened=opened,
            early=early,
            refused=refused if is_again else held.refused | refused,
        )
        if after.refused:
            after.pause_ms, after.again_ms = held.pause_ms, held.again_ms
            if is_again:
                is_any_taken = any(message not in refused for message in held.refused)
                after.pause_ms = _PAUSE_MS_MIN if is_any_taken else held.longer_pause_ms()
                after.again_ms = self.clock.now_ms() + after.pause_ms
        self.latest[:] = [after]
        passed = [message.second - 1 for message in (*early, *after.refused)]
        return max(dispatched, min(passed, default=after.until))

    def _held(self, dispatched: int) -> Held:
        if self.latest:
            return self.latest[0]
        return Held(until=dispatched, opened=self.last_second(0) - OPENED_BEFORE_SECONDS)

    def last_second(self, ahead_ms: int) -> int:
        """The last second that may be dispatched now, looking `ahead_ms` into the future."""
        now_ms, aws_ms = self.clock.now_ms() + ahead_ms, self.aws_ms() + ahead_ms
        return timing.dispatchable_second(now_ms, self.lead_ms, aws_ms)

    def next_tick_ms(self, dispatched: int) -> int:
        held = self._held(dispatched)
        instants = [timing.opens_ms(min(held.until, held.opened) + 1, self.lead_ms)]
        instants += held.early.values()
        if held.refused:
            instants.append(held.again_ms)
        return min(instants)

    def _send(self, due: dict[PageMessage, int], *, in_phases: bool) -> dict[PageMessage, int]:
        """Returns those that were refused. The queue delays by whole seconds. `in_phases`: each
        message is sent in the tenth of a second in which its delay is to end, so that no notifier
        is paid for waiting; that takes up to a second."""

        def delay_seconds(message: PageMessage) -> int:
            return timing.delay_seconds(due[message], self.clock.now_ms())

        now_ms = self.clock.now_ms()
        phases: dict[int, list[PageMessage]] = {}
        for message, wanted_ms in due.items():
            early_ms = max(0, wanted_ms - now_ms)
            phase = early_ms % 1000 // PHASE_MS if in_phases else 0
            phases.setdefault(phase, []).append(message)
        refused: list[PageMessage] = []
        while phases and not refused:
            phase = min(phases)
            wait_ms = now_ms + phase * PHASE_MS - self.clock.now_ms()
            if wait_ms > 0:
                self.clock.sleep(wait_ms / 1000)
            refused = self.message_sender.send(phases.pop(phase), delay_seconds)
        # At once, since a queue that does not answer would cost a second in each phase.
        if rest := [message for messages in phases.values() for message in messages]:
            refused += self.message_sender.send(rest, delay_seconds)
        return {message: due[message] for message in refused}

    def _messages(
        self, seconds: Sequence[int], dispatched: int
    ) -> Iterable[tuple[PageMessage, int]]:
        """With the instants at which they are to arrive. Of a second that the pointer has passed,
        the message of the first shard alone: the run sends those of the others. If one of theirs
        were refused, and this leader ended, no other leader would send it."""
        # Mostly there is one second; threads are for catching up.
        probed = fan_out(self.probers, self.slices.probe, seconds)
        is_warm = False  # as far as this tick knows
        for second, occupied in zip(seconds, probed, strict=True):
            if occupied is not None:
                is_quick = is_warm and occupied.shards == 1
                before_ms = timing.WAKE_MS if is_quick else self.lead_ms
                wanted_ms = occupied.first_ms - before_ms
                shards = 1 if second <= dispatched else occupied.shards
                yield PageMessage(second, 0, shards=shards if shards > 1 else None), wanted_ms
                for shard in range(1, shards):
                    yield PageMessage(second, shard), wanted_ms
                is_warm = True
