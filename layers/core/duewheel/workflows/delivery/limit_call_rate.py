"""The rate limit of calls, over all notifiers: reserve turns, then call at them.

One write reserves the turns, and the places in the lines, of all tasks of a business in a page. A
notifier that dies before the calls loses the turns and nothing else.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.businesses.rate_limit import Cursors
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.reservations import allocate, guessed, holds_turn, planned
from duewheel.rules.tasks.task import Reservation, Task
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.workflows.delivery.gate import BusinessRun, Call, Gate
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule

CURSORS_KEPT_MAX = 2_000


class LimitCallRate:
    """Keeps the cursors as this process last moved them: the next write is planned from these, and
    is refused if others have moved them too far since."""

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
        now_ms = self._clock.now_ms()
        with_turns = [task for task in tasks if holds_turn(task, rate.version, now_ms)]
        others = [task for task in tasks if not holds_turn(task, rate.version, now_ms)]
        soon = [(task, task.next_ms) for task in with_turns]
        if not others:
            return soon, []
        seen = self._seen.pop(business.biz_type, None)
        if seen is None or seen.version < rate.version:
            seen = Cursors(rate.interval_us, rate.version)
        seen, after = self._turns.move(
            business.biz_type,
            rate,
            lambda cursors: planned(others, cursors, now_ms).moves,
            guessed(others, seen, now_ms),
        )
        self._remember(business.biz_type, after)
        at_their_turn, later = allocate(planned(others, seen, now_ms), seen, after)
        return [*soon, *at_their_turn], later

    def _remember(self, biz_type: str, cursors: Cursors) -> None:
        self._seen[biz_type] = cursors
        if len(self._seen) > CURSORS_KEPT_MAX:
            del self._seen[next(iter(self._seen))]


class RateLimitGate(Gate, Struct, frozen=True):
    """A probe is called without a turn."""

    limit: LimitCallRate
    reschedule: Reschedule
    retry_throttled: RetryThrottled

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        tasks = [call.task for call in calls if call.probe is None]
        if run.business.call_rate is None or not tasks:
            return calls
        limit = partial(self.limit, tasks, run.business)
        soon, later = await self.retry_throttled(limit, run.page.deadline_ms)
        for reserved in later:
            run.put_aside(reserved, self._reschedule)
        probes = [call for call in calls if call.probe is not None]
        return [*probes, *(Call(task, from_ms) for task, from_ms in soon)]

    async def _reschedule(self, reserved: list[tuple[Task, Reservation]], run: BusinessRun) -> None:
        await self.retry_throttled(self.reschedule.reserved(reserved), run.page.deadline_ms)
