"""Change, run, pause, resume or cancel a pending task: the change wins, or is refused as too late.

A change is one conditional update of the home, begun and answered before the cut-off by
this clock. An earlier instant gets its entry first, and the home names it in that update.
Cancelling twice is one cancel.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.access.grants import ANYTHING, Permit, Right
from duewheel.rules.callbacks.types import Told
from duewheel.rules.refusals import (
    AlreadySettled,
    NotPermitted,
    OfATimer,
    TooLate,
    WrittenTooLate,
    no_such_task,
)
from duewheel.rules.tasks import lifecycle, pause
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change, brought_forward, changed, needs_new_entry
from duewheel.rules.tolerance import Window
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address, address_of_task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.tries import until_won

Write = Callable[[Task, Task], Task | None]  # the task as it then is; None: it was changed
Also = Callable[[Task], Task]  # a change beside the one that was requested; raises to prevent it

# Another writer may change the task between read and write; each lost race returns its item.
_TRIES = 3


def same(task: Task) -> Task:
    """No change beside the one that was requested."""
    return task


def changed_by(permit: Permit, task: Task) -> Task:
    """A change by the service itself leaves the caller as it is."""
    return task if permit.caller is None else replace(task, changed_by=permit.caller)


class ChangePendingTask(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    keep_order: KeepOrder
    entry_writer: EntryWriter
    give_back: Callable[[Task], None]  # the permits of work that goes on after its call
    run_left: Callable[[Task], None]  # an occurrence that was under way is cancelled
    lead_ms: int
    notifier_lives_ms: int

    def __call__(
        self,
        home: Address,
        alter: Callable[[Task, int], Task],
        permit: Permit = ANYTHING,
        write: Write | None = None,
        is_done: Callable[[Task], bool] = lambda _: False,
    ) -> Task:
        """`alter` maps the current task and the time to the changed task. `write`: if it is not
        written by itself. `is_done`: of a task that is as it is to be, and stays as it is."""
        write = self._change if write is None else write

        def by_caller(task: Task, now_ms: int) -> Task:
            return changed_by(permit, alter(task, now_ms))

        def try_once() -> Task | None:
            task = self.find(home, permit)
            if not task.is_live:
                raise AlreadySettled(f"The task is {task.status.value} already.")
            if is_done(task):
                return task
            if task.running is not None:
                return self._try_running(task, by_caller, write)
            try_it = self._try_parked if task.parked else self._try
            return try_it(task, by_caller, write)

        lost = TooLate("The task is being worked on: its call may be under way.")
        return until_won(try_once, _TRIES, lost)

    def find(self, home: Address, permit: Permit = ANYTHING) -> Task:
        task = self.tasks.get(home)
        if task is None or task.is_internal or lifecycle.is_gone(task, self.clock.now_ms()):
            raise no_such_task()
        permit.check_found(task.biz_type, no_such_task())
        return task

    def _try(self, task: Task, alter: Callable[[Task, int], Task], write: Write) -> Task | None:
        cut_off_ms = timing.cut_off_ms(task.next_ms, self.lead_ms)
        now_ms = self.clock.now_ms()
        if now_ms >= cut_off_ms:
            raise TooLate(
                "The cut-off has passed: the call may be under way.", cut_off_ms=cut_off_ms
            )
        altered = alter(task, now_ms)
        if altered.is_live and needs_new_entry(altered, now_ms):
            entry = self.entry_writer.put(altered, altered.next_ms)
            altered = lifecycle.brought_to(altered, entry)
        elif not altered.is_live and task.paused is not None:
            altered = self._ended_while_paused(task, altered, now_ms)
        written = self._write(task, altered, write)
        if written is None:
            return None
        if altered.entry != task.entry:
            self.entry_writer.announce([altered.entry])
        if self.clock.now_ms() >= cut_off_ms:
            # Written, but answered after the cut-off: a notifier may have read the task before.
            raise WrittenTooLate(
                "The change was written, but only after the cut-off: the call may be under way.",
                cut_off_ms=cut_off_ms,
            )
        return written

    def _ended_while_paused(self, task: Task, ended: Task, now_ms: int) -> Task:
        """Its entry may be at the end of the pause, when its record is long gone. It gets one
        where the sweep counts it, as a task that was not paused."""
        counts_ms = max(now_ms, task.call_ms)
        if task.entry.instant_ms <= counts_ms:
            return ended
        return replace(ended, entry=self.entry_writer.put(task, counts_ms))

    def _try_parked(
        self, task: Task, alter: Callable[[Task, int], Task], write: Write
    ) -> Task | None:
        """No call of a parked task is in flight, so no change is too late, unless its message came
        twice: then a notifier that has not read the pause may be calling it. The release reads the
        changed task. A task that ends gets an entry in a second that is not swept yet, where the
        sweep counts it."""
        now_ms = self.clock.now_ms()
        if task.entry.direct and now_ms < self._direct_over_ms(task):
            raise TooLate(
                "It was parked so lately that another notifier may be calling it.",
                cut_off_ms=timing.cut_off_ms(task.next_ms, self.lead_ms),
            )
        altered = alter(task, now_ms)
        if not altered.is_live:
            altered = replace(altered, entry=self.entry_writer.put(task, now_ms))
        elif not altered.parked:  # it is paused by itself
            altered = replace(altered, entry=self.entry_writer.put(task, altered.next_ms))
        return self._write(task, altered, write)

    def _try_running(
        self, task: Task, alter: Callable[[Task, int], Task], write: Write
    ) -> Task | None:
        """It can be cancelled at any time: no call is under way, and its deadline makes none."""
        altered = alter(task, self.clock.now_ms())
        if altered.is_live:
            raise TooLate("Its receiver works on it. It can be cancelled, and not changed.")
        altered = replace(altered, entry=self.entry_writer.put(task, self.clock.now_ms()))
        written = self._write(task, altered, write)
        if written is not None:
            self.give_back(task)
        return written

    def _write(self, before: Task, after: Task, write: Write) -> Task | None:
        with unavailable_when_throttled():
            self.keep_order.prepare(before, after)
            written = write(before, after)
        if written is not None and not after.is_live:
            self.keys.release([after])
        self.keep_order.conclude(before, after, is_written=written is not None)
        if written is not None and not after.is_live and _may_be_waited_for(before):
            self.run_left(before)
        return written

    def _change(self, before: Task, after: Task) -> Task | None:
        return after if self.tasks.change(before, after) else None

    def _direct_over_ms(self, task: Task) -> int:
        return timing.direct_over_ms(task.entry.second, self.notifier_lives_ms)


class CancelTask(Struct, frozen=True):
    change_pending: ChangePendingTask
    known: BusinessCache
    tell_outcome: TellOutcome

    def __call__(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        return self.at(address_of_task(task_id), permit=permit)

    def at(
        self,
        home: Address,
        reason: str = "cancelled by caller",
        permit: Permit = ANYTHING,
        told: Told | None = Told.CANCELLED,
        also: Also = same,
    ) -> Task:
        """`told` None: this cancel makes no notice. One that is cancelled already is answered as it
        is."""
        try:
            return self.pending(home, reason, permit, told, also)
        except AlreadySettled:
            task = self.change_pending.find(home)
            if task.status is Status.CANCELLED:
                return task
            raise

    def pending(
        self,
        home: Address,
        reason: str,
        permit: Permit = ANYTHING,
        told: Told | None = Told.CANCELLED,
        also: Also = same,
    ) -> Task:
        """Raises AlreadySettled if it has ended in any way."""

        def cancelled(task: Task, now_ms: int) -> Task:
            if task.notice_of is not None:
                replace(permit, right=Right.ADMIN).check(task.biz_type)
            kept_seconds = self.known.one(task.biz_type).retention_seconds
            return also(lifecycle.cancelled(task, reason, now_ms, kept_seconds))

        def write(before: Task, after: Task) -> Task | None:
            return self.tell_outcome.end(before, after, told, self.known.one(before.biz_type))

        return self.change_pending(home, cancelled, permit, write)


class ChangeTask(Struct, frozen=True):
    change_pending: ChangePendingTask
    admission: Admission

    def __call__(self, task_id: str, change: Change, permit: Permit = ANYTHING) -> Task:
        return self.at(address_of_task(task_id), lambda _: change, permit)

    def at(
        self,
        home: Address,
        change_of: Callable[[Task], Change],
        permit: Permit = ANYTHING,
        also: Also = same,
    ) -> Task:
        """`change_of` maps the current task to its change."""

        def altered(task: Task, now_ms: int) -> Task:
            _check_own(task)
            change = change_of(task)
            after = also(changed(task, change, now_ms, self._due_ms))
            if change.callback is not None or change.sets_payload:
                self.admission.check_change(after)
            self.admission.check_earlier(task, after)
            return after

        return self.change_pending(home, altered, permit)

    def _due_ms(self, window: Window) -> int:
        entry_writer = self.change_pending.entry_writer
        return entry_writer.due_ms(window, self.admission.tolerances([window]))

    def run(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        return self.run_at(address_of_task(task_id), permit)

    def run_at(self, home: Address, permit: Permit = ANYTHING, also: Also = same) -> Task:
        def altered(task: Task, now_ms: int) -> Task:
            _check_own(task)
            after = also(brought_forward(task, now_ms))
            self.admission.check_earlier(task, after)
            return after

        return self.change_pending(home, altered, permit)


class PauseTask(Struct, frozen=True):
    """Put a pending task aside, or take it back. Either is carried out once, however often it is
    requested."""

    change_pending: ChangePendingTask

    def __call__(
        self, task_id: str, until_ms: int | None, by: str, permit: Permit = ANYTHING
    ) -> Task:
        return self.at(address_of_task(task_id), until_ms, by, permit)

    def at(
        self,
        home: Address,
        until_ms: int | None,
        by: str,
        permit: Permit = ANYTHING,
        also: Also = same,
    ) -> Task:
        def altered(task: Task, now_ms: int) -> Task:
            _check_own(task)
            return also(pause.paused(task, until_ms, by, now_ms))

        def is_done(task: Task) -> bool:
            return pause.is_paused(task, until_ms)

        return self.change_pending(home, altered, permit, is_done=is_done)

    def resume(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        return self.resume_at(address_of_task(task_id), permit)

    def resume_at(self, home: Address, permit: Permit = ANYTHING, also: Also = same) -> Task:
        def altered(task: Task, now_ms: int) -> Task:
            return also(pause.resumed(task, now_ms))

        return self.change_pending(home, altered, permit, is_done=lambda task: task.paused is None)


def _may_be_waited_for(before: Task) -> bool:
    """Whether another run of its timer may wait for its end: not for one that was only planned."""
    return before.occurrence is not None and not before.occurrence.manual and before.version > 1


def _check_own(task: Task) -> None:
    """Else a caller who may write could put words of its own into a notice, or hold it back."""
    if task.notice_of is not None:
        raise NotPermitted("A notice is not changed, run or paused. An admin can cancel it.")
    if task.occurrence is not None:
        raise OfATimer(
            f"Change the timer {task.occurrence.timer_id}, or run that now; this can be cancelled."
        )
