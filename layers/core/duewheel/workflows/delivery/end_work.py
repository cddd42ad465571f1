"""The end of work that goes on after its call: reported by its receiver, or lapsed.

Each is one conditional change of the home, so of a report, a cancel and the end of the deadline one
wins. A report may come before the notifier has written that the work goes on: then that write
loses. A repeated report gets the answer of the first.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.metrics import DELIVERED, counts
from duewheel.rules.callbacks.outcome import Outcome, Verdict, note_from
from duewheel.rules.callbacks.payload_encoding import AttemptName
from duewheel.rules.callbacks.types import Told
from duewheel.rules.refusals import Unavailable, no_such_task
from duewheel.rules.tasks import lifecycle, long_work
from duewheel.rules.tasks.lifecycle import Decision, decide
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.delivery.fail_attempt import FailAttempt, PlacementFailed
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.tasks.work_permits import WorkPermits
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.tries import until_won

if TYPE_CHECKING:
    from duewheel.rules.timers.timer import Timer

_TRIES = 5
_CONTENDED = "The task is being changed by others. Try it again."


class EndWork(Struct, frozen=True, kw_only=True):
    """`as_called`: an occurrence with what its timer says, and that; any other task as it is.
    `run_ended`: what its end means for its timer."""

    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    keep_order: KeepOrder
    entry_writer: EntryWriter
    known: BusinessCache
    fail_attempt: FailAttempt
    permits: WorkPermits
    tell_outcome: TellOutcome
    as_called: "Callable[[Task], tuple[Task, Timer | None]]"
    run_ended: "Callable[[Task, Timer | None, Status, Outcome], None]"

    def complete(self, home: Address, name: AttemptName, result: str | None) -> Task:
        def try_once() -> Task | None:
            task = self._find(home)
            if long_work.is_complete_by(task, name):
                return task
            self._check_open(task, name)
            return self._completed(task, result)

        return self._until_won(try_once)

    def fail(self, home: Address, name: AttemptName, outcome: Outcome) -> Task:
        def try_once() -> Task | None:
            task = self._find(home)
            if long_work.is_failed_by(task, name, outcome):
                return task
            self._check_open(task, name)
            return self._find(home) if self._failed(task, outcome) is not None else None

        return self._until_won(try_once)

    def progress(
        self, home: Address, name: AttemptName, note: str | None, within_seconds: int | None
    ) -> Task:
        def try_once() -> Task | None:
            task = self._find(home)
            self._check_open(task, name)
            running = task.running
            if running is None:
                raise Unavailable("The answer to the callback is not recorded yet. Try it again.")
            within = within_seconds or running.within_seconds
            after = lifecycle.progressed(task, running, within, note, self.clock.now_ms())
            if not self.tasks.change(task, after):
                return None
            self.permits.hold(after)
            return after

        return self._until_won(try_once)

    def lapse(self, entry: Address, task: Task) -> None:
        """The entry at the end of the deadline has fired. Another writer may have moved that, or
        have ended the work."""
        current: Task | None = task
        for _ in range(_TRIES):
            now_ms = self.clock.now_ms()
            decision = decide(entry, current, now_ms)
            if current is None or decision not in (Decision.LAPSE, Decision.PLACE_LATER):
                return
            if current.next_ms > now_ms:  # also within the second of this entry
                self.fail_attempt.place_later(current)
                return
            if self._failed(current, long_work.lapsed(current)) is not None:
                return
            current = self.tasks.get(task.home)
        raise PlacementFailed(f"{task.task_id} changed {_TRIES} times while its work lapsed")

    def _until_won(self, try_once: Callable[[], Task | None]) -> Task:
        with unavailable_when_throttled():
            return until_won(try_once, _TRIES, Unavailable(_CONTENDED))

    def _find(self, home: Address) -> Task:
        task = self.tasks.get(home)
        if task is None or task.is_internal or lifecycle.is_gone(task, self.clock.now_ms()):
            raise no_such_task()
        return task

    def _check_open(self, task: Task, name: AttemptName) -> None:
        if not long_work.is_open(task, name):
            raise long_work.not_running(task, name)

    def _completed(self, before: Task, result: str | None) -> Task | None:
        """It names an entry of this moment, in whose second the sweep counts it."""
        task, timer = self.as_called(before)
        now_ms = self.clock.now_ms()
        business = self.known.one(task.biz_type)
        kept_seconds = business.retention_seconds
        outcome = Outcome(Verdict.DELIVERED, note_from(result or ""))
        attempt = lifecycle.reported_attempt(task, outcome, now_ms)
        after = replace(lifecycle.delivered(task, attempt, now_ms, kept_seconds), result=result)
        if task.running is not None:
            after = replace(after, entry=self.entry_writer.put(task, now_ms))
        ended = self.tell_outcome.end(task, after, Told.DELIVERED, business)
        if ended is None:
            return None
        counts.add(DELIVERED)
        self.keys.release([ended])
        self.keep_order.ended([ended])
        self._ended(task, timer, Status.DELIVERED, outcome)
        return ended

    def _failed(self, task: Task, outcome: Outcome) -> Status | None:
        called, timer = self.as_called(task)
        attempt = lifecycle.reported_attempt(called, outcome, self.clock.now_ms())
        business = self.known.one(task.biz_type)
        status = self.fail_attempt.failed(called, outcome, attempt, business)
        if status is not None:
            self._ended(called, timer, status, outcome)
        return status

    def _ended(self, before: Task, timer: "Timer | None", status: Status, outcome: Outcome) -> None:
        self.permits.give_back(before)
        if before.occurrence is not None:
            self.run_ended(before, timer, status, outcome)
