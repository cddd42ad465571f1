"""Keep a business to its creates a second, over all processes.

A process takes turns in blocks and gives them out from memory, so that most creates cost no write.
Turns that it has not given out after a second are lost: no business saves up beyond the burst.
"""

import math
from threading import Lock

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.businesses.rate_limit import US_PER_MS, RateLimit, RateLimited, ReservedTurns
from duewheel.rules.businesses.settings import Business
from duewheel.stores.businesses.rate_limits import CREATES, RateLimitStore

BLOCK_SECONDS = 0.25  # what a block holds of the rate
BLOCK_GOOD_MS = 1_000
BLOCKS_MAX = 2_000


class _Block(Struct):
    left: int
    version: int
    taken_ms: int


class Allowed(Struct, frozen=True):
    """How many are allowed; if fewer than requested, the next one after `wait_ms`."""

    count: int
    wait_ms: int = 0


class LimitCreateRate:
    def __init__(self, clock: Clock, turns: RateLimitStore) -> None:
        self._clock = clock
        self._turns = turns
        self._lock = Lock()
        self._blocks: dict[str, _Block] = {}

    def __call__(self, business: Business, wanted: int) -> Allowed:
        rate, burst = business.create_rate, business.creates_burst
        if rate is None or burst is None:
            return Allowed(wanted)
        with self._lock:
            at_hand = self._from_block(business.biz_type, rate.version, wanted)
            if at_hand == wanted:
                return Allowed(wanted)
            return self._taken(business.biz_type, rate, burst, wanted, at_hand)

    def _from_block(self, biz_type: str, version: int, wanted: int) -> int:
        block = self._blocks.get(biz_type)
        if block is None or block.version != version:
            return 0
        if not 0 <= self._clock.now_ms() - block.taken_ms < BLOCK_GOOD_MS:
            return 0
        given = min(wanted, block.left)
        block.left -= given
        return given

    def _taken(
        self, biz_type: str, rate: RateLimit, burst: int, wanted: int, at_hand: int
    ) -> Allowed:
        rest = wanted - at_hand
        block = min(burst, max(rest, math.floor(rate.per_second * BLOCK_SECONDS)))
        now_ms = self._clock.now_ms()

        def take(count: int) -> ReservedTurns | RateLimited:
            ahead_us = burst * rate.interval_us
            return self._turns.take(CREATES, biz_type, rate, count, now_ms * US_PER_MS, ahead_us)

        taken = take(block)
        if isinstance(taken, RateLimited) and taken.free:
            taken = take(min(taken.free, block))
        if isinstance(taken, RateLimited):
            return Allowed(at_hand, math.ceil(taken.wait_us / US_PER_MS))
        given = min(rest, taken.count)
        self._keep(biz_type, _Block(taken.count - given, taken.version, now_ms))
        if given == rest:
            return Allowed(wanted)
        return Allowed(at_hand + given, math.ceil(taken.interval_us / US_PER_MS))

    def _keep(self, biz_type: str, block: _Block) -> None:
        self._blocks.pop(biz_type, None)  # so that it comes last, as the youngest
        self._blocks[biz_type] = block
        if len(self._blocks) > BLOCKS_MAX:
            del self._blocks[next(iter(self._blocks))]
