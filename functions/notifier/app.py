"""A batch of queue messages: deliver each, and report those that must come back."""

import asyncio
from typing import Any

from duewheel.log import logger
from duewheel.rules.messages import decode
from duewheel.rules.page_lease import Finished, Held
from duewheel.wiring import notifier as wiring
from duewheel.wiring import process


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    notifier = wiring.notifier()
    records = event["Records"]
    deadline_ms = process.clock().now_ms() + context.get_remaining_time_in_millis()
    results = notifier.run(_deliver_all(notifier, records, context.aws_request_id, deadline_ms))
    failed = [
        {"itemIdentifier": record["messageId"]}
        for record, result in zip(records, results, strict=True)
        if not _is_done(record, result)
    ]
    return {"batchItemFailures": failed}


async def _deliver_all(
    notifier: wiring.Notifier, records: list[Any], request_id: str, deadline_ms: int
) -> list[Held | Finished | BaseException]:
    async def deliver(record: Any) -> Held | Finished:
        owner = f"{request_id}:{record['messageId']}"
        return await notifier.deliver(decode(record["body"]), owner, deadline_ms)

    return await asyncio.gather(*map(deliver, records), return_exceptions=True)


def _is_done(record: Any, result: Held | Finished | BaseException) -> bool:
    match result:
        case Finished():
            return True
        case Held(until_ms):
            wait_seconds = (until_ms - process.clock().now_ms()) // 1000 + 1
            process.slice_queue().hide(record["receiptHandle"], wait_seconds)
            return False
        case BaseException():
            logger.error(
                "message not delivered",
                action="message-failed",
                exc_info=result,
                message_id=record["messageId"],
            )
            return False
