"""After a failed attempt: a later entry by the retry policy, or the end of the task.

Each change of the home is conditional on the version that was read. If the condition fails, another
writer has the task, and this one leaves it alone.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import logger, report_lost_race
from duewheel.metrics import DEAD, EXPIRED, FAILED_ATTEMPTS, counts
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.lifecycle import is_expired
from duewheel.rules.tasks.outcome_notice import TOLD_OF
from duewheel.rules.tasks.task import Attempt, Status, Task
from duewheel.stores.sweep.seen_businesses import SeenBusinesses
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.tries import changed_or_logged

_PLACING_TRIES = 5
_COUNTED_AS = {Status.DEAD: DEAD, Status.EXPIRED: EXPIRED}


class PlacementFailed(Exception):
    """SQS delivers the message again, and the placement is retried."""


class FailAttempt(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    keep_order: KeepOrder
    tell_outcome: TellOutcome
    entry_writer: EntryWriter
    seen: SeenBusinesses
    random_unit: Callable[[], float]

    def failed(
        self, task: Task, outcome: Outcome, attempt: Attempt, business: Business
    ) -> Status | None:
        """The status that the task got; None if another writer has changed it meanwhile."""
        status = self._after_failure(task, outcome, attempt, business)
        counts.add(FAILED_ATTEMPTS, status is not None)
        return status

    def _after_failure(
        self, task: Task, outcome: Outcome, attempt: Attempt, business: Business
    ) -> Status | None:
        now_ms, kept_seconds = self.clock.now_ms(), business.retention_seconds
        next_ms = lifecycle.retry_at_ms(task, business.retry, outcome, now_ms, self.random_unit())
        if next_ms is not None and is_expired(task, next_ms):
            expired = lifecycle.expired_after(task, attempt, now_ms, kept_seconds)
            return self._settle(task, expired, business)
        if next_ms is None or lifecycle.is_too_old(task, business.retry, next_ms):
            reason = lifecycle.reason_of_death(outcome, next_ms)
            dead = lifecycle.dead(task, attempt, reason, now_ms, kept_seconds)
            return self._settle(task, dead, business)
        window = lifecycle.retry_window(task, business.retry, business.tolerance_seconds, next_ms)
        next_ms = self.entry_writer.due_ms(window)
        entry = self.entry_writer.put(task, next_ms)
        retried = lifecycle.to_be_retried(task, attempt, next_ms, entry, self.clock.now_ms())
        return Status.PENDING if self._name(task, retried) else None

    def expire(self, task: Task, business: Business) -> Status | None:
        now_ms = self.clock.now_ms()
        expired = lifecycle.expired(task, now_ms, business.retention_seconds)
        return self._settle(task, expired, business)

    def place_later(self, task: Task) -> None:
        """The due instant was moved to later after this entry was written: place the task again.
        A heartbeat in between leaves the old entry named, so repeat until no other write
        interferes."""
        worked_off = task.entry
        for _ in range(_PLACING_TRIES):
            entry = self.entry_writer.put(task, task.next_ms)
            now_ms = self.clock.now_ms()
            placed = replace(task, entry=entry, updated_ms=now_ms, version=task.version + 1)
            if self._name(task, placed):
                return
            current = self.tasks.get(task.home)
            if current is None or current.status is not Status.PENDING:
                return
            if current.entry != worked_off:
                return
            task = current
        raise PlacementFailed(f"{task.task_id} changed {_PLACING_TRIES} times while it was placed")

    def _name(self, before: Task, after: Task) -> bool:
        is_named = changed_or_logged(self.tasks, before, after)
        if is_named:
            self.entry_writer.announce([after.entry])
        return is_named

    def _settle(self, before: Task, after: Task, business: Business) -> Status | None:
        if self.tell_outcome.end(before, after, TOLD_OF[after.status], business) is None:
            report_lost_race(before.task_id, before.biz_type)
            return None
        counts.add(_COUNTED_AS[after.status])
        self.keys.release([after])
        self.keep_order.ended([after])
        if after.status is Status.DEAD:  # its business is known at once, and not when it is swept
            self.seen.note(after.biz_type, self.clock.now_ms() // 60_000)
        logger.warning(
            "task ended undelivered",
            action=after.status.value,
            task_id=after.task_id,
            biz_type=after.biz_type,
            reason=after.reason,
        )
        return after.status
