"""The parts that create tasks, over HTTP or by messages."""

import secrets
from concurrent.futures import ThreadPoolExecutor

from duewheel.rules.tasks.idempotency import CLAIM_TOKEN_BYTES
from duewheel.rules.tasks.task import Task
from duewheel.stores.tasks.idempotency_records import RequestRecords
from duewheel.wiring.businesses import business_cache
from duewheel.wiring.process import clock, dynamodb, once, settings
from duewheel.wiring.wheel import entry_writer, keep_order, keys, tasks, tell_outcome, turns
from duewheel.workflows.tasks.change_task import CancelTask, ChangePendingTask
from duewheel.workflows.tasks.check_admission import Admission, LimitCreateRate
from duewheel.workflows.tasks.create_idempotent import CreateIdempotent
from duewheel.workflows.tasks.create_tasks import KEYED_AT_ONCE, CreateTasks
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.keyed_tasks import KeyedTasks


@once
def order() -> KeepOrder:
    return keep_order(business_cache())


def _give_back(task: Task) -> None:
    from duewheel.wiring.long_work import work_permits  # only where some work goes on

    work_permits().give_back(task)


def _run_left(task: Task) -> None:
    from duewheel.wiring.timers import end_run

    end_run().left(task)


@once
def change_pending() -> ChangePendingTask:
    return ChangePendingTask(
        clock=clock(),
        tasks=tasks(),
        keys=keys(),
        keep_order=order(),
        entry_writer=entry_writer(),
        give_back=_give_back,
        run_left=_run_left,
        lead_ms=settings().lead_ms,
        notifier_lives_ms=settings().notifier_lives_ms,
    )


@once
def admission() -> Admission:
    return Admission(business_cache(), LimitCreateRate(clock(), turns()))


@once
def cancel_task() -> CancelTask:
    return CancelTask(change_pending(), business_cache(), tell_outcome())


@once
def keyed_tasks() -> KeyedTasks:
    return KeyedTasks(
        clock=clock(),
        keys=keys(),
        entry_writer=entry_writer(),
        admission=admission(),
        keep_order=order(),
        change_pending=change_pending(),
        cancel_task=cancel_task(),
    )


@once
def create_tasks() -> CreateTasks:
    return CreateTasks(
        tasks=tasks(),
        entry_writer=entry_writer(),
        admission=admission(),
        keyed=keyed_tasks(),
        keep_order=order(),
        keyed_writers=ThreadPoolExecutor(KEYED_AT_ONCE),
    )


@once
def create_idempotent() -> CreateIdempotent:
    return CreateIdempotent(
        records=RequestRecords(dynamodb(), settings().registry_table),
        tasks=tasks(),
        create_tasks=create_tasks(),
        entry_writer=entry_writer(),
        random_text=lambda: secrets.token_urlsafe(CLAIM_TOKEN_BYTES),
    )
