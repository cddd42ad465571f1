"""What creates tasks, for whoever is asked to: over HTTP, or by a queue."""

import secrets
from concurrent.futures import ThreadPoolExecutor

from duewheel.rules.idempotency import CLAIM_TOKEN_BYTES
from duewheel.stores.request_records import RequestRecords
from duewheel.stores.turns import TurnStore
from duewheel.wiring.businesses import known_businesses
from duewheel.wiring.process import clock, dynamodb, once, settings
from duewheel.wiring.wheel import keys, reenter, tasks
from duewheel.workflows.admit import Admit
from duewheel.workflows.cancel import CancelTask
from duewheel.workflows.create import CreateTasks
from duewheel.workflows.create_batch import TRANSACTIONS_AT_ONCE, CreateBatch
from duewheel.workflows.create_once import CreateOnce
from duewheel.workflows.keyed import KeyedTasks
from duewheel.workflows.limit_creates import LimitCreates
from duewheel.workflows.steer import Steer


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
