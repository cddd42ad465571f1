"""Backfill a timer: begin the operation, find its runs that were not made, and make one.

A run and its record are one transaction. So a worker that carries out a page again after a crash
finds which of its runs are made, and only announces them.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.access.grants import Permit
from duewheel.rules.bulk.operation import Backfill, Operation, Page
from duewheel.rules.fields import invalid
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import TooManyWrites
from duewheel.rules.tasks.idempotency import IdempotentRequest
from duewheel.rules.tasks.task import Plan
from duewheel.rules.timers import backfill
from duewheel.rules.timers.backfill import BackfillRequest, known_from, was_made
from duewheel.rules.timers.planning import manual_task
from duewheel.rules.timers.schedule import next_second, seconds_from
from duewheel.rules.timers.timer import Timer, no_such_timer
from duewheel.rules.wheel.addresses import Second, header_place
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import Conflict, unavailable_when_throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.backfilled import BackfilledRuns
from duewheel.stores.timers.occurrences import OccurrenceList
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.bulk.operations import CreateOperation
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.timers.read_timers import ReadTimers

_READ_AT_ONCE = 500


class StartBackfill(Struct, frozen=True, kw_only=True):
    clock: Clock
    read_timers: ReadTimers
    tasks: TaskStore
    known: BusinessCache
    create: CreateOperation

    def __call__(
        self,
        timer_id: str,
        asked: BackfillRequest,
        permit: Permit,
        *,
        by: str,
        once: IdempotentRequest | None = None,
    ) -> Operation:
        timer = self.read_timers.find(timer_id, permit)
        if (before := self.create.made_before(once)) is not None:  # the checks depend on the time
            return before
        with unavailable_when_throttled():
            retention_seconds = self.known.one(timer.biz_type).retention_seconds
            plan = self._plan(timer)
        now_ms = self.clock.now_ms()
        new = backfill.new_operation(timer, asked, plan, retention_seconds, now_ms)
        return self.create(new, by=by, once=once)

    def _plan(self, timer: Timer) -> Plan | None:
        if timer.chain is None or timer.ended:
            return None
        chain = self.tasks.get(timer.chain)
        return None if chain is None or not chain.is_live else chain.plan


class RunsNotMade(Struct, frozen=True, kw_only=True):
    """The source: instants of the schedule, as it is now, without those of runs that were made. An
    item is the second."""

    tasks: TaskStore
    timers: TimerStore
    run_list: OccurrenceList
    backfilled: BackfilledRuns

    def __call__(self, operation: Operation, position: str | None) -> Page:
        of = _of(operation)
        timer = _found(self.timers, of.timer_id)
        schedule, last = timer.rules.schedule, of.to_second - 1
        first = of.from_second if position is None else int(position) + 1
        seconds = seconds_from(schedule, first, operation.page_max, last)
        if not seconds:
            return Page((), 0, None)
        following = next_second(schedule, seconds[-1])
        is_last = following is None or following > last
        made = self._made(timer, seconds)
        items = tuple(str(second) for second in seconds if second not in made)
        return Page(items, len(seconds), None if is_last else str(seconds[-1]))

    def _made(self, timer: Timer, seconds: Sequence[Second]) -> set[Second]:
        made = self.backfilled.seconds(timer.timer_id, seconds)
        until = seconds[-1] + timer.rules.late_seconds_max
        behind, goes_on = header_place(seconds[0]), True
        while goes_on:
            homes, goes_on = self.run_list.page(
                timer.timer_id, newest_first=False, behind=behind, limit=_READ_AT_ONCE
            )
            if not homes:
                break
            behind = homes[-1].place
            goes_on = goes_on and homes[-1].second <= until
            found = self.tasks.get_many(home for home in homes if home.second <= until)
            made |= {
                task.occurrence.second
                for task in found.values()
                if task.occurrence is not None and was_made(task)
            }
        return made


class MakeRun(Struct, frozen=True, kw_only=True):
    """Due at once, and called as a run by hand is: whether its timer is enabled or not, and beside
    others."""

    clock: Clock
    tasks: TaskStore
    timers: TimerStore
    known: BusinessCache
    backfilled: BackfilledRuns
    keep_order: KeepOrder
    entry_writer: EntryWriter

    def __call__(self, operation: Operation, item: str) -> bool:
        second = int(item)
        timer = _found(self.timers, _of(operation).timer_id)
        self._check_known(timer, second)
        placement = self.entry_writer.placement_now()
        task = manual_task(timer, placement, self.entry_writer.random_bytes(), second)
        record = self.backfilled.record(timer.timer_id, second, operation.mark, task.home)
        home = task.home
        with unavailable_when_throttled(TooManyWrites()):
            keyed = replace(task, flow_key=timer.rules.flow_key)
            if self.keep_order.reserve([keyed]):
                raise TooManyWrites()
            try:
                is_made = self.tasks.create_with(task, record)
            except Conflict:
                is_made = False
            if not is_made:
                before = self.backfilled.read(timer.timer_id, second)
                if before is None or before.home != home:
                    self.keep_order.withdraw([keyed])
                if before is None:
                    raise TooManyWrites()
                if before.mark != operation.mark or before.home is None:
                    return False
                home = before.home
        self.entry_writer.announce([home])
        return True

    def _check_known(self, timer: Timer, second: Second) -> None:
        """The operation may have waited for long."""
        retention_seconds = self.known.one(timer.biz_type).retention_seconds
        if timer.created_ms // 1000 <= second < known_from(retention_seconds, self.clock.now_ms()):
            raise invalid(
                "from", "is too early by now: the records of runs of that time are deleted."
            )


def instant_of(item: str) -> str:
    """The name of an item to callers."""
    return rfc3339(int(item) * 1000)


def _of(operation: Operation) -> Backfill:
    if operation.wish.backfill is None:
        raise ValueError("the operation is no backfill")
    return operation.wish.backfill


def _found(timers: TimerStore, timer_id: str) -> Timer:
    if (timer := timers.read(timer_id)) is None:
        raise no_such_timer()
    return timer
