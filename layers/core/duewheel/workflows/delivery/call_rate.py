"""The rate limit of calls, over all notifiers: turns of a business, or of one of its flow keys."""

from collections.abc import Sequence
from enum import Enum

from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.businesses.rate_limit import Cursors, RateLimit
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.priority import Rank, rank
from duewheel.rules.delivery.reservations import (
    PERMIT_WAIT_MS,
    TurnPlan,
    allocate,
    guessed,
    has_waited,
    planned,
)
from duewheel.rules.tasks.task import Reservation, Task
from duewheel.stores.businesses.rate_limits import RateLimitStore

CURSORS_KEPT_MAX = 2_000


class Turns(Enum):
    """`LOOKED_FOR`: tasks that find no turn get places in a line; the others get the instants of
    turns that are free now, and take none. `TAKEN_WITH_PERMITS`: the tasks are no newcomers. While
    they hold a permit of their business, they do not wait for a turn of their flow key."""

    TAKEN = "taken"
    LOOKED_FOR = "looked for"
    TAKEN_WITH_PERMITS = "taken with permits"


class LimitCallRate:
    """Reserve turns, then call at them.

    One write reserves the turns, and the places in the lines, of all tasks of a business in a page.
    If a notifier crashes before the calls, only the turns are lost. The process caches the cursors
    of its last write, and plans the next write from them. That write is refused if others have
    moved the cursors too far since.
    """

    def __init__(self, clock: Clock, turns: RateLimitStore) -> None:
        self._clock = clock
        self._turns = turns
        self._seen: dict[str, Cursors] = {}

    def __call__(
        self, tasks: Sequence[Task], business: Business
    ) -> tuple[list[tuple[Task, int]], list[tuple[Task, Reservation]]]:
        """Of tasks of one business, in the order of their instants: those to be called, each with
        its earliest instant, and those to be rescheduled."""
        rate = business.call_rate
        if rate is None:
            return [(task, task.next_ms) for task in tasks], []
        return self.within(tasks, business, business.biz_type, rate)

    def within(
        self,
        tasks: Sequence[Task],
        business: Business,
        scope: str,
        rate: RateLimit,
        *,
        how: Turns = Turns.TAKEN,
    ) -> tuple[list[tuple[Task, int]], list[tuple[Task, Reservation]]]:
        """`scope`: a business, or one of its flow keys."""
        now_ms = self._clock.now_ms()
        takes, wait_ms_max = how is not Turns.LOOKED_FOR, None
        if how is Turns.TAKEN_WITH_PERMITS:
            tasks = [has_waited(task) for task in tasks]
            if scope != business.biz_type and business.own.calls_in_flight is not None:
                wait_ms_max = PERMIT_WAIT_MS

        def rank_of(task: Task) -> Rank:
            return rank(task, business, now_ms)

        def plan_by(cursors: Cursors) -> TurnPlan:
            plan = planned(tasks, cursors, now_ms, rank_of, wait_ms_max)
            if not takes:
                plan.moves = replace(plan.moves, free=None, line_most_us=None)
            return plan

        seen, after = self._turns.move(
            scope,
            rate,
            lambda cursors: plan_by(cursors).moves,
            self._guess(tasks, scope, rate, now_ms) if takes else self._turns.read(scope, rate),
        )
        self._remember(scope, after)
        plan = plan_by(seen)
        return allocate(plan, seen, after)

    def _guess(self, tasks: Sequence[Task], scope: str, rate: RateLimit, now_ms: int) -> Cursors:
        seen = self._seen.pop(scope, None)
        if seen is None or seen.version < rate.version:
            seen = Cursors(rate.interval_us, rate.version)
        return guessed(tasks, seen, now_ms)

    def _remember(self, scope: str, cursors: Cursors) -> None:
        self._seen[scope] = cursors
        if len(self._seen) > CURSORS_KEPT_MAX:
            del self._seen[next(iter(self._seen))]
