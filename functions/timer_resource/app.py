"""A request of CloudFormation for a resource `Custom::DuewheelTimer`: put or delete its timer, and
answer at the URL of the request.

Every request that has such a URL is answered, also after an unexpected error: a stack would wait
for an hour. If the answer is not taken, the run fails, so that Lambda repeats the request. The
request and its URL are never logged: they may hold secrets.
"""

from typing import Any

from duewheel.log import logger, logs_run
from duewheel.rules.refusals import Refusal
from duewheel.rules.timers import stack_resource
from duewheel.rules.timers.stack_resource import NoStackRequest, StackRequest, stack_request
from duewheel.settings import SettingsError
from duewheel.targets.http.stack_answer import AnswerRefused
from duewheel.wiring import process
from duewheel.wiring import timer_resource as wiring
from duewheel.wiring.process import writes_metrics
from duewheel.workflows.timers.stack_timer import Carried


@logs_run
@writes_metrics
def handler(event: dict[str, Any], context: Any) -> None:
    try:
        request = stack_request(event)
    except NoStackRequest as error:
        logger.error("no request of a stack", action="stack-request-refused", reason=str(error))
        return  # a repeat would be refused, too
    answer = _answer(request, context)
    host, target = request.host_and_target
    try:
        wiring.answer_stack()(host, target, answer)
    except AnswerRefused as error:
        logger.error(
            "the answer to a stack was refused",
            action="stack-answer-refused",
            reason=str(error),
            stack=request.stack.name,
            resource=request.resource,
        )


def _answer(request: StackRequest, context: Any) -> bytes:
    deadline_ms = process.clock().now_ms() + context.get_remaining_time_in_millis()
    try:
        carried = wiring.stack_timer()(request, deadline_ms)
    except Refusal as refusal:
        _log(request, refusal.status, problem=refusal.type)
        return stack_resource.refused(request, refusal)
    except SettingsError as error:
        logger.error("deployment misconfigured", action="misconfigured", reason=str(error))
        return stack_resource.failed(request, f"Duewheel is configured wrongly: {error}")
    except Exception:  # noqa: BLE001 - logged, and answered: a stack waits for it
        logger.exception("request of a stack failed", action="stack-request-failed")
        _log(request, 500, problem="internal")
        where = f"The timer_resource function's log says more under {context.aws_request_id}"
        return stack_resource.failed(request, f"The service failed unexpectedly. {where}.")
    _log(request, 200, **_ids(carried))
    return carried.answer


def _ids(carried: Carried) -> dict[str, str]:
    timer = carried.timer
    return {} if timer is None else {"timer_id": timer.timer_id, "biz_type": timer.biz_type}


def _log(request: StackRequest, status: int, **more: str) -> None:
    """The caller and the change, as in the log of the api function: ids, and nothing of a body."""
    call = f"cloudformation {request.kind}"
    line: dict[str, Any] = {"call": call, "resource": request.resource, "status": status, **more}
    logger.info("change", action="change", by=request.stack.caller, **line)
