"""Hold what a run works on: a page by its lease, messages by their visibility.

A hold is short, so that another run soon has what a dead one held, and is renewed while its run
lives. No call begins in the last moments of a hold, in which another run, by a clock that is
ahead, may take it over. At the end of a run no renewal of its own is under way any more.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from threading import Lock

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.lanes import Lane
from duewheel.rules.page_lease import HIDDEN_MS, LeaseLost, calls_begin_until_ms, renewal_ms
from duewheel.stores.slice_queue import SliceQueue
from duewheel.workflows.carry_through import beside, is_over_before

# After a renewal that failed. Until one succeeds no call begins once the hold is nearly over.
TRIED_AGAIN_MS = 500

# A message that failed. Ten tries, after which it is a dead letter, are a quarter of an hour.
FAILED_COMES_AFTER_SECONDS = 90

Renew = Callable[[int], int | None]  # now; until when it is held, or None when another has it
Beside = Callable[[Callable[[], int | None]], Awaitable[int | None]]


class Hold:
    """The right to begin calls. `renewed` and `over` are for the renewal, which runs beside."""

    def __init__(self, clock: Clock, until_ms: int) -> None:
        self._clock = clock
        self._until_ms = until_ms
        self._is_over = False
        self._tried = asyncio.Event()

    @property
    def is_sure(self) -> bool:
        is_in_time = self._clock.now_ms() <= calls_begin_until_ms(self._until_ms)
        return is_in_time and not self._is_over

    async def is_sure_before(self, latest_ms: int) -> bool:
        """Wait until a call may begin; False when none may up to `latest_ms`."""
        while not self.is_sure:
            if self._is_over:
                raise LeaseLost
            if self._clock.now_ms() > latest_ms:
                return False
            self._tried.clear()
            await self._tried.wait()
        return True

    def renewed(self, until_ms: int) -> None:
        self._until_ms = until_ms

    def tried(self) -> None:
        self._tried.set()

    def over(self) -> None:
        self._is_over = True
        self._tried.set()


class KeepHold(Struct, frozen=True):
    """`beside` runs a request in a thread that the work of the run does not use."""

    clock: Clock
    beside: Beside

    @asynccontextmanager
    async def __call__(
        self, begun_ms: int, until_ms: int, renew: Renew, *, at_once: bool = False
    ) -> AsyncIterator[Hold]:
        """`at_once`: the first renewal is what begins it."""
        hold, ended = Hold(self.clock, until_ms), asyncio.Event()
        first_ms = begun_ms if at_once else renewal_ms(begun_ms, begun_ms)
        async with beside(self._renew(hold, begun_ms, first_ms, renew, ended)):
            try:
                yield hold
            finally:
                ended.set()

    async def _renew(
        self, hold: Hold, begun_ms: int, next_ms: int, renew: Renew, ended: asyncio.Event
    ) -> None:
        try:
            while await is_over_before(self.clock.sleep_beside_until_ms(next_ms), ended):
                now_ms = self.clock.now_ms()
                try:
                    until_ms = await self.beside(partial(renew, now_ms))
                except Exception as error:  # noqa: BLE001 - tried again, and calls wait for it
                    logger.warning("not renewed", action="renewal-failed", error=str(error))
                    next_ms = self.clock.now_ms() + TRIED_AGAIN_MS
                else:
                    if until_ms is None:
                        return
                    hold.renewed(until_ms)
                    next_ms = renewal_ms(begun_ms, now_ms)
                hold.tried()
        finally:
            hold.over()


class HideMessages(Struct, frozen=True):
    """Hide the messages of a run from other runs while it lives, and hardly longer.

    Lambda wants the queue itself to hide them for longer than a run may last. So that is cut
    short as soon as a run begins, beside its work.
    """

    clock: Clock
    queues: Mapping[Lane, SliceQueue]
    keep_hold: KeepHold

    @asynccontextmanager
    async def __call__(self, receipts: Mapping[Lane, Sequence[str]]) -> AsyncIterator["Hidden"]:
        hidden = Hidden(self.queues, receipts)
        now_ms = self.clock.now_ms()
        until_ms = now_ms + HIDDEN_MS
        async with self.keep_hold(now_ms, until_ms, hidden.renew, at_once=True) as hidden.hold:
            yield hidden


class Hidden:
    """The messages of a run, by lane. `hold`: of those that it has not left."""

    hold: Hold

    def __init__(
        self, queues: Mapping[Lane, SliceQueue], receipts: Mapping[Lane, Sequence[str]]
    ) -> None:
        self._queues = queues
        self._receipts = {lane: list(handles) for lane, handles in receipts.items()}
        self._lock = Lock()  # what is left is not hidden again by a request under way

    def renew(self, now_ms: int) -> int:
        with self._lock:
            for lane, handles in self._receipts.items():
                if handles:
                    self._queues[lane].hide_all(handles, HIDDEN_MS // 1000)
        return now_ms + HIDDEN_MS

    def leave(self, lane: Lane, handles: Sequence[str], seconds: int) -> None:
        """Let these come back after so long, however long the run goes on with others."""
        with self._lock:
            for handle in handles:
                self._receipts[lane].remove(handle)
                self._queues[lane].hide(handle, seconds)
