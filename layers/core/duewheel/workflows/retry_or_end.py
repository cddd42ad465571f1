"""What follows a try that did not deliver: another entry later on, or the end.

Every change of the home is conditional on how it was read; who loses the race leaves
the task to whoever won it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules import settlement
from duewheel.rules.entry_decision import is_expired
from duewheel.rules.outcome import Outcome
from duewheel.rules.task import Attempt, Status, Task
from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter

_PLACING_TRIES = 5


class PlacingFailed(Exception):
    """The message comes back, and with it another try."""


@dataclass(frozen=True, slots=True)
class RetryOrEnd:
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    reenter: Reenter
    retention_seconds: int
    random_unit: Callable[[], float]

    def failed(self, task: Task, outcome: Outcome, attempt: Attempt) -> None:
        now_ms = self.clock.now_ms()
        next_ms = settlement.retry_at_ms(task, outcome, now_ms, self.random_unit())
        if next_ms is None or is_expired(task, next_ms):
            ended = settlement.failed_for_good(
                task, attempt, next_ms, now_ms, self.retention_seconds
            )
            self._end(task, ended)
            return
        entry = self.reenter.put(task.home, next_ms)
        self._name(
            task, settlement.to_be_retried(task, attempt, next_ms, entry, self.clock.now_ms())
        )

    def expire(self, task: Task) -> None:
        self._end(task, settlement.expired(task, self.clock.now_ms(), self.retention_seconds))

    def place_later(self, task: Task) -> None:
        """The due instant was moved away after this entry was written: follow it. A beat that
        comes in between leaves the worked-off entry named, so look until nobody interferes."""
        worked_off = task.entry
        for _ in range(_PLACING_TRIES):
            entry = self.reenter.put(task.home, task.next_ms)
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
        raise PlacingFailed(f"{task.task_id} changed {_PLACING_TRIES} times while it was placed")

    def _name(self, before: Task, after: Task) -> bool:
        if not self.tasks.change(before, after):
            logger.info("task changed meanwhile", action="lost-race", task_id=before.task_id)
            return False
        self.reenter.announce([after.entry])
        return True

    def _end(self, before: Task, after: Task) -> None:
        if not self.tasks.change(before, after):
            logger.info("task changed meanwhile", action="lost-race", task_id=before.task_id)
            return
        self.keys.release([after])
        logger.warning(
            "task ended undelivered",
            action=after.status.value,
            task_id=after.task_id,
            biz_type=after.biz_type,
            reason=after.reason,
        )
