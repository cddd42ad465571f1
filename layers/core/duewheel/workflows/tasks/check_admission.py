"""Check admission: whether a business allows a task that is about to be written, by its settings
and by its limit of creates a second, which also bounds all other ways to have a call made.

The check is made at the write, not when the request is read: a repeat of the request finds the
tasks that were created, even if the settings have changed.

The limit holds over all processes. A process takes turns in blocks and gives them out from memory,
so that most creates cost no write. A turn that is not given out within a second is lost, so no more
than the burst is saved.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from threading import Lock

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.metrics import CREATES_REFUSED, counts
from duewheel.rules.businesses.rate_limit import US_PER_MS, RateLimit, RateLimited, ReservedTurns
from duewheel.rules.businesses.settings import Business
from duewheel.rules.refusals import Refusal, TooManyCreates, UnreadableItem
from duewheel.rules.tasks.effective_callback import check_callback, check_on_outcome
from duewheel.rules.tasks.task import NewTask, Task
from duewheel.rules.tolerance import Window
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.dynamodb import unavailable_when_throttled

BLOCK_SECONDS = 0.25  # what a block holds of the rate
BLOCK_GOOD_MS = 1_000
BLOCKS_MAX = 2_000


class _Block(Struct):
    left: int
    version: int
    taken_ms: int


class Allowed(Struct, frozen=True):
    """The number of turns granted. If it is less than requested, `wait` is the time until the next
    turn."""

    count: int
    wait_ms: int = 0


class LimitCreateRate:
    def __init__(self, clock: Clock, turns: RateLimitStore) -> None:
        self._clock = clock
        self._turns = turns
        self._lock = Lock()
        self._blocks: dict[str, _Block] = {}

    def __call__(self, business: Business, wanted: int) -> Allowed:
        rate, burst = business.create_rate, business.creates_at_once
        if rate is None or burst is None:
            return Allowed(wanted)
        with self._lock:
            at_hand = self._from_block(business.biz_type, rate.version, wanted)
            if at_hand == wanted:
                return Allowed(wanted)
            return self._reserved(business.biz_type, rate, burst, wanted, at_hand)

    def _from_block(self, biz_type: str, version: int, wanted: int) -> int:
        block = self._blocks.get(biz_type)
        if block is None or block.version != version:
            return 0
        if not 0 <= self._clock.now_ms() - block.taken_ms < BLOCK_GOOD_MS:
            return 0
        given = min(wanted, block.left)
        block.left -= given
        return given

    def _reserved(
        self, biz_type: str, rate: RateLimit, burst: int, wanted: int, at_hand: int
    ) -> Allowed:
        rest = wanted - at_hand
        block = min(burst, max(rest, math.floor(rate.per_second * BLOCK_SECONDS)))
        now_ms = self._clock.now_ms()

        def reserve(count: int) -> ReservedTurns | RateLimited:
            ahead_us = burst * rate.interval_us
            return self._turns.reserve(biz_type, rate, count, now_ms * US_PER_MS, ahead_us)

        reserved = reserve(block)
        if isinstance(reserved, RateLimited) and reserved.free:
            reserved = reserve(min(reserved.free, block))
        if isinstance(reserved, RateLimited):
            return Allowed(at_hand, math.ceil(reserved.wait_us / US_PER_MS))
        given = min(rest, reserved.count)
        self._keep(biz_type, _Block(reserved.count - given, reserved.version, now_ms))
        if given == rest:
            return Allowed(wanted)
        return Allowed(at_hand + given, math.ceil(reserved.interval_us / US_PER_MS))

    def _keep(self, biz_type: str, block: _Block) -> None:
        self._blocks.pop(biz_type, None)  # moves it to the end, as the most recent
        self._blocks[biz_type] = block
        if len(self._blocks) > BLOCKS_MAX:
            del self._blocks[next(iter(self._blocks))]


class Admission(Struct, frozen=True):
    known: BusinessCache
    limit_create_rate: LimitCreateRate

    def check_change(self, task: Task | NewTask) -> None:
        """Raise the refusal of a changed task, if there is one."""
        business = self._businesses([task])[task.biz_type]
        check_callback(task.callback, task.payload, business)
        check_on_outcome(task.on_outcome, business)

    def check_call(self, biz_type: str) -> None:
        """A caller makes a call in another way than by a create: it takes a turn as well."""
        with unavailable_when_throttled():
            business = self.known.one(biz_type)
        allowed = self._allowed(business, 1)
        if not allowed.count:
            raise TooManyCreates(allowed.wait_ms)

    def check_earlier(self, before: Task, after: Task) -> None:
        """A change that has the task called earlier takes a turn."""
        if after.call_ms < before.call_ms:
            self.check_call(after.biz_type)

    def check_create(self, task: Task) -> None:
        """Raise the refusal of a new task, if there is one."""
        if (refusal := self.refusals([task])[0]) is not None:
            raise refusal

    def refusals(self, tasks: Sequence[Task]) -> list[Refusal | None]:
        """The refusals of new tasks, in order. The first tasks use up what the limit allows."""
        businesses = self._businesses(tasks)
        refusals = [_refusal(task, businesses[task.biz_type]) for task in tasks]
        wanted = Counter(
            task.biz_type for task, refusal in zip(tasks, refusals, strict=True) if refusal is None
        )
        allowed = {name: self._readable_turns(businesses[name], n) for name, n in wanted.items()}
        had: Counter[str] = Counter()
        for position, task in enumerate(tasks):
            if refusals[position] is None:
                had[task.biz_type] += 1
                of_business = allowed[task.biz_type]
                if isinstance(of_business, UnreadableItem):
                    refusals[position] = of_business
                elif had[task.biz_type] > of_business.count:
                    refusals[position] = TooManyCreates(of_business.wait_ms)
                    counts.add(CREATES_REFUSED)
        return refusals

    def tolerances(self, windows: Iterable[Window]) -> dict[str, int]:
        """Of the businesses that have one, as far as these windows do not say it themselves."""
        names = {window.biz_type for window in windows if window.tolerance_seconds is None}
        with unavailable_when_throttled():
            businesses = self.known.many(names)
        return {
            name: one.tolerance_seconds for name, one in businesses.items() if one.tolerance_seconds
        }

    def _readable_turns(self, business: Business, wanted: int) -> Allowed | UnreadableItem:
        """A damaged record of one business refuses no task of another."""
        try:
            return self._allowed(business, wanted)
        except UnreadableItem as damaged:
            return damaged

    def _allowed(self, business: Business, wanted: int) -> Allowed:
        with unavailable_when_throttled():
            return self.limit_create_rate(business, wanted)

    def _businesses(self, tasks: Iterable[Task | NewTask]) -> dict[str, Business]:
        with unavailable_when_throttled():
            return self.known.many({task.biz_type for task in tasks})


def _refusal(task: Task, business: Business) -> Refusal | None:
    try:
        check_callback(task.callback, task.payload, business)
        check_on_outcome(task.on_outcome, business)
    except Refusal as refusal:
        return refusal
    return None
