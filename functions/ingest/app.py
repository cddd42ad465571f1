"""A batch of ingest messages: create the tasks of each, and report the messages that come back.

The content of a message is never logged: it may hold secrets of its sender.
"""

from typing import Any

from duewheel.log import logger, logs_run
from duewheel.metrics import FAILED_MESSAGES, counts
from duewheel.rules.ingest.message import IngestMessage, message_of
from duewheel.stores.dynamodb import is_for_load
from duewheel.wiring import ingest as wiring
from duewheel.wiring.process import answers_check, writes_metrics
from duewheel.workflows.ingest.ingest import Ingest, Ingested

# With less time left no message is begun: a repeat would have to wait for its unfinished request.
REMAINING_MS_MIN = 12_000


@logs_run
@answers_check(wiring)
@writes_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    ingest = wiring.ingest()
    left = [record for record in event["Records"] if not _is_done(ingest, record, context)]
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in left]}


def _is_done(ingest: Ingest, record: dict[str, Any], context: Any) -> bool:
    if context.get_remaining_time_in_millis() < REMAINING_MS_MIN:
        return False
    message = message_of(record)
    try:
        ingested = ingest(message, context.aws_request_id)
    except Exception as error:  # noqa: BLE001 - logged with its traceback; the message comes back
        if not is_for_load(error):  # which is logged elsewhere
            counts.add(FAILED_MESSAGES)
        logger.exception(
            "message not ingested", action="message-failed", message_id=message.message_id
        )
        return False
    logger.info("change", **_line(message, ingested))
    return not ingested.is_left


def _line(message: IngestMessage, ingested: Ingested) -> dict[str, Any]:
    """The caller and the change, as in the log of the api function: ids, and nothing of a body."""
    problem = {} if ingested.problem is None else {"problem": ingested.problem}
    return {
        "action": "change",
        "by": f"sqs/{message.sender}",
        "call": "ingest",
        "message_id": message.message_id,
        "task_ids": list(ingested.task_ids),
        "status": ingested.status,
        **problem,
    }
