"""The HTTP interface: an API Gateway event in, one call of a workflow, one answer out."""

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
)
from duewheel.api.answered import answered, misconfigured
from duewheel.interface.console_files import console_file
from duewheel.interface.http import Calls, Request
from duewheel.log import logs_run
from duewheel.settings import SettingsError
from duewheel.wiring import api as wiring
from duewheel.wiring.process import answers_check, carries_metrics

CALLS = Calls(
    {
        **task_calls.CALLS,
        **work_calls.CALLS,
        **business_calls.CALLS,
        **timer_calls.CALLS,
        **bulk_calls.CALLS,
        **key_calls.CALLS,
        **wheel_calls.CALLS,
    }
)


@logs_run
@answers_check(wiring)
@carries_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    request = Request.of(event)
    if request.is_for_console:
        return console_file(request).event()
    try:
        request = replace(request, access=wiring.access(request.authorizer))
    except SettingsError as error:
        return misconfigured(error).event()
    return answered(_calls_of(request), request).event()


def _calls_of(request: Request) -> Calls:
    """Those of xTimer's clients are imported for them alone."""
    if not request.path.startswith("/api/"):
        return CALLS
    from duewheel.xtimer.calls import CALLS as OF_XTIMER

    return OF_XTIMER
