"""`make dead-letters` and `make redrive-dead-letters`: read a dead-letter queue, or empty it. That
of the notifiers goes into the queues of the two lanes, which its messages tell by themselves, that
of the ingest queue into the ingest queue.

Messages are moved one by one, sent before they are deleted. SQS has a task of its own for this
(StartMessageMoveTask), but that takes garbage along, which would come back after ten more tries,
and is not to be had on one machine. A move that dies in between leaves a message in both
queues, which does no harm: a page has a lease, and the sweep has seen to its tasks already; what
asks for tasks is told by its key.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import boto3

from duewheel.clock import Clock, SystemClock
from duewheel.rules.callback_headers import ATTEMPT
from duewheel.rules.ingest_message import KEY_ATTRIBUTE
from duewheel.rules.instants import rfc3339
from duewheel.rules.lanes import Lane
from duewheel.rules.messages import (
    DirectMessage,
    MalformedMessage,
    PageMessage,
    ReleaseMessage,
    decode,
)

BATCH = 10
HIDDEN_SECONDS = 60  # while they are looked at, and again visible afterwards
LOOKS_MAX = 3  # that find nothing, before the queue is taken for empty: SQS asks some servers only


def listed(sqs: Any, dead_url: str, clock: Clock) -> list[str]:
    """A line for each message; all of them are in the queue afterwards."""
    messages = list(_all(sqs, dead_url))
    for message in messages:
        sqs.change_message_visibility(
            QueueUrl=dead_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
    return [_line(message, clock.now_ms()) for message in messages]


def redriven(sqs: Any, dead_url: str, urls: Mapping[Lane, str]) -> tuple[Counter[Lane], int]:
    """How many were moved, and how many are no messages of this service and were left."""
    moved: Counter[Lane] = Counter()
    left = 0
    for message in _all(sqs, dead_url):
        try:
            lane = decode(message["Body"]).lane
        except MalformedMessage:
            left += 1
            continue
        sqs.send_message(QueueUrl=urls[lane], MessageBody=message["Body"])
        sqs.delete_message(QueueUrl=dead_url, ReceiptHandle=message["ReceiptHandle"])
        moved[lane] += 1
    return moved, left


def redriven_to_ingest(sqs: Any, dead_url: str, ingest_url: str) -> int:
    """How many were moved. Each keeps the key that it came under, so that what it has made already
    is not made again, and what shows that it is a callback, which is refused again; it loses the
    reason. Looked at before any is moved: what is refused once more is a new dead letter."""
    messages = list(_all(sqs, dead_url))
    for message in messages:
        given = message.get("MessageAttributes", {})
        key = given.get(KEY_ATTRIBUTE, {}).get("StringValue", message["MessageId"])
        attempt = {ATTEMPT: given[ATTEMPT]} if ATTEMPT in given else {}
        sqs.send_message(
            QueueUrl=ingest_url,
            MessageBody=message["Body"],
            MessageAttributes={
                KEY_ATTRIBUTE: {"DataType": "String", "StringValue": key},
                **attempt,
            },
        )
        sqs.delete_message(QueueUrl=dead_url, ReceiptHandle=message["ReceiptHandle"])
    return len(messages)


def _all(sqs: Any, url: str) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    empty = 0
    while empty < LOOKS_MAX:
        answer = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=BATCH,
            VisibilityTimeout=HIDDEN_SECONDS,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages = [m for m in answer.get("Messages", []) if m["MessageId"] not in seen]
        seen.update(message["MessageId"] for message in messages)
        empty = 0 if messages else empty + 1
        yield from messages


def _line(message: dict[str, Any], now_ms: int) -> str:
    attributes = message.get("Attributes", {})
    received = attributes.get("ApproximateReceiveCount", "?")
    sent_ms = int(attributes.get("SentTimestamp", now_ms))
    age_seconds = max(0, now_ms - sent_ms) // 1000
    what = _reason(message.get("MessageAttributes", {})) or _what(message["Body"])
    return f"{what}  received {received} times, sent {age_seconds} s ago"


def _reason(attributes: Mapping[str, Any]) -> str:
    """Of a message that asked for tasks; what it says itself is its sender's, and is not shown."""
    if "problem" not in attributes:
        return ""
    names = ("message-id", "problem", "detail")
    told = [attributes[name]["StringValue"] for name in names if name in attributes]
    return "  ".join(text.encode("ascii", "backslashreplace").decode() for text in told)


def _what(body: str) -> str:
    try:
        message = decode(body)
    except MalformedMessage:
        return f"no message of this service: {json.dumps(body[:60])}"
    match message:
        case PageMessage():
            at = rfc3339(message.second * 1000)
            places = f", {len(message.places)} entries" if message.places else ""
            lane = ", slow lane" if message.lane is Lane.SLOW else ""
            return f"{at}  shard {message.shard}, page {message.page}{places}{lane}"
        case DirectMessage():
            at = rfc3339(message.second * 1000)
            return f"{at}  {len(message.entries)} direct entries"
        case ReleaseMessage():
            return f"release of what is parked of {message.biz_type}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dead_letters", description=__doc__)
    parser.add_argument(
        "queue_url", help="the stack's output DeadLetterQueueUrl or IngestDeadLetterQueueUrl"
    )
    to = parser.add_mutually_exclusive_group()
    to.add_argument(
        "--redrive-to-ingest", metavar="INGEST_QUEUE_URL", help="the stack's output IngestQueueUrl"
    )
    to.add_argument(
        "--redrive-to",
        nargs=2,
        metavar=("SLICE_QUEUE_URL", "SLOW_QUEUE_URL"),
        help="the stack's outputs SliceQueueUrl and SlowQueueUrl",
    )
    asked = parser.parse_args(arguments)
    sqs = boto3.client("sqs")
    if asked.redrive_to_ingest is not None:
        count = redriven_to_ingest(sqs, asked.queue_url, asked.redrive_to_ingest)
        print(f"{count} moved to the ingest queue")
        return 0
    if asked.redrive_to is not None:
        slice_url, slow_url = asked.redrive_to
        urls = {Lane.MAIN: slice_url, Lane.SLOW: slow_url}
        moved, left = redriven(sqs, asked.queue_url, urls)
        print(
            f"{moved[Lane.MAIN]} moved to the slice queue, {moved[Lane.SLOW]} to the slow queue, "
            f"{left} left: no messages of this service"
        )
        return 0
    lines = listed(sqs, asked.queue_url, SystemClock())
    print("\n".join([*lines, f"{len(lines)} messages"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
