"""Hand messages to the notifiers: by the slice queue, and past it while it refuses.

Both links at once do no harm: what comes twice is delivered once, by the pages' leases
and the named entries. A message is handed over when either link has accepted it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from duewheel.log import logger
from duewheel.rules.messages import Message, encode
from duewheel.stores.second_link import SecondLink
from duewheel.stores.slice_queue import SliceQueue

M = TypeVar("M", bound=Message)


class HandOverRefused(Exception):
    """Neither link took a message that nothing else would soon replace."""


@dataclass(slots=True)
class HandOver:
    queue: SliceQueue
    second_link: SecondLink
    queue_refuses: bool = False  # how the last attempt ended

    def send(self, messages: Iterable[M], delay_seconds: int = 0) -> list[M]:
        """Send all; returns those that neither link took.

        SQS is asked first, every time, so that it has the messages again as soon as it takes
        them. One refusal is tried again at once; SQS keeps refusing when that fails, too, and
        from then on it is asked once, so that one that hangs costs each tick a second.
        """
        refused = list(messages)
        if not refused:
            return refused
        for _ in range(1 if self.queue_refuses else 2):
            refused = self.queue.send(refused, delay_seconds)
            if not refused:
                self.queue_refuses = False
                return refused
        self.queue_refuses = True
        left = self.second_link.send(refused)
        logger.warning(
            "handed over by the second link",
            action="second-link",
            count=len(refused) - len(left),
            refused=len(left),
        )
        return left

    def send_surely(self, message: Message) -> None:
        if self.send([message]):
            raise HandOverRefused(f"neither link took {encode(message)[:200]}")
