"""The parts of the function that carries out bulk operations."""

import secrets
from concurrent.futures import ThreadPoolExecutor

from duewheel.wiring.changing import change_task, pause_task, redrive_task, task_walk
from duewheel.wiring.creating import cancel_task
from duewheel.wiring.open_operations import operations
from duewheel.wiring.process import clock, once, random_unit
from duewheel.wiring.wheel import tasks
from duewheel.workflows.bulk.change_tasks import ChangeOneTask, TaskActions
from duewheel.workflows.bulk.run_operations import WRITERS, RunOperations
from duewheel.workflows.bulk.sources import ByFilter, ListedIds, TaskSource

OWNER_BYTES = 8


@once
def run_operations() -> RunOperations:
    actions = TaskActions(cancel_task(), change_task(), redrive_task(), pause_task())
    return RunOperations(
        clock=clock(),
        store=operations(),
        source=TaskSource(
            ListedIds(operations()),
            ByFilter(task_walk()),
        ),
        change=ChangeOneTask(tasks(), actions.by_action()),
        writers=ThreadPoolExecutor(WRITERS),
        random_unit=random_unit(),
        random_text=lambda: secrets.token_urlsafe(OWNER_BYTES),
    )
