"""Change a timer, enable, disable or delete it: read it, say what it becomes, write that if it
still stands as it was read.

One transaction writes the timer and the record of its change, ends the chain that planned it and
begins the one that will. From its answer on the timer as it then stands decides what is called.
"""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules import timer_change
from duewheel.rules.callback_defaults import check_callback
from duewheel.rules.precondition import Precondition
from duewheel.rules.refusals import Unavailable
from duewheel.rules.timer import Timer
from duewheel.rules.timer_ids import no_such_timer
from duewheel.rules.timer_request import TimerChange
from duewheel.stores.conditions import Conflict, Throttled
from duewheel.stores.known_businesses import KnownBusinesses
from duewheel.stores.timers import TimerStore
from duewheel.workflows.chain_timer import Chained, ChainTimer

# Each lost race shows that another was first: a caller, or the chain, which moves on by itself.
_TRIES = 5
_ANYHOW = Precondition()


class ChangeTimer(Struct, frozen=True):
    clock: Clock
    timers: TimerStore
    chain: ChainTimer
    known: KnownBusinesses

    def __call__(
        self, timer_id: str, change: TimerChange, precondition: Precondition = _ANYHOW, *, by: str
    ) -> Timer:
        def altered(timer: Timer, now_ms: int) -> Timer:
            rules = timer_change.changed_rules(timer.rules, change.values, now_ms // 1000)
            if "callback" in change.values or "payload" in change.values:
                check_callback(rules.callback, rules.payload, self.known.one(timer.biz_type))
            enabled = timer.enabled if change.enabled is None else change.enabled
            return timer_change.changed(timer, rules, enabled=enabled, now_ms=now_ms)

        return self._change(timer_id, altered, precondition, by)

    def enable(
        self, timer_id: str, precondition: Precondition = _ANYHOW, *, enabled: bool = True, by: str
    ) -> Timer:
        """One that stands so already stays as it is."""

        def altered(timer: Timer, now_ms: int) -> Timer:
            return timer_change.changed(timer, timer.rules, enabled=enabled, now_ms=now_ms)

        return self._change(timer_id, altered, precondition, by)

    def disable(self, timer_id: str, precondition: Precondition = _ANYHOW, *, by: str) -> Timer:
        return self.enable(timer_id, precondition, enabled=False, by=by)

    def delete(self, timer_id: str, precondition: Precondition = _ANYHOW, *, by: str) -> Timer:
        """The timer as it last stood."""

        def try_once() -> Timer | None:
            timer = self._find(timer_id)
            precondition.check("timer", timer.version)
            chained = self.chain.stopped(timer, self.chain.read(timer), None)
            if not self.timers.delete(timer, by, chained.actions):
                return None
            self.chain.announce(chained)
            return timer

        return _one_that_wins(try_once)

    def _change(
        self,
        timer_id: str,
        alter: Callable[[Timer, int], Timer],
        precondition: Precondition,
        by: str,
    ) -> Timer:
        def try_once() -> Timer | None:
            before = self._find(timer_id)
            precondition.check("timer", before.version)
            after = alter(before, self.clock.now_ms())
            if after is before:
                return before
            chained = self._chained(before, after)
            if not self.timers.change(before, chained.timer, by, chained.actions):
                return None
            self.chain.announce(chained)
            return chained.timer

        return _one_that_wins(try_once)

    def _find(self, timer_id: str) -> Timer:
        if (timer := self.timers.read(timer_id)) is None:
            raise no_such_timer()
        return timer

    def _chained(self, before: Timer, after: Timer) -> Chained:
        if timer_change.keeps_chain(before, after):
            return Chained(after)
        old = self.chain.read(before)
        after = timer_change.unchained(before, after, old, self.clock.now_ms() // 1000)
        stopped = self.chain.stopped(before, old, after)
        if not after.enabled:
            return stopped
        begun = self.chain.begun(after)
        actions = (*stopped.actions, *begun.actions)
        return Chained(begun.timer, actions, (*stopped.entries, *begun.entries))


def _one_that_wins(try_once: Callable[[], Timer | None]) -> Timer:
    for _ in range(_TRIES):
        try:
            if (timer := try_once()) is not None:
                return timer
        except Conflict:
            continue  # another is at work on it, or its chain is; which of them wins shows soon
        except Throttled as throttled:
            raise Unavailable("Too many writes at once. Try it again.") from throttled
    raise Unavailable("Too many requests change this timer at once.")
