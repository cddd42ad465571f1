"""`make dead-letters` and `make redrive-dead-letters`: list a dead-letter queue, or empty it.

Messages of the notifiers go back to the queue of their lane, messages of the ingest queue to the
ingest queue. They are moved one by one and sent before they are deleted. SQS's own move
(StartMessageMoveTask) would also move invalid messages, and the local stack does not have it. A
move that stops in between leaves a message in both queues. That does no harm: a page has a lease,
and the sweep has handled its tasks already; an ingest message has its key.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from duewheel.clock import Clock, SystemClock
from duewheel.rules.callbacks.payload_encoding import ATTEMPT
from duewheel.rules.ingest.message import KEY_ATTRIBUTE
from duewheel.rules.ingest.verdict import CAME_AS
from duewheel.rules.instants import rfc3339
from duewheel.rules.wheel.queue_messages import (
    DirectMessage,
    Lane,
    MalformedMessage,
    PageMessage,
    ReleaseMessage,
    decode,
)
from infra.operate.region import take_region

BATCH = 10
HIDDEN_SECONDS = (
    900  # of messages that stay: they are not received again; at the end they are shown
)
# So many reads without a new message end the walk: SQS reads only some of its servers.
LOOKS_MAX = 3
LISTED_MAX = 10_000


def listed(sqs: Any, dead_url: str, clock: Clock) -> list[str]:
    """A line for each of the first LISTED_MAX; all messages are in the queue afterwards."""
    lines: dict[str, str] = {}

    def tell(message: dict[str, Any]) -> bool:
        lines[message["MessageId"]] = _line(message, clock.now_ms())
        return False

    _walk(sqs, dead_url, tell, is_over=lambda: len(lines) >= LISTED_MAX)
    return list(lines.values())


def redriven(sqs: Any, dead_url: str, urls: Mapping[Lane, str]) -> tuple[Counter[Lane], int]:
    """How many were moved, and how many were left since they are not messages of this service."""
    moved: Counter[Lane] = Counter()

    def move(message: dict[str, Any]) -> bool:
        try:
            lane = decode(message["Body"]).lane
        except MalformedMessage:
            return False
        sqs.send_message(QueueUrl=urls[lane], MessageBody=message["Body"])
        moved[lane] += 1
        return True

    return moved, _walk(sqs, dead_url, move)


def redriven_to_ingest(sqs: Any, dead_url: str, ingest_url: str) -> int:
    """How many were moved. Each keeps its key, so that its tasks are not created twice, and the
    attribute that marks a callback, which is refused again; it loses the reason. A message that is
    refused again is a new dead letter, and is not moved a second time."""
    sent: set[str] = set()

    def move(message: dict[str, Any]) -> bool:
        given = message.get("MessageAttributes", {})
        if given.get(CAME_AS, {}).get("StringValue") in sent:
            return False
        key = given.get(KEY_ATTRIBUTE, {}).get("StringValue", message["MessageId"])
        attempt = {ATTEMPT: given[ATTEMPT]} if ATTEMPT in given else {}
        answer = sqs.send_message(
            QueueUrl=ingest_url,
            MessageBody=message["Body"],
            MessageAttributes={
                KEY_ATTRIBUTE: {"DataType": "String", "StringValue": key},
                **attempt,
            },
        )
        sent.add(answer["MessageId"])
        return True

    _walk(sqs, dead_url, move)
    return len(sent)


def _walk(
    sqs: Any,
    url: str,
    is_moved: Callable[[dict[str, Any]], bool],
    is_over: Callable[[], bool] = lambda: False,
) -> int:
    """Pass each message on and delete it if it was moved. At the end show the others again. Returns
    their number."""
    left: dict[str, str] = {}
    in_vain = 0
    try:
        while in_vain < LOOKS_MAX and not is_over():
            received = {m["MessageId"]: m for m in _received(sqs, url)}
            in_vain = in_vain + 1 if received.keys() <= left.keys() else 0
            left.update({name: m["ReceiptHandle"] for name, m in received.items()})
            for name, message in received.items():
                if is_moved(message):
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=left[name])
                    del left[name]
    finally:
        _show(sqs, url, list(left.values()))
    return len(left)


def _received(sqs: Any, url: str) -> list[dict[str, Any]]:
    answer = sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=BATCH,
        VisibilityTimeout=HIDDEN_SECONDS,
        MessageSystemAttributeNames=["All"],
        MessageAttributeNames=["All"],
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def _show(sqs: Any, url: str, receipt_handles: list[str]) -> None:
    """If SQS fails to show a message now, it shows it when its hidden time is over."""
    for start in range(0, len(receipt_handles), BATCH):
        sqs.change_message_visibility_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(n), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                for n, handle in enumerate(receipt_handles[start : start + BATCH])
            ],
        )


def _line(message: dict[str, Any], now_ms: int) -> str:
    attributes = message.get("Attributes", {})
    received = attributes.get("ApproximateReceiveCount", "?")
    sent_ms = int(attributes.get("SentTimestamp", now_ms))
    age_seconds = max(0, now_ms - sent_ms) // 1000
    what = _reason(message.get("MessageAttributes", {})) or _what(message["Body"])
    return f"{_visible(what)}  received {received} times, sent {age_seconds} s ago"


def _visible(text: str) -> str:
    """Text of others must not end the line or control the terminal."""
    shown = (c if c.isascii() and c.isprintable() else ascii(c)[1:-1] for c in text)
    return "".join(shown)


def _reason(attributes: Mapping[str, Any]) -> str:
    """The reason of an ingest message. Its body is its sender's, and is not shown."""
    if "problem" not in attributes:
        return ""
    names = (CAME_AS, "problem", "detail")
    words = [attributes[name]["StringValue"] for name in names if name in attributes]
    return "  ".join(words)


def _what(body: str) -> str:
    try:
        message = decode(body)
    except MalformedMessage:
        return f"no message of this service: {json.dumps(body[:60])}"
    match message:
        case PageMessage():
            at = rfc3339(message.second * 1000)
            places = f", {len(message.places)} entries" if message.places else ""
            lane = "" if message.lane is Lane.MAIN else f", {message.lane} lane"
            return f"{at}  shard {message.shard}, page {message.page}{places}{lane}"
        case DirectMessage():
            at = rfc3339(message.second * 1000)
            return f"{at}  {len(message.entries)} direct entries"
        case ReleaseMessage():
            return f"release of parked tasks of {message.biz_type}"


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
    args = parser.parse_args(arguments)
    try:
        take_region()
        _done(boto3.client("sqs"), args)
    except (BotoCoreError, ClientError) as error:
        print(f"The dead letters were not read, or not all: {error}", file=sys.stderr)
        return 1
    return 0


def _done(sqs: Any, args: argparse.Namespace) -> None:
    if args.redrive_to_ingest is not None:
        count = redriven_to_ingest(sqs, args.queue_url, args.redrive_to_ingest)
        print(f"{count} moved to the ingest queue")
    elif args.redrive_to is not None:
        slice_url, slow_url = args.redrive_to
        urls = {Lane.MAIN: slice_url, Lane.SLOW: slow_url}
        moved, left = redriven(sqs, args.queue_url, urls)
        print(
            f"{moved[Lane.MAIN]} moved to the slice queue, {moved[Lane.SLOW]} to the slow queue, "
            f"{left} left: no messages of this service"
        )
    else:
        lines = listed(sqs, args.queue_url, SystemClock())
        more = ", and there are more" if len(lines) >= LISTED_MAX else ""
        print("\n".join([*lines, f"{len(lines)} messages{more}"]))


if __name__ == "__main__":
    sys.exit(main())
