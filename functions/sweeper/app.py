"""Each minute: sweep behind the time pointer, as far as its lag allows, send the releases of parked
tasks, and start workers for bulk operations that have none.
"""

from typing import Any

from duewheel.log import logs_run
from duewheel.wiring import open_operations
from duewheel.wiring import sweeper as wiring
from duewheel.wiring.process import answers_check, writes_metrics


@logs_run
@answers_check(wiring, open_operations)
@writes_metrics
def handler(event: dict[str, Any], context: Any) -> None:
    try:
        wiring.sweep().run(context.aws_request_id, context.get_remaining_time_in_millis)
    finally:  # a failed sweep does not stop the rest
        try:
            wiring.send_releases()()
        finally:
            open_operations.wake_workers()()
