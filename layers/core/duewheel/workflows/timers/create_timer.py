"""Create a timer: definition, list line and, where it is enabled, its chain, all at once."""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.refusals import Unavailable
from duewheel.rules.tasks.effective_callback import check_callback
from duewheel.rules.timers.requests import NewTimer
from duewheel.rules.timers.timer import Timer, timer_id_of
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.timers.planning_chain import Chained, PlanningChain
from duewheel.workflows.tries import until_won

# An id is taken once in thousands of millions of times; another is drawn then.
_TRIES = 3
NOT_STORED = "The timer was not stored: too many writes at once. Try it again."


class CreateTimer(Struct, frozen=True, kw_only=True):
    clock: Clock
    timers: TimerStore
    chain: PlanningChain
    known: BusinessCache
    random_number: Callable[[], int]  # below `ID_RANGE`

    def __call__(self, new: NewTimer, *, by: str) -> Timer:
        with unavailable_when_throttled():
            business = self.known.one(new.biz_type)
        check_callback(new.rules.callback, new.rules.payload, business)

        def try_once() -> Timer | None:
            timer = self._drawn(new)
            chained = self.chain.begun(timer) if timer.enabled else Chained(timer)
            with unavailable_when_throttled(Unavailable(NOT_STORED)):
                is_stored = self.timers.create(chained.timer, by, chained.actions)
            if not is_stored:
                return None
            self.chain.announce(chained)
            return chained.timer

        return until_won(try_once, _TRIES, Unavailable(NOT_STORED))

    def _drawn(self, new: NewTimer) -> Timer:
        now_ms = self.clock.now_ms()
        return Timer(
            timer_id=timer_id_of(self.random_number()),
            biz_type=new.biz_type,
            rules=new.rules,
            enabled=new.enabled,
            version=1,
            created_ms=now_ms,
            updated_ms=now_ms,
        )
