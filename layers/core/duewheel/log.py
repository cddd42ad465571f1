"""The structured log. Every record has a stable `action`; none carries a payload or a secret.

A record is one line of ASCII, even if its fields contain other text of a caller.
"""

import json
import logging
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from aws_lambda_powertools import Logger

from duewheel.rules.refusals import UnreadableItem

R = TypeVar("R")

# Lambda filters by its own level names, and treats any other level as INFO.
logging.addLevelName(logging.WARNING, "WARN")
logging.addLevelName(logging.CRITICAL, "FATAL")

# Lambda uses a line's level only if its time has this form.
logger = Logger(
    json_serializer=partial(json.dumps, default=str, separators=(",", ":")),
    utc=True,
    use_rfc3339=True,
    location=None,
)


def quieten_libraries() -> None:
    """Lambda gives its log level to every logger of the process, and at DEBUG the SDK logs its
    requests and replies whole: payloads, secrets, the role's own credentials. The logger above
    keeps its own level."""
    root = logging.getLogger()
    root.setLevel(max(root.level, logging.WARNING))


quieten_libraries()


def logs_run(handler: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
    """The same handler; its records carry the id of the run, and a run that fails logs the reason
    in a record of the service's own. Lambda's own record of it has no level that counts, so above
    INFO it would be dropped."""

    @wraps(handler)
    def logging_run(event: Any, context: Any) -> R:
        logger.structure_logs(location=None, service=None, **_ids(event, context))
        try:
            return handler(event, context)
        except Exception:
            logger.exception("run failed", action="run-failed")
            raise

    return logging_run


def _ids(event: Any, context: Any) -> dict[str, Any]:
    """The id of the run; of a request from API Gateway, its id in the access log. Function, version
    and stack are in the names of the log's group and stream."""
    ids = {"xray_trace_id": None}  # which the logger would add
    match event:
        case {"requestContext": {"requestId": str(request_id)}}:
            return {"correlation_id": request_id, **ids}
    return {"function_request_id": context.aws_request_id, **ids}


def report_unreadable(damaged: UnreadableItem) -> None:
    """The record has the item's key and none of its content. The alarm on unreadable items counts
    it."""
    logger.error(
        "item cannot be read",
        action="unreadable",
        slot=damaged.slot,
        place=damaged.place,
        wrong=damaged.wrong,
    )


def report_lost_race(task_id: str, biz_type: str) -> None:
    """Another writer changed the task first; that change counts."""
    logger.info("task changed meanwhile", action="lost-race", task_id=task_id, biz_type=biz_type)
