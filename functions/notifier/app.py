"""A batch of messages: deliver each, and let undelivered ones come back.

Undelivered messages of the queue are reported. An asynchronous invocation has no such report: the
handler raises, so that Lambda invokes it again with the same event. Lambda may also run such an
event twice at once, with one request id: so each run owns its leases by a random token.
"""

from collections.abc import Iterable
from typing import Any

from duewheel.log import logger, logs_run
from duewheel.metrics import FAILED_MESSAGES, counts
from duewheel.rules.delivery.page_lease import LeaseHeld, PageFinished
from duewheel.rules.wheel.queue_messages import (
    DirectMessage,
    Lane,
    MalformedMessage,
    PageMessage,
    ReleaseMessage,
    decode,
    texts_of_event,
)
from duewheel.stores.dynamodb import is_for_load
from duewheel.wiring import notifier as wiring
from duewheel.wiring import process
from duewheel.wiring.process import answers_check, writes_metrics
from duewheel.workflows.delivery.hold import FAILED_COMES_AFTER_SECONDS, Hidden, Hold
from duewheel.workflows.gather_all import in_thread, outcomes_of

Result = LeaseHeld | PageFinished | BaseException
Receipts = dict[Lane, dict[str, list[str]]]  # by text


class MessagesLeft(Exception):
    """Fails an asynchronous invocation: Lambda repeats it after one minute, and after two more."""


@logs_run
@answers_check(wiring)
@writes_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any] | None:
    texts = texts_of_event(event)
    if texts is None:
        return _from_the_queue(event["Records"], context)
    names = [str(number) for number in range(len(texts))]
    results = _deliver_all(zip(names, texts, strict=True), context, {})
    left = sum(map(_is_left, names, texts, results))
    if left:
        raise MessagesLeft(f"{left} of {len(texts)} messages are left")
    return None


def _from_the_queue(records: list[Any], context: Any) -> dict[str, Any]:
    named_texts = ((r["messageId"], r["body"]) for r in records)
    results = _deliver_all(named_texts, context, _receipts(records))
    failed = [
        {"itemIdentifier": record["messageId"]}
        for record, result in zip(records, results, strict=True)
        if _is_left(record["messageId"], record["body"], result)
    ]
    return {"batchItemFailures": failed}


def _comes_after_seconds(result: LeaseHeld | BaseException) -> int:
    if isinstance(result, LeaseHeld):
        return (result.until_ms - process.clock().now_ms()) // 1000 + 1
    return FAILED_COMES_AFTER_SECONDS


def _receipts(records: list[Any]) -> Receipts:
    """Receipts of the messages that this run keeps hidden."""
    receipts: Receipts = {}
    for record in records:
        lane = _hidden_lane(record)
        if lane is not None:
            by_text = receipts.setdefault(lane, {})
            by_text.setdefault(record["body"], []).append(record["receiptHandle"])
    return receipts


def _hidden_lane(record: dict[str, Any]) -> Lane | None:
    """That whose queue the message is in: its own, unless it was redriven. None for an
    unreadable message, and for a release: its lease outlives the run, and the sweeper repeats
    it."""
    try:
        message = decode(record["body"])
    except MalformedMessage:
        return None
    if isinstance(message, ReleaseMessage):
        return None
    name = record.get("eventSourceARN", "").rpartition(":")[2]
    lanes = (lane for lane, queue in process.queues().items() if queue.url.endswith(f"/{name}"))
    return next(lanes, message.lane)


def _deliver_all(
    named_texts: Iterable[tuple[str, str]], context: Any, receipts: Receipts
) -> list[Result]:
    """A message that is in the batch twice, because the SDK sent it twice, is delivered once."""
    notifier = wiring.notifier()
    deadline_ms = process.clock().now_ms() + context.get_remaining_time_in_millis()
    texts: list[str] = []
    owners: dict[str, str] = {}  # by text
    run = wiring.token_of_a_run()
    for name, text in named_texts:
        texts.append(text)
        owners.setdefault(text, f"{run}:{name}")

    async def deliver(text: str, hold: Hold | None) -> LeaseHeld | PageFinished:
        return await notifier.deliver(decode(text), owners[text], deadline_ms, hold)

    async def deliver_hidden(text: str, hidden: Hidden) -> Result:
        """A held message becomes visible again though others of the batch take long."""
        (result,) = await outcomes_of([deliver(text, hidden.holds.get(text))])
        if not isinstance(result, PageFinished):
            await in_thread(hidden.leave, text, _comes_after_seconds(result))
        return result

    async def deliver_all_hidden() -> list[Result]:
        async with notifier.hide_messages(receipts) as hidden:
            return await outcomes_of(deliver_hidden(text, hidden) for text in owners)

    async def deliver_all() -> list[Result]:
        return await outcomes_of(deliver(text, None) for text in owners)

    ended = notifier.run(deliver_all_hidden() if receipts else deliver_all())
    results: dict[str, Result] = dict(zip(owners, ended, strict=True))
    return [results[text] for text in texts]


def _is_left(name: str, text: str, result: Result) -> bool:
    if isinstance(result, BaseException):
        if not (isinstance(result, Exception) and is_for_load(result)):  # which is logged elsewhere
            counts.add(FAILED_MESSAGES)
        logger.error(
            "message not delivered",
            action="message-failed",
            exc_info=result,
            message_id=name,
            **_about(text),
        )
    return not isinstance(result, PageFinished)


def _about(text: str) -> dict[str, Any]:
    """The log fields of its page or entries, as in the records of the sweeper."""
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
