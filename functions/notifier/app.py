"""A batch of messages: deliver each, and see to it that those that are left come back.

From the queue, by reporting them; past the queue, where nobody hears a report, by raising,
so that Lambda invokes the function again with the same event and the same request id.
"""

from collections.abc import Iterable
from typing import Any

from duewheel.log import logger, logs_failure
from duewheel.metrics import counts
from duewheel.rules.messages import (
    DirectMessage,
    MalformedMessage,
    PageMessage,
    ReleaseMessage,
    decode,
    texts_of_event,
)
from duewheel.rules.metric_lines import FAILED_MESSAGES
from duewheel.rules.page_lease import Finished, Held
from duewheel.stores.conditions import is_for_load
from duewheel.wiring import notifier as wiring
from duewheel.wiring import process
from duewheel.wiring.metrics import tells_metrics
from duewheel.workflows.carry_through import outcomes_of

Result = Held | Finished | BaseException


class MessagesLeft(Exception):
    """Of an invocation past the queue: Lambda tries again, in a minute and then in two."""


@logger.inject_lambda_context(clear_state=True)
@logs_failure
@tells_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any] | None:
    texts = texts_of_event(event)
    if texts is None:
        return _from_the_queue(event["Records"], context)
    names = [str(number) for number in range(len(texts))]
    results = _deliver_all(zip(names, texts, strict=True), context)
    left = sum(map(_is_left, names, texts, results))
    if left:
        raise MessagesLeft(f"{left} of {len(texts)} messages are left")
    return None


def _from_the_queue(records: list[Any], context: Any) -> dict[str, Any]:
    results = _deliver_all(((r["messageId"], r["body"]) for r in records), context)
    failed = []
    for record, result in zip(records, results, strict=True):
        if _is_left(record["messageId"], record["body"], result):
            failed.append({"itemIdentifier": record["messageId"]})
        if isinstance(result, Held):
            wait_seconds = (result.until_ms - process.clock().now_ms()) // 1000 + 1
            queue = process.queues()[decode(record["body"]).lane]
            queue.hide(record["receiptHandle"], wait_seconds)
    return {"batchItemFailures": failed}


def _deliver_all(named_texts: Iterable[tuple[str, str]], context: Any) -> list[Result]:
    """What stands in a batch twice, as it does when the SDK sent it twice, is worked off once:
    nothing would yet stand in the way of a second call."""
    notifier = wiring.notifier()
    deadline_ms = process.clock().now_ms() + context.get_remaining_time_in_millis()
    texts: list[str] = []
    owners: dict[str, str] = {}  # by text
    for name, text in named_texts:
        texts.append(text)
        owners.setdefault(text, f"{context.aws_request_id}:{name}")

    async def deliver(text: str) -> Held | Finished:
        return await notifier.deliver(decode(text), owners[text], deadline_ms)

    ended = notifier.run(outcomes_of(map(deliver, owners)))
    results: dict[str, Result] = dict(zip(owners, ended, strict=True))
    return [results[text] for text in texts]


def _is_left(name: str, text: str, result: Result) -> bool:
    if isinstance(result, BaseException):
        if not (isinstance(result, Exception) and is_for_load(result)):  # that is told by itself
            counts.add(FAILED_MESSAGES)
        logger.error(
            "message not delivered",
            action="message-failed",
            exc_info=result,
            message_id=name,
            **_about(text),
        )
    return not isinstance(result, Finished)


def _about(text: str) -> dict[str, Any]:
    """What it was to deliver, as the sweeper's records name it."""
    try:
        message = decode(text)
    except MalformedMessage:
        return {}
    match message:
        case PageMessage():
            return {"second": message.second, "shard": message.shard, "page": message.page}
        case DirectMessage():
            return {"second": message.second, "entries": message.entries}
        case ReleaseMessage():
            return {"biz_type": message.biz_type}
