"""Plan occurrences: when the chain of a timer falls due, write the next occurrences and move the
chain on.

The order: one conditional update of the chain records the shards of the occurrences; they are put,
each if absent; then the next entry of the chain; then another update of the chain records how far
they are written, and names that entry. Another planner, after a crash or at the same time, writes
the same items again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.log import logger, report_lost_race
from duewheel.rules.businesses.settings import RETENTION_SECONDS_MIN, Business
from duewheel.rules.callbacks.types import Told
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.outcome_notice import asked_for_runs
from duewheel.rules.tasks.task import Occurrence, Plan, Sizes, Task
from duewheel.rules.timers import planning
from duewheel.rules.timers.occurrence_policy import (
    Reason,
    misfire,
    reason_of_misfires,
    with_timer_fields,
)
from duewheel.rules.timers.outcome_counts import COUNTED_AS
from duewheel.rules.timers.planning import Step
from duewheel.rules.timers.timer import Timer
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import Throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.timers.disable_timer import DisableTimer
from duewheel.workflows.tries import changed_or_logged

WRITERS = 8  # a timer's occurrences share a partition of their index
RESERVE_MS = 20_000  # what a step may take, with time to spare
X = TypeVar("X")
_PLANS_NOTHING = "plans no timer any more"


class PlanTimers(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    timers: TimerStore
    counters: CounterStore
    known: BusinessCache
    entry_writer: EntryWriter
    reschedule: Reschedule
    keep_order: KeepOrder
    tell_outcome: TellOutcome
    disable_timer: DisableTimer
    writers: ThreadPoolExecutor

    def __call__(self, chains: Sequence[tuple[Task, Plan]], deadline_ms: int) -> list[Task]:
        """One chain after the other, since the calls of the page need the processor. Returns the
        chains for which no time was left. If one fails, the others are planned."""
        timers = self.timers.read_many(plan.timer_id for _, plan in chains)
        failure: Exception | None = None
        for number, (chain, plan) in enumerate(chains):
            if self.clock.now_ms() > deadline_ms - RESERVE_MS:
                return [chain for chain, _ in chains[number:]]
            try:
                self._plan(chain, plan, timers.get(plan.timer_id))
            except Exception as error:  # noqa: BLE001 - kept, and raised at the end
                failure = failure or error
        if failure is not None:
            raise failure
        return []

    def _plan(self, chain: Task, plan: Plan, timer: Timer | UnreadableItem | None) -> None:
        if isinstance(timer, UnreadableItem):
            self.reschedule.postponed([chain])()
            return
        if timer is None or not timer.enabled or timer.chain != chain.home:
            self._end(chain, _PLANS_NOTHING)
            return
        step = planning.next_step(timer, plan, self.clock.now_ms())
        if due_seconds := planning.without_shards(timer, plan, step):
            recorded = self._with_shards(chain, plan, step, due_seconds)
            if recorded is None:
                return
            chain, step = recorded
        self._write(timer, step.occurrences, step.plan.sizes)
        if step.next_ms is None:
            self.timers.mark_ended(timer.timer_id, chain.home, step.plan.numbered)
            self._end(chain, "timer ended")
            return
        entry = self.entry_writer.put(chain, step.next_ms)
        after = planning.moved_on(chain, step, entry, step.next_ms, self.clock.now_ms())
        if self._change(chain, after, step.misfired, timer):
            self.entry_writer.announce([entry])
        else:
            report_lost_race(chain.task_id, chain.biz_type)
        if timer.rules.pause_on_failures is not None:
            self.disable_timer.if_failing(timer.timer_id)

    def _with_shards(
        self, chain: Task, plan: Plan, step: Step, due_seconds: Mapping[int, int]
    ) -> tuple[Task, Step] | None:
        """None if another writer has changed the chain meanwhile. An occurrence that is near, or
        past, has an entry of its own, so the place of its home does not matter."""
        placement = self.entry_writer.placement()
        far = {of: due for of, due in due_seconds.items() if not placement.is_near(due)}
        by_due = self.entry_writer.reserve_shards(far.values(), surely=True)
        shards = {(of, due): by_due[due] for of, due in far.items() if due in by_due}
        changed, step = planning.with_shards(chain, plan, step, shards, self.clock.now_ms())
        return (changed, step) if changed_or_logged(self.tasks, chain, changed) else None

    def _end(self, chain: Task, reason: str) -> None:
        """If another writer has changed the chain, that change counts."""
        now_ms = self.clock.now_ms()
        after = lifecycle.cancelled(chain, reason, now_ms, RETENTION_SECONDS_MIN)
        self.tasks.change(chain, after)

    def _change(self, chain: Task, after: Task, misfired: Sequence[int], timer: Timer) -> bool:
        """Together with the count of passed-over occurrences, and their notice, so that they are
        counted and told once."""
        if not misfired:
            return self.tasks.change(chain, after)
        reason = reason_of_misfires(timer.rules)
        counted = {COUNTED_AS[reason]: len(misfired)}
        along: list[Any] = [{"Update": self.counters.add_request(timer.timer_id, counted)}]
        asked = asked_for_runs(timer.rules.on_outcome, self.known.one(timer.biz_type))
        notices = []
        if asked is not None:
            told = self.tell_outcome.of_runs(chain, timer.timer_id, reason, misfired, asked)
            notices.append(told)
            along.append(self.tell_outcome.put(told))
        logger.info(
            "runs misfired", action="misfired", timer_id=timer.timer_id, count=len(misfired)
        )
        is_changed = self.tasks.change_along(chain, after, *along)
        if is_changed:
            self.tell_outcome.announce(notices)
        return is_changed

    def _write(self, timer: Timer, occurrences: Sequence[Occurrence], sizes: Sizes) -> None:
        if not occurrences:
            return
        business = self.known.one(timer.biz_type)
        self._reserve(timer, sizes, occurrences)
        put = _caught(partial(self._put, timer, business, sizes))
        outcomes = fan_out(self.writers, put, occurrences)
        there = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
        # Those of an earlier run, too: it may have ended before it announced them.
        self.entry_writer.announce(
            task.entry if is_new else task.home for task, is_new in there if task.is_live
        )
        for failure in outcomes:
            if isinstance(failure, Exception):
                raise failure
        written = [task for task, is_new in there if is_new]
        ended = [task for task in written if task.reason]
        self.counters.add(
            timer.timer_id, Counter(COUNTED_AS[Reason(str(task.reason))] for task in ended)
        )
        logger.info(
            "timer planned",
            action="planned",
            timer_id=timer.timer_id,
            count=len(written),
            missed=len(ended),
        )

    def _reserve(self, timer: Timer, sizes: Sizes, occurrences: Sequence[Occurrence]) -> None:
        """The order items of the occurrences. Their homes have no flow key: it is that of the timer
        at the call."""
        flow_key = timer.rules.flow_key
        if flow_key is None:
            return
        now_ms = self.clock.now_ms()
        made = [planning.occurrence_task(timer, one, now_ms, sizes) for one in occurrences]
        if self.keep_order.reserve([replace(one, flow_key=flow_key) for one in made]):
            raise Throttled("order items of occurrences were not written")

    def _put(
        self, timer: Timer, business: Business, sizes: Sizes, occurrence: Occurrence
    ) -> tuple[Task, bool]:
        """False if the occurrence is there already. An occurrence whose second may already have
        been read gets an entry of its own, at which it falls due first."""
        placement = self.entry_writer.placement()
        task = planning.occurrence_task(timer, occurrence, placement.now_ms, sizes)
        reason = misfire(task, occurrence, timer, placement.now_ms)
        if reason is None and not placement.is_near(task.home.second):
            return task, self.tasks.create(task)
        (entry,) = self.entry_writer.addresses([task.next_ms])
        task = replace(task, entry=entry, first_second=entry.second)
        if reason is None:
            return task, self.tasks.create_with_entry(task)
        return self._put_missed(timer, business, task, reason)

    def _put_missed(
        self, timer: Timer, business: Business, task: Task, reason: Reason
    ) -> tuple[Task, bool]:
        now_ms = self.clock.now_ms()
        asked = asked_for_runs(timer.rules.on_outcome, business)
        if asked is None:
            ended = lifecycle.cancelled(task, reason, now_ms, business.retention_seconds)
            return ended, self.tasks.create_with_entry(ended)
        if task.occurrence is not None:
            task = with_timer_fields(task, task.occurrence, timer)
        ended = lifecycle.cancelled(task, reason, now_ms, business.retention_seconds)
        ended, notice = self.tell_outcome.noted(ended, Told.MISSED, asked)
        is_new = self.tasks.create_with_entry(ended, self.tell_outcome.put(notice))
        if is_new:
            self.tell_outcome.announce([notice])
        return ended, is_new


def _caught(put: Callable[[Occurrence], X]) -> Callable[[Occurrence], X | Exception]:
    def outcome_of(occurrence: Occurrence) -> X | Exception:
        try:
            return put(occurrence)
        except Exception as error:  # noqa: BLE001 - raised when the others are announced
            return error

    return outcome_of
