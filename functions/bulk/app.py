"""Carry out open bulk operations, when one was made or stopped, and when the sweeper finds one
without a worker."""

from typing import Any

from duewheel.log import logs_run
from duewheel.wiring import bulk as wiring
from duewheel.wiring.process import answers_check, writes_metrics


@logs_run
@answers_check(wiring)
@writes_metrics
def handler(event: dict[str, Any], context: Any) -> None:
    wiring.run_operations().run(context.get_remaining_time_in_millis)
