"""Change, enable, disable, delete or run a timer.

A change reads the timer, computes the new definition, and writes it if the timer is unchanged. One
transaction writes the timer and the record of its change, ends the old chain and begins the new
one. From the answer on, the new definition decides what is called.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import (
    TooManyCreates,
    TooManyWrites,
    Unavailable,
    UnknownTask,
)
from duewheel.rules.tasks.effective_callback import check_callback, check_on_outcome
from duewheel.rules.tasks.idempotency import IdempotentRequest
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers import updates
from duewheel.rules.timers.planning import manual_task
from duewheel.rules.timers.requests import TimerChange
from duewheel.rules.timers.timer import Timer, no_such_timer
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import Conflict, unavailable_when_throttled
from duewheel.stores.tasks.made_once import MadeOnce
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.timers.planning_chain import Chained, PlanningChain
from duewheel.workflows.tries import until_won

# A lost race shows that another writer was first: a caller, or the chain, which moves on by itself.
_TRIES = 5
_ANYHOW = Precondition()


class ChangeTimer(Struct, frozen=True):
    clock: Clock
    timers: TimerStore
    chain: PlanningChain
    known: BusinessCache

    def __call__(
        self, timer_id: str, change: TimerChange, precondition: Precondition = _ANYHOW, *, by: str
    ) -> Timer:
        def altered(timer: Timer, now_ms: int) -> Timer:
            rules = updates.changed_rules(timer.rules, change.values, now_ms // 1000)
            if "callback" in change.values or "payload" in change.values:
                check_callback(rules.callback, rules.payload, self.known.one(timer.biz_type))
            if change.values.get("on_outcome") is not None:
                check_on_outcome(rules.on_outcome, self.known.one(timer.biz_type))
            enabled = timer.enabled if change.enabled is None else change.enabled
            return updates.changed(timer, rules, enabled=enabled, now_ms=now_ms)

        return self.alter(timer_id, altered, precondition, by)

    def enable(
        self, timer_id: str, precondition: Precondition = _ANYHOW, *, enabled: bool = True, by: str
    ) -> Timer:
        """A timer that is in this state already is left as it is."""

        def altered(timer: Timer, now_ms: int) -> Timer:
            return updates.changed(timer, timer.rules, enabled=enabled, now_ms=now_ms)

        return self.alter(timer_id, altered, precondition, by)

    def disable(self, timer_id: str, precondition: Precondition = _ANYHOW, *, by: str) -> Timer:
        return self.enable(timer_id, precondition, enabled=False, by=by)

    def delete(self, timer_id: str, precondition: Precondition = _ANYHOW, *, by: str) -> Timer:
        """Returns the timer as it was last."""

        def try_once() -> Timer | None:
            timer = self._find(timer_id)
            precondition.check("timer", timer.version)
            ended = self.chain.ended(self.chain.read(timer), None)
            return timer if self.timers.delete(timer, by, ended) else None

        return _one_that_wins(try_once)

    def alter(
        self,
        timer_id: str,
        alter: Callable[[Timer, int], Timer],
        precondition: Precondition,
        by: str,
        along: Callable[[Timer], Chained] = Chained,
    ) -> Timer:
        """`alter`: the changed timer, or the same object if nothing changes, at this instant.
        `along`: what else is written with the changed one."""

        def try_once() -> Timer | None:
            before = self._find(timer_id)
            precondition.check("timer", before.version)
            after = alter(before, self.clock.now_ms())
            if after is before:
                return before
            chained, more = self._chained(before, after), along(after)
            actions = (*chained.actions, *more.actions)
            if not self.timers.change(before, chained.timer, by, actions):
                return None
            self.chain.announce(chained)
            self.chain.announce(more)
            return chained.timer

        return _one_that_wins(try_once)

    def _find(self, timer_id: str) -> Timer:
        if (timer := self.timers.read(timer_id)) is None:
            raise no_such_timer()
        return timer

    def _chained(self, before: Timer, after: Timer) -> Chained:
        if updates.keeps_plan(before, after):
            return Chained(after)
        old = self.chain.read(before)
        after = updates.without_chain(before, after, old, self.clock.now_ms() // 1000)
        ended = self.chain.ended(old, after)
        if not after.enabled:
            return Chained(after, ended)
        begun = self.chain.begun(after)
        return replace(begun, actions=(*ended, *begun.actions))


def _one_that_wins(try_once: Callable[[], Timer | None]) -> Timer:
    def try_it() -> Timer | None:
        with unavailable_when_throttled(Unavailable("Too many writes at once. Try it again.")):
            try:
                return try_once()
            except Conflict:
                return None  # another writer has it, or its chain; the next read shows the result

    return until_won(try_it, _TRIES, Unavailable("Too many requests change this timer at once."))


class RunTimer(Struct, frozen=True, kw_only=True):
    timers: TimerStore
    tasks: TaskStore
    keep_order: KeepOrder
    entry_writer: EntryWriter
    made_once: MadeOnce
    check_call: Callable[[str], None]  # whether its business allows one more

    def __call__(self, timer_id: str, once: IdempotentRequest | None = None) -> Task:
        """Makes one occurrence by the current definition, due at once. A repeat of the request gets
        the occurrence as it is now."""
        timer = self.timers.read(timer_id)
        if timer is None:
            raise no_such_timer()
        try:
            self.check_call(timer.biz_type)
        except TooManyCreates:
            if once is None or (before := self._found(once)) is None:
                raise
            return before
        task = manual_task(
            timer, self.entry_writer.placement_now(), self.entry_writer.random_bytes()
        )
        with unavailable_when_throttled(TooManyWrites()):
            keyed = replace(task, flow_key=timer.rules.flow_key)
            if self.keep_order.reserve([keyed]):
                raise TooManyWrites()
            if once is None:
                self.tasks.create(task)
            elif (before := self._made_before(once, task)) is not None:
                self.keep_order.withdraw([keyed])
                return before
        self.entry_writer.announce([task.home])
        return task

    def _made_before(self, once: IdempotentRequest, task: Task) -> Task | None:
        """None if this has made the occurrence."""
        now_ms = self.entry_writer.clock.now_ms()
        if self.tasks.create_with(task, self.made_once.record(once, task.task_id, now_ms)):
            return None
        if (before := self._found(once)) is None:
            raise TooManyWrites()
        # By an earlier try of the same transaction, if it is this one.
        return None if before.task_id == task.task_id else before

    def _found(self, once: IdempotentRequest) -> Task | None:
        """The occurrence that this request made before."""
        made = self.made_once.made(once, self.entry_writer.clock.now_ms())
        if made is None:
            return None
        before = self.tasks.get(address_of_task(made))
        if before is None:
            raise UnknownTask("The run that this request made has been deleted since.")
        return before
