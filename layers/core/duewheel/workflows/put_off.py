"""Put tasks off to the instants they were promised: entries first, then each home names its own.

Whoever changes a task in between wins; the entry that was put for it then never fires.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules import settlement
from duewheel.rules.addresses import Address
from duewheel.rules.task import Promise, Task
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter

WRITERS = 16


@dataclass(frozen=True, slots=True)
class PutOff:
    clock: Clock
    tasks: TaskStore
    reenter: Reenter
    writers: ThreadPoolExecutor

    def __call__(self, promised: Sequence[tuple[Task, Promise]]) -> None:
        entries = [self.reenter.address(promise.at_ms) for _, promise in promised]
        self.tasks.put_entries(
            [(entry, task.home) for entry, (task, _) in zip(entries, promised, strict=True)]
        )
        named = self.writers.map(self._name, promised, entries)
        self.reenter.announce([entry for entry in named if entry is not None])

    def _name(self, promised: tuple[Task, Promise], entry: Address) -> Address | None:
        task, promise = promised
        after = settlement.put_off(task, promise, entry, self.clock.now_ms())
        if self.tasks.change(task, after):
            return entry
        logger.info("task changed meanwhile", action="lost-race", task_id=task.task_id)
        return None
