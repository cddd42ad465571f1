"""The rules of SQS and Lambda for requests that send, hide or invoke."""

import re
from collections.abc import Mapping
from typing import Any

from tests.support.message_rules import NOT_ALLOWED, check_fifo, size_of_attributes
from tests.support.refused import refuse_if

MESSAGE_BYTES_MAX = 1024 * 1024  # of one message, and of all in a batch
BATCH_MAX = 10
DELAY_SECONDS_MAX = 900
VISIBILITY_SECONDS_MAX = 43_200
WAIT_SECONDS_MAX = 20
EVENT_BYTES_MAX = 1024 * 1024
REQUEST_BYTES_MAX = 6 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


def check_queue_call(operation: str, request: Mapping[str, Any]) -> None:
    entries = request.get("Entries")
    if operation.endswith("Batch") and entries is not None:
        _check_entries(operation, entries)
    for one in entries or [request]:
        _check_within(one, "DelaySeconds", 0, DELAY_SECONDS_MAX)
        _check_within(one, "VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX)
        refuse_if(one.get("ReceiptHandle") == "", "a receipt handle is empty")
    _check_within(request, "MaxNumberOfMessages", 1, BATCH_MAX)
    _check_within(request, "WaitTimeSeconds", 0, WAIT_SECONDS_MAX)
    if operation in ("SendMessage", "SendMessageBatch"):
        _check_messages(entries or [request], request["QueueUrl"])


def _check_entries(operation: str, entries: list[Mapping[str, Any]]) -> None:
    count = len(entries)
    refuse_if(not 1 <= count <= BATCH_MAX, f"{operation} has {count} entries, not 1 to {BATCH_MAX}")
    ids = [entry["Id"] for entry in entries]
    refuse_if(len(set(ids)) != count, f"{operation} has an Id twice: {ids}")
    for one in ids:
        refuse_if(_ID.fullmatch(one) is None, f"{operation} has an Id like {one!r}")


def _check_messages(messages: list[Mapping[str, Any]], queue_url: str) -> None:
    size = 0
    for message in messages:
        body = message["MessageBody"]
        refuse_if(not body, "a message is empty")
        refuse_if(NOT_ALLOWED.search(body) is not None, "a message has characters SQS refuses")
        size += len(body.encode()) + size_of_attributes(message)
        check_fifo(queue_url, message)
    refuse_if(size > MESSAGE_BYTES_MAX, f"{size} bytes of messages are over 1 MiB")


def _check_within(request: Mapping[str, Any], field: str, least: int, most: int) -> None:
    value = request.get(field, least)
    refuse_if(not least <= value <= most, f"{field} is {value}, not {least} to {most}")


def check_invocation(operation: str, request: Mapping[str, Any]) -> None:
    if operation != "Invoke":
        return
    payload = request.get("Payload", b"")
    size = len(payload.encode() if isinstance(payload, str) else payload)
    is_event = request.get("InvocationType") == "Event"
    most = EVENT_BYTES_MAX if is_event else REQUEST_BYTES_MAX
    refuse_if(size > most, f"a payload of {size} bytes is over {most}")
