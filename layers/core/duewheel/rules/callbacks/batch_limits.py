"""How much of a batch one request of a callback takes."""

from duewheel.rules.callbacks.aws.registry import target_of
from duewheel.rules.callbacks.batch import Batch, BatchLimits, takes_document
from duewheel.rules.callbacks.types import AwsCallback, Callback, HttpCallback
from duewheel.rules.fields import invalid


def limits_of(callback: Callback) -> BatchLimits | None:
    """None if each of its tasks has a request of its own."""
    if isinstance(callback, AwsCallback):
        how = target_of(callback).batch
        return None if how is None else how.limits
    return BatchLimits() if takes_document(callback) else None


def check_batch(batch: Batch, usual: Callback | None) -> None:
    """`usual`: the callback of the business. The callbacks of its tasks are theirs: one that takes
    no batch is called for each task."""
    if usual is None:
        return
    limits = limits_of(usual)
    if isinstance(usual, HttpCallback):
        if limits is None:
            reason = "is for callbacks with a JSON body; callback has the method GET or a raw body."
            raise invalid("batch", reason)
        return
    name = target_of(usual).name
    if limits is None:
        raise invalid("batch", f"is not for callbacks of the type {name}.")
    if batch.tasks_max > limits.tasks_max:
        reason = f"must be at most {limits.tasks_max}, as many as one request of {name} takes."
        raise invalid("batch.tasks_max", reason)
    if batch.bytes_max is not None and batch.bytes_max > limits.bytes_max:
        reason = f"must be at most {limits.bytes_max}, as many as one request of {name} takes."
        raise invalid("batch.bytes_max", reason)
