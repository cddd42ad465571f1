"""Cuts a stream of tasks into requests that the service accepts."""

from collections.abc import Iterable, Iterator

from duewheel.requests import NewTask, json_bytes

TASKS_MAX = 500
BYTES_MAX = 4_000_000
# API Gateway passes the body to Lambda as a JSON string; the whole event may have 6 MB.
ESCAPED_BYTES_MAX = 5_900_000
AROUND_BYTES = len(b'{"tasks":[]}')


def batches(tasks: Iterable[NewTask]) -> Iterator[list[NewTask]]:
    """Cut tasks into batches within the limits, in order, reading one batch ahead at most.
    A task that is too large for any request gets one of its own, for the service to refuse."""
    batch: list[NewTask] = []
    size = escaped = AROUND_BYTES
    for task in tasks:
        text = json_bytes(task.body())
        more, more_escaped = len(text) + 1, len(text) + 1 + text.count(b'"') + text.count(b"\\")
        is_full = (
            len(batch) == TASKS_MAX
            or size + more > BYTES_MAX
            or escaped + more_escaped > ESCAPED_BYTES_MAX
        )
        if batch and is_full:
            yield batch
            batch, size, escaped = [], AROUND_BYTES, AROUND_BYTES
        batch.append(task)
        size, escaped = size + more, escaped + more_escaped
    if batch:
        yield batch


def batch_bytes(texts: Iterable[bytes]) -> bytes:
    return b'{"tasks":[' + b",".join(texts) + b"]}"
