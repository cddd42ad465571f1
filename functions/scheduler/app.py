"""Each minute: lead and move the time pointer, or wait as standby."""

from typing import Any

from duewheel.log import logs_run
from duewheel.wiring import scheduler as wiring
from duewheel.wiring.process import answers_check, writes_metrics


@logs_run
@answers_check(wiring)
@writes_metrics
def handler(event: dict[str, Any], context: Any) -> None:
    wiring.lead().run(context.aws_request_id, context.get_remaining_time_in_millis)
