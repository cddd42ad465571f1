"""The parts of the function that carries out bulk operations."""

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from duewheel.rules.bulk.operation import Action
from duewheel.rules.wheel.addresses import address_named
from duewheel.wiring.businesses import business_cache
from duewheel.wiring.changing import change_task, dead_index, pause_task, redrive_task, task_walk
from duewheel.wiring.creating import cancel_task, order
from duewheel.wiring.open_operations import operations
from duewheel.wiring.process import clock, once, random_unit
from duewheel.wiring.wheel import entry_writer, tasks
from duewheel.workflows.bulk.change_tasks import ChangeOneTask, TaskActions
from duewheel.workflows.bulk.run_operations import WRITERS, RunOperations
from duewheel.workflows.bulk.sources import ByDeath, ByDueInstant, ListedIds, TaskSource
from duewheel.workflows.bulk.work import Work

OWNER_BYTES = 8


@once
def task_work() -> Work:
    """The actions on tasks."""
    actions = TaskActions(cancel_task(), change_task(), redrive_task(), pause_task())
    return Work(
        source=TaskSource(
            ListedIds(operations()),
            ByDueInstant(task_walk()),
            ByDeath(clock(), dead_index(), tasks()),
        ),
        change=ChangeOneTask(tasks(), actions.by_action()),
        id_of=lambda item: address_named(item).task_id,
    )


@once
def backfill_work() -> Work:
    """Runs of timers. Functions that backfill none do not load what reads schedules."""
    from duewheel.wiring.timers import backfilled_runs, run_list, timers
    from duewheel.workflows.timers.backfill import MakeRun, RunsNotMade, instant_of

    return Work(
        source=RunsNotMade(
            tasks=tasks(), timers=timers(), run_list=run_list(), backfilled=backfilled_runs()
        ),
        change=MakeRun(
            clock=clock(),
            tasks=tasks(),
            timers=timers(),
            known=business_cache(),
            backfilled=backfilled_runs(),
            keep_order=order(),
            entry_writer=entry_writer(),
        ),
        id_of=instant_of,
    )


WORK: Mapping[Action, Callable[[], Work]] = {
    **dict.fromkeys(Action, task_work),
    Action.BACKFILL: backfill_work,
}


@once
def run_operations() -> RunOperations:
    return RunOperations(
        clock=clock(),
        store=operations(),
        work=lambda action: WORK[action](),
        writers=ThreadPoolExecutor(WRITERS),
        random_unit=random_unit(),
        random_text=lambda: secrets.token_urlsafe(OWNER_BYTES),
    )
