"""The holds of a run: a page by its lease, messages by their visibility.

A hold is short, so that another run soon takes over after a crash, and is renewed until its run
ends. No call begins in the last moments of a hold: a run whose clock is ahead may take it over
then. When a run ends, no renewal of it is in flight.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from threading import Lock
from typing import Protocol, TypeVar

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.delivery.page_lease import (
    HIDDEN_MS,
    LeaseLost,
    calls_begin_until_ms,
    renewal_ms,
)
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.stores.wheel.page_queue import SliceQueue
from duewheel.workflows.gather_all import beside, is_over_before

# After a failed renewal. Until one succeeds, no call begins when the hold is nearly over.
TRIED_AGAIN_MS = 500

# A message that failed. A hundred tries, after which it is a dead letter, are two hours and a half.
FAILED_COMES_AFTER_SECONDS = 90

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)
Renew = Callable[[int], int | None]  # now; until when it is held, or None when another has it
Receipts = Mapping[Lane, Mapping[str, Sequence[str]]]  # by the text of the message


class Beside(Protocol):
    def __call__(self, request: Callable[[], R], /) -> Awaitable[R]: ...


class Renewed(Protocol[R_contra]):
    """A hold that is renewed beside the work."""

    def renewed(self, renewal: R_contra, /) -> bool:
        """True if nothing of it has to be retried."""

    def tried(self) -> None: ...

    def over(self) -> None: ...


class Hold:
    """The right to begin calls. `is_exclusive`: while it is sure no other run has the entries."""

    def __init__(self, clock: Clock, until_ms: int, *, is_exclusive: bool = False) -> None:
        self._clock = clock
        self.until_ms = until_ms
        self.is_exclusive = is_exclusive
        self._is_over = False
        self._is_renewed = True
        self._tried = asyncio.Event()

    @property
    def is_sure(self) -> bool:
        is_in_time = self._clock.now_ms() <= calls_begin_until_ms(self.until_ms)
        return is_in_time and not self._is_over

    async def is_sure_before(self, latest_ms: int) -> bool:
        """Wait until a call may begin; False if none may up to `latest_ms`."""
        while not self.is_sure:
            if self._is_over or not self._is_renewed:
                raise LeaseLost
            if self._clock.now_ms() > latest_ms:
                return False
            self._tried.clear()
            await self._tried.wait()
        return True

    def renewed(self, until_ms: int, /) -> bool:
        if self._is_renewed:
            self.until_ms = until_ms
        return True

    def not_renewed(self) -> None:
        """It ends at its own end, even if another copy of the same message is renewed."""
        self._is_renewed = False

    def tried(self) -> None:
        self._tried.set()

    def over(self) -> None:
        self._is_over = True
        self._tried.set()


class KeepHold(Struct, frozen=True):
    """`beside` runs requests in a thread that the work of the run does not use."""

    clock: Clock
    beside: Beside

    @asynccontextmanager
    async def __call__(
        self, begun_ms: int, until_ms: int, renew: Renew, *, is_exclusive: bool = False
    ) -> AsyncIterator[Hold]:
        hold = Hold(self.clock, until_ms, is_exclusive=is_exclusive)
        async with self.renewing(hold, begun_ms, renewal_ms(begun_ms, begun_ms), renew):
            yield hold

    @asynccontextmanager
    async def renewing(
        self,
        held: Renewed[R],
        begun_ms: int,
        first_ms: int,
        renew: Callable[[int], R | None],
    ) -> AsyncIterator[None]:
        ended = asyncio.Event()
        async with beside(self._renew(held, begun_ms, first_ms, renew, ended)):
            try:
                yield
            finally:
                ended.set()

    async def _renew(
        self,
        held: Renewed[R],
        begun_ms: int,
        next_ms: int,
        renew: Callable[[int], R | None],
        ended: asyncio.Event,
    ) -> None:
        try:
            while await is_over_before(self.clock.sleep_beside_until_ms(next_ms), ended):
                now_ms, is_whole = self.clock.now_ms(), False
                try:
                    renewal = await self.beside(partial(renew, now_ms))
                except Exception as error:  # noqa: BLE001 - tried again, and calls wait for it
                    logger.warning("not renewed", action="renewal-failed", error=str(error))
                else:
                    if renewal is None:
                        return
                    is_whole = held.renewed(renewal)
                if is_whole:
                    next_ms = renewal_ms(begun_ms, now_ms)
                else:
                    next_ms = self.clock.now_ms() + TRIED_AGAIN_MS
                held.tried()
        finally:
            held.over()


class HideMessages(Struct, frozen=True):
    """Hide the messages of a run from other runs until it ends, and hardly longer.

    Lambda requires a visibility of the queue that is longer than a run may last. So it is shortened
    as soon as a run begins, beside its work.
    """

    clock: Clock
    queues: Mapping[Lane, SliceQueue]
    keep_hold: KeepHold

    @asynccontextmanager
    async def __call__(self, receipts: Receipts) -> AsyncIterator["Hidden"]:
        now_ms = self.clock.now_ms()
        hidden = Hidden(self.clock, self.queues, receipts, now_ms + HIDDEN_MS)
        async with self.keep_hold.renewing(hidden, now_ms, now_ms, hidden.renew):
            yield hidden


class Renewal(Struct, frozen=True):
    """By the text of the message: until when the `taken` messages are hidden, and those whose
    receipts were refused, `for_good` or not."""

    until_ms: int
    taken: set[str]
    for_good: set[str]
    again: set[str]


class Hidden:
    """The messages of a run, by their texts, each with its own hold. One request renews all of a
    lane. A receipt that SQS refuses for good is not sent again: its message may belong to another
    run by then."""

    def __init__(
        self, clock: Clock, queues: Mapping[Lane, SliceQueue], receipts: Receipts, until_ms: int
    ) -> None:
        self.holds = {
            text: Hold(clock, until_ms) for by_text in receipts.values() for text in by_text
        }
        self._queues = queues
        self._receipts = {
            lane: {handle: text for text, handles in by_text.items() for handle in handles}
            for lane, by_text in receipts.items()
        }
        self._lock = Lock()  # a running request must not hide a message that is left

    def renew(self, now_ms: int) -> Renewal:
        renewal = Renewal(now_ms + HIDDEN_MS, set(), set(), set())
        with self._lock:
            for lane, texts in self._receipts.items():
                if not texts:
                    continue
                refused = self._queues[lane].hide_all(list(texts), HIDDEN_MS // 1000)
                renewal.again.update(texts[handle] for handle in refused.again)
                renewal.for_good.update(texts.pop(handle) for handle in refused.for_good)
                renewal.taken.update(texts.values())
        return renewal

    def leave(self, text: str, seconds: int) -> None:
        """Let the message come back after this time, even if the run still works on others."""
        with self._lock:
            for lane, texts in self._receipts.items():
                for handle in [handle for handle, one in texts.items() if one == text]:
                    del texts[handle]
                    self._queues[lane].hide(handle, seconds)

    def renewed(self, renewal: Renewal) -> bool:
        for text in renewal.for_good:
            self.holds[text].not_renewed()
        for text in renewal.taken - renewal.again:
            self.holds[text].renewed(renewal.until_ms)
        return not renewal.again

    def tried(self) -> None:
        for hold in self.holds.values():
            hold.tried()

    def over(self) -> None:
        for hold in self.holds.values():
            hold.over()
