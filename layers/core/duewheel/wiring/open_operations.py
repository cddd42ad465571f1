"""The parts of functions that start workers of bulk operations."""

from duewheel.stores.bulk.operations import OperationStore
from duewheel.stores.wheel.async_invoke import AsyncInvoke
from duewheel.wiring.process import clock, dynamodb, invoker, once, settings
from duewheel.workflows.bulk.wake_workers import WakeWorkers


@once
def operations() -> OperationStore:
    return OperationStore(dynamodb(), clock(), settings().registry_table)


@once
def invoke_bulk() -> AsyncInvoke:
    return AsyncInvoke(invoker, settings().bulk_function)


@once
def wake_workers() -> WakeWorkers:
    return WakeWorkers(clock(), operations(), invoke_bulk())
