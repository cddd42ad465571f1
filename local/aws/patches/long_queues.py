"""Lets moto keep thousands of messages in a queue without counting them at every call.

Invariant: same answers, same order. moto counts a queue's messages, thrice, for each one that is
sent, and reads the clock for each one that it looks at.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.sqs import models
from moto.sqs.exceptions import ReceiptHandleIsInvalid
from moto.sqs.models import Message, Queue, SQSBackend


@contextmanager
def queues_counted_when_asked() -> Iterator[None]:
    with ExitStack() as patched:
        send = SQSBackend.send_message

        def send_uncounted(*arguments: Any, **named: Any) -> Message:
            """moto's send reads one attribute of the queue, which is not in this list."""
            with patch.object(Queue, "BASE_ATTRIBUTES", []):
                return send(*arguments, **named)

        patched.enter_context(patch.object(SQSBackend, "send_message", send_uncounted))
        patched.enter_context(patch.object(Queue, "messages", property(_visible_messages)))
        patched.enter_context(patch.object(Queue, "delete_message", _delete))
        yield


def _visible_messages(queue: Any) -> list[Message]:
    now_ms = models.unix_time_millis()  # type: ignore[attr-defined]
    return [
        message
        for message in queue._messages
        if message.visible_at <= now_ms and message.delayed_until <= now_ms
    ]


def _delete(queue: Any, receipt_handle: str) -> None:
    if receipt_handle in queue.deleted_messages:
        return
    for number, message in enumerate(queue._messages):
        if (
            message.receipt_handle == receipt_handle
            or receipt_handle in message._old_receipt_handles
        ):
            queue.pending_messages.discard(message)
            queue.deleted_messages.update(message.all_receipt_handles)
            del queue._messages[number]
            return
    raise ReceiptHandleIsInvalid
