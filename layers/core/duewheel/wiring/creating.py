"""What creates tasks, for whoever is asked to: over HTTP, or by a queue."""

import secrets
from concurrent.futures import ThreadPoolExecutor

from duewheel.rules.tasks.idempotency import CLAIM_TOKEN_BYTES
from duewheel.stores.businesses.rate_limits import TurnStore
from duewheel.stores.tasks.idempotency_records import RequestRecords
from duewheel.wiring.businesses import known_businesses
from duewheel.wiring.process import clock, dynamodb, once, settings
from duewheel.wiring.wheel import keys, reenter, tasks
from duewheel.workflows.businesses.limit_create_rate import LimitCreates
from duewheel.workflows.tasks.change_task import CancelTask, Steer
from duewheel.workflows.tasks.check_admission import Admit
from duewheel.workflows.tasks.create_batch import TRANSACTIONS_AT_ONCE, CreateBatch
from duewheel.workflows.tasks.create_idempotent import CreateOnce
from duewheel.workflows.tasks.create_tasks import CreateTasks
from duewheel.workflows.tasks.keyed_tasks import KeyedTasks


@once
def steer() -> Steer:
    config = settings()
    return Steer(clock(), tasks(), keys(), reenter(), config.lead_ms, config.notifier_lives_ms)


@once
def admit() -> Admit:
    turns = TurnStore(dynamodb(), settings().registry_table)
    return Admit(known_businesses(), LimitCreates(clock(), turns))


@once
def create_tasks() -> CreateTasks:
    return CreateTasks(tasks(), reenter(), admit())


@once
def cancel_task() -> CancelTask:
    return CancelTask(steer(), known_businesses())


@once
def create_batch() -> CreateBatch:
    return CreateBatch(create_tasks(), keyed_tasks(), ThreadPoolExecutor(TRANSACTIONS_AT_ONCE))


@once
def create_once() -> CreateOnce:
    return CreateOnce(
        RequestRecords(dynamodb(), settings().registry_table),
        tasks(),
        create_batch(),
        reenter(),
        random_text=lambda: secrets.token_urlsafe(CLAIM_TOKEN_BYTES),
    )


@once
def keyed_tasks() -> KeyedTasks:
    return KeyedTasks(keys(), create_tasks(), steer(), cancel_task())
