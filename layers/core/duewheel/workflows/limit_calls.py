"""Keep a business to its calls a second, over all notifiers: turns first, calls at their turns.

One write takes the turns of all its tasks in a page. Whoever dies between that and the calls loses
the turns and nothing else.
"""

from collections.abc import Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.business import Business
from duewheel.rules.promises import is_promised, shared_out
from duewheel.rules.task import Promise, Task
from duewheel.rules.turns import NO_LIMIT_AHEAD_US, US_PER_MS, NoTurn
from duewheel.stores.conditions import Throttled
from duewheel.stores.turns import CALLS, TurnStore


class LimitCalls(Struct, frozen=True):
    clock: Clock
    turns: TurnStore

    def __call__(
        self, tasks: Sequence[Task], business: Business
    ) -> tuple[list[tuple[Task, int]], list[tuple[Task, Promise]]]:
        """Of one business's tasks, in the order of their instants: those to be called, with the
        instant from which each may be, and those to be put off."""
        rate = business.call_rate
        if rate is None:
            return [(task, task.next_ms) for task in tasks], []
        now_ms = self.clock.now_ms()
        promised = [task for task in tasks if is_promised(task, rate.version, now_ms)]
        others = [task for task in tasks if not is_promised(task, rate.version, now_ms)]
        soon = [(task, task.next_ms) for task in promised]
        if not others:
            return soon, []
        from_us = max(now_ms, others[0].next_ms) * US_PER_MS
        taken = self.turns.take(
            CALLS, business.biz_type, rate, len(others), from_us, NO_LIMIT_AHEAD_US
        )
        if isinstance(taken, NoTurn):
            raise Throttled(f"{business.biz_type} has no turn for {taken.wait_us} microseconds")
        at_their_turn, later = shared_out(others, taken, now_ms)
        return [*soon, *at_their_turn], later
