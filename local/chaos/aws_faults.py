"""Faults of AWS calls, made in the calls that the emulator answers.

A fault happens below the SDK, which retries as with AWS: a write that was carried out and whose
answer was lost is sent again, and so on.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from random import Random
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ReadTimeoutError
from moto.core.models import botocore_stubber

Reply = tuple[int, dict[str, str], Any]
Handle = Callable[[Any], Reply | None]


class Fault(Enum):
    THROTTLED = "throttled"
    FAILED = "500, nothing done"
    FAILED_AFTER = "500, and yet done"
    LOST = "timed out, nothing done"
    LOST_AFTER = "timed out, and yet done"
    PARTIAL = "a part of the batch left undone"
    CONFLICT = "a transaction holds an item"
    IN_PROGRESS = "an earlier try of the transaction is under way"


_PARTS = {  # operation: the member of the answer with the parts that are left
    "BatchWriteItem": "UnprocessedItems",
    "BatchGetItem": "UnprocessedKeys",
    "SendMessageBatch": "Failed",
    "PutEvents": "Entries",  # in their order, done or not
}
_OF_ENTRIES = {"SendMessageBatch", "PutEvents"}
_SINGLE_WRITES = {"PutItem", "UpdateItem", "DeleteItem"}
_OF_SOME = {
    Fault.PARTIAL: set(_PARTS),
    Fault.CONFLICT: {*_SINGLE_WRITES, "TransactWriteItems"},
    Fault.IN_PROGRESS: {"TransactWriteItems"},
}


@contextmanager
def answered_by(wrapper: Callable[[Any, Handle], Reply | None]) -> Iterator[None]:
    """Let `wrapper` answer every AWS call; it gets the request and the real answerer."""
    handle: Handle = botocore_stubber.process_request
    with patch.object(
        botocore_stubber, "process_request", lambda request: wrapper(request, handle)
    ):
        yield


def operation_of(request: Any) -> str:
    target = request.headers.get("X-Amz-Target", b"")
    text = target.decode() if isinstance(target, bytes) else str(target)
    return text.rpartition(".")[2]


def possible_faults(operation: str) -> list[Fault]:
    return [fault for fault in Fault if operation in _OF_SOME.get(fault, {operation})]


def do(fault: Fault, request: Any, handle: Handle, chance: Random) -> Reply | None:
    match fault:
        case Fault.THROTTLED:
            return _refusal(request, 400, "ThrottlingException", "Rate exceeded")
        case Fault.FAILED:
            return _refusal(request, 500, "InternalServerError", "It could not be completed")
        case Fault.FAILED_AFTER:
            handle(request)
            return _refusal(request, 500, "InternalServerError", "It could not be completed")
        case Fault.LOST:
            raise ReadTimeoutError(endpoint_url=request.url)
        case Fault.LOST_AFTER:
            handle(request)
            raise ReadTimeoutError(endpoint_url=request.url)
        case Fault.PARTIAL:
            return in_part(request, handle, lambda _: chance.random() < 0.5)
        case Fault.CONFLICT:
            return _conflict(request, chance)
        case Fault.IN_PROGRESS:
            if chance.random() < 0.5:  # the earlier try may be carried out, or not
                handle(request)
            message = "Transaction token is in progress"
            return error_reply(400, "TransactionInProgressException", message)


def _conflict(request: Any, chance: Random) -> Reply:
    """The refusal while another transaction holds the item, or an item of this transaction."""
    if operation_of(request) in _SINGLE_WRITES:
        message = "Transaction is ongoing for the item"
        return error_reply(400, "TransactionConflictException", message)
    reasons = [{"Code": "None"} for _ in json.loads(request.body)["TransactItems"]]
    chance.choice(reasons)["Code"] = "TransactionConflict"
    message = "Transaction cancelled, please refer cancellation reasons for specific reasons"
    return error_reply(400, "TransactionCanceledException", message, CancellationReasons=reasons)


def _refusal(request: Any, status: int, code: str, message: str) -> Reply:
    if "form-urlencoded" not in str(request.headers.get("Content-Type", "")):
        return error_reply(status, code, message)
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    body = f"<ErrorResponse>{error}<RequestId>0</RequestId></ErrorResponse>"  # SNS's way
    return status, {"content-type": "text/xml"}, body


def error_reply(status: int, code: str, message: str, **members: Any) -> Reply:
    body = json.dumps({"__type": f"com.amazonaws#{code}", "message": message, **members})
    return status, {"content-type": "application/x-amz-json-1.0"}, body


def in_part(request: Any, handle: Handle, is_done: Callable[[Any], bool]) -> Reply | None:
    """Carry out the parts of a batch that `is_done` chooses, and leave the rest undone."""
    operation = operation_of(request)
    batch = json.loads(request.body)
    done, left = _split(operation, batch, is_done)
    if not _size(operation, done):
        return error_reply(400, "ThrottlingException", "Rate exceeded")
    reply = handle(_with_body(request, json.dumps(done)))
    if reply is None or reply[0] != 200:
        return reply
    status, headers, body = reply
    answer = json.loads(body)
    if operation == "PutEvents":
        events = iter(answer["Entries"])
        left = [refused or next(events) for refused in left]
        answer["FailedEntryCount"] = sum("ErrorCode" in entry for entry in left)
    else:
        _add(left, answer.get(_PARTS[operation]))  # what was left undone of that part
    answer[_PARTS[operation]] = left
    text = json.dumps(answer)
    kept = {name: value for name, value in headers.items() if "crc32" not in name.lower()}
    return status, {**kept, "content-length": str(len(text))}, text


def _split(operation: str, batch: Any, is_done: Callable[[Any], bool]) -> tuple[Any, Any]:
    """The batch of the parts that are carried out, and the answer's form of the rest."""
    if operation in _OF_ENTRIES:
        entries = batch["Entries"]
        done = [entry for entry in entries if is_done(entry)]
        left = [entry for entry in entries if entry not in done]
        if operation == "PutEvents":
            reason = {"ErrorCode": "InternalFailure", "ErrorMessage": "It could not be completed"}
            return {**batch, "Entries": done}, [None if e in done else reason for e in entries]
        failed = [{"Id": e["Id"], "Code": "InternalError", "SenderFault": False} for e in left]
        return {**batch, "Entries": done}, failed
    ((table, wanted),) = batch["RequestItems"].items()
    parts = wanted["Keys"] if operation == "BatchGetItem" else wanted
    fates = [(part, is_done(part)) for part in parts]
    done = [part for part, is_one_done in fates if is_one_done]
    rest = [part for part, is_one_done in fates if not is_one_done]

    def of_table(some: Any) -> Any:
        if not some:
            return {}
        return {table: {**wanted, "Keys": some} if operation == "BatchGetItem" else some}

    return {**batch, "RequestItems": of_table(done)}, of_table(rest)


def _add(left: Any, more: Any) -> None:
    """Add to the parts of a batch that are left undone."""
    if isinstance(more, list):
        left += more
        return
    for table, wanted in (more or {}).items():
        if isinstance(wanted, list):
            left[table] = [*left.get(table, []), *wanted]
        else:
            keys = left.get(table, {}).get("Keys", [])
            left[table] = {**wanted, "Keys": [*keys, *wanted["Keys"]]}


def _size(operation: str, batch: Any) -> int:
    return len(batch["Entries"] if operation in _OF_ENTRIES else batch["RequestItems"])


def _with_body(request: Any, body: str) -> AWSPreparedRequest:
    headers = request.headers.copy()
    headers["Content-Length"] = str(len(body))
    return AWSPreparedRequest(request.method, request.url, headers, body.encode(), False)
