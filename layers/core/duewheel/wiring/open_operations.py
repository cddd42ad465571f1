"""The parts of functions that start workers of bulk operations."""

from duewheel.stores.bulk.invoke import InvokeBulk
from duewheel.stores.bulk.operations import OperationStore
from duewheel.wiring.process import clock, dynamodb, invoker, once, settings
from duewheel.workflows.bulk.wake_workers import WakeWorkers


@once
def operations() -> OperationStore:
    return OperationStore(dynamodb(), clock(), settings().registry_table)


@once
def invoke_bulk() -> InvokeBulk:
    return InvokeBulk(invoker, settings().bulk_function)


@once
def wake_workers() -> WakeWorkers:
    return WakeWorkers(clock(), operations(), invoke_bulk())
