"""Take permits for the calls of a business, over all notifiers, and give them back.

A pool has the permits of one run for the calls of one scope in a page. It takes some shortly before
the first calls are due, renews them while calls are to begin, gives back those that it does not
need soon, and all others when the calls have ended. No request of it is under way then. If a write
fails, no call begins by it, and permits that are not given back come back when they expire.
"""

import asyncio
from bisect import insort
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.businesses.flow import IN_FLIGHT_MAX
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery import permits as rules
from duewheel.rules.delivery.permits import Holding, Wanted
from duewheel.rules.tasks.effective_callback import timeout_ms
from duewheel.rules.tasks.task import Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.permits import PermitStore
from duewheel.workflows.gather_all import SideBySide, gather_all, in_thread, is_over_before

OWNER_BYTES = 8


class SlotState(Enum):
    """Whether a call may begin. `NO_PERMIT`: not in its patience. `TOO_LATE`: its run ends."""

    FREE = "free"
    NO_PERMIT = "no permit"
    TOO_LATE = "too late"


class Grant(Struct, frozen=True):
    """`lapses`: how often the permits of its run had expired before it."""

    state: SlotState
    lapses: int = 0


class _Waiting(Struct, eq=False, kw_only=True):
    order: int
    gives_up_ms: int  # if its run has no permit
    latest_ms: int
    slot: asyncio.Future[Grant]


class Taken(Struct, frozen=True):
    """What a run holds. `share`: how many it may go on to use."""

    held: Holding
    share: int


