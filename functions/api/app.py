"""The HTTP interface: an API Gateway event in, one call of a workflow, one answer out.

Every error of the service leaves as a problem document, and `handler` alone decides which.
Bodies, headers and callbacks are never logged: they are the callers' and may hold secrets.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from msgspec.structs import replace

from duewheel.api import (
    bulk_calls,
    business_calls,
    key_calls,
    task_calls,
    timer_calls,
    wheel_calls,
    work_calls,
    xtimer_calls,
)
from duewheel.interface import problems
from duewheel.interface.console_files import console_file
from duewheel.interface.http import Answer, Calls, Matched, Request
from duewheel.log import logger, logs_run
from duewheel.rules.refusals import Refusal, Unavailable
from duewheel.settings import SettingsError
from duewheel.stores.dynamodb import is_for_load
from duewheel.wiring import api as wiring
from duewheel.wiring.process import carries_metrics

CALLS = Calls(
    {
        **task_calls.CALLS,
        **work_calls.CALLS,
        **business_calls.CALLS,
        **timer_calls.CALLS,
        **bulk_calls.CALLS,
        **xtimer_calls.CALLS,
        **key_calls.CALLS,
        **wheel_calls.CALLS,
    }
)


@logs_run
@carries_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    request = Request.of(event)
    if request.is_for_console:
        return console_file(request).event()
    try:
        request = replace(request, access=wiring.access(request.authorizer))
    except SettingsError as error:
        return _misconfigured(error).event()
    matched = CALLS.match_route(request)
    answer = _answer(request, matched)
    if (line := matched.access_log_line(request, answer)) is not None:
        logger.info("change", **line)
    return answer.event()


def _answer(request: Request, matched: Matched) -> Answer:
    try:
        return matched.answer(request)
    except Refusal as refusal:
        return problems.refused(refusal)
    except SettingsError as error:
        return _misconfigured(error)
    except Exception as error:  # noqa: BLE001 - logged, and answered as a 503 or a 500
        call = f"{request.method} {request.path}"
        # 503 means that nothing was written, which is certain for a call that only reads.
        if request.method == "GET" and is_for_load(error):
            logger.warning("throttled", action="refused-for-load", call=call)
            return problems.refused(Unavailable())
        logger.exception("call failed", action="call-failed", call=call)
        return problems.internal(request.request_id)


def _misconfigured(error: SettingsError) -> Answer:
    logger.error("deployment misconfigured", action="misconfigured", reason=str(error))
    return problems.misconfigured(str(error))
