"""What creates tasks, for whoever is asked to: over HTTP, or by a queue."""

import secrets
from concurrent.futures import ThreadPoolExecutor

from duewheel.rules.tasks.idempotency import CLAIM_TOKEN_BYTES
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.tasks.idempotency_records import RequestRecords
from duewheel.wiring.businesses import business_cache
from duewheel.wiring.process import clock, dynamodb, once, settings
from duewheel.wiring.wheel import entry_writer, keys, tasks
from duewheel.workflows.businesses.limit_create_rate import LimitCreateRate
from duewheel.workflows.tasks.change_task import CancelTask, ChangePendingTask
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.create_batch import TRANSACTIONS_AT_ONCE, CreateBatch
from duewheel.workflows.tasks.create_idempotent import CreateIdempotent
from duewheel.workflows.tasks.create_tasks import CreateTasks
from duewheel.workflows.tasks.keyed_tasks import KeyedTasks


@once
def change_pending() -> ChangePendingTask:
    config = settings()
    return ChangePendingTask(
        clock(), tasks(), keys(), entry_writer(), config.lead_ms, config.notifier_lives_ms
    )


@once
def admission() -> Admission:
    turns = RateLimitStore(dynamodb(), settings().registry_table)
    return Admission(business_cache(), LimitCreateRate(clock(), turns))


@once
def create_tasks() -> CreateTasks:
    return CreateTasks(tasks(), entry_writer(), admission())


@once
def cancel_task() -> CancelTask:
    return CancelTask(change_pending(), business_cache())


@once
def create_batch() -> CreateBatch:
    return CreateBatch(create_tasks(), keyed_tasks(), ThreadPoolExecutor(TRANSACTIONS_AT_ONCE))


@once
def create_idempotent() -> CreateIdempotent:
    return CreateIdempotent(
        RequestRecords(dynamodb(), settings().registry_table),
        tasks(),
        create_batch(),
        entry_writer(),
        random_text=lambda: secrets.token_urlsafe(CLAIM_TOKEN_BYTES),
    )


@once
def keyed_tasks() -> KeyedTasks:
    return KeyedTasks(keys(), create_tasks(), change_pending(), cancel_task())