class Pool:
    """`change` brings the record to what is wanted, as far as permits are free, and returns how
    many of those held may be used for further calls. Permits are held for the longest of the
    time-outs of the calls that want some."""

    def __init__(self, clock: Clock, change: Callable[[Wanted], Taken], owner: str) -> None:
        self._clock = clock
        self._change = change
        self._owner = owner
        self._timeout_ms = 0
        self._held = 0
        self._share = 0
        self._until_ms = 0
        self._in_use = 0
        self._unbegun = 0  # of those in use: their calls have not begun
        self._lapses = 0
        self._ended = (0, 0)
        self._waiting: list[_Waiting] = []  # in their order
        self._next_try_ms = 0
        self._idle_since_ms = 0
        self._moved = asyncio.Event()
        self._is_closed = False
        self._is_known_to_wait = False
        self._is_unsure = False  # a write may have been carried out
        self._is_share_old = False  # work holds a permit since
        self._keeper: SideBySide[None] | None = None

    async def acquire(self, task: Task, order: int, latest_ms: int, timeout_ms: int) -> Grant:
        """A free slot has to be released. Its permit is renewed until its call begins."""
        self._timeout_ms = max(self._timeout_ms, timeout_ms)
        if self._keeper is None:
            self._keeper = SideBySide()
            self._keeper.begin(self._keep())
        gives_up_ms = self._clock.now_ms() + rules.AHEAD_MS + rules.patience_ms(task)
        slot: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(
            order=order,
            gives_up_ms=min(gives_up_ms, latest_ms),
            latest_ms=latest_ms,
            slot=slot,
        )
        insort(self._waiting, waiting, key=lambda one: one.order)
        self._moved.set()
        return await slot

    def is_sure(self, grant: Grant, timeout_ms: int) -> bool:
        """Whether a call that begins now ends before its permit expires. After permits have
        expired others may have them, though this run renews its own."""
        is_in_time = self._clock.now_ms() <= self._until_ms - timeout_ms
        return is_in_time and grant.lapses == self._lapses

    def begins(self) -> None:
        self._unbegun -= 1

    def release(self, used_ms: int | None, *, goes_on: bool = False) -> None:
        """`used_ms` None: its call has not begun. `goes_on`: its work has a permit of its own, so
        no other call begins by this one before the record is read."""
        if used_ms is None:
            self._unbegun -= 1
        else:
            calls, took_ms = self._ended
            self._ended = calls + 1, took_ms + used_ms
        self._in_use -= 1
        now_ms = self._clock.now_ms()
        self._idle_since_ms = now_ms
        if goes_on:
            self._is_share_old = True
            self._share = min(self._share, self._in_use)
        is_to_yield = self._held > self._share
        if (is_to_yield or not self._is_long_enough(now_ms)) and not self._is_unsure:
            self._next_try_ms = now_ms
        self._moved.set()

    async def close(self) -> None:
        """Give back what is held. All calls have ended."""
        if self._keeper is not None:
            self._is_closed = True
            self._moved.set()
            for failure in await self._keeper.outcomes():
                if failure is not None:
                    raise failure

    async def _keep(self) -> None:
        try:
            await self._keep_until_closed()
        finally:  # a failure leaves no task waiting
            for one in self._waiting:
                one.slot.set_result(Grant(SlotState.TOO_LATE))

    async def _keep_until_closed(self) -> None:
        while not self._is_closed:
            self._serve()
            now_ms, next_ms = self._clock.now_ms(), self._next_ms()
            if next_ms is None:
                self._moved.clear()
                await self._moved.wait()
            elif next_ms > now_ms:
                self._moved.clear()
                clock = self._clock
                sleep = clock.sleep_beside_until_ms if self._in_use else clock.sleep_until_ms
                await is_over_before(sleep(next_ms), self._moved)
            elif self._is_to_change(now_ms):
                await self._try()
        if self._held or self._is_unsure:
            await self._try()

    def _serve(self) -> None:
        """Give free permits to those that wait, the first first, and let the others give up."""
        now_ms = self._clock.now_ms()
        usable = min(self._held, self._share)
        while self._waiting and self._in_use < usable and self._is_long_enough(now_ms):
            self._in_use += 1
            self._unbegun += 1
            self._waiting.pop(0).slot.set_result(Grant(SlotState.FREE, self._lapses))
        for one in list(self._waiting):
            if now_ms >= one.latest_ms or (not self._held and now_ms >= one.gives_up_ms):
                self._waiting.remove(one)
                is_over = now_ms >= one.latest_ms
                state = SlotState.TOO_LATE if is_over else SlotState.NO_PERMIT
                one.slot.set_result(Grant(state))

    def _is_long_enough(self, now_ms: int) -> bool:
        """Whether calls may begin for a while, so that a call that waits for its instant does."""
        return now_ms + self._timeout_ms + rules.SURE_MS <= self._until_ms

    def _is_to_change(self, now_ms: int) -> bool:
        if self._waiting or self._is_known_to_wait:
            return now_ms >= self._next_try_ms
        if self._unbegun and not self._is_long_enough(now_ms) and now_ms >= self._next_try_ms:
            return True
        return self._has_idle and now_ms >= self._idle_since_ms + rules.IDLE_MS

    @property
    def _has_idle(self) -> bool:
        return self._held > self._in_use

    def _next_ms(self) -> int | None:
        """When there is something to do, if nothing happens before."""
        if self._waiting:
            gives_up = [one.latest_ms if self._held else one.gives_up_ms for one in self._waiting]
            return min(self._next_try_ms, *gives_up)
        if self._is_known_to_wait:  # others leave permits to it
            return self._next_try_ms
        idle_ms = self._idle_since_ms + rules.IDLE_MS if self._has_idle else None
        if not self._unbegun:
            return idle_ms
        not_enough_ms = self._until_ms - self._timeout_ms - rules.SURE_MS + 1
        renewed_ms = max(not_enough_ms, self._next_try_ms)
        return renewed_ms if idle_ms is None else min(idle_ms, renewed_ms)

    async def _try(self) -> None:
        now_ms = self._clock.now_ms()
        self._lapses += now_ms > self._until_ms
        wanted = Wanted(
            owner=self._owner,
            count=self._in_use + len(self._waiting),
            at_least=self._in_use,
            first_order=self._waiting[0].order if self._waiting else 0,
            until_ms=now_ms + self._timeout_ms + rules.BEGIN_MS,
            ended=self._ended,
        )
        self._held = min(self._held, wanted.count)  # the write may be carried out and not answered
        self._ended, self._is_unsure, self._is_share_old = (0, 0), True, False
        try:
            taken = await in_thread(self._change, wanted)
        except Exception as error:  # noqa: BLE001 - no call begins by it, and it is tried again
            logger.warning("permits not changed", action="permits-failed", error=str(error))
        else:
            self._held, self._until_ms = taken.held.count, taken.held.until_ms
            self._share = min(taken.share, self._in_use) if self._is_share_old else taken.share
            self._is_known_to_wait = taken.held.waiting > 0
            self._is_unsure = False
        now_ms = self._clock.now_ms()
        self._idle_since_ms = now_ms
        is_enough = not self._is_unsure and self._held >= wanted.count
        is_to_look = is_enough or self._is_share_old
        pause_ms = 0 if is_to_look else rules.MORE_MS if self._held else rules.RETRY_MS
        self._next_try_ms = now_ms + pause_ms


