"""The structured log. Every record has a stable `action`; none carries a payload or a secret.

A record is one line of ASCII, whatever a caller has put into its fields.
"""

import json
import logging
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from aws_lambda_powertools import Logger

from duewheel.rules.refusals import UnreadableItem

R = TypeVar("R")

# Lambda filters by levels of its own names: a line of any other is taken for INFO.
logging.addLevelName(logging.WARNING, "WARN")
logging.addLevelName(logging.CRITICAL, "FATAL")

# It takes the level of a line into account where its time is of this form, and no other.
logger = Logger(
    json_serializer=partial(json.dumps, default=str, separators=(",", ":")),
    utc=True,
    use_rfc3339=True,
)


def quieten_libraries() -> None:
    """Lambda gives `LogLevel` to every logger of the process, and at DEBUG the SDK logs its
    requests and replies whole: payloads, secrets, the role's own credentials. The one above has a
    level of its own, and keeps it."""
    root = logging.getLogger()
    root.setLevel(max(root.level, logging.WARNING))


quieten_libraries()


def logs_failure(handler: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
    """The same handler; a run that fails says why in a record of the service's own. What Lambda
    itself logs of it has no level that counts, so above INFO it would be dropped."""

    @wraps(handler)
    def logging_failure(event: Any, context: Any) -> R:
        try:
            return handler(event, context)
        except Exception:
            logger.exception("run failed", action="run-failed")
            raise

    return logging_failure


def report_unreadable(damaged: UnreadableItem) -> None:
    """Counted by the alarm on unreadable items: the key of the item, and nothing of its content."""
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
