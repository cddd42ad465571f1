# Made of _async/receiver.py by make_sync.py; change that.
"""Recognises repeated callbacks."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from duewheel._sync.seen import Seen, SeenInMemory
from duewheel.deliveries import Delivery
from duewheel.verifying import StillAtWork, Verifier, checked


class Receiver(Verifier):
    """`secrets` are those of the business, as they were set: one, or two during a rotation.

    `seen` records the tasks that are done; by default in this process, the latest 100,000.
    """

    def __init__(
        self,
        secrets: str | Iterable[str],
        seen: Seen | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(secrets, now)
        self._seen = seen or SeenInMemory()

    @contextmanager
    def once(self, delivery: Delivery) -> Iterator[bool]:
        """True if this task was not done before. It is done when the block ends without an
        exception, and is given out again when the block raises. Raises `StillAtWork` while another
        delivery of it is in the block."""
        claim = checked(self._seen.claim(delivery.task_id))
        if claim == "busy":
            raise StillAtWork(f"An earlier attempt of {delivery.task_id} is being carried out")
        if claim == "done":
            yield False
            return
        try:
            yield True
        except BaseException:
            self._seen.release(delivery.task_id)
            raise
        self._seen.done(delivery.task_id)
