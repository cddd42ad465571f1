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
)


def quieten_libraries() -> None:
    """Lambda gives `LogLevel` to every logger of the process, and at DEBUG the SDK logs its
    requests and replies whole: payloads, secrets, the role's own credentials. The logger above
    keeps its own level."""
    root = logging.getLogger()
    root.setLevel(max(root.level, logging.WARNING))


quieten_libraries()


def logs_failure(handler: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
    """The same handler, which also logs why a run failed. Lambda's own log of a failure has no
    level that it recognises, so a stack that logs above INFO would drop it."""

    @wraps(handler)
    def logging_failure(event: Any, context: Any) -> R:
        try:
            return handler(event, context)
        except Exception:
            logger.exception("run failed", action="run-failed")
            raise

    return logging_failure


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
