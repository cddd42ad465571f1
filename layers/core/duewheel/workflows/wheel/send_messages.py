"""Hand messages to the notifiers: by the queue of their lane, and past it while it refuses.

Both links at once do no harm: what comes twice is delivered once, by the pages' leases
and the named entries. A message is handed over when either link has accepted it. Past the
queues there is one lane: Lambda bounds nothing of what it is handed there. Nor does it hold a
message back, so the second link gets only what a notifier would wait for.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct, field

from duewheel.log import logger
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.lane import Lane
from duewheel.rules.wheel.queue_messages import Message
from duewheel.stores.wheel.async_invoke import InvokeFallback
from duewheel.stores.wheel.page_queue import SliceQueue, at_once

M = TypeVar("M", bound=Message)


class HandOverRefused(Exception):
    """Neither link took a message that nothing else would soon replace."""


class MessageSender(Struct):
    queues: Mapping[Lane, SliceQueue]
    invoke_fallback: InvokeFallback
    refusing: set[Lane] = field(default_factory=set)  # how the last attempts ended

    def send(self, messages: Iterable[M], delay_seconds: Callable[[M], int] = at_once) -> list[M]:
        """Send all, each to be held back for so long; returns those that neither link took."""
        by_lane: dict[Lane, list[M]] = {}
        for message in messages:
            by_lane.setdefault(message.lane, []).append(message)
        return [
            refused
            for lane, waiting in by_lane.items()
            for refused in self._send(lane, waiting, delay_seconds)
        ]

    def send_or_raise(self, message: Message) -> None:
        if self.send([message]):
            raise HandOverRefused(f"neither link took a {type(message).__name__}")

    def waiting(self, lane: Lane) -> int | None:
        """About how many messages wait for notifiers; None when that is not known: SQS does not
        say, or refuses messages, which then wait where they cannot be counted."""
        return None if lane in self.refusing else self.queues[lane].waiting()

    def _send(self, lane: Lane, refused: list[M], delay_seconds: Callable[[M], int]) -> list[M]:
        """SQS is asked first, every time, so that it has the messages again as soon as it takes
        them, and again as long as it takes some. Where it takes none it is tried again at once; it
        keeps refusing when that fails, too, and from then on it is asked once, so that one that
        hangs costs each tick a second.
        """
        tries = 1 if lane in self.refusing else 2
        while tries:
            before = len(refused)
            refused = self.queues[lane].send(refused, delay_seconds)
            if not refused:
                self.refusing.discard(lane)
                return refused
            tries -= len(refused) == before
        self.refusing.add(lane)
        soon = [one for one in refused if delay_seconds(one) <= timing.WAIT_SECONDS_MAX]
        later = [one for one in refused if delay_seconds(one) > timing.WAIT_SECONDS_MAX]
        left = self.invoke_fallback.send(soon)
        logger.warning(
            "sent by asynchronous invocation",
            action="second-link",
            count=len(soon) - len(left),
            refused=len(left) + len(later),
        )
        return [*left, *later]
