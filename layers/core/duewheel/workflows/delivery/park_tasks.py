"""Park tasks that fell due while their business is paused: write the parked item, then the home.

A run that dies in between has parked nothing: the entries are still named, and their page is run
again.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.metrics import PARKED, counts
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Task
from duewheel.stores.delivery.parked_items import ParkedStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tries import Outcome, Tries, changed_or_logged, tried

WRITERS = 16


class Park(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    parked: ParkedStore
    writers: ThreadPoolExecutor

    def __call__(self, tasks: Sequence[Task]) -> Tries[Task]:
        return Tries(tasks, self._once)

    def _once(self, tasks: Sequence[Task]) -> list[Outcome]:
        self.parked.put(tasks)
        return fan_out(self.writers, tried(self._mark), tasks)

    def _mark(self, task: Task) -> bool:
        parked = lifecycle.parked(task, self.clock.now_ms())
        is_parked = changed_or_logged(self.tasks, task, parked)
        counts.add(PARKED, is_parked)
        return is_parked