class Slot(Struct, kw_only=True):
    """`scope`: that has no permit. `grants`: none if nothing limits the calls in flight."""

    state: SlotState
    scope: str = ""
    grants: tuple[tuple[Pool, Grant], ...] = ()
    is_begun: bool = False
    goes_on: bool = False  # the work, with a permit of its own

    def begins(self) -> None:
        self.is_begun = True
        for pool, _ in self.grants:
            pool.begins()

    def is_sure(self, timeout_ms: int) -> bool:
        return all(pool.is_sure(grant, timeout_ms) for pool, grant in self.grants)


class CallSlots:
    """What bounds the calls of one business in a page: permits, if it or their flow key limits the
    calls in flight. A call takes one of its key first, so it holds none of the business while it
    waits for others of its key."""

    def __init__(
        self,
        clock: Clock,
        business: Business,
        known: BusinessCache,
        new_pool: Callable[[str, str | None], Pool],
    ) -> None:
        self._clock = clock
        self._business = business
        self._known = known
        self._new_pool = new_pool
        self._pools: dict[str, Pool] = {}

    @asynccontextmanager
    async def slot(
        self, task: Task, order: int, from_ms: int, latest_ms: int
    ) -> AsyncIterator[Slot]:
        """Shortly before `from_ms` or later. A permit counts as used from that instant on, also
        while its call waits for a turn."""
        scopes = self._business.in_flight_limits(task.flow_key)
        if not scopes:
            yield Slot(state=SlotState.FREE)
            return
        await self._clock.sleep_until_ms(from_ms - rules.AHEAD_MS)
        grants: list[tuple[Pool, Grant]] = []
        slot = Slot(state=SlotState.FREE)
        try:
            for scope in scopes:
                pool = self._pool(scope, task.flow_key)
                longest_ms = timeout_ms(task, self._business)
                grant = await pool.acquire(task, order, latest_ms, longest_ms)
                if grant.state is not SlotState.FREE:
                    yield Slot(state=grant.state, scope=scope)
                    return
                grants.append((pool, grant))
            from_ms = max(from_ms, self._clock.now_ms())
            slot.grants = tuple(grants)
            yield slot
        finally:
            used_ms = self._clock.now_ms() - from_ms if slot.is_begun else None
            for pool, _ in grants:
                pool.release(used_ms, goes_on=slot.goes_on)

    def lacks_new_limit(self, flow_key: str | None) -> bool:
        """Whether the business has a first limit since the page was begun. Of calls without
        permits, or without turns, it would know nothing."""
        now = self._known.kept(self._business.biz_type)
        if now is None:
            return False
        return any(
            has > had
            for has, had in zip(
                now.limits_calls(flow_key), self._business.limits_calls(flow_key), strict=True
            )
        )

    def _pool(self, scope: str, flow_key: str | None) -> Pool:
        if scope not in self._pools:
            is_of_business = scope == self._business.biz_type
            self._pools[scope] = self._new_pool(scope, None if is_of_business else flow_key)
        return self._pools[scope]

    async def close(self) -> None:
        await gather_all(pool.close() for pool in self._pools.values())


class TakePermits(Struct, frozen=True, kw_only=True):
    clock: Clock
    known: BusinessCache
    store: PermitStore
    random_bytes: Callable[[], bytes]

    def call_slots(self, business: Business) -> CallSlots:
        return CallSlots(self.clock, business, self.known, partial(self._pool, business))

    def _pool(self, business: Business, scope: str, flow_key: str | None) -> Pool:
        change = partial(self._changed, business.biz_type, scope, flow_key)
        return Pool(self.clock, change, self.random_bytes().hex())

    def _changed(self, biz_type: str, scope: str, flow_key: str | None, wanted: Wanted) -> Taken:
        """By the limit that holds now."""
        limits = self.known.one(biz_type).in_flight_limits(flow_key)
        limit, now_ms = limits.get(scope, IN_FLIGHT_MAX), self.clock.now_ms()
        plan = partial(rules.changed, wanted=wanted, limit=limit, now_ms=now_ms)
        permits = self.store.change(scope, plan)
        held = permits.held.get(wanted.owner, Holding(0, 0))
        return Taken(held, rules.share(permits, wanted, limit, now_ms))
