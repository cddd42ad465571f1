"""A message that requests tasks: the attributes of its queue, and the request in its body.

Invariant: the request depends only on the message, so reading it again gives the same request.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct

from duewheel.rules.access.grants import Permit
from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.payload_encoding import ATTEMPT
from duewheel.rules.fields import decode
from duewheel.rules.refusals import CallbackRefused, Refusal, TooLarge
from duewheel.rules.tasks.idempotency import HEADER, IdempotentRequest, idempotent_request
from duewheel.rules.tasks.requests import (
    BATCH_MEMBER,
    SINGLE_BYTES_MAX,
    bodies_of_batch,
    permitted,
    single_request,
    tasks_of_batch,
)
from duewheel.rules.tasks.task import NewTask

KEY_ATTRIBUTE = HEADER  # a message's attribute is named as the header of a request is
# Two days longer than a message or a dead letter is kept: for repeated messages, and for late
# redrives that have to wait.
REMEMBERED_SECONDS = 16 * 86_400
# One caller for all senders of the queue; it separates their keys from those of HTTP requests.
_CALLER = _PATH = "ingest"


class IngestMessage(Struct, frozen=True, kw_only=True):
    """`first_received_ms` and `receives`: when the queue first delivered it, and how often."""

    message_id: str
    receipt_handle: str
    body: str
    sender: str
    sent_ms: int
    first_received_ms: int
    receives: int
    attributes: Mapping[str, str]

    @property
    def key(self) -> str:
        """The key that identifies a repeat, of the sender or of the queue."""
        return self.attributes.get(KEY_ATTRIBUTE, self.message_id)


def message_of(record: Mapping[str, Any]) -> IngestMessage:
    """From a record of Lambda's event for a batch."""
    system = record["attributes"]
    attributes = record.get("messageAttributes", {})
    return IngestMessage(
        message_id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"],
        # The role without its session: all instances of a service are one sender.
        sender=system["SenderId"].partition(":")[0],
        sent_ms=int(system["SentTimestamp"]),
        first_received_ms=int(system["ApproximateFirstReceiveTimestamp"]),
        receives=int(system["ApproximateReceiveCount"]),
        attributes={name: value.get("stringValue") or "" for name, value in attributes.items()},
    )


class Wanted(Struct, frozen=True):
    """`bodies`: the tasks of a batch as they were written; None for a single task."""

    body: str
    bodies: list[Raw] | None

    @property
    def is_single(self) -> bool:
        return self.bodies is None

    def tasks(
        self, read_ms: int, allowed: AllowedTargets, permit: Permit
    ) -> list[NewTask | Refusal]:
        if self.bodies is not None:
            return permitted(tasks_of_batch(self.bodies, read_ms, allowed), permit)
        task = single_request(self.body, read_ms, allowed)
        permit.check(task.biz_type)
        return [task]


def wanted(message: IngestMessage) -> Wanted:
    if ATTEMPT in message.attributes:
        raise CallbackRefused(f"The message is a task's callback: it carries {ATTEMPT}.")
    if BATCH_MEMBER in decode(message.body, dict[str, Raw]):
        return Wanted(message.body, bodies_of_batch(message.body))
    size = len(message.body.encode())
    if size > SINGLE_BYTES_MAX:
        raise TooLarge(f"A single task has at most {SINGLE_BYTES_MAX} bytes; this one has {size}.")
    return Wanted(message.body, None)


def request_of(message: IngestMessage, *, is_single: bool) -> IdempotentRequest:
    return idempotent_request(
        _CALLER,
        message.key,
        _PATH,
        message.body,
        is_single=is_single,
        sent_ms=message.sent_ms,
        remembered_seconds=REMEMBERED_SECONDS,
    )
