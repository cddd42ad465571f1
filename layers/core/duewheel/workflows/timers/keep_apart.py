"""Keep the runs of a timer apart, if they must not overlap: one is called, another one may wait.

A run that waits is put aside with a mark, and woken when the running one has ended. A wake-up reads
the line after that end is durable, and who puts a run aside looks once more: so of an end and a run
that is put aside at the same time one sees the other. If a process crashes in between, the run that
waits falls due by itself.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.refusals import AlreadySettled, TooLate, UnknownTask
from duewheel.rules.tasks import flow_order, lifecycle
from duewheel.rules.tasks.flow_order import Blocked
from duewheel.rules.tasks.task import PostponedBy, Task
from duewheel.rules.timers.occurrence_policy import Reason, with_timer_fields
from duewheel.rules.timers.overlap import Place, may_be_woken, placed
from duewheel.rules.timers.timer import Timer
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import is_of_aws
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.occurrences import Running, RunningStore
from duewheel.workflows.tasks.change_task import CancelTask
from duewheel.workflows.tasks.reschedule import Change
from duewheel.workflows.tasks.write_entries import EntryWriter

_ROUNDS = 6


class WakeWaiting(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    running: RunningStore
    entry_writer: EntryWriter
    lead_ms: int

    def __call__(self, timer: Timer) -> None:
        """Wake the run that waits, if the running one has ended, or can be cancelled for it."""
        if not timer.rules.overlap.lets_wait:
            return
        try:
            self._wake(timer)
        except Exception as error:
            if not is_of_aws(error):
                raise
            logger.warning(
                "a waiting run was not woken",
                action="not-woken",
                timer_id=timer.timer_id,
                error=str(error),
            )

    def _wake(self, timer: Timer) -> None:
        line = self.running.read_many([timer.timer_id]).get(timer.timer_id, Running()).line
        if line.waiting is None:
            return
        live = _live(self.tasks, line.homes)
        now_ms = self.clock.now_ms()
        task = may_be_woken(line, live, timer.rules.overlap, self.lead_ms, now_ms)
        if task is None:
            return
        # It may be put aside before its instant, by a clock that is ahead.
        at_ms = max(now_ms, task.due_ms)
        entry = self.entry_writer.put(task, at_ms)
        woken = lifecycle.postponed(task, at_ms, now_ms, PostponedBy.OVERLAP)
        if self.tasks.change(task, lifecycle.brought_to(woken, entry)):
            self.entry_writer.announce([entry])


class Entrant(Struct, frozen=True):
    """A run that falls due. `late`: it is misfired, unless it stands in the line already."""

    task: Task
    timer: Timer
    late: Reason | None = None


class Fate(Enum):
    CALLED = "it is called now"
    WAITS = "it is put aside"
    SKIPPED = "it is not called"
    LATE = "it is misfired"
    CONTENDED = "it falls due again"


class Entered(Struct, frozen=True):
    """`behind`: what it waits for. `replaced`: what was cancelled for it."""

    fate: Fate
    behind: Task | None = None
    replaced: tuple[Task, ...] = ()


_FATES = {Place.BEGINS: Fate.CALLED, Place.WAITS: Fate.WAITS, Place.SKIPPED: Fate.SKIPPED}


class KeepApart(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    running: RunningStore
    cancel_task: CancelTask
    wake: WakeWaiting

    def enter(self, entrants: Sequence[Entrant]) -> list[Entered]:
        """One after the other. A run that waited is not late for that."""
        if not entrants:
            return []
        records = self.running.read_many(one.timer.timer_id for one in entrants)
        live = _live(self.tasks, [home for one in records.values() for home in one.line.homes])
        entered = []
        for one in entrants:
            timer_id = one.timer.timer_id
            record = records.get(timer_id, Running())
            if one.late is not None and one.task.home not in record.line.homes:
                entered.append(Entered(Fate.LATE))
                continue
            records[timer_id], outcome = self._enter(one, record, live)
            entered.append(outcome)
        return entered

    def _enter(
        self, one: Entrant, record: Running, live: dict[Address, Task]
    ) -> tuple[Running, Entered]:
        task, overlap = one.task, one.timer.rules.overlap
        replaced: list[Task] = []
        cancels = True
        for _ in range(_ROUNDS):
            line, place = placed(record.line, task, overlap, live, cancels=cancels)
            behind = None if line.running is None else live.get(line.running)
            if place is Place.REPLACES and behind is not None:
                cancels = self._cancelled(behind, live, replaced)
                continue
            if place is Place.SKIPPED or line == record.line:
                return record, Entered(_FATES[place], behind, tuple(replaced))
            record = self.running.put(one.timer.timer_id, record, line)
            if record.line == line:
                live[task.home] = task
                return record, Entered(_FATES[place], behind, tuple(replaced))
            # Another one was faster, and may have ended since.
            for home in record.line.homes:
                live.pop(home, None)
            live.update(_live(self.tasks, record.line.homes))
        return record, Entered(Fate.CONTENDED, replaced=tuple(replaced))

    def _cancelled(self, running: Task, live: dict[Address, Task], replaced: list[Task]) -> bool:
        """False if a call of it may be under way."""

        try:
            self.cancel_task.pending(running.home, Reason.REPLACED)
            replaced.append(running)
        except TooLate:
            return False
        except (AlreadySettled, UnknownTask):  # it has ended by itself
            pass
        live.pop(running.home, None)
        return True

    def put_aside(self, task: Task, timer: Timer, behind: Task | None) -> Change:
        """About as long as it is late, behind the next instant of the one that it waits for."""
        now_ms = self.clock.now_ms()
        blocked = Blocked(now_ms if behind is None else behind.next_ms)
        called = (
            task if task.occurrence is None else with_timer_fields(task, task.occurrence, timer)
        )
        until_ms = flow_order.waits_until_ms(called, blocked, now_ms)
        return task, lifecycle.postponed(task, until_ms, now_ms, PostponedBy.OVERLAP)


def _live(tasks: TaskStore, homes: Sequence[Address]) -> dict[Address, Task]:
    found = tasks.get_many(homes) if homes else {}
    return {home: task for home, task in found.items() if task.is_live}
