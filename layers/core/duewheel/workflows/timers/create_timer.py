"""Create a timer: definition, list line and, where it is enabled, its chain, all at once.

Under an idempotency key the transaction has a record of the request as well. A repeat finds it, and
gets the timer as it is now.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.refusals import InvalidField, TooManyCreates, Unavailable, UnknownTimer
from duewheel.rules.tasks.effective_callback import check_callback, check_on_outcome
from duewheel.rules.tasks.idempotency import IdempotentRequest
from duewheel.rules.timers.requests import NewTimer
from duewheel.rules.timers.timer import Timer, timer_id_of
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import Conflict, unavailable_when_throttled
from duewheel.stores.tasks.made_once import MadeOnce
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
    made_once: MadeOnce
    random_number: Callable[[], int]  # below `ID_RANGE`
    check_call: Callable[[str], None]  # whether its business allows one more

    def __call__(self, new: NewTimer, *, by: str, once: IdempotentRequest | None = None) -> Timer:
        try:
            self.check(new)
            self.check_call(new.biz_type)
        except (InvalidField, TooManyCreates):  # a repeat gets what it has made
            if (before := self.made_before(once)) is None:
                raise
            return before

        def try_once() -> Timer | None:
            timer = self.drawn(new)
            with unavailable_when_throttled(Unavailable(NOT_STORED)):
                if once is None:
                    return self.store(timer, by)
                try:
                    record = self.made_once.record(once, timer.timer_id, timer.created_ms)
                    return self.store(timer, by, record) or self.made_before(once)
                except Conflict:
                    return self.made_before(once)

        return until_won(try_once, _TRIES, Unavailable(NOT_STORED))

    def check(self, new: NewTimer) -> None:
        with unavailable_when_throttled():
            business = self.known.one(new.biz_type)
        check_callback(new.rules.callback, new.rules.payload, business)
        check_on_outcome(new.rules.on_outcome, business)

    def drawn(self, new: NewTimer) -> Timer:
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

    def store(self, timer: Timer, by: str, *actions: Any) -> Timer | None:
        """None if another timer has its id, or if the condition of an action, which is a further
        part of the transaction, failed."""
        chained = self.chain.begun(timer) if timer.enabled else Chained(timer)
        if not self.timers.create(chained.timer, by, (*chained.actions, *actions)):
            return None
        self.chain.announce(chained)
        return chained.timer

    def made_before(self, once: IdempotentRequest | None) -> Timer | None:
        """By the same request."""
        if once is None:
            return None
        if (timer_id := self.made_once.made(once, self.clock.now_ms())) is None:
            return None
        if (timer := self.timers.read(timer_id)) is None:
            raise UnknownTimer("The timer that this request made has been deleted since.")
        return timer
