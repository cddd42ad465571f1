"""Detect slow calls, and publish to all notifiers which businesses hold pages up.

A published state expires by itself. Calls in the slow lane are measured as well; while they are
slow they renew it. A failed publication fails no page.
"""

from msgspec import Struct, field

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import counts
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.slow_calls import (
    SLOW_FOR_MS,
    TOLD_EVERY_MS,
    Pace,
    should_publish,
    with_call,
)
from duewheel.rules.embedded_metrics import LATENESS
from duewheel.rules.tasks.task import Attempt
from duewheel.stores.businesses.cache import KNOWN_MAX, BusinessCache
from duewheel.stores.businesses.health import HealthStore, HealthWriteFailed
from duewheel.workflows.gather_all import in_thread

TELL_RESERVE_MS = 15_000  # what is left of the run, at least: a write that hangs takes its time


class DetectSlowCalls(Struct, frozen=True, kw_only=True):
    clock: Clock
    known: BusinessCache
    health_store: HealthStore
    _paces: dict[str, Pace] = field(default_factory=dict)
    _tried_ms: dict[str, int] = field(default_factory=dict)  # of the last publication, or its try

    async def __call__(self, business: Business, attempt: Attempt, deadline_ms: int) -> None:
        """Measure a call. If the invocation is about to end, leave publishing to the next call."""
        counts.measured(LATENESS, attempt.lateness_ms)
        biz_type, now_ms = business.biz_type, self.clock.now_ms()
        pace = self._noted(biz_type, attempt.duration_ms, now_ms)
        if business.own.lane is not None or not pace.is_slow:
            return
        was_just_tried = now_ms < self._tried_ms.get(biz_type, 0) + TOLD_EVERY_MS
        slow_until_ms = self.known.health_of(biz_type).slow_until_ms
        has_time = now_ms < deadline_ms - TELL_RESERVE_MS
        if has_time and not was_just_tried and should_publish(slow_until_ms, now_ms):
            self._tried_ms[biz_type] = now_ms
            await in_thread(self._tell, biz_type, now_ms + SLOW_FOR_MS)

    def _noted(self, biz_type: str, duration_ms: int, now_ms: int) -> Pace:
        pace = with_call(self._paces.pop(biz_type, None), duration_ms, now_ms)
        self._paces[biz_type] = pace  # it comes last, as the youngest
        if len(self._paces) > KNOWN_MAX:
            gone = next(iter(self._paces))
            del self._paces[gone]
            self._tried_ms.pop(gone, None)
        return pace

    def _tell(self, biz_type: str, until_ms: int) -> None:
        try:
            health = self.health_store.note_slow(biz_type, until_ms)
        except HealthWriteFailed as error:
            logger.warning(
                "slow calls not published",
                action="slow-untold",
                biz_type=biz_type,
                error=str(error),
            )
            return
        self.known.put_health(biz_type, health)
        logger.info("calls are slow", action="slow", biz_type=biz_type)
