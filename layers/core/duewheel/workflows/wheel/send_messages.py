"""Send messages to the notifiers: by the queue of their lane, or by asynchronous invocation while
the queue refuses.

Sending by both is harmless: a message that arrives twice is delivered once, because of the leases
of the pages and the named entries. A message is sent when either link has accepted it. Asynchronous
invocation, the second link, has one lane, since Lambda does not limit it by lane. It cannot delay a
message, so it gets only messages that a notifier would wait for.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct, field

from duewheel.log import logger
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.queue_messages import Lane, Message
from duewheel.stores.wheel.async_invoke import AsyncInvoke
from duewheel.stores.wheel.page_queue import SliceQueue, at_once

M = TypeVar("M", bound=Message)


class SendRefused(Exception):
    """Both links refused a message that nothing else would replace soon."""


class MessageSender(Struct):
    queues: Mapping[Lane, SliceQueue]
    second_link: AsyncInvoke
    refusing: set[Lane] = field(default_factory=set)  # how the last attempts ended

    def send(self, messages: Iterable[M], delay_seconds: Callable[[M], int] = at_once) -> list[M]:
        """Send all messages, each with its delay; returns those that both links refused."""
        by_lane: dict[Lane, list[M]] = {}
        for message in messages:
            by_lane.setdefault(message.lane, []).append(message)
        return [
            refused
            for lane, waiting in by_lane.items()
            for refused in self._send(lane, waiting, delay_seconds)
        ]

    def send_or_raise(self, *messages: Message) -> None:
        if refused := self.send(messages):
            raise SendRefused(f"neither channel accepted a {type(refused[0]).__name__}")

    def waiting(self) -> int | None:
        """About how many messages wait for notifiers outside the slow lane. None if that is
        unknown: SQS does not answer, or refuses messages, which then wait where they cannot be
        counted."""
        return None if Lane.MAIN in self.refusing else self.queues[Lane.MAIN].waiting()

    def _send(self, lane: Lane, refused: list[M], delay_seconds: Callable[[M], int]) -> list[M]:
        """Try SQS first, every time, so that it gets messages again as soon as it accepts them, and
        go on while it accepts some. If it accepts none it is retried once. If that fails too it
        counts as refusing, and is tried only once from then on, so that a hanging SQS costs each
        tick one second."""
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
        left = self.second_link.send(soon)
        logger.warning(
            "sent by asynchronous invocation",
            action="second-link",
            count=len(soon) - len(left),
            refused=len(left) + len(later),
        )
        return [*left, *later]
