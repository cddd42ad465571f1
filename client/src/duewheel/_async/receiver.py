"""Recognises repeated callbacks."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from duewheel._async.seen import AsyncSeen, AsyncSeenInMemory
from duewheel.deliveries import Delivery
from duewheel.verifying import StillAtWork, Verifier, checked


class AsyncReceiver(Verifier):
    """`secrets` are those of the business, as they were set: one, or two during a rotation.

    `seen` records the tasks that are done; by default in this process, the latest 100,000.
    """

    def __init__(
        self,
        secrets: str | Iterable[str],
        seen: AsyncSeen | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(secrets, now)
        self._seen = seen or AsyncSeenInMemory()

    @asynccontextmanager
    async def once(self, delivery: Delivery) -> AsyncIterator[bool]:
        """True if this task was not done before. It is done when the block ends without an
        exception, and is given out again when the block raises. Raises `StillAtWork` while another
        delivery of it is in the block."""
        claim = checked(await self._seen.claim(delivery.task_id))
        if claim == "busy":
            raise StillAtWork(f"An earlier attempt of {delivery.task_id} is being carried out")
        if claim == "done":
            yield False
            return
        try:
            yield True
        except BaseException:
            await self._seen.release(delivery.task_id)
            raise
        await self._seen.done(delivery.task_id)
